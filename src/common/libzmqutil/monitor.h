/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* monitor.h - report events on the connections of a ZeroMQ socket */
#ifndef BROKER_MONITOR_H
#define BROKER_MONITOR_H

#include "common/libzmqutil/zwatcher.h"

struct monitor;

/* 'event' is one of ZMQ_EVENT_*; 'value' is libzmq's value for it, usually the descriptor of the connection. */
typedef void (*monitor_f) (int event, int value, void *arg);

/* Watch 'sock' for the events in the mask 'events'.  Destroy before the socket is closed.  NULL with errno set. */
struct monitor *monitor_create (struct zpoll *zp, void *ctx, void *sock, int events, monitor_f cb, void *arg);
void monitor_destroy (struct monitor *m); /* also from its own callback */

/* Call the callback for all events that have happened so far. */
void monitor_drain (struct monitor *m);

#endif /* BROKER_MONITOR_H */
