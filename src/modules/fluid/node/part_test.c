/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* part_test.c - a node grants parts of what it holds: the test carries the messages between nodes */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "test/node_world.h"
#include "test/tap.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/node/private.h"

#define OWNER WORLD_UUID
#define IDLER "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define MS UINT64_C (1000)
#define T0 UINT64_C (100000000)
#define AT(ms) (T0 + (ms)*MS)
#define LEASE 60000U
#define TERM (LEASE / 4)

static struct node_config config_of (uint32_t rank, uint32_t share)
{
    return (struct node_config){ .rank = rank,
                                 .max_generators = 2,
                                 .lease_ms = LEASE,
                                 .max_backlog_ms = 2000,
                                 .forward_timeout_ms = 5000,
                                 .max_waiting = 100,
                                 .share = share,
                                 .share_keep = 512 };
}

static void create (struct world *s, uint32_t rank, uint32_t share)
{
    struct node_config config = config_of (rank, share);

    memcpy (config.incarnation, rank < 2 ? OWNER : IDLER, sizeof (config.incarnation));
    *s = (struct world){ .n = node_create (&config, &world_ops, s) };
}

/* The instance's time is 0 at T0, here and at the parent. */
static void set_clock (struct world *s, uint64_t at_us)
{
    const struct idt_clock_sample sample = { at_us, at_us - T0, at_us - T0, at_us, 0 };

    node_parent (s->n, at_us, true);
    node_sample (s->n, at_us, &sample);
}

/* Grant the generator of 'rank', for a lease from now. */
static void give_lease_of (struct world *s, uint32_t rank, uint64_t ms)
{
    const struct grant grant = {
        .rank = rank, .incarnation = OWNER, .number = s->own_number, .box = { rank, UINT64_MAX, { ms, ms + LEASE } }
    };
    const struct lease_answer answer = { .grant = &grant, .ngrant = 1 };

    node_lease_answered (s->n, AT (ms), s->lease_tag, &answer);
}

static void give_lease (struct world *s, uint64_t ms)
{
    give_lease_of (s, 1, ms);
}

static void ask (struct world *s, uint64_t ms, uint32_t count, fluid_t after, bool from_broker)
{
    node_block (s->n, AT (ms), &(struct node_request){ (void *)1, count, after, from_broker, "someone", false, false });
}

/* Pass a request for a part. Returns the result of node_lease_request (). */
static int ask_part (struct world *up, uint64_t ms, const struct want *want)
{
    return node_lease_request (up->n, AT (ms), (void *)1, &(struct lease_request){ want, 1, .is_part = true });
}

/* Pass the last request of 'down' to its parent, and the answer back. Returns whether something was granted. */
static bool pass (struct world *up, struct world *down, uint64_t ms)
{
    if (ask_part (up, ms, &down->part) < 0)
        return false;
    if (down->part_tag != 0)
        node_lease_answered (down->n, AT (ms), down->part_tag, &up->answer);
    return up->answer.ngrant > 0;
}

static void make_pair (struct world *up, struct world *down, uint32_t share)
{
    create (up, 1, NODE_SHARE_AUTO);
    create (down, 3, share);
    set_clock (up, AT (10));
    set_clock (down, AT (10));
    give_lease (up, 10);
}

static void destroy (struct world *s, uint64_t ms)
{
    node_stop (s->n, AT (ms));
    node_destroy (s->n);
}

static enum node_state state_of (struct world *s, uint64_t ms)
{
    struct node_status status;

    node_status (s->n, AT (ms), &status);
    return status.state;
}

static void test_part (void)
{
    struct world up, down;

    make_pair (&up, &down, 128);
    ok (down.part_ups == 1 && down.part.rank == 3 && down.part.size == 128 && state_of (&down, 10) == NODE_IDLE,
        "an idle rank with a configured size requests a part of that size");
    ok (pass (&up, &down, 10) && state_of (&down, 11) == NODE_SHARING,
        "a rank uses its part from the next millisecond on");
    ask (&down, 11, 128, 0, false);
    struct fluid_fields f = fluid_split (down.req[1].first);
    ok (down.req[1].ids == 128 && f.generator == 1 && f.timestamp_ms == 11 && f.sequence == 0 && down.forwards == 0,
        "a rank with a part makes ids of its parent's generator");
    ask (&up, 11, 1024, 0, false);
    node_tick (up.n, AT (12));
    ok (fluid_split (up.req[1].first).sequence == 128 && up.req[1].answers == 1 && up.req[1].ids == 1024
            && !up.disorder,
        "the parent makes ids with other sequence numbers than those of the part");
    destroy (&down, 13);
    ok (down.part.size == 0 && down.part.end_ms == 12 && down.part_tag == 0,
        "a rank that stops returns its part at a time above all its ids");
    ok (!pass (&up, &down, 13), "the return of a part grants nothing");
    ask (&up, 14, 1024, 0, false);
    ok (up.req[1].answers == 2 && fluid_split (up.req[1].first).sequence == 0,
        "after the return the parent makes ids with the numbers of the part");
    destroy (&up, 15);
}

static void test_order (void)
{
    struct world up, down;

    make_pair (&up, &down, 16);
    pass (&up, &down, 10);
    ask (&down, 11, 10, 0, false);
    ask (&down, 11, 65, 0, false);
    ok (down.req[1].answers == 1 && down.forwards == 1 && down.count == 65 && down.after == down.req[1].last,
        "a request for more ids than the part has in four milliseconds is forwarded, for ids above all ids before");
    ask (&down, 12, 1, 0, false);
    ok (down.req[1].answers == 1 && down.forwards == 1,
        "while a request of a rank with a part is forwarded, the rank makes no ids");
    ask (&up, 11, down.count, down.after, true);
    ok (up.req[1].answers == 1 && fluid_split (up.req[1].first).timestamp_ms == 11 && up.req[1].first > down.after,
        "the parent serves the forward in the same millisecond, from the numbers that it keeps");
    const struct id_run run = { up.req[1].first, 65 };
    node_forwarded (down.n, AT (12), down.tag, &run, 1);
    ok (down.req[1].answers == 3 && !down.disorder && fluid_split (down.req[1].last).timestamp_ms == 12,
        "after the response the waiting requests are served from the part, above the ids of the response");
    const struct id_run late = { fluid_split (down.req[1].last).timestamp_ms << 24 | 1 << 10 | 900, 65 };
    ask (&down, 13, 65, 0, false);
    node_forwarded (down.n, AT (13), down.tag, &late, 1);
    ask (&down, 12, 1, 0, false);
    ok (!down.disorder && down.forwards == 2,
        "after ids from the parent a rank makes further ids of its part in the millisecond of these ids");
    destroy (&down, 14);
    destroy (&up, 14);
}

