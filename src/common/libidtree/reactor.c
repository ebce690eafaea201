/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor.c - the event loop of one thread, over libev
 *
 * libev's watchers are structs that share their first members; struct idt_watcher holds any of them in a union. While a
 * background watcher is started, it is not included in libev's count of active watchers.
 *
 * Alarms are not timers of libev. Alarms have a resolution of one microsecond, and include the time in which the host
 * was suspended; libev's timers do neither. All alarms of a loop share one timerfd. They form a binary heap whose
 * places count from 1: the children of place i are 2i and 2i + 1. The timerfd is set to the time of the first alarm or
 * to an earlier time. It is not set each time an alarm is postponed, because a wakeup that is too early needs less
 * time. But if the timerfd would fire PUT_OFF_US or more too early, it is set again, so that an alarm that is postponed
 * again and again does not wake the process.
 */
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libidtree/reactor.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define ALARM_NEVER UINT64_MAX /* a time that never comes */
#define MIN_ROOM 16
#define PUT_OFF_US 500000

enum kind {
    KIND_FD,
    KIND_TIMER,
    KIND_PREPARE,
    KIND_IDLE,
    KIND_ALARM,
};

struct alarm {
    uint64_t at_us; /* a time of CLOCK_BOOTTIME */
    size_t place;   /* place in the heap; 0: the alarm is not set */
};

/* The alarms of a loop. */
struct alarms {
    struct alarm **heap;
    size_t room; /* number of places, including the unused place 0 */
    size_t members;
    size_t count;
    uint64_t armed_us; /* time of the timerfd; 0: alarms are being called, and the timerfd is set afterwards */
    int fd;
    ev_io io; /* watches 'fd' while an alarm is set, and so keeps the loop running */
};

struct idt_reactor {
    struct ev_loop *loop;
    int errnum;                  /* argument of idt_reactor_stop_error () in this run; 0: none */
    const struct view_ops *view; /* NULL: a reactor with its own loop */
    void *arg;
    bool paused;                     /* of a view: watchers that fire are held */
    TAILQ_HEAD (, idt_watcher) held; /* of a view: watchers that fired while the view was paused */
    idt_reactor_t *root;             /* the reactor that owns the loop */
    struct alarms *alarms;           /* only in a root; NULL: no alarm was made */
};

