/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* msglist.h - a list of streaming requests. Each gets the same responses, until its sender disconnects. */
#ifndef BROKER_MSGLIST_H
#define BROKER_MSGLIST_H

#include <stddef.h>

#include <idtree/handle.h>

struct msglist;

struct msglist *msglist_create (void); /* NULL with errno ENOMEM */
void msglist_destroy (struct msglist *fw);

/* Add a request (takes a reference of its own). Returns 0, or -1 with errno ENOSPC (QUOTA_FOLLOWERS) or ENOMEM, and
 * 'errp' filled.
 */
int msglist_add (struct msglist *fw, const idt_msg_t *request, idt_error_t *errp);

size_t msglist_count (const struct msglist *fw);

/* msglist_respond (): respond to all requests with a string (NULL: without a payload). msglist_end (): respond to all
 * with an error, and remove them.
 */
void msglist_respond (struct msglist *fw, idt_t *h, const char *s);
void msglist_end (struct msglist *fw, idt_t *h, int errnum);

/* Remove the requests of the client that sent this disconnect message. */
void msglist_disconnect (struct msglist *fw, const idt_msg_t *msg);

#endif /* BROKER_MSGLIST_H */
