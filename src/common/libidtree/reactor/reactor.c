/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor.c - the event loop of one thread, over libev
 *
 * libev's watchers are structs that share their first members; struct idt_watcher holds any of them in a union. A
 * background watcher is removed from libev's count of active watchers while it is started.
 */
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "libidtree/reactor/alarm.h"
#include "libidtree/reactor/loop.h"
#include "libutil/errprintf.h"

enum kind {
    KIND_FD,
    KIND_TIMER,
    KIND_PREPARE,
    KIND_IDLE,
    KIND_ALARM,
};

struct idt_reactor {
    struct ev_loop *loop;
    int errnum;                  /* argument of idt_reactor_stop_error () in this run; 0: none */
    const struct view_ops *view; /* NULL: a reactor with its own loop */
    void *arg;
    bool paused;                     /* a view whose watchers are held when they fire */
    TAILQ_HEAD (, idt_watcher) held; /* of a view */
    idt_reactor_t *root;             /* the reactor that owns the loop */
    /* used by a root only, from its first alarm on */
    struct alarms *alarms;
    ev_io alarm_io;
};

struct idt_watcher {
    enum kind kind;
    idt_reactor_t *r;
    idt_watcher_f cb;
    void *arg;
    bool background;
    bool held;                      /* it fired while its view was paused */
    TAILQ_ENTRY (idt_watcher) link; /* while held */
    double after_s;                 /* timers */
    double repeat_s;
    union {
        ev_watcher any;
        ev_io io;
        ev_timer timer;
        ev_prepare prepare;
        ev_idle idle;
        struct alarm alarm; /* not a watcher of libev */
    } ev;
};

_Static_assert((int)IDT_POLLIN == EV_READ && (int)IDT_POLLOUT == EV_WRITE, "poll bits must equal libev's");

static void alarm_stop (idt_watcher_t *w);

/* --- reactor -------------------------------------------------------------------------------- */

void idt_reactor_destroy (idt_reactor_t *r)
{
    if (!r)
        return;
    int saved_errno = errno;
    alarms_destroy (r->alarms);
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
    r->root = r;
    errno = 0;
    if ((r->loop = ev_loop_new (EVBACKEND_EPOLL | EVFLAG_NOENV)))
        return r;
    free (r);
    return errset_null (errno != 0 ? errno : ENOMEM);
}

idt_reactor_t *idt_view_create (idt_reactor_t *r, const struct view_ops *ops, void *arg)
{
    idt_reactor_t *view = calloc (1, sizeof (*view));

    if (!view)
        return NULL;
    *view = (struct idt_reactor){ .loop = r->loop, .view = ops, .arg = arg, .root = r->root };
    TAILQ_INIT (&view->held);
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

static void hold (idt_watcher_t *w)
{
    idt_watcher_stop (w);
    w->held = true;
    TAILQ_INSERT_TAIL (&w->r->held, w, link);
}

static void let_go (idt_watcher_t *w)
{
    if (w->held)
        TAILQ_REMOVE (&w->r->held, w, link);
    w->held = false;
}

static void call (idt_watcher_t *w, int revents)
{
    if (w->r->paused) {
        hold (w);
        return;
    }
    if (w->r->view)
        w->r->view->woke (w->r->arg);
    w->cb (w, revents, w->arg);
}

static void any_cb (struct ev_loop *loop, ev_watcher *ev, int revents)
{
    call (ev->data, revents & (IDT_POLLIN | IDT_POLLOUT));
}

static bool is_active (const idt_watcher_t *w)
{
    return w->held || (w->kind == KIND_ALARM ? w->ev.alarm.place > 0 : ev_is_active (&w->ev.any));
}

/* If 'r' is NULL, errno stays as the reactor's constructor set it. */
static idt_watcher_t *watcher_create (idt_reactor_t *r, enum kind kind, idt_watcher_f cb, void *arg)
{
    idt_watcher_t *w = r ? calloc (1, sizeof (*w)) : NULL;

    if (!w)
        return NULL;
    w->kind = kind;
    w->r = r;
    w->cb = cb;
    w->arg = arg;
    if (kind == KIND_ALARM)
        return w;
    ev_init (&w->ev.any, any_cb);
    w->ev.any.data = w;
    return w;
}

static void timer_start (idt_watcher_t *w)
{
    /* libev counts from the time of its last wakeup, which is too early in a long callback. */
    ev_now_update (w->r->loop);
    ev_timer_set (&w->ev.timer, w->after_s, w->repeat_s);
    ev_timer_start (w->r->loop, &w->ev.timer);
}

void idt_watcher_start (idt_watcher_t *w)
{
    struct ev_loop *loop = w->r->loop;

    if (is_active (w))
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
    case KIND_ALARM:
        break; /* idt_alarm_watcher_reset () starts it */
    }
    if (w->background)
        ev_unref (loop);
}

