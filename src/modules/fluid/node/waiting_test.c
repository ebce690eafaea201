/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* waiting_test.c - waiting requests: each is answered once, in its turn, with ids from any source */
#include <errno.h>
#include <stdio.h>

#include "test/tap.h"
#include "modules/fluid/node/waiting.h"

#define MS UINT64_C (1000)

static int replies, failures, last_errnum;
static void *last_cookie;
static uint32_t last_ids;
static struct waiting_stats stats;

static void reply_cb (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    replies++;
    last_cookie = cookie;
    last_ids = 0;
    for (size_t i = 0; i < nruns; i++)
        last_ids += run[i].n;
}

static void fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    failures++;
    last_cookie = cookie;
    last_errnum = errnum;
}

static struct pending *add (struct waiting *w, size_t cookie, const char *name, uint32_t count, uint64_t at_us)
{
    struct pending *p = waiting_add (w, name, REQUESTER_CLIENT, count, at_us, at_us / 1000);

    p->cookie = (void *)cookie;
    return p;
}

static void test_ends (void)
{
    struct waiting w;
    struct pending *p;

    waiting_init (&w, reply_cb, fail_cb, NULL, &stats);
    p = add (&w, 1, "a", 5, 10 * MS);
    waiting_add_run (&w, p, 7, 2);
    waiting_add_run (&w, p, 9, 3);
    ok (p->nruns == 1 && w.missing == 0, "adjacent ids of a request are stored as one run");
    waiting_complete (&w, 15 * MS, p);
    ok (replies == 1 && last_cookie == (void *)1 && last_ids == 5 && w.length == 0 && w.nrequesters == 0
            && stats.waits.longest_us == 5 * MS,
        "a request that has all its ids is answered, and its entry is removed");
    p = add (&w, 2, "a", 5, 20 * MS);
    p->asked = 5;
    waiting_fail (&w, p, EAGAIN, NULL);
    ok (failures == 1 && last_errnum == EAGAIN && stats.refused == 1 && w.length == 1 && !p->cookie,
        "if a request is answered while its ids are under way, its entry stays");
    ok (waiting_expire (&w, 30 * MS, EHOSTUNREACH, NULL) == UINT64_MAX && failures == 1,
        "a request that was answered while its ids are under way is not answered again");
    waiting_came (&w, p);
    ok (w.length == 0 && failures == 1, "the entry of an answered request is removed when its ids have arrived");
    waiting_refuse (&w, (void *)3, EHOSTUNREACH, NULL);
    ok (last_cookie == (void *)3 && stats.unreachable == 1 && stats.stalls == 2,
        "a refused request does not count as having "
        "waited");
    waiting_fini (&w);
}

static bool is_even (void *cookie, void *arg)
{
    return (size_t)cookie % 2 == 0;
}

static void test_expire (void)
{
    struct waiting w;

    failures = replies = 0;
    waiting_init (&w, reply_cb, fail_cb, NULL, &stats);
    for (size_t i = 1; i <= 4; i++)
        add (&w, i, "a", 5, i * MS);
    waiting_cancel (&w, is_even, NULL);
    ok (w.length == 2 && failures + replies == 0, "canceled requests are dropped without an answer");
    ok (waiting_expire (&w, 3 * MS, EHOSTUNREACH, NULL) == 3 * MS && failures == 1 && last_cookie == (void *)1,
        "requests that arrived before a given time fail, and the arrival of the next request is returned");
    waiting_fail_all (&w, EOVERFLOW, NULL);
    ok (failures == 2 && last_errnum == EOVERFLOW && w.length == 0, "all waiting requests can be failed");
    waiting_fini (&w);
}

static void test_oldest (void)
{
    struct waiting w;
    struct pending *p;

    waiting_init (&w, reply_cb, fail_cb, NULL, &stats);
    ok (waiting_oldest_ms (&w, 50, 40) == 50, "without waiting requests, no id is older than now");
    p = add (&w, 1, "a", 5, 20 * MS);
    ok (waiting_oldest_ms (&w, 50, 40) == 40, "a waiting request may get ids of the cursor's time");
    p->asked = 5;
    p->asked_ms = 30;
    ok (waiting_oldest_ms (&w, 50, 40) == 30, "a waiting request may get ids of the cursor's time at its forward");
    waiting_add_run (&w, p, UINT64_C (10) << 24, 1);
    ok (waiting_oldest_ms (&w, 50, 40) == 10, "the time of ids that a waiting request already has counts");
    waiting_came (&w, p);
    waiting_fail_all (&w, EAGAIN, NULL);
    waiting_fini (&w);
}

static void test_turns (void)
{
    struct waiting w;

    waiting_init (&w, reply_cb, fail_cb, NULL, &stats);
    add (&w, 1, "a", 5000, MS);
    add (&w, 2, "b", 10, MS);
    ok (TAILQ_FIRST (&w.round) == waiting_requester (&w, "a", REQUESTER_CLIENT),
        "the first requester that waits has the first turn");
    waiting_use_turn (&w, TAILQ_FIRST (&w.round), WAITING_TURN);
    ok (TAILQ_FIRST (&w.round) == waiting_requester (&w, "b", REQUESTER_CLIENT),
        "a requester's turn ends when its ids are used up");
    ok (waiting_ahead (&w, "b", REQUESTER_CLIENT, 10) == 40 && waiting_ahead (&w, "c", REQUESTER_CLIENT, 10) == 30,
        "if requests are served by turns, no requester waits for all ids of the others");
    waiting_fail_all (&w, EAGAIN, NULL);
    waiting_fini (&w);
}

static void test_many_requesters (void)
{
    struct waiting w;
    char name[8];
    bool found = true;

    waiting_init (&w, reply_cb, fail_cb, NULL, &stats);
    for (size_t i = 1; i <= 4 * WAITING_BUCKETS; i++) {
        snprintf (name, sizeof (name), "%zu", i);
        add (&w, i, name, 1, MS);
    }
    waiting_cancel (&w, is_even, NULL);
    for (size_t i = 1; i <= 4 * WAITING_BUCKETS; i++) {
        snprintf (name, sizeof (name), "%zu", i);
        found = found && !waiting_requester (&w, name, REQUESTER_CLIENT) == (i % 2 == 0);
    }
    ok (found && w.nrequesters == 2 * WAITING_BUCKETS && !waiting_requester (&w, "1", REQUESTER_BROKER),
        "each of many requesters is found by name and kind, as long as a request of it waits");
    failures = replies = 0;
    waiting_fini (&w);
    ok (failures + replies == 0, "waiting_fini () answers no request");
}

int main (void)
{
    test_ends ();
    test_expire ();
    test_oldest ();
    test_turns ();
    test_many_requesters ();
    return done_testing ();
}
