/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reduction_test.c - which ranks are asked for the figures of a subtree, and the sum of their answers */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/metrics/reduction.h"
#include "test/tap.h"

/* The reduction of rank 0 in a binary tree of 15 ranks. Its children are 1 and 2; their children are 3 to 6. */
struct world {
    struct topo *topo;
    struct reduction *s;
    uint32_t asked[1024];
    double left_ms[1024];
    unsigned n;
    int errnum;        /* errno with which sending a request fails; 0: it is sent */
    const char *known; /* status of leaves that is known without a request */
};

static int ask (void *arg, uint32_t rank, double timeout_ms)
{
    struct world *w = arg;

    if (w->errnum) {
        errno = w->errnum;
        return -1;
    }
    w->left_ms[w->n] = timeout_ms;
    w->asked[w->n++] = rank;
    return 0;
}

static const char *status (void *arg, uint32_t rank)
{
    return rank == 6 ? "offline" : "lost";
}

static const char *known (void *arg, uint32_t rank)
{
    struct world *w = arg;

    return topo_child_count (w->topo, rank) == 0 ? w->known : NULL;
}

static const struct reduction_ops ops = { ask, status, known };

static void begin_at (struct world *w, const char *topology, uint32_t size, uint32_t own, uint32_t root, double ms)
{
    *w = (struct world){ .topo = topo_create (topology, size, NULL) };
    const struct reduction_conf conf = { .topo = w->topo, .own = own, .root = root, .ops = &ops, .arg = w };

    w->s = reduction_create (&conf, 0, ms);
    reduction_turn (w->s, 0);
}

static void begin (struct world *w)
{
    begin_at (w, "kary:2", 15, 0, 0, 8000);
}

static void end (struct world *w)
{
    reduction_destroy (w->s);
    topo_destroy (w->topo);
}

static void answer (struct world *w, uint32_t rank, const char *text)
{
    json_t *o = json_loads (text, JSON_DECODE_ANY, NULL);

    reduction_answered (w->s, rank, o);
    reduction_turn (w->s, 1);
    json_decref (o);
}

static void fail (struct world *w, uint32_t rank, int errnum)
{
    reduction_failed (w->s, rank, errnum);
    reduction_turn (w->s, 1);
}

/* Whether the reduction ends with these sets of ranks: {"full":"3", ...}. */
static bool ends_with (struct world *w, const char *text)
{
    json_t *report = metrics_report_new (reduction_metrics (w->s)), *o = json_loads (text, 0, NULL);
    json_t *sets = json_object_get (json_object_get (report, "ranks"), REDUCTION_STATUS);
    bool same = reduction_is_over (w->s) && json_equal (sets, o);
    char *s = json_dumps (sets, 0);

    if (!same)
        diag ("%s, not %s", s ? s : "nothing", text);
    free (s);
    json_decref (o);
    json_decref (report);
    return same;
}

#define SUBTREE_2 "{\"ranks\":{\"status\":{\"full\":\"[2,5-6,11-14]\"}}}"

static void test_answers (void)
{
    struct world w;

    begin (&w);
    ok (w.n == 2 && w.asked[0] == 1 && w.asked[1] == 2, "a reduction sends requests to all children at its start");
    ok (w.left_ms[0] == 8000 - REDUCTION_MARGIN_MS,
        "a reduction gives its children less time than the requester gave it");
    answer (&w, 2, SUBTREE_2);
    ok (!reduction_is_over (w.s), "a reduction waits for the responses of all children");
    answer (&w, 1, "{\"ranks\":{\"status\":{\"full\":\"[1,3-4,7-10]\"}},\"sum\":{\"x\":1}}");
    ok (w.n == 2 && ends_with (&w, "{\"full\":\"1-14\"}"),
        "when all children have responded, their results are added up and no other rank gets a request");
    end (&w);
}

static void test_lost (void)
{
    struct world w;

    begin (&w);
    answer (&w, 2, SUBTREE_2);
    fail (&w, 1, EHOSTUNREACH);
    ok (w.n == 4 && w.asked[2] == 3 && w.asked[3] == 4,
        "if a child is lost, the reduction sends requests to the children of the lost child");
    fail (&w, 3, EHOSTUNREACH);
    ok (w.n == 6 && w.asked[4] == 7 && w.asked[5] == 8,
        "if a grandchild is lost after its parent, the reduction sends requests to the grandchild's children, too");
    answer (&w, 4, "{\"ranks\":{\"status\":{\"full\":\"[4,9-10]\"}}}");
    answer (&w, 7, "{\"ranks\":{\"status\":{\"full\":\"7\"}}}");
    fail (&w, 8, EHOSTUNREACH);
    ok (ends_with (&w, "{\"full\":\"[2,4-7,9-14]\",\"lost\":\"[1,3,8]\"}"),
        "a report of a reduction has each rank once");
    end (&w);
}

