/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor_test.c - watchers of each kind: when they call back, and that they may be destroyed at any time */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "libidtree/reactor.h"
#include "libutil/clock.h"
#include "test/tap.h"

struct seen {
    int calls;
    int revents;
    int stop_after;    /* calls; 0: never */
    int destroy_after; /* calls; 0: never */
    idt_reactor_t *r;
    idt_watcher_t **victim; /* destroy this watcher, too */
    char *order;            /* append 'name' */
    char name;
};

static void seen_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->revents = revents;
    if (seen->order) {
        char *p = seen->order;
        while (*p)
            p++;
        *p = seen->name;
    }
    if (seen->victim) {
        idt_watcher_destroy (*seen->victim);
        *seen->victim = NULL;
    }
    if (seen->stop_after == seen->calls)
        idt_watcher_stop (w);
    if (seen->destroy_after == seen->calls)
        idt_watcher_destroy (w);
}

static void test_run (idt_reactor_t *r)
{
    struct seen seen = { .stop_after = 3 };
    idt_watcher_t *idle = idt_idle_watcher_create (r, seen_cb, &seen);

    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && seen.calls == 0, "a reactor without started "
                                                                          "watchers ends");
    idt_watcher_start (idle);
    idt_watcher_start (idle);
    ok (idt_reactor_run (r, IDT_REACTOR_ONCE) == 0 && seen.calls == 1,
        "a run with IDT_REACTOR_ONCE handles events once");
    ok (idt_reactor_run (r, IDT_REACTOR_NOWAIT) == 0 && seen.calls == 2,
        "a run with IDT_REACTOR_NOWAIT handles events once");
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && seen.calls == 3,
        "a run with IDT_REACTOR_DEFAULT lasts until no watcher is left; a callback may stop its watcher");
    idt_watcher_destroy (idle);
}

static void break_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_reactor_stop_error (arg, ENOTDIR);
}

static void plain_break_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_reactor_stop (arg);
}

static void test_stop (idt_reactor_t *r)
{
    idt_watcher_t *w = idt_idle_watcher_create (r, break_cb, r);

    idt_watcher_start (w);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0 && errno == ENOTDIR,
        "idt_reactor_stop_error () ends a run with -1 and errno");
    idt_watcher_destroy (w);
    w = idt_idle_watcher_create (r, plain_break_cb, r);
    idt_watcher_start (w);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0, "idt_reactor_stop () ends a run with 0, also after an error");
    idt_watcher_destroy (w);
}

static void test_fd (idt_reactor_t *r)
{
    struct seen seen = { 0 };
    int fd[2];

    if (pipe2 (fd, O_NONBLOCK) < 0)
        bail_out ("pipe2");
    idt_watcher_t *w = idt_fd_watcher_create (r, fd[0], IDT_POLLIN, seen_cb, &seen);
    idt_watcher_start (w);
    idt_reactor_run (r, IDT_REACTOR_NOWAIT);
    ok (seen.calls == 0, "an empty pipe is not readable");
    (void)!write (fd[1], "x", 1);
    idt_reactor_run (r, IDT_REACTOR_ONCE);
    idt_reactor_run (r, IDT_REACTOR_ONCE);
    ok (seen.calls == 2 && seen.revents == IDT_POLLIN, "a pipe with data is readable until it is read");
    idt_fd_watcher_set_events (w, IDT_POLLOUT);
    idt_reactor_run (r, IDT_REACTOR_NOWAIT);
    ok (seen.calls == 2, "the events of a started watcher can be changed");
    idt_fd_watcher_set_events (w, IDT_POLLIN);
    idt_reactor_run (r, IDT_REACTOR_NOWAIT);
    ok (seen.calls == 3, "the events of a started watcher can be changed back");
    idt_watcher_destroy (w);
    close (fd[0]);
    close (fd[1]);
}