/* The parent is silent, or another one. */
static void test_trouble (void)
{
    struct world up, down;

    make_pair (&up, &down, 16);
    pass (&up, &down, 10);
    ask (&down, 11, 100, 0, false);
    ok (down.forwards == 1, "a rank forwards a request that is too large for its part");
    node_tick (down.n, AT (90));
    ok (down.cancels == 0 && down.req[1].answers == 0, "a rank with a part waits for the response to a forward");
    node_tick (down.n, AT (112));
    ok (down.cancels == 1 && down.req[1].answers == 1 && down.req[1].ids == 100 && !down.disorder,
        "after a tenth of a second without a response a rank with a part makes the ids itself");
    node_parent (down.n, AT (113), false);
    ask (&down, 114, 100, 0, false);
    for (uint64_t ms = 115; ms < 125; ms++)
        node_tick (down.n, AT (ms));
    ok (down.req[1].answers == 2 && down.forwards == 1, "a rank with a part and without a parent makes all ids itself");
    ok (state_of (&down, TERM - 1) == NODE_SHARING && state_of (&down, TERM + 200) == NODE_IDLE,
        "a rank without a parent is idle when its part is over");
    node_parent (down.n, AT (TERM + 200), true);
    ok (down.part.number == 2 && down.part_ups == 2, "a rank requests a part from a new parent immediately");
    node_lease_failed (down.n, AT (TERM + 201), down.part_tag, ENOSYS);
    node_tick (down.n, AT (TERM + 1200));
    ok (down.part_ups == 2, "after an answer that the module is not loaded a rank waits for a second");
    node_tick (down.n, AT (TERM + 2000));
    ok (down.part_ups == 3,
        "a rank requests a part again from a parent without the module, because the module may be reloaded");
    node_lease_failed (down.n, AT (TERM + 2001), down.part_tag, ENOTSUP);
    node_tick (down.n, AT (TERM + 60000));
    ok (down.part_ups == 3, "a rank sends no further request to a parent that grants no parts");
    node_parent (down.n, AT (TERM + 60001), true);
    ok (down.part_ups == 4, "a rank requests a part from a parent that replaces one that grants no parts");
    destroy (&down, TERM + 60002);
    destroy (&up, 20);
}

/* The rank has a part of one parent, and moves to another one. The new parent grants other numbers. */
static void test_moved (void)
{
    struct world up, down, other;

    make_pair (&up, &down, 128);
    pass (&up, &down, 10);
    ask (&down, 11, 3, 0, false);
    create (&other, 0, NODE_SHARE_AUTO);
    set_clock (&other, AT (10));
    give_lease_of (&other, 0, 10);
    node_parent (down.n, AT (12), false);
    node_parent (down.n, AT (13), true);
    ok (down.part.number == 2 && down.part.size == 128 && down.part.end_ms == 10 + TERM,
        "a rank that moved asks the new parent, and promises no end before that of its part");
    ask (&down, 13, 1, 0, false);
    ok (down.req[1].answers == 2 && fluid_split (down.req[1].last).generator == 1 && down.forwards == 0,
        "a rank that moved makes ids of its part of the former parent");
    ok (pass (&other, &down, 14) && node_view (down.n).held->count == 2
            && node_view (down.n).held->lease[1].box.generator == 0,
        "a rank that moved holds a part of each parent");
    node_tick (down.n, AT (2100));
    ok (down.part_ups == 3 && pass (&other, &down, 2100) && node_view (down.n).held->count == 2
            && node_view (down.n).held->lease[1].box.range.hi_ms == 2100 + TERM,
        "a rank that moved renews its newest part");
    ask (&down, 2101, 1, 0, false);
    ok (down.req[1].answers == 3 && fluid_split (down.req[1].last).generator == 0 && !down.disorder
            && down.forwards == 0,
        "a rank that moved makes ids of its newest part, above all ids before");
    destroy (&down, 2102);
    ok (down.part.size == 0 && down.part.end_ms == 2102 && !pass (&other, &down, 2102)
            && grants_end (node_view (other.n).parts) == 2102,
        "a rank that moved returns its part to the new parent when it stops");
    destroy (&up, 2103);
    destroy (&other, 2103);
}

/* --- answers that are late, repeated or missing --------------------------------------------------------- */

static void test_answers (void)
{
    struct world up, down;

    make_pair (&up, &down, 64);
    struct want first = down.part;
    node_tick (down.n, AT (10 + TERM / 8 + TERM / 32 + 1));
    ok (down.part_ups == 2 && down.part.number == first.number && memcmp (&first, &down.part, sizeof (first)) == 0,
        "a request without answer is repeated with its number after an eighth of a term and at most a quarter of that");
    ok (ask_part (&up, 3000, &first) == 0 && up.answer.ngrant == 1, "the first request arrives late, and is granted");
    struct grant granted = up.grant[0];
    ok (ask_part (&up, 3001, &down.part) == 0 && up.answer.ngrant == 1
            && memcmp (&granted.box, &up.grant[0].box, sizeof (granted.box)) == 0
            && up.grant[0].use_ms == granted.use_ms && up.n->parts.count == 1,
        "a repeated request gets the answer of the first one");
    node_lease_answered (down.n, AT (3001), down.part_tag, &up.answer);
    ok (state_of (&down, 3001) == NODE_SHARING && node_stats (down.n)->parts_received == 1,
        "a rank uses the part in the answer to a repeated request");
    node_lease_answered (down.n, AT (3002), down.part_tag, &up.answer);
    ok (node_view (down.n).held->count == 1 && node_stats (down.n)->parts_received == 1, "a second answer is ignored");
    node_tick (down.n, AT (3001 + TERM / 8));
    ok (down.part.number == first.number + 1 && down.part.end_ms == granted.box.range.hi_ms,
        "an eighth of a term after a part was granted, its renewal is requested");
    node_lease_answered (down.n, AT (3002 + TERM / 8), down.part_tag, &up.answer);
    ok (node_view (down.n).held->lease[0].box.range.hi_ms == granted.box.range.hi_ms,
        "an answer to an earlier request is ignored");
    ok (pass (&up, &down, 3003 + TERM / 8) && up.grant[0].box.range.lo_ms == granted.box.range.lo_ms
            && node_view (down.n).held->count == 1
            && node_view (down.n).held->lease[0].box.range.hi_ms == 3003 + TERM / 8 + TERM,
        "the answer to a renewal has the whole row of what was granted");
    ok (ask_part (&up, 3004 + TERM / 8, &first) == 0 && up.answer.ngrant == 0,
        "a request with a number below that of an earlier one gets nothing");
    destroy (&down, 6000);
    destroy (&up, 6000);
}

/* The answer arrives when the rank has stopped: the return that was sent before has ended the part at the parent. */
static void test_stop_while_asking (void)
{
    struct world up, down;

    make_pair (&up, &down, 64);
    struct want first = down.part;
    destroy (&down, 11);
    ok (down.part_ups == 2 && down.part.number == first.number + 1 && down.part.size == 0,
        "a rank that stops while a request is under way returns what may be granted");
    ok (ask_part (&up, 12, &first) == 0 && up.answer.ngrant == 1 && !pass (&up, &down, 13)
            && box_size (node_granules (up.n, 14)) == FLUID_PER_MS,
        "after the return the parent has all its numbers, although the request was granted");
    destroy (&up, 20);
}

/* --- by need -------------------------------------------------------------------------------------------- */

/* Forward one request, and answer it immediately. */
static void ask_and_answer (struct world *down, uint64_t ms)
{
    int forwards = down->forwards;

    ask (down, ms, 1, 0, false);
    if (down->forwards > forwards) {
        const struct id_run run = { (fluid_t)ms << 24, 1 };
        node_forwarded (down->n, AT (ms), down->tag, &run, 1);
    }
    node_tick (down->n, AT (ms + 1));
}

