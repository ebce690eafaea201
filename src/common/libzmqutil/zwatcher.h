/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zwatcher.h - ZeroMQ sockets on the reactor
 *
 * Asking a socket for its events costs more than an idle socket is worth, and its descriptor's edge may be eaten by
 * our own calls.  So a socket is asked only when it is dirty: its descriptor fired, or we sent or received on
 * it (zio_touch ()).  zpoll_turn () asks the dirty ones, before the reactor sleeps.
 */
#ifndef BROKER_ZIO_H
#define BROKER_ZIO_H

#include <stdbool.h>

#include <idtree/reactor.h>

struct zpoll;
struct zio;

#define ZIO_BUDGET 32 /* calls for one socket before others get their turn */

/* Called while the socket is readable, to receive one message without blocking. */
typedef void (*zio_f) (struct zio *zs, void *arg);

struct zpoll *zpoll_create (idt_reactor_t *r); /* NULL with errno ENOMEM */
void zpoll_destroy (struct zpoll *zp);

/* Serve the dirty sockets.  Returns whether some are still dirty: then do not sleep, and call again. */
bool zpoll_turn (struct zpoll *zp);

/* Watch 'sock' (becomes ours: zio_destroy () closes it).  NULL with errno set. */
struct zio *zio_create (struct zpoll *zp, void *sock, zio_f cb, void *arg);
void zio_destroy (struct zio *zs); /* also from its own callback */

void *zio_socket (struct zio *zs);

/* We sent or received on it. */
void zio_touch (struct zio *zs);

#endif /* BROKER_ZIO_H */
