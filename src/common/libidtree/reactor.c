/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor.c - the event loop of one thread, over libev
 *
 * libev's watchers are structs that share their first members; one struct of ours holds any of
 * them in a union.  A background watcher is taken off libev's count of active watchers while it
 * is started.
 */
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <stdlib.h>

#include "libidtree/view.h"
#include "libidtree/watcher.h"
#include "libutil/errprintf.h"

enum kind {
    KIND_FD,
    KIND_TIMER,
    KIND_PREPARE,
    KIND_IDLE,
};

struct idt_reactor {
    struct ev_loop *loop;
    int errnum;                  /* given to idt_reactor_stop_error () during this run; 0: none */
    const struct view_ops *view; /* NULL: the loop is its own */
    void *arg;
};

struct idt_watcher {
    enum kind kind;
    idt_reactor_t *r;
    idt_watcher_f cb;
    void *arg;
    bool background;
    double after_s; /* timers */
    double repeat_s;
    union {
        ev_watcher any;
        ev_io io;
        ev_timer timer;
        ev_prepare prepare;
        ev_idle idle;
    } ev;
};

_Static_assert((int)IDT_POLLIN == EV_READ && (int)IDT_POLLOUT == EV_WRITE, "poll bits are libev's");

/* --- reactor -------------------------------------------------------------------------------- */

void idt_reactor_destroy (idt_reactor_t *r)
{
    if (!r)
        return;
    int saved_errno = errno;
    if (!r->view)
        ev_loop_destroy (r->loop);
    free (r);
    errno = saved_errno;
}

idt_reactor_t *idt_reactor_create (void)
{
    idt_reactor_t *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    errno = 0;
    if ((r->loop = ev_loop_new (EVBACKEND_EPOLL | EVFLAG_NOENV)))
        return r;
    free (r);
    return errset_null (errno != 0 ? errno : ENOMEM);
}

idt_reactor_t *idt_view_create (idt_reactor_t *r, const struct view_ops *ops, void *arg)
{
    idt_reactor_t *view = calloc (1, sizeof (*view));

    if (view)
        *view = (struct idt_reactor){ .loop = r->loop, .view = ops, .arg = arg };
    return view;
}

int idt_reactor_run (idt_reactor_t *r, enum idt_reactor_mode mode)
{
    assert (ev_depth (r->loop) == 0 && !r->view);
    r->errnum = 0;
    ev_run (r->loop, mode == IDT_REACTOR_ONCE ? EVRUN_ONCE : mode == IDT_REACTOR_NOWAIT ? EVRUN_NOWAIT : 0);
    return r->errnum == 0 ? 0 : errset (r->errnum);
}

void idt_reactor_stop (idt_reactor_t *r)
{
    if (r->view)
        r->view->stop (r->arg);
    else
        ev_break (r->loop, EVBREAK_ALL);
}

void idt_reactor_stop_error (idt_reactor_t *r, int errnum)
{
    r->errnum = errnum;
    idt_reactor_stop (r);
}

/* --- all watchers --------------------------------------------------------------------------- */

static void any_cb (struct ev_loop *loop, ev_watcher *ev, int revents)
{
    idt_watcher_t *w = ev->data;

    if (w->r->view)
        w->r->view->woke (w->r->arg);
    w->cb (w, revents & (IDT_POLLIN | IDT_POLLOUT), w->arg);
}

/* Without a reactor: errno is that of whoever could not make it. */
static idt_watcher_t *watcher_create (idt_reactor_t *r, enum kind kind, idt_watcher_f cb, void *arg)
{
    idt_watcher_t *w = r ? calloc (1, sizeof (*w)) : NULL;

    if (!w)
        return NULL;
    w->kind = kind;
    w->r = r;
    w->cb = cb;
    w->arg = arg;
    ev_init (&w->ev.any, any_cb);
    w->ev.any.data = w;
    return w;
}