static void test_background (idt_reactor_t *r)
{
    struct seen seen = { 0 };
    int fd[2];

    if (pipe (fd) < 0)
        bail_out ("pipe");
    idt_watcher_t *w = idt_fd_watcher_create (r, fd[0], IDT_POLLIN, seen_cb, &seen);
    watcher_set_background (w, true);
    idt_watcher_start (w);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0, "a background watcher does not keep the reactor "
                                                       "running");
    idt_watcher_stop (w);
    idt_watcher_start (w);
    watcher_set_background (w, false);
    watcher_set_background (w, true);
    idt_fd_watcher_set_events (w, IDT_POLLIN | IDT_POLLOUT);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0,
        "a background watcher does not keep the reactor running after other changes to that watcher");
    watcher_set_background (w, false);
    (void)!write (fd[1], "x", 1);
    seen.destroy_after = 1;
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && seen.calls == 1,
        "another watcher keeps the reactor running until its callback destroys it");
    close (fd[0]);
    close (fd[1]);
}

static void test_timer (idt_reactor_t *r)
{
    struct seen once = { 0 }, thrice = { .destroy_after = 3 }, late = { 0 };
    idt_watcher_t *a = idt_timer_watcher_create (r, 1, 0, seen_cb, &once);
    idt_watcher_t *b = idt_timer_watcher_create (r, 0, 1, seen_cb, &thrice);
    idt_watcher_t *c = idt_timer_watcher_create (r, 1e9, 0, seen_cb, &late);

    idt_watcher_start (a);
    idt_watcher_start (b);
    idt_watcher_start (c);
    idt_timer_watcher_reset (c, 2, 0);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && once.calls == 1, "a timer without a repeat calls back once");
    ok (thrice.calls == 3, "a timer with a repeat calls back until its callback destroys the timer");
    ok (late.calls == 1, "a timer that is reset starts again");
    idt_watcher_start (a);
    idt_watcher_stop (a);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && once.calls == 1, "a stopped timer does not call back");
    idt_watcher_start (a);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && once.calls == 2,
        "a timer that is started again calls back again");
    idt_watcher_destroy (a);
    idt_watcher_destroy (c);
}

/* Alarms that check their order, and reset themselves. */
struct rings {
    idt_watcher_t *w;
    uint64_t at_us;
    int calls;
    int again; /* how often it is due again immediately */
    idt_watcher_t **victim;
    uint64_t *last_us;
    int *early, *disorder;
};

static void ring_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct rings *a = arg;

    a->calls++;
    *a->early += clock_us (CLOCK_BOOTTIME) < a->at_us;
    *a->disorder += a->at_us < *a->last_us;
    *a->last_us = a->at_us;
    if (a->victim) {
        idt_watcher_destroy (*a->victim);
        *a->victim = NULL;
    }
    if (a->again-- > 0)
        idt_alarm_watcher_reset (w, a->at_us);
}

enum { ALARMS = 300 };

/* A reactor and a view of its loop: alarms of both fire in one order. */
static void woke (void *arg)
{
    ++*(int *)arg;
}

static void test_alarms (idt_reactor_t *r)
{
    static const struct view_ops view_ops = { .woke = woke };
    static struct rings a[ALARMS];
    int early = 0, disorder = 0, woken = 0, calls = 0, wrong = 0;
    uint64_t start_us = clock_us (CLOCK_BOOTTIME), last_us = 0;
    idt_reactor_t *view = idt_view_create (r, &view_ops, &woken);

    srand (1);
    for (int i = 0; i < ALARMS; i++) {
        a[i] = (struct rings){
            .at_us = start_us + (uint64_t)(rand () % 5000), .early = &early, .disorder = &disorder, .last_us = &last_us
        };
        if (!(a[i].w = idt_alarm_watcher_create (i % 2 ? view : r, ring_cb, &a[i])))
            bail_out ("cannot create an alarm");
        idt_alarm_watcher_reset (a[i].w, start_us + (uint64_t)(rand () % 5000));
        idt_watcher_start (a[i].w);
    }
    for (int i = 0; i < ALARMS; i += 7)
        idt_watcher_stop (a[i].w);
    for (int i = 0; i < ALARMS; i++)
        if (i % 7 != 0)
            idt_alarm_watcher_reset (a[i].w, a[i].at_us);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0, "a reactor runs as long as alarms are set");
    for (int i = 0; i < ALARMS; i++) {
        calls += a[i].calls;
        wrong += a[i].calls != (i % 7 != 0);
    }
    ok (wrong == 0, "each alarm that is set calls back once, at the time to which it was set last (%d)", calls);
    ok (early == 0 && disorder == 0, "no alarm calls back early, and all call back in the order of their times");
    ok (woken > 0 && woken < calls, "the owner of a view is notified before each callback of the view's alarms");
    idt_alarm_watcher_reset (a[1].w, UINT64_MAX);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && a[1].calls == 1,
        "an alarm set to ALARM_NEVER does not keep the reactor running");
    for (int i = 0; i < ALARMS; i++)
        idt_watcher_destroy (a[i].w);
    idt_reactor_destroy (view);
}