static void test_need (void)
{
    struct world up, down;
    uint32_t per_ms;
    uint64_t ms = 10;

    make_pair (&up, &down, NODE_SHARE_AUTO);
    for (; ms < 110; ms += 10)
        ask_and_answer (&down, ms);
    ok (down.part_ups == 0 && down.forwards == 10, "a rank that has requests for a tenth of a second forwards them");
    for (; ms < 410 && down.part_ups == 0; ms += 10)
        ask_and_answer (&down, ms);
    ok (down.part_ups == 1 && down.part.size == 16 && pass (&up, &down, ms),
        "a rank whose requests continue gets a part within 0.4 s: at %d ms", (int)ms - 10);
    int forwards = down.forwards;
    for (uint64_t end = ms + 30000; ms < end; ms += 10) {
        int ups = down.part_ups;

        ask (&down, ms, 1, 0, false);
        node_tick (down.n, AT (ms));
        if (down.part_ups > ups)
            pass (&up, &down, ms);
    }
    ok (down.forwards <= forwards + 1 && down.part_ups >= 14 && down.part_ups <= 18 && !down.disorder,
        "a rank with a part sends no other messages than the request for its part, eight times in a term (%d)",
        down.part_ups);
    uint64_t silent_ms = ms;
    for (; ms < silent_ms + 8000 && down.part.size > 0; ms += 100)
        node_tick (down.n, AT (ms));
    ok (down.part.size == 0 && state_of (&down, ms) == NODE_IDLE && ms - silent_ms <= 5100,
        "a rank whose requests cease returns its part within five seconds (%d ms)", (int)(ms - silent_ms));
    ok (grants_count (node_view (up.n).parts, ms, &per_ms) == 1 && per_ms > 0,
        "until the parent receives the return, it does not use the numbers of the part");
    pass (&up, &down, ms);
    ok (grants_count (node_view (up.n).parts, ms + 1, &per_ms) == 0 && per_ms == 0,
        "when the parent has received the return, it uses the numbers of the part");
    forwards = down.forwards;
    ask (&down, ms + 10, 1, 0, false);
    ok (down.forwards == forwards + 1, "a rank that has returned its part forwards the next request");
    destroy (&down, ms + 10);
    destroy (&up, ms + 10);
}

/* For some terms, too few requests in each second for a part. */
static void test_seldom (void)
{
    struct world up, down;
    int asked = 0;

    make_pair (&up, &down, NODE_SHARE_AUTO);
    for (uint64_t ms = 20; ms < 4 * TERM; ms += 1000 / (DEMAND_BEGIN - 1) + 1, asked++)
        ask_and_answer (&down, ms);
    ok (down.part_ups == 0 && asked > 1000 && down.forwards == asked && down.req[1].answers == asked && !down.disorder,
        "a rank with few requests forwards each of them, and never requests a part");
    destroy (&down, 4 * TERM);
    destroy (&up, 4 * TERM);
}

/* How many sequence numbers the rank holds, by the boxes that last longest. */
static uint32_t size_of (const struct world *s)
{
    return box_size (held_granules (node_view (s->n).held));
}

/* Clients and children together need more than a part can have. */
static void test_most (void)
{
    struct world up, mid;

    make_pair (&up, &mid, NODE_SHARE_AUTO);
    mid.n->own.size = mid.n->passing.size = BOX_MAX_PART;
    node_tick (mid.n, AT (11));
    ok (mid.part_ups == 1 && mid.part.size == BOX_MAX_PART, "no rank requests more than a part can have: %u",
        mid.part.size);
    ok (pass (&up, &mid, 11) && size_of (&mid) == 512, "it gets what its parent does not keep");
    destroy (&mid, 12);
    destroy (&up, 12);
}

/* A rank that makes no ids itself. */
static void test_pass_on (void)
{
    struct world up, mid, low;

    make_pair (&up, &mid, NODE_SHARE_AUTO);
    create (&low, 5, 48);
    set_clock (&low, AT (10));
    ok (!pass (&mid, &low, 10) && mid.answer.retry_ms == 20 && mid.part_ups == 1 && mid.part.size == 64,
        "a rank without requests of its own requests a part that is large enough for what a child requests");
    ok (pass (&up, &mid, 11) && size_of (&mid) == 64, "the rank gets the part for its child");
    node_tick (low.n, AT (37));
    ok (low.part_ups == 2 && pass (&mid, &low, 37) && size_of (&low) == 48, "then the child gets a part of that part");
    ask (&mid, 38, 16, 0, false);
    ok (mid.req[1].ids == 16 && mid.forwards == 0 && fluid_split (mid.req[1].first).sequence == 48,
        "the rank uses what its child did not get");
    ask (&mid, 38, 1, 0, false);
    ok (mid.req[1].answers == 1 && mid.forwards == 0, "a request for more waits for the next millisecond");
    destroy (&low, 39);
    pass (&mid, &low, 39);
    for (uint64_t ms = 39; ms < 6000 && mid.part.size > 0; ms += 100)
        node_tick (mid.n, AT (ms));
    ok (mid.part.size == 0 && mid.part.left_ms == 0, "when its child has returned its part, the rank returns its own");
    destroy (&mid, 6000);
    destroy (&up, 6000);
}

static void test_grant_on (void)
{
    struct world up, mid, low;

    make_pair (&up, &mid, 16);
    create (&low, 5, 16);
    set_clock (&low, AT (10));
    pass (&up, &mid, 10);
    ok (pass (&mid, &low, 11) && node_view (low.n).held->lease[0].box.generator == 1 && size_of (&low) == 16,
        "a rank grants a part of its part to its child");
    node_tick (mid.n, AT (111));
    ok (mid.part_ups == 2 && mid.part.size == 32 && mid.part.end_ms == 10 + TERM && pass (&up, &mid, 111)
            && size_of (&mid) == 32,
        "then it requests what it needs itself");
    ask (&low, 112, 16, 0, false);
    ask (&mid, 112, 16, 0, false);
    ok (low.req[1].last < mid.req[1].first && fluid_split (mid.req[1].first).sequence == 16,
        "the child of a rank with a part gets the lower sequence numbers");
    node_tick (low.n, AT (9000));
    node_tick (mid.n, AT (9000));
    node_report (mid.n, AT (9000), &low.report);
    node_tick (mid.n, AT (10100));
    node_tick (mid.n, AT (11200));
    ok (low.report.part_low_ms == 9000 && mid.report.part_low_ms == 9000,
        "the position of a rank with a part includes the positions of those to whom it granted parts");
    destroy (&mid, 12000);
    ok (mid.part.size == 0 && mid.part.end_ms == 10 + TERM && mid.part.left_ms > 0,
        "a rank returns the time above the ends of the parts that it granted, and reports for how long they are used");
    pass (&up, &mid, 12000);
    destroy (&up, 12001);
    ok (up.nwant == 1 && up.want[0].size == 0 && up.want[0].end_ms == 10 + TERM && up.want[0].left_ms > 0,
        "an owner returns the time above the ends of the parts that it granted, and reports for how long they are "
        "used");
    destroy (&low, 12001);
}

