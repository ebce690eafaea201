/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* spill_test.c - an owner rank with too much to make passes requests of its children on; the test plays its parent and
 * its children
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/node_world.h"
#include "test/tap.h"
#include "modules/fluid/node/private.h"

#define MS UINT64_C (1000)
#define T0 UINT64_C (100000000)
#define AT(ms) (T0 + (ms)*MS)
#define LEASE 60000U
#define SPILL 10U /* ms */
#define MANY NODE_MAX_COUNT
#define MANY_MS (MANY / FLUID_PER_MS)

/* Two successive requests: the first one had its turn, so it is passed on. */
#define UP 1
#define HERE 2

/* Rank 1 owns a generator, and makes ids from 10 ms on. */
static void create (struct world *s, uint64_t spill_ms, uint64_t patience_ms)
{
    struct node_config config = { .rank = 1,
                                  .max_generators = 2,
                                  .lease_ms = LEASE,
                                  .max_backlog_ms = patience_ms,
                                  .forward_timeout_ms = patience_ms,
                                  .max_waiting = 100,
                                  .spill_backlog_ms = spill_ms,
                                  .incarnation = WORLD_UUID };
    const struct idt_clock_sample sample = { AT (10), AT (10) - T0, AT (10) - T0, AT (10), 0 };

    *s = (struct world){ .n = node_create (&config, &world_ops, s) };
    node_parent (s->n, AT (10), true);
    node_sample (s->n, AT (10), &sample);
    struct lease_grant grant = { 1, WORLD_UUID, s->own_number, 10, 10 + LEASE };
    const struct lease_answer answer = { .grant = &grant, .ngrant = 1 };
    node_lease_answered (s->n, AT (10), s->lease_tag, &answer);
}

static void destroy (struct world *s, uint64_t ms)
{
    node_stop (s->n, AT (ms));
    node_destroy (s->n);
}

static void ask_as (struct world *s, uint64_t ms, size_t cookie, uint32_t count, const char *asker, bool from_broker)
{
    node_block (s->n, AT (ms), &(struct node_request){ (void *)cookie, count, 0, from_broker, asker, false, false });
}

static void ask (struct world *s, uint64_t ms, size_t cookie, uint32_t count, const char *child)
{
    ask_as (s, ms, cookie, count, child, true);
}

static void run_until (struct world *s, uint64_t from_ms, uint64_t to_ms)
{
    for (uint64_t ms = from_ms; ms <= to_ms; ms++)
        node_tick (s->n, AT (ms));
}

/* Two children request as much as allowed: the first one's request is passed on. */
static void pass (struct world *s, uint64_t patience_ms)
{
    create (s, SPILL, patience_ms);
    ask (s, 10, UP, MANY, "child one");
    run_until (s, 10, 11);
    ask (s, 12, HERE, MANY, "child two");
}

/* The parent's answer: ids of generator 0, from the millisecond after 'after' on. */
static void answer (struct world *s, uint64_t ms)
{
    struct id_run run[MANY_MS + 1];
    uint64_t t = fluid_split (s->after).timestamp_ms + 1;
    size_t n = 0;

    for (uint32_t left = s->count; left > 0; n++, t++) {
        run[n] = (struct id_run){ t << 24, left < FLUID_PER_MS ? left : FLUID_PER_MS };
        left -= run[n].n;
    }
    node_forwarded (s->n, AT (ms), s->tag, run, n);
}

static bool is_complete (const struct world *s, size_t cookie)
{
    const struct record *r = &s->req[cookie];

    return r->answers == 1 && r->errnum == 0 && r->sound;
}

static void test_spill (void)
{
    struct world s;

    create (&s, SPILL, 2000);
    ask (&s, 10, UP, MANY, "child one");
    run_until (&s, 10, 11);
    ok (s.forwards == 0, "the request of a single child is served by this rank, even for the largest number of ids");
    ask (&s, 12, HERE, MANY, "child two");
    ok (s.forwards == 1 && s.count > MANY - 3 * FLUID_PER_MS && s.n->stats.spilled == 1,
        "of two requests of children the one whose turn is last is passed on to the parent, as a whole");
    ok (s.after == s.n->last_id && fluid_split (s.after).timestamp_ms == 12,
        "a request that is passed on asks for ids above all ids that were made by this rank");
    run_until (&s, 13, 80);
    ok (is_complete (&s, HERE) && s.req[HERE].ids == MANY && s.req[UP].answers == 0 && s.forwards == 1,
        "while one request is passed on, the other one is served by this rank");
    ok (node_deadline (s.n) > AT (81), "when the other request is served, this rank has no work left");
    answer (&s, 82);
    ok (is_complete (&s, UP) && s.req[UP].ids == MANY && s.req[UP].last >> 24 == 12 + s.count / FLUID_PER_MS + 1,
        "the parent's ids complete a request that was passed on, above the ids that it got from this rank");
    ask (&s, 83, 3, 10, "child one");
    ok (is_complete (&s, 3) && s.req[3].first > s.req[UP].last,
        "ids that this rank makes later are above the parent's ids");
    destroy (&s, 84);
    ok (s.req[HERE].answers == 1 && s.req[UP].answers == 1 && s.req[3].answers == 1,
        "each of two requests, of which one was passed on, is answered once");
}

