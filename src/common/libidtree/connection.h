/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.h - a client's connection to a broker over a UNIX socket, and the next one after a loss
 *
 * It is the transport of a client's handle. When the handle finds that the connection is lost, it calls
 * connection_seek (); then a blocking call drives the attempts at the next one (connection_wait ()), or a reactor does
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
    /* An attempt begins: add requests to it (connector_ask ()). Returns 0, or -1 with errno ENOMEM. */
    int (*begin) (struct connector *attempt, void *arg);

    /* Whether a message that was held must no longer be sent. */
    bool (*is_over) (const idt_msg_t *msg, void *arg);

    /* The attempt succeeded: take the messages that arrived meanwhile (connector_early ()). Returns 0, or -1 with errno
     * set, after which the search fails. Then the held messages are sent, and 'connected' is called.
     */
    int (*arrived) (struct connector *attempt, void *arg);
    void (*connected) (void *arg);

    void (*failed) (int errnum, void *arg);
};

extern const struct idt_transport connection_transport; /* 'impl' is a struct connection, which it frees */

/* Connect to a broker of the list 'uris', as idt_open_ex (). */
struct connection *connection_open (const char *uris, const struct idt_open_options *options, idt_error_t *errp);
void connection_destroy (struct connection *c); /* keeps errno */

/* Call before the first connection_seek (). 'ops' is borrowed. */
void connection_set_ops (struct connection *c, const struct connection_ops *ops, void *arg);

const char *connection_uri (const struct connection *c);   /* of the broker in use, or of the last one */
const char *connection_error (const struct connection *c); /* why the last attempt failed; "": it did not */

/* The UUID of the instance; "": not known. connection_is_of (): whether a broker of 'instance' may be used: true if
 * either instance is unknown or if they are the same.
 */
const char *connection_instance (const struct connection *c);
void connection_set_instance (struct connection *c, const char *instance);
bool connection_is_of (const struct connection *c, const char *instance);

/* Start to look for another connection after a loss, unless that has begun recently. */
void connection_seek (struct connection *c);
bool connection_is_sought (const struct connection *c);

/* An attempt in progress sends an outdated list of requests: start the attempt again. */
void connection_restart (struct connection *c);

/* Keep a message for the next connection. Returns 0, or -1 with errno ENOBUFS or ENOMEM. */
int connection_hold (struct connection *c, const idt_msg_t *msg);

/* While a connection is sought: wait until something happens, at most until 'deadline_ms'. Returns 0, or -1 with errno
 * ETIMEDOUT or as poll (2).
 */
int connection_wait (struct connection *c, double deadline_ms);

/* Let a reactor look for the connection while one is sought. NULL: end that. */
void connection_watch (struct connection *c, idt_reactor_t *reactor);

/* Sleep until 'pfd' (its fd may be negative) is ready, or until 'deadline_ms' of CLOCK_MONOTONIC (negative: no limit).
 * Returns 0, also for a signal, with 'revents' set; or -1 with errno ETIMEDOUT or as poll (2).
 */
int connection_poll (struct pollfd *pfd, double deadline_ms);

/* How long to sleep: until 'deadline_ms' (as above), or until the next call of the interrupt callback if 'asks'. */
double connection_sleep_until (bool asks, double deadline_ms);

#endif /* LIBIDTREE_CONNECTION_H */