/* A rank that has granted all of its part gets more beside it. */
static void test_further (void)
{
    struct world up, mid, low;

    make_pair (&up, &mid, 16);
    pass (&up, &mid, 10);
    create (&low, 5, 64);
    set_clock (&low, AT (200));
    node_tick (mid.n, AT (200));
    ok (pass (&mid, &low, 200) && size_of (&low) == 16 && mid.answer.share == 16 && mid.answer.retry_ms == 20,
        "a child gets what there is of what it wants, and is told to ask again after 20 ms");
    ok (mid.part.size == 128 && mid.part.end_ms == 10 + TERM && pass (&up, &mid, 201) && up.answer.ngrant == 2
            && size_of (&mid) == 128,
        "meanwhile its parent gets a further box, and keeps the one that it has");
    node_tick (low.n, AT (301));
    ok (pass (&mid, &low, 301) && mid.answer.ngrant == 2 && size_of (&low) == 64 && mid.answer.retry_ms == 0,
        "then the child gets a further box");
    ask (&low, 302, 64, 0, false);
    ask (&mid, 302, 64, 0, false);
    ok (low.req[1].ids == 64 && mid.req[1].ids == 64 && mid.forwards == 0 && low.forwards == 0,
        "both use all that they have");
    destroy (&low, 700);
    ok (low.part.size == 0 && low.part.end_ms == 303 && !pass (&mid, &low, 700)
            && grants_end (node_view (mid.n).parts) <= 303,
        "both boxes of the child are returned");
    destroy (&mid, 700);
    destroy (&up, 700);
}

/* Two children want all that a parent can grant. */
static void test_starved (void)
{
    struct world up, first, second;
    uint64_t ms = 20 + TERM / 8;

    make_pair (&up, &first, 256);
    create (&second, 5, 256);
    memset (second.n->held.want.incarnation, '6', IDT_MSG_UUID_LEN);
    up.n->config.share_keep = 768; /* as if the rank needed so much itself */
    ok (pass (&up, &first, 10) && size_of (&first) == 256 && up.answer.share == 256,
        "a single child gets all that it wants and the parent does not need");
    set_clock (&second, AT (12));
    ok (!pass (&up, &second, 12) && up.answer.share == 128,
        "the second child gets nothing while the first one has all, and is told what it should have");
    node_tick (first.n, AT (ms));
    ok (first.part_ups == 2 && pass (&up, &first, ms) && size_of (&first) == 256 && up.answer.share == 128,
        "at its next renewal the first child is told that it should have half");
    node_tick (first.n, AT (ms + 130));
    ok (first.part_ups == 3 && first.part.size == 256 && box_size (first.part.kept) == 128
            && first.part.end_ms == ms + 130 + 50,
        "the first child then returns half of its part, from a time soon after");
    ask (&first, ms + 179, 256, 0, false);
    ok (first.req[1].ids == 256 && first.forwards == 0, "until that time it has all of it");
    ask (&first, ms + 180, 128, 0, false);
    ok (first.req[1].answers == 2 && first.req[1].ids == 128 && first.forwards == 0,
        "from then on it has the other half, even if no answer has come");
    ok (pass (&up, &first, ms + 190) && size_of (&first) == 128, "the answer has that half");
    node_tick (second.n, AT (ms + 200 + TERM / 8));
    ok (pass (&up, &second, ms + 200 + TERM / 8) && size_of (&second) == 128, "the second child gets the other half");
    ask (&first, ms + 201 + TERM / 8, 128, 0, false);
    ask (&second, ms + 201 + TERM / 8, 128, 0, false);
    ok (first.req[1].ids == 128 && second.req[1].ids == 128 && first.forwards == 0 && second.forwards == 0
            && fluid_split (first.req[1].first).sequence != fluid_split (second.req[1].first).sequence,
        "the children use different numbers");
    destroy (&second, 9000);
    pass (&up, &second, 9000);
    node_tick (first.n, AT (9001));
    ok (pass (&up, &first, 9001) && size_of (&first) == 256,
        "when the second child has returned its part, the first one gets all that it wants again");
    destroy (&first, 10000);
    destroy (&up, 10000);
}

/* Have the rank ask, and pass that, at 'ms' and each 110 ms until 'end_ms'. */
static void pass_often (struct world *up, struct world *down, uint64_t ms, uint64_t end_ms)
{
    for (; ms < end_ms; ms += 110) {
        node_tick (down->n, AT (ms));
        pass (up, down, ms);
    }
}

/* A rank must return a part of what it holds, and a child of it has some. */
static void test_less (void)
{
    struct world up, mid, gone, low, other, third;

    make_pair (&up, &mid, 64);
    pass (&up, &mid, 10);
    up.n->config.share_keep = 768;
    create (&gone, 5, 32);
    create (&low, 6, 32);
    set_clock (&gone, AT (11));
    set_clock (&low, AT (12));
    memset (low.n->held.want.incarnation, '6', IDT_MSG_UUID_LEN);
    node_parent (low.n, AT (12), true);
    pass (&mid, &gone, 12);
    pass (&mid, &low, 12);
    node_tick (low.n, AT (13));
    uint64_t granules = held_granules (node_view (low.n).held);
    destroy (&gone, 100);
    pass (&mid, &gone, 100);
    ok (size_of (&low) == 32 && granules == 0xc, "the second child of a rank has other numbers than the lowest");
    pass_often (&up, &mid, 120, 400);
    create (&other, 8, 240);
    create (&third, 9, 240);
    memset (other.n->held.want.incarnation, '8', IDT_MSG_UUID_LEN);
    memset (third.n->held.want.incarnation, '9', IDT_MSG_UUID_LEN);
    set_clock (&other, AT (400));
    set_clock (&third, AT (400));
    pass (&up, &other, 400);
    pass (&up, &third, 400);
    up.n->config.share_keep = 1024 - 3 * 48; /* each of three children should have 48 */
    pass_often (&up, &mid, 2500, 4500);
    ok (mid.n->held.share == 48 && size_of (&mid) == 48
            && (held_granules (node_view (mid.n).held) & granules) == granules,
        "a rank that should have less keeps what it granted: %llx of %llx", (unsigned long long)granules,
        (unsigned long long)held_granules (node_view (mid.n).held));
    ask (&low, 4600, 32, 0, false);
    ask (&mid, 4600, 16, 0, false);
    ok (low.req[1].ids == 32 && mid.req[1].ids == 16 && low.forwards == 0 && mid.forwards == 0
            && (low.req[1].last < mid.req[1].first || mid.req[1].last < low.req[1].first),
        "both use what is left, and no id is made twice");
    destroy (&third, 4700);
    destroy (&other, 4700);
    destroy (&low, 4700);
    destroy (&mid, 4700);
    destroy (&up, 4700);
}

/* Answer the last request with boxes of generators and granules, until these times. */
static void give_boxes (struct world *s, uint64_t ms, const struct box *box, const uint64_t *use_ms, size_t n)
{
    struct grant grant[4];

    for (size_t i = 0; i < n; i++) {
        grant[i] = (struct grant){ .rank = 3, .number = s->part.number, .box = box[i], .use_ms = use_ms[i] };
        memcpy (grant[i].incarnation, s->part.incarnation, sizeof (grant[i].incarnation));
    }
    node_lease_answered (s->n, AT (ms), s->part_tag, &(struct lease_answer){ .grant = grant, .ngrant = n });
}

