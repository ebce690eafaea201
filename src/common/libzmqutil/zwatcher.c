/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zwatcher.c - ZeroMQ sockets on the reactor: watch their descriptors, and read only from dirty sockets */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "common/libzmqutil/zwatcher.h"
#include "libutil/clock.h"

struct zwatcher {
    struct zpoll *zp;
    struct zwatcher *next; /* next watcher in the dirty list */
    void *sock;
    idt_watcher_t *w;
    zwatcher_f cb;
    void *arg;
    bool dirty;
};

struct zpoll {
    idt_reactor_t *reactor;
    struct zwatcher *dirty;   /* watchers to be served in the next turn */
    struct zwatcher *serving; /* watchers still to be served in this turn */
    struct zwatcher *current; /* the watcher that is served; NULL if its callback destroyed it */
    void (*wake) (void *arg); /* NULL: no wake-up is needed */
    void *arg;
};

struct zpoll *zpoll_create (idt_reactor_t *r)
{
    struct zpoll *zp = calloc (1, sizeof (*zp));

    if (zp)
        zp->reactor = r;
    return zp;
}

void zpoll_destroy (struct zpoll *zp)
{
    free (zp);
}

void zpoll_set_wake (struct zpoll *zp, void (*wake) (void *arg), void *arg)
{
    zp->wake = wake;
    zp->arg = arg;
}

void zwatcher_touch (struct zwatcher *zs)
{
    struct zpoll *zp = zs->zp;

    if (zs->dirty)
        return;
    zs->dirty = true;
    zs->next = zp->dirty;
    zp->dirty = zs;
}

void zwatcher_wake (struct zwatcher *zs)
{
    zwatcher_touch (zs);
    if (zs->zp->wake)
        zs->zp->wake (zs->zp->arg);
}

/* Call the callback until it receives no message, at most ZWATCHER_BUDGET times. Returns the watcher if it may have
 * more messages, otherwise NULL.
 */
static struct zwatcher *serve (struct zpoll *zp, struct zwatcher *zs)
{
    int n = 0;

    zp->current = zs;
    while (zs->cb (zs, zs->arg)) {
        if (!zp->current)
            return NULL;
        if (++n == ZWATCHER_BUDGET)
            return zs;
    }
    return NULL;
}

bool zpoll_turn (struct zpoll *zp)
{
    assert (!zp->serving && !zp->current); /* turns do not nest */
    zp->serving = zp->dirty;
    zp->dirty = NULL;
    while (zp->serving) {
        struct zwatcher *zs = zp->serving;

        zp->serving = zs->next;
        zs->dirty = false;
        if (serve (zp, zs))
            zwatcher_touch (zs);
    }
    zp->current = NULL;
    return zpoll_pending (zp);
}

bool zpoll_pending (const struct zpoll *zp)
{
    return zp->dirty != NULL;
}

static void ready_cb (idt_watcher_t *w, int revents, void *arg)
{
    zwatcher_touch (arg);
}

static struct zwatcher *make (struct zpoll *zp, zwatcher_f cb, void *arg)
{
    struct zwatcher *zs = calloc (1, sizeof (*zs));

    if (!zs)
        return NULL;
    zs->zp = zp;
    zs->cb = cb;
    zs->arg = arg;
    return zs;
}

struct zwatcher *zwatcher_create_plain (struct zpoll *zp, zwatcher_f cb, void *arg)
{
    struct zwatcher *zs = make (zp, cb, arg);

    if (zs)
        zwatcher_touch (zs);
    return zs;
}

struct zwatcher *zwatcher_create (struct zpoll *zp, void *ctx, int type, zwatcher_f cb, void *arg)
{
    struct zwatcher *zs = make (zp, cb, arg);
    int fd;
    size_t size = sizeof (fd);

    if (!zs)
        return NULL;
    if (!(zs->sock = zmq_socket (ctx, type)) || zwatcher_set (zs, ZMQ_LINGER, 0) < 0
        || zmq_getsockopt (zs->sock, ZMQ_FD, &fd, &size) < 0
        || !(zs->w = idt_fd_watcher_create (zp->reactor, fd, IDT_POLLIN, ready_cb, zs))) {
        zwatcher_destroy (zs);
        return NULL;
    }
    idt_watcher_start (zs->w);
    zwatcher_touch (zs);
    return zs;
}

static void unlink_from (struct zwatcher **list, struct zwatcher *zs)
{
    for (; *list; list = &(*list)->next) {
        if (*list == zs) {
            *list = zs->next;
            return;
        }
    }
}

void zwatcher_destroy (struct zwatcher *zs)
{
    int saved_errno = errno;

    if (!zs)
        return;
    unlink_from (&zs->zp->dirty, zs);
    unlink_from (&zs->zp->serving, zs);
    if (zs->zp->current == zs)
        zs->zp->current = NULL;
    idt_watcher_destroy (zs->w);
    if (zs->sock)
        zmq_close (zs->sock);
    free (zs);
    errno = saved_errno;
}

void *zwatcher_socket (struct zwatcher *zs)
{
    return zs->sock;
}

int zwatcher_set (struct zwatcher *zs, int option, int value)
{
    return zmq_setsockopt (zs->sock, option, &value, sizeof (value));
}

/* --- a monitor: events on the connections of a socket ---------------------------------------- */

/* An event is two frames. The first has a u16 event and a u32 value in host byte order, the second the endpoint's
 * address.
 */

struct monitor {
    void *watched;
    struct zwatcher *zs;
    monitor_f cb;
    void *arg;
    bool *destroyed; /* set while the callback runs: monitor_destroy () then stores true there */
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
    /* The name contains the time, because ZeroMQ releases a name some time after its socket is closed. A name made of
     * the address alone might still be in use.
     */
    snprintf (endpoint, sizeof (endpoint), "inproc://monitor-%p-%ju", (void *)m, (uintmax_t)clock_ns (CLOCK_MONOTONIC));
    /* No limit, because ZeroMQ's thread must never wait until this thread reads its events. */
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