static void test_order (void)
{
    struct world s;

    pass (&s, 2000);
    ask (&s, 13, 3, 100, "child one");
    ask_as (&s, 13, 4, 2000, "a client", false);
    run_until (&s, 13, 90);
    ok (s.req[3].answers == 0,
        "a later request of a child waits until the child's request that was passed on is complete");
    ok (is_complete (&s, HERE) && is_complete (&s, 4),
        "while a request of one child is passed on, requests of others are served");
    answer (&s, 91);
    run_until (&s, 91, 92);
    ok (is_complete (&s, UP) && is_complete (&s, 3) && s.req[3].first > s.req[UP].last,
        "a later request of a child gets ids above the ids of the request that was passed on");
    destroy (&s, 93);
}

static void test_what (void)
{
    struct world s;

    create (&s, 0, 2000);
    ask (&s, 10, 1, MANY, "child one");
    ask (&s, 10, 2, MANY, "child two");
    run_until (&s, 11, 20);
    ok (s.forwards == 0, "without fluid.spill-backlog no request is passed on");
    destroy (&s, 21);
    create (&s, SPILL, 2000);
    ask_as (&s, 10, 1, MANY, "client one", false);
    ask_as (&s, 10, 2, MANY, "client two", false);
    run_until (&s, 11, 20);
    ok (s.forwards == 0, "requests of clients are not passed on");
    destroy (&s, 21);
    create (&s, SPILL, 2000);
    for (size_t i = 1; i <= 5; i++)
        ask (&s, 10, i, 2 * FLUID_PER_MS, i % 2 ? "child one" : "child two");
    run_until (&s, 10, 30);
    ok (s.forwards == 0 && is_complete (&s, 1) && is_complete (&s, 5),
        "no request is passed on if the backlog is below fluid.spill-backlog");
    destroy (&s, 31);
}

static void test_bound (void)
{
    static const char *const child[] = { "one", "two", "three", "four", "five", "six" };
    struct world s;

    create (&s, SPILL, 2000);
    for (size_t i = 0; i < 6; i++)
        ask (&s, 10, i + 1, 20000, child[i]);
    run_until (&s, 11, 11);
    ok (s.forwards == 1 && s.count > 40000 && s.count <= NODE_MAX_COUNT,
        "requests for at most as many ids as one message may ask for are passed on: %u ids", (unsigned)s.count);
    run_until (&s, 12, 20);
    ok (s.forwards == 1 && node_forward_left_here (s.n) > (uint64_t)SPILL * FLUID_PER_MS,
        "while requests are passed on, no further ones are passed on");
    answer (&s, 21);
    ok (s.forwards == 2 && s.count > 20000,
        "when the parent has answered, some of the remaining requests are passed on: %u ids", (unsigned)s.count);
    ok (node_forward_left_here (s.n) >= SPILL * FLUID_PER_MS / 2,
        "at least half of fluid.spill-backlog is left for this rank");
    destroy (&s, 22);
    for (size_t i = 1; i <= 6; i++)
        ok (s.req[i].answers == 1, "the request of child %s is answered once", child[i - 1]);
}

/* All waiting requests would fit into one, but then the rank would be idle (rule P_KEEP). */
static void test_keep (void)
{
    struct world s;

    create (&s, SPILL, 2000);
    ask (&s, 10, 1, 8000, "child one");
    ask (&s, 10, 2, 8000, "child two");
    run_until (&s, 11, 11);
    ok (s.forwards == 1 && s.count > 0 && s.count <= 8000,
        "of two requests only one is passed on, although the message has space for both: %u ids", (unsigned)s.count);
    ok (node_forward_left_here (s.n) >= SPILL * FLUID_PER_MS / 2,
        "when one of two requests is passed on, at least half of fluid.spill-backlog is left for this rank");
    run_until (&s, 12, 30);
    ok (is_complete (&s, 1) + is_complete (&s, 2) == 1,
        "the request that is not passed on is served by this rank meanwhile");
    answer (&s, 31);
    ok (is_complete (&s, 1) && is_complete (&s, 2), "the parent's ids complete a request that was passed on");
    destroy (&s, 32);
}