static void test_failures (void)
{
    struct world w;

    begin (&w);
    answer (&w, 2, SUBTREE_2);
    fail (&w, 1, ENOSYS);
    answer (&w, 3, "{\"ranks\":{\"status\":{\"full\":\"[3,7-8]\"}}}");
    fail (&w, 4, EPERM);
    fail (&w, 9, ETIMEDOUT);
    fail (&w, 10, EAGAIN);
    ok (ends_with (&w, "{\"full\":\"[2-3,5-8,11-14]\",\"older\":\"[1,4]\",\"no answer\":\"9\",\"busy\":\"10\"}"),
        "if a rank does not know the request because its version is older, the reduction asks the children of that "
        "rank");
    end (&w);

    begin (&w);
    fail (&w, 2, ETIMEDOUT);
    answer (&w, 1, "[]");
    ok (ends_with (&w, "{\"no answer\":\"[2,5-6,11-14]\",\"malformed\":\"[1,3-4,7-10]\"}"),
        "if a rank is silent or its response is malformed, the report names the whole subtree of the rank");
    end (&w);
}

static void test_time (void)
{
    struct world w;

    begin_at (&w, "kary:2", 15, 0, 0, 80);
    ok (w.left_ms[0] == 70, "the margin that a reduction subtracts from a short time is an eighth of that time");
    reduction_failed (w.s, 1, EHOSTUNREACH);
    reduction_turn (w.s, 81);
    answer (&w, 2, SUBTREE_2);
    ok (w.n == 2 && ends_with (&w, "{\"lost\":\"1\",\"no answer\":\"[3-4,7-10]\",\"full\":\"[2,5-6,11-14]\"}"),
        "after its deadline a reduction asks no further rank");
    end (&w);
}

static void test_others (void)
{
    struct world w;

    begin_at (&w, "kary:2", 15, 9, 2, 8000);
    ok (w.n == 1 && w.asked[0] == 2, "a reduction over the subtree of another rank asks that rank");
    fail (&w, 2, EHOSTUNREACH);
    fail (&w, 6, EHOSTUNREACH);
    answer (&w, 5, "{\"ranks\":{\"status\":{\"full\":\"[5,11-12]\"}}}");
    fail (&w, 13, EHOSTUNREACH);
    fail (&w, 14, EHOSTUNREACH);
    ok (ends_with (&w, "{\"lost\":\"[2,13-14]\",\"offline\":\"6\",\"full\":\"[5,11-12]\"}"),
        "if the root of the requested subtree is lost, its children are asked");
    end (&w);

    begin_at (&w, "kary:2", 15, 0, 2, 8000);
    w.errnum = ENOMEM;
    fail (&w, 2, ENOSYS);
    ok (ends_with (&w, "{\"older\":\"2\",\"busy\":\"[5-6,11-14]\"}"),
        "a rank to which no request can be sent is reported as busy");
    end (&w);
}

static void test_known (void)
{
    struct world w;

    begin_at (&w, "kary:2", 5, 0, 1, 8000);
    w.known = "full";
    fail (&w, 1, EHOSTUNREACH);
    ok (w.n == 1 && ends_with (&w, "{\"lost\":\"1\",\"full\":\"3-4\"}"),
        "a rank whose answer is known in advance is not asked");
    end (&w);
}

static void test_window (void)
{
    struct world w;
    unsigned answered = 0;

    begin_at (&w, "kary:1000", 1000, 0, 0, 8000);
    ok (w.n == REDUCTION_WINDOW, "a reduction asks at most %u ranks at the same time", REDUCTION_WINDOW);
    for (; answered < 999 && answered < w.n; answered++)
        fail (&w, w.asked[answered], ETIMEDOUT);
    ok (answered == 999 && ends_with (&w, "{\"no answer\":\"1-999\"}"),
        "at the end of a reduction all ranks have a status");
    end (&w);
}

int main (void)
{
    test_answers ();
    test_lost ();
    test_failures ();
    test_time ();
    test_others ();
    test_known ();
    test_window ();
    return done_testing ();
}
