/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* monitor.c - report events on the connections of a ZeroMQ socket
 *
 * An event is two frames: u16 event and u32 value in host byte order, then the endpoint's address.
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "common/libzmqutil/monitor.h"
#include "libutil/clock.h"

struct monitor {
    void *watched;
    struct zwatcher *zs;
    monitor_f cb;
    void *arg;
    bool *destroyed; /* set during a callback: monitor_destroy () stores true there */
};

/* Pass one event to the callback. Returns whether there was an event and the monitor still exists. */
static bool take (struct monitor *m)
{
    void *sock = zwatcher_socket (m->zs);
    unsigned char frame[6];
    char address[256];
    uint16_t event;
    uint32_t value;
    bool destroyed = false;

    if (zmq_recv (sock, frame, sizeof (frame), ZMQ_DONTWAIT) != sizeof (frame))
        return false;
    zmq_recv (sock, address, sizeof (address), ZMQ_DONTWAIT);
    memcpy (&event, frame, 2);
    memcpy (&value, frame + 2, 4);
    m->destroyed = &destroyed;
    m->cb (event, (int)value, m->arg);
    if (destroyed)
        return false;
    m->destroyed = NULL;
    return true;
}

void monitor_drain (struct monitor *m)
{
    zwatcher_touch (m->zs);
    while (take (m))
        ;
}

static bool monitor_cb (struct zwatcher *zs, void *arg)
{
    return take (arg);
}

struct monitor *monitor_create (struct zpoll *zp, void *ctx, void *sock, int events, monitor_f cb, void *arg)
{
    struct monitor *m = calloc (1, sizeof (*m));
    char endpoint[96];

    if (!m)
        return NULL;
    m->watched = sock;
    m->cb = cb;
    m->arg = arg;
    /* ZeroMQ releases a name some time after its socket is closed, so a name made of the address alone may still be in
     * use.
     */
    snprintf (endpoint, sizeof (endpoint), "inproc://monitor-%p-%ju", (void *)m, (uintmax_t)clock_ns (CLOCK_MONOTONIC));
    /* No limit: ZeroMQ's thread must never wait until this thread reads its events. */
    if (zmq_socket_monitor (sock, endpoint, events) < 0 || !(m->zs = zwatcher_create (zp, ctx, ZMQ_PAIR, monitor_cb, m))
        || zwatcher_set (m->zs, ZMQ_RCVHWM, 0) < 0 || zmq_connect (zwatcher_socket (m->zs), endpoint) < 0) {
        monitor_destroy (m);
        return NULL;
    }
    return m;
}

void monitor_destroy (struct monitor *m)
{
    if (!m)
        return;
    if (m->destroyed)
        *m->destroyed = true;
    zmq_socket_monitor (m->watched, NULL, 0);
    zwatcher_destroy (m->zs);
    free (m);
}