static void timer_start (idt_watcher_t *w)
{
    /* libev counts from the time at which it woke, which in a long callback is long ago. */
    ev_now_update (w->r->loop);
    ev_timer_set (&w->ev.timer, w->after_s, w->repeat_s);
    ev_timer_start (w->r->loop, &w->ev.timer);
}

void idt_watcher_start (idt_watcher_t *w)
{
    struct ev_loop *loop = w->r->loop;

    if (ev_is_active (&w->ev.any))
        return;
    switch (w->kind) {
    case KIND_FD:
        ev_io_start (loop, &w->ev.io);
        break;
    case KIND_TIMER:
        timer_start (w);
        break;
    case KIND_PREPARE:
        ev_prepare_start (loop, &w->ev.prepare);
        break;
    case KIND_IDLE:
        ev_idle_start (loop, &w->ev.idle);
        break;
    }
    if (w->background)
        ev_unref (loop);
}

void idt_watcher_stop (idt_watcher_t *w)
{
    struct ev_loop *loop = w->r->loop;

    if (w->background && ev_is_active (&w->ev.any))
        ev_ref (loop);
    switch (w->kind) {
    case KIND_FD:
        ev_io_stop (loop, &w->ev.io);
        break;
    case KIND_TIMER:
        ev_timer_stop (loop, &w->ev.timer);
        break;
    case KIND_PREPARE:
        ev_prepare_stop (loop, &w->ev.prepare);
        break;
    case KIND_IDLE:
        ev_idle_stop (loop, &w->ev.idle);
        break;
    }
}

void idt_watcher_destroy (idt_watcher_t *w)
{
    if (!w)
        return;
    int saved_errno = errno;
    idt_watcher_stop (w);
    free (w);
    errno = saved_errno;
}

void watcher_set_first (idt_watcher_t *w)
{
    assert (!ev_is_active (&w->ev.any));
    ev_set_priority (&w->ev.any, EV_MAXPRI);
}

void watcher_set_background (idt_watcher_t *w, bool background)
{
    assert (w->kind == KIND_FD); /* others may end by themselves, which would upset the count */
    if (w->background == background)
        return;
    w->background = background;
    if (!ev_is_active (&w->ev.any))
        return;
    if (background)
        ev_unref (w->r->loop);
    else
        ev_ref (w->r->loop);
}

/* --- each kind ------------------------------------------------------------------------------ */

idt_watcher_t *idt_fd_watcher_create (idt_reactor_t *r, int fd, int events, idt_watcher_f cb, void *arg)
{
    idt_watcher_t *w = watcher_create (r, KIND_FD, cb, arg);

    if (w)
        ev_io_set (&w->ev.io, fd, events);
    return w;
}

void idt_fd_watcher_set_events (idt_watcher_t *w, int events)
{
    bool active = ev_is_active (&w->ev.any);

    assert (w->kind == KIND_FD);
    idt_watcher_stop (w);
    ev_io_set (&w->ev.io, w->ev.io.fd, events);
    if (active)
        idt_watcher_start (w);
}

idt_watcher_t *idt_timer_watcher_create (idt_reactor_t *r, double after_ms, double repeat_ms, idt_watcher_f cb,
                                         void *arg)
{
    idt_watcher_t *w = watcher_create (r, KIND_TIMER, cb, arg);

    if (w)
        idt_timer_watcher_reset (w, after_ms, repeat_ms);
    return w;
}

void idt_timer_watcher_reset (idt_watcher_t *w, double after_ms, double repeat_ms)
{
    bool active = ev_is_active (&w->ev.any);

    assert (w->kind == KIND_TIMER);
    idt_watcher_stop (w);
    w->after_s = after_ms * 1e-3;
    w->repeat_s = repeat_ms * 1e-3;
    if (active)
        idt_watcher_start (w);
}

idt_watcher_t *idt_prepare_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg)
{
    return watcher_create (r, KIND_PREPARE, cb, arg);
}

idt_watcher_t *idt_idle_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg)
{
    return watcher_create (r, KIND_IDLE, cb, arg);
}
