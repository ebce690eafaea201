/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* dial.h - one try to connect to a broker, without waiting
 *
 * The broker's first byte is 0, or the errno with which it turns us away.  Where the URI names a rank, of those that a
 * process hosts, that is asked for before anything else.  Then the broker is asked which instance it belongs to: what
 * one instance answered must not go on with the answers of another.  Last come the requests that the connection before
 * had made and this one has to make again.  It is ready when all of them were answered.
 */
#ifndef LIBIDTREE_CONNECT_DIAL_H
#define LIBIDTREE_CONNECT_DIAL_H

#include <idtree/error.h>
#include <idtree/msg.h>

#include "libidtree/connect/uris.h"
#include "libmsg/stream.h"

#define DIAL_RETRY_MS 10.     /* to wait where there is no descriptor to wait for */
#define DIAL_INSTANCE_MAX 128 /* bytes of the name of an instance, with its NUL */

struct dial;

/* Begin a connection to 'to' (borrowed).  'instance' (borrowed): the one that it must belong to, "" any, NULL: do not
 * ask, for nothing is said again.  A broker that does not know (Flux has none such, one that has not joined yet will)
 * belongs to "", which may become another.  Returns NULL with errno set.
 */
struct dial *dial_create (const struct uri *to, const char *instance);
void dial_destroy (struct dial *d); /* NULL is fine; keeps errno */

/* A request to be made (copied); before the first dial_go_on ().  Returns 0, or -1 with errno ENOMEM. */
int dial_ask (struct dial *d, const idt_msg_t *request);

/* Do what can be done now.  Returns 0 when it is ready, or -1 with errno set:
 *   EAGAIN  not yet: wait for dial_fd ()
 *   ESTALE  the broker belongs to another instance
 *   ENOTCONN  it does not know to which
 * and any other that says why there is no connection.  But for EAGAIN it is over, and 'errp' has a sentence that begins
 * with the URI.
 */
int dial_go_on (struct dial *d, idt_error_t *errp);

/* Wait until it can be read, or written where that is wanted.  -1: go on after DIAL_RETRY_MS. */
int dial_fd (const struct dial *d);
bool dial_wants_write (const struct dial *d);

/* Of one that is ready: the instance; the next message that came meanwhile, for the caller to unref (NULL: no more);
 * and what it is all about, which is the caller's from then on.
 */
const char *dial_instance (const struct dial *d);
const idt_msg_t *dial_early (struct dial *d);
void dial_take (struct dial *d, int *fd, struct msg_stream **stream);

#endif /* LIBIDTREE_CONNECT_DIAL_H */
