/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs_test.c - requests to a launcher, and the commands that it sends: two processes of two ranks each */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "broker/base/topology.h"
#include "cmd/launch/procs.h"
#include "test/tap.h"

#define RANKS 4

struct world {
    struct procs procs;
    struct plan *plan;
    char said[64];  /* the last command sent */
    int started;    /* the process that was started last; -1: none was started */
    int one, other; /* the two ranks of process 1 */
    idt_error_t err;
};

/* --- the launcher ------------------------------------------------------------------------------ */

static int start_cb (void *arg, int process, idt_error_t *errp)
{
    ((struct world *)arg)->started = process;
    return 0;
}

static void order_cb (void *arg, int rank, const char *order, int signum)
{
    struct world *w = arg;

    snprintf (w->said, sizeof (w->said), "%d %s %d", rank, order, signum);
}

static const struct procs_ops ops = { start_cb, order_cb };

/* --- the world ---------------------------------------------------------------------------------------------- */

static void world_init (struct world *w)
{
    static const char *const args[] = { NULL };
    struct topo *t = topo_create ("kary:1", RANKS, NULL);

    memset (w, 0, sizeof (*w));
    w->started = -1;
    if (!t || !(w->plan = plan_create (RANKS, 2, t, NULL)) || plan_count (w->plan, 1) != 2
        || procs_init (&w->procs, w->plan, RANKS, "broker", args) < 0)
        bail_out ("no world");
    topo_destroy (t);
    w->one = plan_rank (w->plan, 1, 0);
    w->other = plan_rank (w->plan, 1, 1);
    w->procs.ops = &ops;
    w->procs.arg = w;
    for (int i = 0; i < 2; i++)
        w->procs.process[i] = (struct launched_process){ .pid = 1000 + i, .pmi_fd = 1000 + i, .listens = true };
    for (int i = 0; i < RANKS; i++) {
        procs_set_starting (&w->procs, i);
        procs_set_up (&w->procs, i);
    }
}

static void world_fini (struct world *w)
{
    for (int i = 0; i < 2; i++)
        w->procs.process[i].pmi_fd = -1;
    procs_fini (&w->procs);
    plan_destroy (w->plan);
}

static enum control_result begin (struct world *w, const char *verb, int rank, int signum)
{
    struct control_request req = { .verb = verb, .rank = rank, .signum = signum };

    w->said[0] = w->err.text[0] = '\0';
    w->started = -1;
    return procs_control_ops.begin (&w->procs, &req, &w->err);
}

static enum control_result check (struct world *w, const char *verb, int rank)
{
    struct control_request req = { .verb = verb, .rank = rank };

    return procs_control_ops.check (&w->procs, &req, &w->err);
}

/* Whether 'verb' makes the launcher send this command. */
static bool says (struct world *w, const char *verb, int rank, int signum, const char *order)
{
    char want[64];

    snprintf (want, sizeof (want), "%d %s", rank, order);
    return begin (w, verb, rank, signum) == CONTROL_WAIT && strcmp (w->said, want) == 0;
}

/* Whether 'verb' is refused with this reason, and no command is sent. */
static bool refuses (struct world *w, const char *verb, int rank, int signum, const char *why)
{
    if (begin (w, verb, rank, signum) == CONTROL_FAILED && w->said[0] == '\0' && w->started < 0
        && strstr (w->err.text, why))
        return true;
    diag ("%s", w->err.text);
    return false;
}

/* --- orders ------------------------------------------------------------------------------------------------- */

static void test_orders (void)
{
    struct world w;

    world_init (&w);
    ok (says (&w, "kill", w.one, SIGKILL, "kill 9") && says (&w, "kill", w.one, 0, "kill 9"),
        "the verb kill sends SIGKILL by default");
    ok (says (&w, "kill", w.one, SIGTERM, "end 15") && says (&w, "kill", w.one, SIGINT, "end 2")
            && says (&w, "kill", w.one, SIGHUP, "end 1"),
        "the verb kill with SIGTERM, SIGINT or SIGHUP ends the rank in an orderly way");
    ok (refuses (&w, "kill", w.one, SIGUSR1, "it takes KILL, TERM"), "the verb kill refuses other signals");
    ok (says (&w, "stop", w.one, 0, "stop 19") && check (&w, "stop", w.one) == CONTROL_WAIT,
        "the verb stop sends SIGSTOP, and waits");
    w.procs.rank[w.one].stopped = true;
    ok (check (&w, "stop", w.one) == CONTROL_DONE && check (&w, "stop", w.other) == CONTROL_WAIT,
        "the verb stop waits until its rank has stopped");
    ok (says (&w, "cont", w.one, 0, "cont 18") && check (&w, "cont", w.one) == CONTROL_WAIT,
        "the verb cont sends SIGCONT, and waits");
    ok (refuses (&w, "run", w.one, 0, "is running"), "the verb run is refused for a running rank");
    ok (refuses (&w, "kill", RANKS, 0, "no rank 4") && refuses (&w, "kill", -1, 0, "no rank -1")
            && refuses (&w, "sing", 0, 0, "no such verb"),
        "unknown ranks and verbs are refused");
    w.procs.stopping = true;
    ok (refuses (&w, "kill", w.one, 0, "is stopping"), "all verbs are refused while the instance stops");
    world_fini (&w);
}

static void test_down (void)
{
    struct world w;

    world_init (&w);
    procs_set_down (&w.procs, w.one, SIGKILL);
    ok (check (&w, "kill", w.one) == CONTROL_DONE, "the verb kill is done when the rank is down");
    ok (check (&w, "stop", w.one) == CONTROL_FAILED && strstr (w.err.text, "was killed by SIGKILL"),
        "the verb stop fails with the reason when the rank ends");
    ok (refuses (&w, "stop", w.one, 0, "is not running"), "the verb stop is refused for a rank that is down");
    ok (says (&w, "run", w.one, 0, "run 0") && check (&w, "run", w.one) == CONTROL_WAIT,
        "the verb run starts a rank that is down again in its process");
    procs_set_up (&w.procs, w.one);
    ok (check (&w, "run", w.one) == CONTROL_DONE, "the verb run is done when the rank is up");
    procs_set_down (&w.procs, w.one, SIGKILL);
    w.procs.process[1].pid = 0;
    ok (begin (&w, "run", w.one, 0) == CONTROL_WAIT && w.started == 1 && !w.said[0],
        "if the process of a rank has ended, the verb run starts a new process");
    world_fini (&w);
}

static void test_deaf (void)
{
    struct world w;

    world_init (&w);
    procs_set_down (&w.procs, w.one, SIGKILL);
    w.procs.process[1].listens = false;
    ok (refuses (&w, "kill", w.other, 0, "its process is starting"),
        "a process that does not listen yet gets no commands");
    ok (refuses (&w, "run", w.one, 0, "its process is starting") && w.procs.rank[w.one].state == PROC_DOWN,
        "the ranks of a process that does not listen yet are neither run nor marked as starting");
    w.procs.process[1].pmi_fd = -1;
    ok (refuses (&w, "run", w.one, 0, "no longer takes commands"), "a process that has closed its connection gets no "
                                                                   "commands");
    world_fini (&w);
}

int main (void)
{
    test_orders ();
    test_down ();
    test_deaf ();
    return done_testing ();
}
