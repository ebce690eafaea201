/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zwatcher.h - ZeroMQ sockets on the reactor
 *
 * Polling every socket in each turn would be slow, and the edge-triggered descriptor of a socket may be reset by this
 * thread's own calls. Therefore a socket is read only while it is dirty. It becomes dirty when its descriptor becomes
 * readable, or when this thread sends on it (zwatcher_touch ()). zpoll_turn () serves the dirty sockets before the
 * reactor sleeps.
 */
#ifndef LIBZMQUTIL_ZWATCHER_H
#define LIBZMQUTIL_ZWATCHER_H

#include <idtree/reactor.h>
#include <stdbool.h>

#include "common/libzmqutil/zwatcher.h"

struct zpoll;
struct zwatcher;

#define ZWATCHER_BUDGET 32 /* calls for one socket before others get their turn */

/* Receive one message without blocking. Returns whether there was a message; if so, it is called again. */
typedef bool (*zwatcher_f) (struct zwatcher *zs, void *arg);

struct zpoll *zpoll_create (idt_reactor_t *r); /* NULL with errno ENOMEM */
void zpoll_destroy (struct zpoll *zp);

/* Set a function that zwatcher_wake () calls. It must cause a call of zpoll_turn (), because no descriptor ends the
 * reactor's sleep.
 */
void zpoll_set_wake (struct zpoll *zp, void (*wake) (void *arg), void *arg);

/* Serve the dirty sockets. Returns whether some sockets are still dirty. If so, the reactor must not sleep, and
 * zpoll_turn () must be called again.
 */
bool zpoll_turn (struct zpoll *zp);
bool zpoll_pending (const struct zpoll *zp); /* whether some sockets are dirty */

/* Open a socket of 'type' with linger 0, and watch it. NULL with errno set. */
struct zwatcher *zwatcher_create (struct zpoll *zp, void *ctx, int type, zwatcher_f cb, void *arg);

/* A watcher without a ZeroMQ socket. It is dirty at first, and again after each zwatcher_wake (). NULL with errno
 * ENOMEM.
 */
struct zwatcher *zwatcher_create_plain (struct zpoll *zp, zwatcher_f cb, void *arg);
void zwatcher_destroy (struct zwatcher *zs); /* closes the socket; allowed in the watcher's own callback */

void *zwatcher_socket (struct zwatcher *zs); /* NULL: the watcher has no socket */

/* Set an option that is a number.  Returns 0, or -1 with errno set. */
int zwatcher_set (struct zwatcher *zs, int option, int value);

/* Call this after a send, or after a receive outside of the callback. */
void zwatcher_touch (struct zwatcher *zs);

/* Like zwatcher_touch (), but may be called at any time: it also wakes the reactor. */
void zwatcher_wake (struct zwatcher *zs);

/* A monitor reports events on the connections of a socket. */
struct monitor;

/* 'event' is one of ZMQ_EVENT_*; 'value' is libzmq's value for it, usually the descriptor of the connection. */
typedef void (*monitor_f) (int event, int value, void *arg);

/* Watch 'sock' for the events in the mask 'events'.  Destroy before the socket is closed.  NULL with errno set. */
struct monitor *monitor_create (struct zpoll *zp, void *ctx, void *sock, int events, monitor_f cb, void *arg);
void monitor_destroy (struct monitor *m); /* allowed in the monitor's own callback */

/* Call the callback for all events that have happened so far. */
void monitor_drain (struct monitor *m);

#endif /* LIBZMQUTIL_ZWATCHER_H */