/* Boxes are used together, each until its end. */
static void test_boxes (void)
{
    static const struct box box[] = { { 1, 1, { 10, 100 } }, { 1, 2, { 10, 500 } }, { 1, 8, { 10, 500 } } };
    struct world up, down;

    make_pair (&up, &down, 48);
    give_boxes (&down, 10, box, (const uint64_t[]){ 1000, 300, 1000 }, 3);
    ask (&down, 20, 48, 0, false);
    ok (down.req[1].ids == 48 && down.req[1].nruns == 2 && fluid_split (down.req[1].last).sequence == 63
            && fluid_split (down.req[1].last).timestamp_ms == 20,
        "the boxes of an answer are used together, in the order of their numbers");
    ask (&down, 100, 32, 0, false);
    ok (down.req[1].ids == 32 && fluid_split (down.req[1].first).sequence == 16
            && fluid_split (down.req[1].last).sequence == 63,
        "a box is used until its time ends, and the others on");
    ask (&down, 310, 16, 0, false);
    ok (down.req[1].ids == 16 && fluid_split (down.req[1].first).sequence == 48,
        "a box is used until its use ends, and the others on");
    ok (state_of (&down, 499) == NODE_SHARING && state_of (&down, 500) == NODE_IDLE && !down.disorder,
        "after the end of all boxes a rank is idle");
    destroy (&down, 501);

    create (&down, 3, 48);
    set_clock (&down, AT (10));
    give_boxes (&down, 10, (const struct box[]){ { 0, 1, { 10, 500 } }, { 1, 2, { 20, 500 } } },
                (const uint64_t[]){ 1000, 1000 }, 2);
    ask (&down, 15, 1, 0, false);
    fluid_t first = down.req[1].first;
    ask (&down, 30, 16, 0, false);
    ok (fluid_split (first).generator == 0 && fluid_split (first).sequence == 0 && down.req[1].ids == 16
            && fluid_split (down.req[1].first).generator == 1 && fluid_split (down.req[1].first).sequence == 16,
        "boxes of two generators are not joined: the newest that has begun is used");
    destroy (&down, 31);
    destroy (&up, 31);
}

/* A holder that is lost keeps its numbers from all others until its box ends. */
static void test_much (void)
{
    struct world up, down;

    for (uint32_t size = 128; size <= 144; size += 16) {
        make_pair (&up, &down, size);
        ok (pass (&up, &down, 10) && grants_end (node_view (up.n).parts) == 10 + (size > 128 ? TERM / 4 : TERM),
            "a part of %u numbers is granted for %s", (unsigned)size, size > 128 ? "a quarter of a term" : "a term");
        destroy (&down, 11);
        destroy (&up, 11);
    }
}

static void test_refused (void)
{
    struct world up, down;
    struct time_grant time;

    make_pair (&up, &down, 512);
    destroy (&up, 10);
    create (&up, 1, NODE_SHARE_OFF);
    errno = 0;
    ok (ask_part (&up, 10, &down.part) == -1 && errno == ENOTSUP && up.lease_replies == 0,
        "a rank with fluid.share=off answers a request for a part with ENOTSUP");
    node_stop (up.n, AT (10));
    ok (ask_part (&up, 10, &down.part) == -1 && errno == EHOSTUNREACH && up.lease_replies == 0,
        "a rank that is stopping answers a request for a part with EHOSTUNREACH");
    node_destroy (up.n);
    create (&up, 1, 16);
    ok (ask_part (&up, 10, &down.part) == 0 && up.answer.ngrant == 0, "a rank without a range grants no part");
    set_clock (&up, AT (10));
    give_lease (&up, 10);
    ask (&up, 11, 65536, 0, false);
    ok (ask_part (&up, 12, &down.part) == 0 && up.answer.ngrant == 1 && up.answer.share == 512,
        "a rank with a large backlog wants all: it keeps as much as a child gets that wants as much");
    errno = 0;
    ok (node_grant_time (down.n, AT (46), "x", &time) == -1 && errno == ENOTSUP,
        "a rank with a part grants no time to modules");
    destroy (&down, 46);
    destroy (&up, 46);
}

/* A reloaded module knows what was granted before. */
static void test_reload (void)
{
    struct world up, down, next;
    size_t size, more;

    make_pair (&up, &down, 16);
    pass (&up, &down, 10);
    node_stop (up.n, AT (20));
    void *past = node_leave (up.n, "more", 5, &size);
    create (&next, 1, NODE_SHARE_AUTO);
    const char *left = node_remember (next.n, past, size, &more);
    ok (left && strcmp (left, "more") == 0 && more == 5 && node_view (next.n).parts->count == 1
            && grants_end (node_view (next.n).parts) == grants_end (node_view (up.n).parts)
            && grants_end (node_view (next.n).parts) == 10 + TERM,
        "the handover of a node contains the parts that it granted");
    node_destroy (up.n);
    free (past);
    destroy (&next, 21);
    destroy (&down, 21);
}

/* --- a tree, whose messages take time --------------------------------------------------------------------- */

#define TREE_NODES 16
#define TREE_CLIENTS 64
#define CLIENT_US 20 /* from an answer to the client's next request */
#define SIM_MS 20000
#define MAX_RUNS 130 /* of a forward that is answered */

enum mail_kind { MAIL_FORWARD, MAIL_CANCEL, MAIL_IDS, MAIL_LEASE, MAIL_ANSWER, MAIL_REPORT };

struct mail {
    struct mail *next;
    uint64_t at_us;
    enum mail_kind kind;
    size_t from, to; /* indices of nodes */
    uint32_t tag, count;
    fluid_t after;
    int errnum; /* of MAIL_IDS; 0: 'nruns' runs */
    struct id_run run[MAX_RUNS];
    size_t nruns;
    struct want want;
    struct grant grant[GRANTS_EACH];
    size_t ngrant;
    uint32_t share;
    uint64_t retry_ms;
    struct report report;
};

struct tree;

struct tree_node {
    struct tree *t;
    struct node *n;
    size_t index, parent; /* the owner is its own parent */
    fluid_t newest;       /* the last id that it answered */
};

/* A client that sends the next request when the last one is answered. */
struct tree_client {
    size_t node;
    uint32_t count;
    uint64_t until_us, send_us; /* it sends at 'send_us'; UINT64_MAX: it waits */
    fluid_t newest;
    uint64_t answers;
};

struct tree {
    uint64_t now_us;
    uint64_t hop_us; /* a message between two nodes takes so long */
    struct tree_node node[TREE_NODES];
    size_t nnodes;
    struct tree_client client[TREE_CLIENTS];
    size_t nclients;
    struct mail *mail; /* by time; mails of the same time in order of sending */
    uint8_t *made;     /* a bit for each id of generator 1 */
    uint64_t ids;
    int twice, disorder, failed;
};

static struct mail *post (struct tree_node *from, size_t to, enum mail_kind kind, uint32_t tag)
{
    struct mail *m = calloc (1, sizeof (*m)), **p = &from->t->mail;

    *m = (struct mail){
        .at_us = from->t->now_us + from->t->hop_us, .kind = kind, .from = from->index, .to = to, .tag = tag
    };
    while (*p && (*p)->at_us <= m->at_us)
        p = &(*p)->next;
    m->next = *p;
    return *p = m;
}

/* A cookie is the number of a client from 1 on, or a child and its tag. */
static void *cookie_of (size_t child, uint32_t tag)
{
    return (void *)(uintptr_t)((uint64_t)(child + 1) << 32 | tag);
}

static size_t child_of (const void *cookie)
{
    return (size_t)((uint64_t)(uintptr_t)cookie >> 32) - 1;
}

/* Each id is made once. */
static void note_run (struct tree *t, const struct id_run *run)
{
    struct fluid_fields f = fluid_split (run->first);

    for (uint32_t i = 0; i < run->n; i++) {
        uint64_t bit = f.timestamp_ms * FLUID_PER_MS + f.sequence + i;

        t->twice += f.generator != 1 || f.timestamp_ms >= SIM_MS || (t->made[bit / 8] >> bit % 8 & 1);
        t->made[bit / 8] |= (uint8_t)(1 << bit % 8);
    }
    t->ids += run->n;
}

