/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message.h - converts messages between libflux and libidtree. Both encode a message in the same bytes (RFC 3), so one
 * decodes what the other encodes.
 */
#ifndef FLUX_MESSAGE_H
#define FLUX_MESSAGE_H

#include <flux/core.h>

#include <idtree/msg.h>

/* Convert a message. Return a new one, or NULL with errno set (ENOMEM, EPROTO). */
idt_msg_t *message_from_flux (const flux_msg_t *msg);
flux_msg_t *message_to_flux (const idt_msg_t *msg);

#endif /* FLUX_MESSAGE_H */