/* An alarm that is postponed before it is due wakes the loop once. */
static void test_alarm_later (idt_reactor_t *r)
{
    int early = 0, disorder = 0, turns = 0;
    uint64_t now_us = clock_us (CLOCK_BOOTTIME), last_us = 0;
    struct rings a = { .at_us = now_us + 30000, .early = &early, .disorder = &disorder, .last_us = &last_us };
    struct rings far = a;

    far.at_us = now_us + 60000000;
    a.w = idt_alarm_watcher_create (r, ring_cb, &a);
    far.w = idt_alarm_watcher_create (r, ring_cb, &far);
    idt_alarm_watcher_reset (far.w, far.at_us);
    idt_alarm_watcher_reset (a.w, now_us + 1000);
    idt_alarm_watcher_reset (a.w, now_us + 40000000);
    idt_alarm_watcher_reset (a.w, a.at_us);
    while (a.calls == 0 && ++turns < 100)
        idt_reactor_run (r, IDT_REACTOR_ONCE);
    ok (a.calls == 1 && turns == 1 && early == 0,
        "an alarm that is set later and then earlier wakes the loop when it is due (%d)", turns);
    idt_watcher_destroy (a.w);
    idt_watcher_destroy (far.w);
}

/* An alarm that is immediately due again does not keep the loop from other work. */
static void test_alarm_again (idt_reactor_t *r)
{
    int early = 0, disorder = 0, turns = 0;
    uint64_t now_us = clock_us (CLOCK_BOOTTIME), last_us = 0;
    struct rings a = { .at_us = now_us, .again = 3, .early = &early, .disorder = &disorder, .last_us = &last_us };
    struct rings b = a;

    b.again = 0;
    a.w = idt_alarm_watcher_create (r, ring_cb, &a);
    b.w = idt_alarm_watcher_create (r, ring_cb, &b);
    a.victim = &b.w;
    idt_alarm_watcher_reset (a.w, now_us - 1);
    idt_alarm_watcher_reset (b.w, now_us);
    while (a.again >= 0 && ++turns < 100)
        idt_reactor_run (r, IDT_REACTOR_ONCE);
    ok (a.calls == 4 && turns > 1, "an alarm that is immediately due again waits for the next turn of the loop (%d)",
        turns);
    ok (b.calls == 0, "an alarm that is destroyed when it is due does not call back");
    idt_watcher_destroy (a.w);
}

static void nobody_stops (void *arg)
{
}

/* Watchers of all kinds fire while the view is paused: a descriptor, timers, an alarm. Some are stopped or destroyed
 * before the view continues.
 */
