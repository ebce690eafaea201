/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zsock.h - ZeroMQ sockets on the reactor
 *
 * Asking a socket for its events costs more than an idle socket is worth, and its descriptor's edge may be eaten by
 * our own calls.  So a socket is asked only when it is dirty: its descriptor fired, or we sent or received on
 * it (zsock_touch ()).  zpoll_turn () asks the dirty ones, before the reactor sleeps.
 */
#ifndef BROKER_ZSOCK_H
#define BROKER_ZSOCK_H

#include <stdbool.h>

#include <idtree/reactor.h>

struct zpoll;
struct zsock;

#define ZSOCK_BUDGET 64 /* calls for one socket before others get their turn */

/* Called while the socket is readable, to receive one message without blocking. */
typedef void (*zsock_f) (struct zsock *zs, void *arg);

struct zpoll *zpoll_create (idt_reactor_t *r); /* NULL with errno ENOMEM */
void zpoll_destroy (struct zpoll *zp);

/* Serve the dirty sockets.  Returns whether some are still dirty: then do not sleep, and call again. */
bool zpoll_turn (struct zpoll *zp);

/* Watch 'sock' (becomes ours: zsock_destroy () closes it).  NULL with errno set. */
struct zsock *zsock_create (struct zpoll *zp, void *sock, zsock_f cb, void *arg);
void zsock_destroy (struct zsock *zs); /* also from its own callback */

void *zsock_socket (struct zsock *zs);

/* We sent or received on it. */
void zsock_touch (struct zsock *zs);

#endif /* BROKER_ZSOCK_H */
