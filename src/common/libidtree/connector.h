/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connector.h - one attempt to connect to a broker, without blocking
 *
 * The broker's first byte is 0, or the errno with which it refuses the connection. If the URI names one of the ranks
 * that a process hosts, the client first requests that rank. Then it requests the UUID of the broker's instance,
 * because responses of different instances must not be mixed. Last, it sends the requests that were made
 * over the lost connection and must be repeated. The connection is ready when all of these have been answered.
 */
#ifndef LIBIDTREE_CONNECTOR_H
#define LIBIDTREE_CONNECTOR_H

#include <idtree/error.h>
#include <idtree/msg.h>

#include "libidtree/reconnect.h"
#include "libmsg/stream.h"

#define CONNECTOR_RETRY_MS 10.     /* how long to wait if connector_fd () has no descriptor */
#define CONNECTOR_INSTANCE_MAX 128 /* bytes of an instance's UUID, with its NUL */

struct connector;

/* Begin to connect to 'to' (borrowed). 'instance' (borrowed) is the UUID of the instance that the broker must belong
 * to. "" permits any instance. NULL: the connector neither requests the broker's instance nor repeats requests. A
 * broker that does not know its instance counts as a broker of instance "": brokers of Flux never know it, and a broker
 * of idtree does not know it before it has joined. Returns NULL with errno set.
 */
struct connector *connector_create (const struct uri *to, const char *instance);
void connector_destroy (struct connector *d); /* NULL is allowed; keeps errno */

/* Add a request (copied) that the attempt sends. Must be called before the first connector_go_on (). Returns 0, or -1
 * with errno ENOMEM.
 */
int connector_ask (struct connector *d, const idt_msg_t *request);

/* Do all steps that are possible without waiting. Returns 0 when the connection is ready, or -1 with errno set:
 *   EAGAIN    not ready yet: wait for connector_fd ()
 *   ESTALE    the broker belongs to another instance
 *   ENOTCONN  the broker does not know its instance yet
 *   others    the reason why the connection failed
 * After an error other than EAGAIN the attempt has failed, and 'errp' is a sentence that begins with the URI.
 */
int connector_go_on (struct connector *d, idt_error_t *errp);

/* connector_fd (): the descriptor to wait for. Wait until it is readable, and also until it is writable if
 * connector_wants_write () returns true. -1: there is no descriptor; wait CONNECTOR_RETRY_MS instead.
 */
int connector_fd (const struct connector *d);
bool connector_wants_write (const struct connector *d);

/* Results of an attempt that is ready. connector_instance (): the UUID of the instance. connector_early (): the next
 * message that arrived during the attempt and is not a response to its requests; the caller must unref the message;
 * NULL: no further one. connector_take (): the connection, which the caller owns from then on.
 */
const char *connector_instance (const struct connector *d);
const idt_msg_t *connector_early (struct connector *d);
void connector_take (struct connector *d, int *fd, struct msg_stream **stream);

#endif /* LIBIDTREE_CONNECTOR_H */