static void answer_client (struct tree *t, struct tree_client *c, const struct id_run *run, size_t nruns)
{
    for (size_t i = 0; i < nruns; i++) {
        t->disorder += run[i].first <= c->newest;
        c->newest = run[i].first + run[i].n - 1;
        note_run (t, &run[i]);
    }
    c->answers++;
    c->send_us = t->now_us + CLIENT_US;
}

static void tree_reply_cb (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct tree_node *k = arg;

    for (size_t i = 0; i < nruns; i++) {
        k->t->disorder += run[i].first <= k->newest;
        k->newest = run[i].first + run[i].n - 1;
    }
    if ((uintptr_t)cookie <= TREE_CLIENTS) {
        answer_client (k->t, &k->t->client[(uintptr_t)cookie - 1], run, nruns);
        return;
    }
    struct mail *m = post (k, child_of (cookie), MAIL_IDS, (uint32_t)(uintptr_t)cookie);

    m->nruns = nruns;
    memcpy (m->run, run, nruns * sizeof (run[0]));
}

static void tree_fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    struct tree_node *k = arg;

    k->t->failed++;
    if ((uintptr_t)cookie > TREE_CLIENTS)
        post (k, child_of (cookie), MAIL_IDS, (uint32_t)(uintptr_t)cookie)->errnum = errnum;
}

static int tree_forward_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct tree_node *k = arg;
    struct mail *m = post (k, k->parent, MAIL_FORWARD, tag);

    m->count = count;
    m->after = after;
    return 0;
}

static void tree_cancel_cb (void *arg)
{
    post (arg, ((struct tree_node *)arg)->parent, MAIL_CANCEL, 0);
}

static int tree_lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct tree_node *k = arg;

    if (req->is_part)
        post (k, k->parent, MAIL_LEASE, tag)->want = req->want[0];
    return 0;
}

static void tree_lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct mail *m;

    if ((uint32_t)(uintptr_t)cookie == 0)
        return;
    m = post (arg, child_of (cookie), MAIL_ANSWER, (uint32_t)(uintptr_t)cookie);
    m->retry_ms = answer->retry_ms;
    m->share = answer->share;
    m->ngrant = answer->ngrant;
    if (m->ngrant > 0)
        memcpy (m->grant, answer->grant, m->ngrant * sizeof (m->grant[0]));
}

static void tree_report_up_cb (void *arg, const struct report *report)
{
    struct tree_node *k = arg;

    if (k->parent != k->index)
        post (k, k->parent, MAIL_REPORT, 0)->report = *report;
}

static void tree_log_cb (void *arg, int level, const char *text)
{
}

static const struct node_ops tree_ops = { .reply = tree_reply_cb,
                                          .fail = tree_fail_cb,
                                          .forward = tree_forward_cb,
                                          .cancel = tree_cancel_cb,
                                          .lease_up = tree_lease_up_cb,
                                          .lease_reply = tree_lease_reply_cb,
                                          .report_up = tree_report_up_cb,
                                          .log = tree_log_cb };

static bool is_from_cb (void *cookie, void *arg)
{
    return (uintptr_t)cookie > TREE_CLIENTS && child_of (cookie) == *(size_t *)arg;
}

static void take_ids (struct tree *t, struct tree_node *k, const struct mail *m)
{
    if (m->errnum != 0)
        node_forward_failed (k->n, t->now_us, m->tag, m->errnum);
    else
        node_forwarded (k->n, t->now_us, m->tag, m->run, m->nruns);
}

static void take_answer (struct tree *t, struct tree_node *k, const struct mail *m)
{
    node_lease_answered (k->n, t->now_us, m->tag,
                         &(struct lease_answer){ m->grant, m->ngrant, .share = m->share, .retry_ms = m->retry_ms });
}

static void take_request (struct tree *t, struct tree_node *k, const struct mail *m)
{
    char name[24];

    snprintf (name, sizeof (name), "child %u", (unsigned)m->from);
    node_block (k->n, t->now_us,
                &(struct node_request){ .cookie = cookie_of (m->from, m->tag),
                                        .count = m->count,
                                        .after = m->after,
                                        .from_broker = true,
                                        .asker = name });
}

static void deliver (struct tree *t, struct mail *m)
{
    struct tree_node *k = &t->node[m->to];

    switch (m->kind) {
    case MAIL_FORWARD:
        take_request (t, k, m);
        break;
    case MAIL_CANCEL:
        node_cancel (k->n, t->now_us, is_from_cb, &m->from);
        break;
    case MAIL_IDS:
        take_ids (t, k, m);
        break;
    case MAIL_LEASE:
        node_lease_request (k->n, t->now_us, cookie_of (m->from, m->tag),
                            &(struct lease_request){ &m->want, 1, .is_part = true });
        break;
    case MAIL_ANSWER:
        take_answer (t, k, m);
        break;
    case MAIL_REPORT:
        node_report (k->n, t->now_us, &m->report);
        break;
    }
    free (m);
}

static void send_request (struct tree *t, struct tree_client *c)
{
    char name[24];

    snprintf (name, sizeof (name), "client %d", (int)(c - t->client));
    c->send_us = UINT64_MAX;
    node_block (t->node[c->node].n, t->now_us,
                &(struct node_request){
                    .cookie = (void *)(uintptr_t)(c - t->client + 1), .count = c->count, .asker = name });
}

static uint64_t next_event_us (const struct tree *t)
{
    uint64_t at_us = t->mail ? t->mail->at_us : UINT64_MAX;

    for (size_t i = 0; i < t->nnodes; i++)
        at_us = min_u64 (at_us, node_deadline (t->node[i].n));
    for (size_t i = 0; i < t->nclients; i++)
        at_us = min_u64 (at_us, t->client[i].send_us);
    return at_us;
}

static void tree_run (struct tree *t, uint64_t end_ms)
{
    uint64_t at_us;

    while ((at_us = next_event_us (t)) < AT (end_ms)) {
        t->now_us = max_u64 (t->now_us, at_us);
        while (t->mail && t->mail->at_us <= t->now_us) {
            struct mail *m = t->mail;

            t->mail = m->next;
            deliver (t, m);
        }
        for (struct tree_client *c = t->client; c < t->client + t->nclients; c++) {
            if (c->send_us <= t->now_us && t->now_us >= c->until_us)
                c->send_us = UINT64_MAX;
            if (c->send_us <= t->now_us)
                send_request (t, c);
        }
        for (size_t i = 0; i < t->nnodes; i++)
            if (node_deadline (t->node[i].n) <= t->now_us)
                node_tick (t->node[i].n, t->now_us);
    }
    t->now_us = AT (end_ms);
}

/* Add a node, the owner first. 'share' as in its configuration. */
static void tree_add (struct tree *t, size_t parent, uint32_t share)
{
    struct tree_node *k = &t->node[t->nnodes];
    struct node_config config = config_of (t->nnodes == 0 ? 1 : (uint32_t)t->nnodes + 2, share);
    const struct idt_clock_sample sample = { t->now_us, t->now_us - T0, t->now_us - T0, t->now_us, 0 };

    snprintf (config.incarnation, sizeof (config.incarnation), "%08d-0000-4000-8000-000000000000", (int)t->nnodes);
    *k = (struct tree_node){ .t = t, .index = t->nnodes++, .parent = parent };
    k->n = node_create (&config, &tree_ops, k);
    node_parent (k->n, t->now_us, true);
    node_sample (k->n, t->now_us, &sample);
    if (k->index > 0)
        return;
    struct grant grant = { .rank = 1, .number = 1, .box = { 1, UINT64_MAX, { 10, 10 + LEASE } } };
    memcpy (grant.incarnation, config.incarnation, sizeof (grant.incarnation));
    node_lease_answered (k->n, t->now_us, 1, &(struct lease_answer){ .grant = &grant, .ngrant = 1 });
}

