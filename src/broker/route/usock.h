/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock.h - local clients: a UNIX socket server (protocol.md section 2)
 *
 * Each connection is a peer of the router.  Who connects is known from SO_PEERCRED; only the owner is let in.  A
 * client that has too much under way is not read until some of it is done.  One that sends garbage, or a long message
 * too slowly, or has all that may wait for it and reads nothing, loses its connection: nobody else notices.
 *
 * Brokers of one process need not have a socket each: a client may say which rank it means, at the socket of another.
 * Until it has said something there it is nobody's: no rank's limits count, and none must be at work.
 */
#ifndef BROKER_USOCK_H
#define BROKER_USOCK_H

#include <idtree/reactor.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"
#include "broker/route/router.h"

struct usock;
struct usocks;

struct usock_ops {
    /* A request, response or event from a client (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    void (*gone) (void *arg, struct peer *p);              /* before the router forgets it */
    void (*ready) (void *arg, struct peer *p, bool ready); /* whether it takes answers now; may be NULL */
    void (*woke) (void *arg);                              /* usock_turn () has something to do; may be NULL */
};

/* What those of a process share: sockets, spare descriptors, and limits of the whole process.  'r' is its loop, which
 * works whatever becomes of one rank.  NULL with errno ENOMEM.
 */
struct usocks *usocks_create (idt_reactor_t *r);
void usocks_destroy (struct usocks *all); /* when each of them is gone; NULL is fine */

/* Serve clients of 'rank': those of a socket at 'path', and those that ask for the rank at another one of the process.
 * The first rank that a process ever had, and each of the attribute local.sockets, has a socket; the others cost no
 * descriptor.  That of the first is there as long as the process has any rank.  A socket there that nobody serves is
 * replaced; one that is served is an error.  NULL with errno set and 'errp' filled.
 */
struct usock *usock_create (struct usocks *all, idt_reactor_t *r, const char *path, uint32_t rank, struct attrs *attrs,
                            struct router *router, struct log *log, const struct usock_ops *ops, void *arg,
                            idt_error_t *errp);

/* Close all connections, and the socket, unless it is that of the first and others are left. */
void usock_destroy (struct usock *l);

/* Where clients reach it: local://PATH, or local://PATH?rank=RANK of another's socket.  Cut off at 'size'. */
void usock_uri (const struct usock *l, char *buf, size_t size);

/* Serve clients that have something, by turns, for a while. */
void usock_turn (struct usock *l);
bool usock_pending (const struct usock *l); /* some have more */

/* Write what waits to be written to clients.  Called before the reactor sleeps. */
void usock_flush (struct usock *l);

size_t usock_count (const struct usock *l); /* clients */

/* Whether a client has not read yet all that was written to it. */
bool usock_unread (const struct usock *l);

#endif /* BROKER_USOCK_H */
