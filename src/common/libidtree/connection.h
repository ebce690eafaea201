/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.h - a client's connection to a broker over a UNIX socket; after a loss, the search for another connection
 *
 * A connection is the transport of a client's handle. When the handle finds that the connection is lost, it calls
 * connection_seek (). Then either a blocking call makes the attempts to connect (connection_wait ()), or a reactor does
 * (connection_watch ()). Each search ends with one call of 'connected' or 'failed'.
 */
#ifndef LIBIDTREE_CONNECTION_H
#define LIBIDTREE_CONNECTION_H

#include <poll.h>

#include <idtree/handle.h>

#include "libidtree/connector.h"
#include "libidtree/transport.h"

struct connection;

/* Functions of the handle that its connection calls. */
struct connection_ops {
    /* An attempt begins: add requests to 'attempt' with connector_ask (). Returns 0, or -1 with errno ENOMEM. */
    int (*begin) (struct connector *attempt, void *arg);

    /* Whether the handle no longer needs a held message, so that it is not sent. */
    bool (*is_over) (const idt_msg_t *msg, void *arg);

    /* The attempt succeeded: take the messages that arrived during the attempt (connector_early ()). Returns 0. The
     * connection then sends the held messages and calls 'connected'. If 'arrived' returns -1 with errno set, the search
     * fails.
     */
    int (*arrived) (struct connector *attempt, void *arg);
    void (*connected) (void *arg);

    void (*failed) (int errnum, void *arg);
};

extern const struct idt_transport connection_transport; /* 'impl' is a struct connection, which the transport owns */

/* Connect to a broker of the list 'uris', as idt_open_ex (). */
struct connection *connection_open (const char *uris, const struct idt_open_options *options, idt_error_t *errp);
void connection_destroy (struct connection *c); /* keeps errno */

/* Set the functions that the connection calls. Must be called before the first connection_seek (). 'ops' is borrowed.
 */
void connection_set_ops (struct connection *c, const struct connection_ops *ops, void *arg);

const char *connection_uri (const struct connection *c);   /* URI of the broker in use, or of the last one */
const char *connection_error (const struct connection *c); /* why the last attempt failed; "" if it succeeded */

/* connection_instance (): the UUID of the instance; "": not known. connection_is_of (): whether this client may use a
 * broker of 'instance'. It may if one of the two instances is unknown, or if they are the same.
 */
const char *connection_instance (const struct connection *c);
void connection_set_instance (struct connection *c, const char *instance);
bool connection_is_of (const struct connection *c, const char *instance);

/* Start to look for another connection after a loss, unless a search has begun less than RECONNECT_PATIENCE_MS ago. */
void connection_seek (struct connection *c);
bool connection_is_sought (const struct connection *c);

/* Start the attempt in progress again, because its list of requests is outdated. */
void connection_restart (struct connection *c);

/* Keep a message for the next connection. Returns 0, or -1 with errno ENOBUFS or ENOMEM. */
int connection_hold (struct connection *c, const idt_msg_t *msg);

/* Wait until an attempt can continue, at most until 'deadline_ms'; only while a connection is sought. Returns 0, or -1
 * with errno ETIMEDOUT or as poll (2).
 */
int connection_wait (struct connection *c, double deadline_ms);

/* Let a reactor make the attempts while a connection is sought. NULL: no reactor makes them from then on. */
void connection_watch (struct connection *c, idt_reactor_t *reactor);

/* Sleep until 'pfd' is ready (a negative fd never is), or until 'deadline_ms' of CLOCK_MONOTONIC (negative: no limit).
 * Returns 0 with 'revents' set, also after a signal ('revents' is 0 then). Returns -1 with errno ETIMEDOUT or as poll
 * (2).
 */
int connection_poll (struct pollfd *pfd, double deadline_ms);

/* The time until which to sleep: 'deadline_ms' (as above), or, if 'asks' is set and it is earlier, the time at which
 * the interrupt callback is to be called next.
 */
double connection_sleep_until (bool asks, double deadline_ms);

#endif /* LIBIDTREE_CONNECTION_H */