static void tree_client_add (struct tree *t, size_t node, uint32_t count, uint64_t from_ms, uint64_t until_ms)
{
    t->client[t->nclients++] = (struct tree_client){
        .node = node, .count = count, .send_us = AT (from_ms), .until_us = AT (until_ms)
    };
}

static void tree_init (struct tree *t, uint64_t hop_us)
{
    *t = (struct tree){ .now_us = AT (10), .hop_us = hop_us, .made = calloc (SIM_MS, FLUID_PER_MS / 8) };
}

static void tree_fini (struct tree *t)
{
    struct mail *m;

    for (size_t i = t->nnodes; i-- > 0;) {
        if (!node_view (t->node[i].n).stopped)
            node_stop (t->node[i].n, t->now_us);
        node_destroy (t->node[i].n);
    }
    while ((m = t->mail)) {
        t->mail = m->next;
        free (m);
    }
    free (t->made);
}

static bool is_sound (const struct tree *t)
{
    if (t->twice + t->disorder + t->failed > 0)
        diag ("%d twice, %d not in order, %d failed", t->twice, t->disorder, t->failed);
    return t->twice + t->disorder + t->failed == 0;
}

static uint32_t part_of (const struct tree *t, size_t node)
{
    const struct held *h = node_view (t->node[node].n).held;
    struct lease lease;

    return held_find (h, t->now_us, (t->now_us - T0) / MS, &lease) ? box_size (lease.box.granules) : 0;
}

/* A chain of an owner and three ranks, with a client at its end. */
static void make_chain (struct tree *t, uint64_t hop_us)
{
    tree_init (t, hop_us);
    for (size_t i = 0; i < 4; i++)
        tree_add (t, i > 0 ? i - 1 : 0, NODE_SHARE_AUTO);
}

static void test_loop (void)
{
    static const uint64_t hops[] = { 20, 50, 150, 500, 1000 };
    struct tree t;

    for (size_t i = 0; i < sizeof (hops) / sizeof (hops[0]); i++) {
        make_chain (&t, hops[i]);
        tree_client_add (&t, 3, 1, 1000, 4000);
        tree_run (&t, 2000);
        uint64_t forwards = node_stats (t.node[3].n)->forwards, answers = t.client[0].answers;
        ok (part_of (&t, 3) == 64,
            "three hops of %d us below the owner, a rank has the part that its client can use after a second: %u",
            (int)hops[i], part_of (&t, 3));
        tree_run (&t, 4000);
        ok (node_stats (t.node[3].n)->forwards == forwards && t.client[0].answers - answers >= 2000 * 50 - 1,
            "from then on the client waits for no other rank, and gets %d ids a second",
            (int)((t.client[0].answers - answers) / 2));
        tree_run (&t, 10000);
        ok (part_of (&t, 1) == 0 && part_of (&t, 2) == 0 && part_of (&t, 3) == 0
                && grants_end (node_view (t.node[0].n).parts) <= 10000 && is_sound (&t),
            "six seconds after the last request all parts of the chain are returned; no id was made twice, all in order");
        tree_fini (&t);
    }
}

/* --- more is wanted than there is ---------------------------------------------------------------------------- */

/* Whether ranks 'first' to 'last' all hold a part of this size. */
static bool all_hold (const struct tree *t, size_t first, size_t last, uint32_t size)
{
    for (size_t i = first; i <= last; i++)
        if (part_of (t, i) != size) {
            diag ("rank %u holds %u", (unsigned)i, part_of (t, i));
            return false;
        }
    return true;
}

static uint64_t part_messages (const struct tree *t)
{
    uint64_t n = 0;

    for (size_t i = 0; i < t->nnodes; i++)
        n += node_stats (t->node[i].n)->part_messages;
    return n;
}

/* Five ranks want much from the beginning, and five others want little later. A client of each makes ids all the time.
 * The owner keeps 512 numbers.
 */
static void test_ten (void)
{
    struct tree t;

    tree_init (&t, 50);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    for (size_t i = 1; i <= 5; i++)
        tree_add (&t, 0, 256);
    tree_run (&t, 1000);
    ok (all_hold (&t, 1, 2, 256) && all_hold (&t, 3, 5, 0),
        "below an owner with 512 numbers to grant, the first two ranks that want 256 get them");
    for (size_t i = 6; i <= 10; i++)
        tree_add (&t, 0, 16);
    for (size_t i = 0; i <= 10; i++)
        tree_client_add (&t, i, 1, 1000, i < 3 ? 12000 : 7900);
    tree_run (&t, 4000);
    ok (all_hold (&t, 1, 2, 96) && all_hold (&t, 3, 5, 80) && all_hold (&t, 6, 10, 16),
        "within three seconds five that want 16 have it, and five that want 256 share the rest, to the last granule");
    uint64_t messages = part_messages (&t);
    tree_run (&t, 8000);
    ok (all_hold (&t, 1, 2, 96) && all_hold (&t, 3, 5, 80) && all_hold (&t, 6, 10, 16)
            && part_messages (&t) - messages <= 5 * 5 + 5 * 3,
        "while all want the same, parts keep their sizes, and each rank asks 8 times in a term, or 16 for 256 (%d messages)",
        (int)(part_messages (&t) - messages));
    for (size_t i = 3; i <= 10; i++)
        node_stop (t.node[i].n, t.now_us);
    tree_run (&t, 12000);
    ok (all_hold (&t, 1, 2, 256),
        "within four seconds after eight of them stop, the other two have all that they want");
    ok (is_sound (&t) && t.ids > 1000000, "no id was made twice, and all in order, in all that time: %d ids",
        (int)t.ids);
    tree_fini (&t);
}

static uint64_t all_answers (const struct tree *t)
{
    uint64_t n = 0;

    for (size_t i = 0; i < t->nclients; i++)
        n += t->client[i].answers;
    return n;
}

/* Three ranks below one that makes no ids itself. Their clients come one after another. */
static void test_siblings (void)
{
    struct tree t;

    tree_init (&t, 100);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    for (size_t i = 2; i <= 4; i++) {
        tree_add (&t, 1, NODE_SHARE_AUTO);
        tree_client_add (&t, i, 1, i * 1000, 19000);
    }
    tree_run (&t, 5000);
    ok (all_hold (&t, 2, 4, 64), "each of three ranks below another has what its client can use after a second");
    uint64_t messages = part_messages (&t), answers = all_answers (&t);
    tree_run (&t, 19000);
    answers = all_answers (&t) - answers;
    ok (all_hold (&t, 2, 4, 64) && part_messages (&t) - messages < 60,
        "the ranks keep their parts, and send few messages (%d)", (int)(part_messages (&t) - messages));
    ok (answers >= 3 * 14000 * 50 - 3, "for a term no client waits for another rank: %d ids", (int)answers);
    ok (is_sound (&t), "no id was made twice, and all in order");
    tree_fini (&t);
}

