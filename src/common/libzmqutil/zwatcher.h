/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zwatcher.h - ZeroMQ sockets on the reactor
 *
 * Asking a socket whether it has something costs more than an idle socket is worth, and its descriptor's edge may be
 * eaten by our own calls.  So it is asked, by receiving, only when it is dirty: its descriptor fired, or we sent on it
 * (zwatcher_touch ()).  zpoll_turn () serves the dirty ones, before the reactor sleeps.
 */
#ifndef LIBZMQUTIL_ZWATCHER_H
#define LIBZMQUTIL_ZWATCHER_H

#include <stdbool.h>

#include <idtree/reactor.h>

struct zpoll;
struct zwatcher;

#define ZWATCHER_BUDGET 32 /* calls for one socket before others get their turn */

/* Receive one message without blocking.  Returns whether there was one: then it is called again. */
typedef bool (*zwatcher_f) (struct zwatcher *zs, void *arg);

struct zpoll *zpoll_create (idt_reactor_t *r); /* NULL with errno ENOMEM */
void zpoll_destroy (struct zpoll *zp);

/* Have 'wake' called where zpoll_turn () is wanted, and no descriptor ends the sleep: zwatcher_wake (). */
void zpoll_set_wake (struct zpoll *zp, void (*wake) (void *arg), void *arg);

/* Serve the dirty sockets.  Returns whether some are still dirty: then do not sleep, and call again. */
bool zpoll_turn (struct zpoll *zp);
bool zpoll_pending (const struct zpoll *zp); /* some are dirty */

/* Open a socket of 'type' that does not linger, and watch it.  NULL with errno set. */
struct zwatcher *zwatcher_create (struct zpoll *zp, void *ctx, int type, zwatcher_f cb, void *arg);

/* One without a socket is dirty at first, and when it is told.  NULL with errno ENOMEM. */
struct zwatcher *zwatcher_create_plain (struct zpoll *zp, zwatcher_f cb, void *arg);
void zwatcher_destroy (struct zwatcher *zs); /* closes it; also from its own callback */

void *zwatcher_socket (struct zwatcher *zs); /* NULL: it has none */

/* Set an option that is a number.  Returns 0, or -1 with errno set. */
int zwatcher_set (struct zwatcher *zs, int option, int value);

/* We sent on it, or received outside of its callback. */
void zwatcher_touch (struct zwatcher *zs);

/* The same, told by somebody else, at any time. */
void zwatcher_wake (struct zwatcher *zs);

#endif /* LIBZMQUTIL_ZWATCHER_H */