struct idt_watcher {
    enum kind kind;
    idt_reactor_t *r;
    idt_watcher_f cb;
    void *arg;
    bool background;
    bool held;                      /* the watcher fired while its view was paused */
    TAILQ_ENTRY (idt_watcher) link; /* in the list 'held' */
    double after_s;                 /* these two are for timers */
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

/* --- the heap of alarms --------------------------------------------------------------------- */

static void put (struct alarms *as, struct alarm *a, size_t place)
{
    as->heap[place] = a;
    a->place = place;
}

static void rise (struct alarms *as, struct alarm *a, size_t place)
{
    for (; place > 1 && as->heap[place / 2]->at_us > a->at_us; place /= 2)
        put (as, as->heap[place / 2], place);
    put (as, a, place);
}

static void sink (struct alarms *as, struct alarm *a, size_t place)
{
    size_t child;

    while ((child = 2 * place) <= as->count) {
        if (child < as->count && as->heap[child + 1]->at_us < as->heap[child]->at_us)
            child++;
        if (as->heap[child]->at_us >= a->at_us)
            break;
        put (as, as->heap[child], place);
        place = child;
    }
    put (as, a, place);
}

static void arm (struct alarms *as)
{
    uint64_t at_us = as->count > 0 ? as->heap[1]->at_us : ALARM_NEVER;

    if (as->armed_us == 0 || at_us == ALARM_NEVER || (at_us >= as->armed_us && at_us - as->armed_us < PUT_OFF_US))
        return;
    as->armed_us = at_us;
    struct itimerspec its = { .it_value = { (time_t)(at_us / 1000000), (long)(at_us % 1000000 * 1000) + 1 } };
    timerfd_settime (as->fd, TFD_TIMER_ABSTIME, &its, NULL);
}

/* --- alarms --------------------------------------------------------------------------------------- */

/* Set an alarm that is not set. If the time is in the past, the alarm is due immediately. */
static void alarm_set (struct alarms *as, struct alarm *a, uint64_t at_us)
{
    assert (a->place == 0 && as->count < as->members);
    a->at_us = at_us;
    rise (as, a, ++as->count);
    arm (as);
}

/* Unset an alarm. No effect if the alarm is not set. */
static void alarm_unset (struct alarms *as, struct alarm *a)
{
    size_t place = a->place;
    struct alarm *last;

    if (place == 0)
        return;
    a->place = 0;
    last = as->heap[as->count--];
    if (last == a)
        return;
    if (place > 1 && as->heap[place / 2]->at_us > last->at_us)
        rise (as, last, place);
    else
        sink (as, last, place);
}

static void watch_alarms (idt_reactor_t *root)
{
    if (root->alarms->count > 0)
        ev_io_start (root->loop, &root->alarms->io);
    else
        ev_io_stop (root->loop, &root->alarms->io);
}

static void alarm_stop (idt_watcher_t *w)
{
    alarm_unset (w->r->root->alarms, &w->ev.alarm);
    watch_alarms (w->r->root);
}

/* --- reactor -------------------------------------------------------------------------------- */

void idt_reactor_destroy (idt_reactor_t *r)
{
    if (!r)
        return;
    int saved_errno = errno;
    if (r->alarms) {
        close (r->alarms->fd);
        free (r->alarms->heap);
        free (r->alarms);
    }
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

/* Make a watcher. 'r' may be NULL because its constructor failed: the result is NULL, and errno is unchanged. */
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
    /* libev counts from the time of its last wakeup. That is too early if a callback has run long. */
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
        break; /* idt_alarm_watcher_reset () starts an alarm */
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
        w->r->root->alarms->members--;
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
        return; /* a held watcher is counted when it is started again; an inactive one, when it is started */
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

/* Call the alarms that are due. If a callback sets an alarm to a time in the past, that alarm may be called only in the
 * next turn.
 */
static void alarm_cb (struct ev_loop *loop, ev_io *io, int revents)
{
    idt_reactor_t *root = io->data;
    struct alarms *as = root->alarms;
    uint64_t times;

    if (read (as->fd, &times, sizeof (times)) < 0)
        return; /* the timerfd was set again after it became readable */
    as->armed_us = 0;
    uint64_t now_us = clock_us (CLOCK_BOOTTIME);
    for (size_t n = as->count; n > 0 && as->count > 0 && as->heap[1]->at_us <= now_us; n--) {
        struct alarm *a = as->heap[1];

        alarm_unset (as, a);
        call ((idt_watcher_t *)((char *)a - offsetof (struct idt_watcher, ev)), 0);
    }
    as->armed_us = ALARM_NEVER;
    arm (as);
    watch_alarms (root);
}

static struct alarms *alarms_create (void)
{
    struct alarms *as = calloc (1, sizeof (*as));

    if (!as)
        return NULL;
    as->armed_us = ALARM_NEVER;
    if ((as->fd = timerfd_create (CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) >= 0)
        return as;
    int errnum = errno;
    free (as);
    return errset_null (errnum);
}

/* Reserve memory for one more alarm, so that setting it cannot fail. Returns 0, or -1 with errno set. */
static int add_alarm (idt_reactor_t *root)
{
    struct alarms *as = root->alarms;

    if (!as) {
        if (!(as = root->alarms = alarms_create ()))
            return -1;
        ev_io_init (&as->io, alarm_cb, as->fd, EV_READ);
        as->io.data = root;
    }
    if (as->members + 1 >= as->room) {
        size_t room = as->room > 0 ? 2 * as->room : MIN_ROOM;
        struct alarm **heap = reallocarray (as->heap, room, sizeof (heap[0]));

        if (!heap)
            return -1;
        as->heap = heap;
        as->room = room;
    }
    as->members++;
    return 0;
}

idt_watcher_t *idt_alarm_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg)
{
    idt_watcher_t *w = watcher_create (r, KIND_ALARM, cb, arg);

    if (!w || add_alarm (r->root) == 0)
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

/* Start a held watcher. A timer or an alarm fires immediately, another watcher if its event still exists. */
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
