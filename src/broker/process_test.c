/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* process_test.c - the turns of the members of a process */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "broker/process.h"
#include "test/tap.h"

#define MEMBERS 500

struct one {
    struct member *wakes; /* member that is woken in each turn of this one; may be NULL */
    struct member *m;
    int turns;
    int more;   /* number of further turns that it requests */
    int ends;   /* number of the turn in which it ends; 0: it does not end by itself */
    int *order; /* where the member stores its position in the order of turns */
    int told;   /* number of notifications that it has ended */
    int fires;  /* number of callbacks of its watcher */
    int fd;
    idt_watcher_t *w;
};

static int clock_of_turns;

static bool turn (void *arg)
{
    struct one *o = arg;

    o->turns++;
    if (o->wakes)
        member_wake (o->wakes);
    if (o->order)
        *o->order = ++clock_of_turns;
    if (o->ends > 0 && o->turns == o->ends)
        idt_reactor_stop (member_reactor (o->m));
    return o->more-- > 0;
}

static bool admit (void *arg, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size)
{
    return false;
}

/* No callback of the member runs at this time, so the member can be destroyed. */
static void ended (void *arg)
{
    struct one *o = arg;

    o->told++;
    if (o->ends == 3) {
        member_destroy (o->m);
        o->m = NULL;
    }
}

static const struct member_ops ops = { turn, admit, ended };

static struct process *make (struct one *o, int n)
{
    idt_error_t err;
    struct process *p = process_create (&err);
    char name[16];

    if (!p)
        bail_out (err.text);
    for (int i = 0; i < n; i++) {
        snprintf (name, sizeof (name), "m-%d", i);
        if (!(o[i].m = member_create (p, name, &ops, &o[i])))
            bail_out ("cannot make a member");
    }
    return p;
}

static void end (struct process *p, struct one *o, int n)
{
    for (int i = 0; i < n; i++)
        member_destroy (o[i].m);
    process_destroy (p);
}

static void test_turns (void)
{
    int order[3] = { 0 };
    struct one o[3] = { { .ends = 1, .order = &order[0] },
                        { .ends = 3, .more = 2, .order = &order[1] },
                        { .ends = 1, .order = &order[2] } };
    struct process *p = make (o, 3);

    o[1].wakes = o[0].m;
    ok (!member_create (p, "m-1", &ops, &o[1]), "a process refuses a second member with the same name");
    ok (process_run (p) == 0, "a process runs until its members have ended");
    ok (o[0].turns == 1 && o[1].turns == 3 && o[2].turns == 1,
        "each member has a first turn, then as many turns as it requests, and no turn after its end");
    ok (order[0] == 1 && order[2] == 3 && order[1] == 5, "turns follow the order in which members woke");
    ok (o[0].told == 1 && o[1].told == 1 && o[2].told == 1,
        "the owner of a member is notified once, when it may destroy the member");
    ok (process_run (p) == 0, "a process without members does not run");
    end (p, o, 3);
}

static void fired (idt_watcher_t *w, int revents, void *arg)
{
    struct one *o = arg;
    uint64_t n;

    o->fires++;
    if (read (o->fd, &n, sizeof (n)) != sizeof (n))
        bail_out ("cannot read the counter");
}

/* Three of many members have an event. */
static void test_woken (void)
{
    static struct one o[MEMBERS];
    const int chosen[] = { 7, 250, 499 };
    struct process *p;
    int turns = 0;

    memset (o, 0, sizeof (o));
    p = make (o, MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        o[i].fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (o[i].fd < 0
            || !(o[i].w = idt_fd_watcher_create (member_reactor (o[i].m), o[i].fd, IDT_POLLIN, fired, &o[i])))
            bail_out ("cannot make a watcher");
        idt_watcher_start (o[i].w);
    }
    wait_until (o[MEMBERS - 1].turns > 0) idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    for (int i = 0; i < 3; i++)
        if (eventfd_write (o[chosen[i]].fd, 1) < 0)
            bail_out ("cannot write");
    wait_until (o[7].turns + o[250].turns + o[499].turns == 6)
        idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    for (int i = 0; i < MEMBERS; i++)
        turns += o[i].turns;
    ok (turns == MEMBERS + 3, "each member has a first turn, and then has turns only when it has an event (%d)", turns);
    for (int i = 0; i < MEMBERS; i++) {
        idt_watcher_destroy (o[i].w);
        close (o[i].fd);
    }
    end (p, o, MEMBERS);
}

/* A member that requests another turn in each of its turns does not delay other members or descriptors. */
static void test_greedy (void)
{
    struct one o[2] = { { .more = 1000000000 }, { 0 } };
    struct process *p = make (o, 2);

    o[1].fd = eventfd (1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (o[1].fd < 0 || !(o[1].w = idt_fd_watcher_create (member_reactor (o[1].m), o[1].fd, IDT_POLLIN, fired, &o[1])))
        bail_out ("cannot make a watcher");
    idt_watcher_start (o[1].w);
    wait_until (o[1].turns == 2) idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    ok (o[0].turns > 0, "a process polls descriptors even while a member is always busy");
    idt_watcher_destroy (o[1].w);
    close (o[1].fd);
    end (p, o, 2);
}

/* A paused member has no turns and no callbacks, even if it is woken. A process that is held runs without members. */
static void test_paused (void)
{
    struct one o[2] = { { .ends = 2 }, { .ends = 1 } };
    struct process *p = make (o, 2);

    o[0].fd = eventfd (1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (o[0].fd < 0 || !(o[0].w = idt_fd_watcher_create (member_reactor (o[0].m), o[0].fd, IDT_POLLIN, fired, &o[0])))
        bail_out ("cannot make a watcher");
    idt_watcher_start (o[0].w);
    member_pause (o[0].m, true);
    member_wake (o[0].m);
    wait_until (o[1].turns == 1) idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    ok (o[0].turns == 0 && o[0].fires == 0, "a paused member has no turn and no callback");
    member_pause (o[0].m, false);
    wait_until (o[0].turns == 1 && o[0].fires == 1) idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    process_hold (p, true);
    process_hold (p, true);
    o[0].wakes = o[0].m;
    member_wake (o[0].m);
    wait_until (o[0].told == 1) idt_reactor_run (process_reactor (p), IDT_REACTOR_NOWAIT);
    ok (o[0].turns == 2, "a paused member has its turn when it continues");
    process_hold (p, false);
    ok (process_run (p) == 0, "a held process ends when it is released and has no members");
    idt_watcher_destroy (o[0].w);
    close (o[0].fd);
    end (p, o, 2);
}

int main (void)
{
    test_turns ();
    test_woken ();
    test_greedy ();
    test_paused ();
    return done_testing ();
}