static void test_few (void)
{
    struct world s;

    create (&s, SPILL, 2000);
    ask (&s, 10, 1, 20000, "child one");
    ask (&s, 10, 2, 64, "child two");
    ask (&s, 10, 3, 64, "child two");
    run_until (&s, 12, 15);
    ok (s.forwards == 0 && is_complete (&s, 2) && is_complete (&s, 3),
        "a request for few ids of a child with no other request is served by this rank");
    destroy (&s, 16);
}

static void test_refused (void)
{
    static const int errors[] = { EAGAIN, ENOSYS, EPERM, EOVERFLOW };

    for (size_t i = 0; i < sizeof (errors) / sizeof (errors[0]); i++) {
        struct world s;

        pass (&s, 2000);
        node_forward_failed (s.n, AT (13), s.tag, errors[i]);
        run_until (&s, 13, 32);
        ok (s.forwards == 1 && s.req[UP].answers == 0,
            "after a refusal (%s) nothing is passed on to the parent for some time", strerror (errors[i]));
        run_until (&s, 33, 34);
        ok (s.forwards == 2, "after a refusal requests are passed on again when a delay has passed");
        for (uint64_t ms = 34; ms <= 150; ms++) {
            node_forward_failed (s.n, AT (ms), s.tag, errors[i]);
            node_tick (s.n, AT (ms));
        }
        ok (is_complete (&s, HERE) && is_complete (&s, UP) && s.req[UP].ids == MANY,
            "the ids of a request that the parent refused are made by this rank");
        destroy (&s, 151);
    }
}

/* The answer is not what was requested: too few ids, too low ones, or no ids. */
static void test_unsound (void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct world s;

        pass (&s, 2000);
        struct id_run run = { kind == 1 ? 1 : s.after + 1 + (1 << 24), s.count - (kind == 0) };
        node_forwarded (s.n, AT (13), s.tag, &run, kind < 2);
        ok (s.req[UP].answers == 0 && !s.n->up.spilled.busy && s.n->stats.forwards_lost == 1,
            "an invalid response of the parent fails no request");
        run_until (&s, 13, 32);
        ok (s.forwards == 1, "after an invalid response nothing is passed on to the parent for some time");
        for (uint64_t ms = 33; ms <= 150; ms++) {
            node_forwarded (s.n, AT (ms), s.tag, &run, kind < 2);
            node_tick (s.n, AT (ms));
        }
        ok (is_complete (&s, HERE) && is_complete (&s, UP) && s.req[UP].ids == MANY,
            "after an invalid response the ids are made by this rank");
        destroy (&s, 151);
    }
}

static void test_parent_lost (void)
{
    struct world s;

    pass (&s, 2000);
    node_parent (s.n, AT (14), false);
    ok (s.cancels == 0 && !s.n->up.spilled.busy, "if the parent is lost, this rank no longer waits for its response");
    answer (&s, 15);
    run_until (&s, 15, 150);
    ok (is_complete (&s, HERE) && is_complete (&s, UP) && s.forwards == 1 && s.req[UP].ids == MANY,
        "if the parent is lost, all ids are made by this rank");
    node_parent (s.n, AT (151), true);
    ask (&s, 152, 3, MANY, "child one");
    ask (&s, 152, 4, MANY, "child two");
    run_until (&s, 153, 153);
    ok (s.forwards == 2, "requests are passed on immediately to a new parent");
    destroy (&s, 160);
    ok (s.req[3].answers == 1 && s.req[4].answers == 1 && s.req[3].errnum == EHOSTUNREACH,
        "a node that stops answers the requests that it has passed on");
}

