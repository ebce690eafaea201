/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel_private.h - what channel.c (sending and queues) and channel_receive.c (receiving) share */
#ifndef BROKER_CHANNEL_PRIVATE_H
#define BROKER_CHANNEL_PRIVATE_H

#include "broker/overlay/channel.h"

enum link_class channel_class_of (const idt_msg_t *msg); /* by its type */
void channel_piece_clear (struct piece *p);

/* Send the other side further credit if a grant is due. */
void channel_grant (struct channel *ch);

#endif /* BROKER_CHANNEL_PRIVATE_H */