static void test_pause (idt_reactor_t *r)
{
    static const struct view_ops view_ops = { woke, nobody_stops };
    enum { FD, ONCE, EVERY, ALARM, STOPPED, GONE, COUNT };
    int woken = 0, fds[2], calls = 0;
    struct seen seen[COUNT] = { { 0 } };
    idt_watcher_t *w[COUNT];
    idt_reactor_t *view = idt_view_create (r, &view_ops, &woken);

    if (pipe (fds) < 0 || write (fds[1], "x", 1) != 1)
        bail_out ("cannot create a pipe");
    w[FD] = idt_fd_watcher_create (view, fds[0], IDT_POLLIN, seen_cb, &seen[FD]);
    w[ONCE] = idt_timer_watcher_create (view, 1, 0, seen_cb, &seen[ONCE]);
    w[EVERY] = idt_timer_watcher_create (view, 1, 1, seen_cb, &seen[EVERY]);
    w[ALARM] = idt_alarm_watcher_create (view, seen_cb, &seen[ALARM]);
    w[STOPPED] = idt_timer_watcher_create (view, 1, 1, seen_cb, &seen[STOPPED]);
    w[GONE] = idt_timer_watcher_create (view, 1, 1, seen_cb, &seen[GONE]);
    for (int i = 0; i < COUNT; i++)
        idt_watcher_start (w[i]);
    idt_alarm_watcher_reset (w[ALARM], clock_us (CLOCK_BOOTTIME) + 1000);
    idt_view_pause (view, true);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && woken == 0,
        "watchers that fire on a paused view are held, and do not keep the loop running");
    idt_watcher_start (w[FD]);
    idt_watcher_stop (w[STOPPED]);
    idt_watcher_destroy (w[GONE]);
    idt_view_pause (view, false);
    while (!seen[FD].calls || !seen[ONCE].calls || seen[EVERY].calls < 3 || !seen[ALARM].calls) {
        if (seen[FD].calls == 1)
            idt_watcher_stop (w[FD]);
        idt_reactor_run (r, IDT_REACTOR_ONCE);
    }
    for (int i = 0; i < COUNT; i++)
        calls += seen[i].calls;
    ok (seen[ONCE].calls == 1 && seen[ALARM].calls == 1 && calls == woken,
        "when a view is no longer paused, each held watcher calls back");
    ok (seen[STOPPED].calls == 0 && seen[GONE].calls == 0,
        "when a view is no longer paused, held watchers that were stopped or destroyed do not call back");
    for (int i = 0; i < GONE; i++)
        idt_watcher_destroy (w[i]);
    idt_reactor_destroy (view);
    close (fds[0]);
    close (fds[1]);
}

static void test_none (void)
{
    errno = EMFILE;
    ok (!idt_timer_watcher_create (NULL, 1, 0, NULL, NULL) && !idt_fd_watcher_create (NULL, 0, IDT_POLLIN, NULL, NULL)
            && !idt_idle_watcher_create (NULL, NULL, NULL) && !idt_alarm_watcher_create (NULL, NULL, NULL)
            && errno == EMFILE,
        "without a reactor creating a watcher fails, and errno is kept");
}

static void test_phases (idt_reactor_t *r)
{
    char order[16] = "";
    struct seen prepare = { .order = order, .name = 'p' };
    struct seen idle = { .order = order, .name = 'i' };
    struct seen first = { .order = order, .name = 'f' };
    idt_watcher_t *w[3] = {
        idt_prepare_watcher_create (r, seen_cb, &prepare),
        idt_idle_watcher_create (r, seen_cb, &idle),
        idt_timer_watcher_create (r, 0, 0, seen_cb, &first),
    };

    idt_watcher_start (w[0]);
    idt_watcher_start (w[1]);
    idt_reactor_run (r, IDT_REACTOR_ONCE);
    ok (order[0] == 'p' && order[1] && !order[2], "prepare watchers are called before the reactor sleeps: %s", order);
    ok (idle.calls == 1, "idle watchers are called after prepare watchers");
    order[0] = order[1] = '\0';
    watcher_set_first (w[2]);
    idt_watcher_start (w[2]);
    idt_reactor_run (r, IDT_REACTOR_ONCE);
    ok (order[0] == 'p' && order[1] == 'f', "a watcher with watcher_set_first () is called before the others: %s",
        order);
    for (int i = 0; i < 3; i++)
        idt_watcher_destroy (w[i]);
}

static void test_victims (idt_reactor_t *r)
{
    idt_watcher_t *w[2];
    struct seen a = { .victim = &w[1], .destroy_after = 1 }, b = { .victim = &w[0], .destroy_after = 1 };

    w[0] = idt_idle_watcher_create (r, seen_cb, &a);
    w[1] = idt_idle_watcher_create (r, seen_cb, &b);
    idt_watcher_start (w[0]);
    idt_watcher_start (w[1]);
    ok (idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && a.calls + b.calls == 1,
        "a callback may destroy another watcher that is due");
}

int main (int argc, char *argv[])
{
    idt_reactor_t *r = idt_reactor_create ();

    if (!r)
        bail_out ("idt_reactor_create");
    test_run (r);
    test_stop (r);
    test_fd (r);
    test_background (r);
    test_timer (r);
    test_alarms (r);
    test_alarm_later (r);
    test_alarm_again (r);
    test_pause (r);
    test_phases (r);
    test_none ();
    test_victims (r);
    idt_reactor_destroy (r);
    return done_testing ();
}
