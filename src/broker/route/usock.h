/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock.h - local clients: a UNIX socket server (protocol.md section 2)
 *
 * Each connection is a peer of the router.  Who connects is known from SO_PEERCRED; only the owner is let in.  A
 * client that has too much under way is not read until some of it is done.  One that sends garbage, or a long message too
 * slowly, or has all that may wait for it and reads nothing, loses its connection: nobody else notices.
 */
#ifndef BROKER_LOCAL_H
#define BROKER_LOCAL_H

#include <idtree/reactor.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"
#include "broker/route/router.h"

struct local;

struct local_ops {
    /* A request, response or event from a client (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    void (*gone) (void *arg, struct peer *p); /* before the router forgets it */
    void (*ready) (void *arg, struct peer *p, bool ready); /* whether it takes answers now; may be NULL */
};

/* Listen at 'path'.  A socket there that nobody serves is replaced; one that is served is an error.
 * NULL with errno set and 'errp' filled.
 */
struct local *local_create (idt_reactor_t *r, const char *path, struct attrs *attrs, struct router *router,
                            struct log *log, const struct local_ops *ops, void *arg, idt_error_t *errp);

/* Close all connections, remove the socket. */
void local_destroy (struct local *l);

/* Serve clients that have something, by turns, for a while.  Returns whether there were any. */
bool local_turn (struct local *l);
bool local_pending (const struct local *l); /* some have more */

/* Write what waits to be written to clients.  Called before the reactor sleeps. */
void local_flush (struct local *l);

size_t local_count (const struct local *l); /* clients */

#endif /* BROKER_LOCAL_H */