void idt_watcher_stop (idt_watcher_t *w)
{
    struct ev_loop *loop = w->r->loop;

    if (w->background && is_active (w) && !w->held)
        ev_ref (loop);
    let_go (w);
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
    case KIND_ALARM:
        alarm_stop (w);
        break;
    }
}

void idt_watcher_destroy (idt_watcher_t *w)
{
    if (!w)
        return;
    int saved_errno = errno;
    idt_watcher_stop (w);
    if (w->kind == KIND_ALARM)
        alarms_remove (w->r->root->alarms);
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
    assert (w->kind == KIND_FD); /* other kinds may stop by themselves, which would make the count wrong */
    if (w->background == background)
        return;
    w->background = background;
    if (!ev_is_active (&w->ev.any))
        return; /* a held watcher is counted when it is started again */
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
    bool active = is_active (w);

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
    bool active = is_active (w);

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

static void alarm_due (struct alarm *a)
{
    call ((idt_watcher_t *)((char *)a - offsetof (struct idt_watcher, ev)), 0);
}

/* The alarm descriptor keeps the loop running while an alarm is set. */
static void watch_alarms (idt_reactor_t *root)
{
    if (alarms_set (root->alarms) > 0)
        ev_io_start (root->loop, &root->alarm_io);
    else
        ev_io_stop (root->loop, &root->alarm_io);
}

static void alarm_cb (struct ev_loop *loop, ev_io *io, int revents)
{
    idt_reactor_t *root = io->data;

    alarms_run (root->alarms);
    watch_alarms (root);
}

static void alarm_stop (idt_watcher_t *w)
{
    alarm_unset (w->r->root->alarms, &w->ev.alarm);
    watch_alarms (w->r->root);
}

static int make_alarms (idt_reactor_t *root)
{
    if (!root->alarms) {
        if (!(root->alarms = alarms_create (alarm_due)))
            return -1;
        ev_io_init (&root->alarm_io, alarm_cb, alarms_fd (root->alarms), EV_READ);
        root->alarm_io.data = root;
    }
    return alarms_add (root->alarms);
}

idt_watcher_t *idt_alarm_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg)
{
    idt_watcher_t *w = watcher_create (r, KIND_ALARM, cb, arg);

    if (!w || make_alarms (r->root) == 0)
        return w;
    free (w);
    return NULL;
}

void idt_alarm_watcher_reset (idt_watcher_t *w, uint64_t at_us)
{
    idt_reactor_t *root = w->r->root;

    assert (w->kind == KIND_ALARM);
    let_go (w);
    alarm_unset (root->alarms, &w->ev.alarm);
    if (at_us != ALARM_NEVER)
        alarm_set (root->alarms, &w->ev.alarm, at_us);
    watch_alarms (root);
}

/* --- a view's pause ------------------------------------------------------------------------- */

/* Start a held watcher so that it fires again if its event still exists, or if its time has come. */
static void fire_again (idt_watcher_t *w)
{
    let_go (w);
    if (w->kind == KIND_ALARM)
        idt_alarm_watcher_reset (w, 0);
    else if (w->kind == KIND_TIMER) {
        ev_timer_set (&w->ev.timer, 0., w->repeat_s);
        ev_timer_start (w->r->loop, &w->ev.timer);
    }
    else
        idt_watcher_start (w);
}

void idt_view_pause (idt_reactor_t *view, bool paused)
{
    idt_watcher_t *w;

    view->paused = paused;
    while (!paused && (w = TAILQ_FIRST (&view->held)))
        fire_again (w);
}