static void test_patience (void)
{
    struct world s;

    pass (&s, 2000);
    run_until (&s, 13, 260);
    ok (s.cancels == 0 && s.req[UP].answers == 0,
        "the parent has twice the time that this rank would have needed to serve the request");
    run_until (&s, 261, 340);
    ok (s.cancels == 1 && is_complete (&s, UP),
        "a parent that does not answer in time gets a cancel message, and the ids are made by this rank");
    answer (&s, 341);
    ok (s.req[UP].answers == 1, "a response after the cancel message is ignored");
    destroy (&s, 342);

    pass (&s, 2000);
    answer (&s, 200);
    ask (&s, 200, 3, MANY, "child one");
    ask (&s, 201, 4, MANY, "child two");
    run_until (&s, 201, 218);
    ok (is_complete (&s, UP) && s.forwards == 1,
        "after a parent was slower than this rank would have been, nothing is passed on for some time");
    run_until (&s, 219, 230);
    ok (s.forwards == 2,
        "after a parent was slower than this rank would have been, requests are passed on again when a delay has "
        "passed");
    destroy (&s, 231);
}

static bool all_gone_cb (void *cookie, void *arg)
{
    return cookie == arg;
}

static void test_deadline (void)
{
    struct world s;

    pass (&s, 50);
    run_until (&s, 13, 109);
    ok (is_complete (&s, HERE) && s.req[UP].answers == 0, "a request that was passed on waits until its deadline");
    run_until (&s, 110, 114);
    ok (s.req[UP].answers == 1 && s.req[UP].errnum == EAGAIN && s.cancels == 1,
        "at its deadline a request that was passed on fails, and the parent is notified");
    answer (&s, 115);
    destroy (&s, 116);
    ok (s.req[UP].answers == 1, "a request that failed at its deadline is answered once");

    pass (&s, 2000);
    node_cancel (s.n, AT (14), all_gone_cb, (void *)UP);
    ok (s.cancels == 1, "a request that was passed on and that the child cancels is canceled at the parent");
    ask (&s, 15, 3, 100, "child one");
    ok (s.forwards == 2 && s.count == 100, "a later request of a child does not wait for a canceled request");
    answer (&s, 16);
    ok (is_complete (&s, 3) && s.req[UP].answers == 0, "a canceled request that was passed on is not answered");
    destroy (&s, 19);
}

/* One of two requests that were passed on together is canceled: the next request of that child does not wait for it. */
static void test_one_of_two (void)
{
    struct world s;

    create (&s, SPILL, 2000);
    ask_as (&s, 10, 1, 40000, "a client", false);
    ask (&s, 10, 2, 5000, "child two");
    ask (&s, 10, 3, 9000, "child three");
    run_until (&s, 11, 11);
    ok (s.n->up.spilled.busy && s.count > 9000, "the requests of two children are passed on in one message");
    node_cancel (s.n, AT (12), all_gone_cb, (void *)2);
    ask (&s, 12, 4, 1000, "child two");
    run_until (&s, 13, 18);
    ok (s.n->up.spilled.busy && is_complete (&s, 4) && s.req[2].answers == 0,
        "when one of two requests that were passed on is canceled, the next request of that child is served by this "
        "rank");
    answer (&s, 19);
    ok (is_complete (&s, 3) && s.req[3].ids == 9000 && s.req[2].answers == 0,
        "when one of two requests that were passed on is canceled, the other one gets its ids");
    destroy (&s, 20);
}

/* The lease ends: incomplete requests are forwarded, too, and ids that are under way are not requested again. */
static void test_fenced (void)
{
    struct world s;

    pass (&s, 2 * LEASE);
    s.n->lessee.until_us = AT (30);
    s.n->cur.until_us = AT (30);
    uint32_t tag = s.tag, count = s.count;
    run_until (&s, 13, 31);
    ok (s.forwards == 2 && s.count < MANY && s.tag != tag,
        "a rank that becomes fenced forwards the remaining requests");
    uint32_t rest = s.count, rest_tag = s.tag;
    s.tag = tag;
    s.count = count;
    answer (&s, 100);
    ok (is_complete (&s, UP) && s.req[HERE].answers == 0,
        "when a rank has become fenced, a request that was passed on before is answered");
    s.tag = rest_tag;
    s.count = rest;
    answer (&s, 101);
    ok (is_complete (&s, HERE) && s.req[HERE].ids == MANY,
        "when a rank has become fenced, a request that was forwarded is answered");
    destroy (&s, 102);
}

int main (void)
{
    test_spill ();
    test_order ();
    test_what ();
    test_bound ();
    test_keep ();
    test_few ();
    test_refused ();
    test_unsound ();
    test_parent_lost ();
    test_patience ();
    test_deadline ();
    test_one_of_two ();
    test_fenced ();
    return done_testing ();
}
