/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zwatcher.h - ZeroMQ sockets on the reactor
 *
 * Polling every socket in each turn would be slow, and the edge-triggered descriptor of a socket may be reset by this
 * thread's own calls. Therefore a socket is read only while it is dirty: its descriptor became readable, or this thread
 * sent on it (zwatcher_touch ()). zpoll_turn () serves the dirty sockets before the reactor sleeps.
 */
#ifndef LIBZMQUTIL_ZWATCHER_H
#define LIBZMQUTIL_ZWATCHER_H

#include <idtree/reactor.h>
#include <stdbool.h>

#include "common/libzmqutil/zwatcher.h"

struct zpoll;
struct zwatcher;

#define ZWATCHER_BUDGET 32 /* calls for one socket before others get their turn */

/* Receive one message without blocking. Returns whether there was one; if so, it is called again. */
typedef bool (*zwatcher_f) (struct zwatcher *zs, void *arg);

struct zpoll *zpoll_create (idt_reactor_t *r); /* NULL with errno ENOMEM */
void zpoll_destroy (struct zpoll *zp);

/* Set a function that is called when zpoll_turn () is needed although no descriptor ends the sleep: zwatcher_wake ().
 */
void zpoll_set_wake (struct zpoll *zp, void (*wake) (void *arg), void *arg);

/* Serve the dirty sockets. Returns whether some are still dirty: then the reactor must not sleep, but call this again.
 */
bool zpoll_turn (struct zpoll *zp);
bool zpoll_pending (const struct zpoll *zp); /* some are dirty */

/* Open a socket of 'type' with linger 0, and watch it. NULL with errno set. */
struct zwatcher *zwatcher_create (struct zpoll *zp, void *ctx, int type, zwatcher_f cb, void *arg);

/* A watcher without a ZeroMQ socket: it is dirty at first, and after zwatcher_wake (). NULL with errno ENOMEM. */
struct zwatcher *zwatcher_create_plain (struct zpoll *zp, zwatcher_f cb, void *arg);
void zwatcher_destroy (struct zwatcher *zs); /* closes it; allowed in its own callback */

void *zwatcher_socket (struct zwatcher *zs); /* NULL: it has none */

/* Set an option that is a number.  Returns 0, or -1 with errno set. */
int zwatcher_set (struct zwatcher *zs, int option, int value);

/* Call this after a send, or after a receive outside of the callback. */
void zwatcher_touch (struct zwatcher *zs);

/* Like zwatcher_touch (), called at any time by another part of the thread. */
void zwatcher_wake (struct zwatcher *zs);

/* A monitor reports events on the connections of a socket. */
struct monitor;

/* 'event' is one of ZMQ_EVENT_*; 'value' is libzmq's value for it, usually the descriptor of the connection. */
typedef void (*monitor_f) (int event, int value, void *arg);

/* Watch 'sock' for the events in the mask 'events'.  Destroy before the socket is closed.  NULL with errno set. */
struct monitor *monitor_create (struct zpoll *zp, void *ctx, void *sock, int events, monitor_f cb, void *arg);
void monitor_destroy (struct monitor *m); /* also from its own callback */

/* Call the callback for all events that have happened so far. */
void monitor_drain (struct monitor *m);

#endif /* LIBZMQUTIL_ZWATCHER_H */