/* A rank wants much, and others that want little leave one after another: it gets a small box each time. */
static void test_leavers (void)
{
    struct tree t;

    tree_init (&t, 50);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 0, 496);
    for (size_t i = 2; i < 14; i++)
        tree_add (&t, 0, 32);
    for (size_t i = 0; i < 2; i++)
        tree_client_add (&t, i, 1, 1000, 19000);
    tree_run (&t, 4000);
    ok (part_of (&t, 1) == 128 && all_hold (&t, 2, 13, 32), "twelve ranks leave 128 numbers to one that wants 496");
    for (size_t i = 2; i < 14; i++) {
        node_stop (t.node[i].n, t.now_us);
        tree_run (&t, 3000 + i * 1000);
    }
    tree_run (&t, 18000);
    ok (part_of (&t, 1) > 496 * 7 / 8,
        "when all have left, it has nearly all that it wants, although it holds eight boxes: %u", part_of (&t, 1));
    uint64_t messages = part_messages (&t);
    tree_run (&t, 19000);
    ok (part_messages (&t) - messages <= 3 && is_sound (&t), "it asks no more often than others");
    tree_fini (&t);
}

/* A second rank wants much again and again, for half a second. */
static void test_comers (void)
{
    struct tree t;

    tree_init (&t, 50);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 0, 496);
    for (size_t i = 2; i < 14; i++) {
        tree_add (&t, 0, 128);
        tree_run (&t, i * 1000 - 300);
        node_stop (t.node[i].n, t.now_us);
        tree_run (&t, i * 1000);
    }
    tree_run (&t, 15000);
    ok (part_of (&t, 1) == 496, "a rank that has returned numbers for others many times gets them back: %u",
        part_of (&t, 1));
    tree_fini (&t);
}

/* Each rank should have a part of a configured size. One is added while the clients of its parent want everything. */
static void test_configured (void)
{
    struct tree t;

    tree_init (&t, 100);
    tree_add (&t, 0, 16);
    tree_add (&t, 0, 16);
    for (size_t i = 0; i < TREE_CLIENTS / 2; i++) {
        tree_client_add (&t, 0, 64, 100, 8000);
        tree_client_add (&t, 1, 64, 100, 8000);
    }
    tree_run (&t, 3000);
    tree_add (&t, 0, 16);
    tree_add (&t, 1, 16);
    tree_run (&t, 8000);
    ok (all_hold (&t, 2, 3, 16) && t.twice + t.failed == 0,
        "with a configured size also ranks below a busy one hold a part");
    tree_fini (&t);
}

/* A rank has clients, and below it a rank that wants all. Their parent has less than they want. */
static void test_own_clients (void)
{
    static const uint32_t shares[] = { NODE_SHARE_AUTO, 64 };
    struct tree t;

    for (size_t i = 0; i < 2; i++) {
        tree_init (&t, 100);
        tree_add (&t, 0, shares[i]);
        tree_add (&t, 0, shares[i]);
        tree_add (&t, 1, BOX_MAX_PART);
        tree_client_add (&t, 1, 1, 1000, 5000);
        tree_client_add (&t, 2, 1, 1000, 5000);
        tree_run (&t, 3000);
        uint64_t own = t.client[0].answers, below = t.client[1].answers;
        tree_run (&t, 5000);
        own = t.client[0].answers - own;
        below = t.client[1].answers - below;
        ok (own >= 2 * 49000 && below >= 2 * 49000 && is_sound (&t),
            "share %u: a rank keeps what its clients need of what is too little, and its child has enough (%d, %d ids)",
            (unsigned)shares[i], (int)own, (int)below);
        tree_fini (&t);
    }
}

/* Two ranks below one that loses its parent, and is connected again. */
static void test_cut_off (void)
{
    struct tree t;

    tree_init (&t, 100);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 0, 16);
    for (size_t i = 2; i <= 3; i++) {
        tree_add (&t, 1, 128);
        tree_client_add (&t, i, 1, 1000, 19000);
    }
    tree_run (&t, 3000);
    uint64_t messages = part_messages (&t), answers = all_answers (&t);
    node_parent (t.node[1].n, t.now_us, false);
    tree_run (&t, 5000); /* its part, of more than 128 numbers, lasts for a quarter of a term */
    answers = all_answers (&t) - answers;
    ok (all_hold (&t, 2, 3, 128) && answers >= 2 * 2000 * 50 - 2,
        "below a rank that is cut off, ranks make ids until its part is over");
    tree_run (&t, 13000);
    ok (part_messages (&t) - messages <= 2 * 15,
        "ranks whose granter has nothing later to grant ask seldom (%d messages in ten seconds)",
        (int)(part_messages (&t) - messages));
    node_parent (t.node[1].n, t.now_us, true);
    tree_run (&t, 18000);
    ok (all_hold (&t, 2, 3, 128), "when it is connected again, they get parts again");
    t.failed = 0; /* requests of eight seconds without parts */
    ok (is_sound (&t), "and no id is made twice or out of order");
    tree_fini (&t);
}

/* A rank has granted all that it holds, and forwards a request now and then. */
static void test_seldom_forwarded (void)
{
    uint32_t least = BOX_WHOLE;
    struct tree t;

    tree_init (&t, 5000);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 1, BOX_MAX_PART);
    for (uint64_t i = 0; i < TREE_CLIENTS; i++)
        tree_client_add (&t, 1, i % 4 == 0 ? 3000 : 1, 3000 + i * 77, 3001 + i * 77);
    tree_run (&t, 3000);
    for (uint64_t ms = 3000; ms <= 8000; ms += 20) {
        tree_run (&t, ms);
        least = part_of (&t, 2) < least ? part_of (&t, 2) : least;
    }
    ok (t.client[TREE_CLIENTS - 1].answers > 0 && least == 512 && is_sound (&t),
        "a rank that forwards a request now and then takes no numbers from its child for that: %u", (unsigned)least);
    tree_fini (&t);
}

/* A rank has granted all that it holds, and loses its parent. Then a client comes. */
static void test_cut_off_with_nothing (void)
{
    struct tree t;

    tree_init (&t, 100);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 0, NODE_SHARE_AUTO);
    tree_add (&t, 1, BOX_MAX_PART);
    tree_run (&t, 3000);
    ok (part_of (&t, 1) == 512 && part_of (&t, 2) == 512, "a rank without clients grants all that it holds");
    node_parent (t.node[1].n, t.now_us, false);
    tree_client_add (&t, 1, 1, 3100, 5400); /* while the part of the rank lasts */
    tree_run (&t, 4600);
    uint64_t answers = t.client[0].answers;
    uint32_t least = BOX_WHOLE;
    for (uint64_t ms = 4600; ms <= 5400; ms += 20) {
        tree_run (&t, ms);
        least = part_of (&t, 2) < least ? part_of (&t, 2) : least;
    }
    answers = t.client[0].answers - answers;
    ok (answers >= 800 * 49 && least >= 256 && is_sound (&t),
        "without a parent it makes all ids that its client wants (%d), and its child keeps most numbers (%u)",
        (int)answers, (unsigned)least);
    tree_fini (&t);
}

int main (void)
{
    test_part ();
    test_order ();
    test_trouble ();
    test_moved ();
    test_answers ();
    test_stop_while_asking ();
    test_need ();
    test_seldom ();
    test_most ();
    test_pass_on ();
    test_grant_on ();
    test_further ();
    test_starved ();
    test_less ();
    test_boxes ();
    test_much ();
    test_refused ();
    test_reload ();
    test_loop ();
    test_ten ();
    test_siblings ();
    test_own_clients ();
    test_leavers ();
    test_comers ();
    test_configured ();
    test_cut_off ();
    test_seldom_forwarded ();
    test_cut_off_with_nothing ();
    return done_testing ();
}
