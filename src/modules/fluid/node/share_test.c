/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* share_test.c - a node grants subleases, and another one borrows: the test carries the messages between them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/node_world.h"
#include "test/tap.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/node/private.h"

#define LESSOR WORLD_UUID
#define IDLER "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define MS UINT64_C (1000)
#define T0 UINT64_C (100000000)
#define AT(ms) (T0 + (ms)*MS)
#define LEASE 60000U
#define TERM (LEASE / 4)

static void create (struct world *s, uint32_t rank, uint32_t share)
{
    struct node_config config = { .rank = rank,
                                  .max_generators = 2,
                                  .lease_ms = LEASE,
                                  .max_backlog_ms = 2000,
                                  .forward_timeout_ms = 5000,
                                  .max_waiting = 100,
                                  .share = share,
                                  .share_keep = 512 };

    memcpy (config.incarnation, rank < 2 ? LESSOR : IDLER, sizeof (config.incarnation));
    *s = (struct world){ .n = node_create (&config, &world_ops, s) };
}

/* The instance's time is 0 at T0, here and at the parent. */
static void set_clock (struct world *s, uint64_t at_us)
{
    const struct idt_clock_sample sample = { at_us, at_us - T0, at_us - T0, at_us, 0 };

    node_parent (s->n, at_us, true);
    node_sample (s->n, at_us, &sample);
}

/* Grant generator 1, for a lease from now. */
static void give_lease (struct world *s, uint64_t ms)
{
    struct lease_grant grant = { 1, LESSOR, s->own_number, ms, ms + LEASE };
    const struct lease_answer answer = { .grant = &grant, .ngrant = 1 };

    node_lease_answered (s->n, AT (ms), s->lease_tag, &answer);
}

static void ask (struct world *s, uint64_t ms, uint32_t count, fluid_t after, bool from_broker)
{
    node_block (s->n, AT (ms), &(struct node_request){ (void *)1, count, after, from_broker, "someone", false, false });
}

/* Pass the idle rank's request to the lender, and its answer back. Returns whether something was granted. */
static bool pass (struct world *up, struct world *down, uint64_t ms)
{
    struct share share;
    uint64_t retry_ms;
    int n = node_share (up->n, AT (ms), &down->wanted, &share, &retry_ms);

    if (n >= 0 && down->wanted.size > 0)
        node_share_answered (down->n, AT (ms), n ? &share : NULL, retry_ms);
    return n == 1;
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

static void test_borrow (void)
{
    struct world up, down;

    make_pair (&up, &down, 128);
    ok (down.wants == 1 && down.wanted.rank == 3 && down.wanted.size == 128 && state_of (&down, 10) == NODE_IDLE,
        "an idle rank with a configured size requests a sublease of that size");
    ok (pass (&up, &down, 10) && state_of (&down, 11) == NODE_BORROWING,
        "a borrower uses a sublease from the next millisecond on");
    ask (&down, 11, 128, 0, false);
    struct fluid_fields f = fluid_split (down.req[1].first);
    ok (down.req[1].ids == 128 && f.generator == 1 && f.timestamp_ms == 11 && f.sequence == 0 && down.forwards == 0,
        "a borrower makes ids of its lender's generator");
    ask (&up, 11, 1024, 0, false);
    node_tick (up.n, AT (12));
    ok (fluid_split (up.req[1].first).sequence == 128 && up.req[1].answers == 1 && up.req[1].ids == 1024
            && !up.disorder,
        "the lender makes ids with other sequence numbers than its borrower");
    destroy (&down, 13);
    ok (down.wanted.size == 0 && down.wanted.end_ms == 12,
        "a borrower that stops returns the sublease at a time above all its ids");
    ok (!pass (&up, &down, 13), "the return of a sublease gets no answer");
    ask (&up, 14, 1024, 0, false);
    ok (up.req[1].answers == 2 && fluid_split (up.req[1].first).sequence == 0,
        "after the return the lender makes ids with the numbers of the sublease");
    destroy (&up, 15);
}

static void test_order (void)
{
    struct world up, down;

    make_pair (&up, &down, 16);
    pass (&up, &down, 10);
    ask (&down, 11, 10, 0, false);
    ask (&down, 11, 17, 0, false);
    ok (down.req[1].answers == 1 && down.forwards == 1 && down.count == 17 && down.after == down.req[1].last,
        "a request for more ids than the sublease has in a millisecond is forwarded, for ids above all ids before");
    ask (&down, 12, 1, 0, false);
    ok (down.req[1].answers == 1 && down.forwards == 1,
        "while a borrower's request is forwarded, the borrower makes no ids");
    ask (&up, 11, down.count, down.after, true);
    ok (up.req[1].answers == 1 && fluid_split (up.req[1].first).timestamp_ms == 11 && up.req[1].first > down.after,
        "the lender serves a borrower's forward in the same millisecond, from the numbers that it keeps");
    const struct id_run run = { up.req[1].first, 17 };
    node_forwarded (down.n, AT (12), down.tag, &run, 1);
    ok (down.req[1].answers == 3 && !down.disorder && fluid_split (down.req[1].last).timestamp_ms == 12,
        "after the response the waiting requests of a borrower are served from the sublease, above the ids of the "
        "response");
    const struct id_run late = { fluid_split (down.req[1].last).timestamp_ms << 24 | 1 << 10 | 900, 17 };
    ask (&down, 13, 17, 0, false);
    node_forwarded (down.n, AT (13), down.tag, &late, 1);
    ask (&down, 12, 1, 0, false);
    ok (!down.disorder && down.forwards == 2,
        "after ids from the parent a borrower makes further ids in the millisecond of these ids");
    destroy (&down, 14);
    destroy (&up, 14);
}

static void test_trouble (void)
{
    struct world up, down;

    make_pair (&up, &down, 16);
    pass (&up, &down, 10);
    ask (&down, 11, 40, 0, false);
    ok (down.forwards == 1, "a borrower forwards a request that is too large for its sublease");
    node_tick (down.n, AT (90));
    ok (down.cancels == 0 && down.req[1].answers == 0, "a borrower waits for the response to a forward");
    node_tick (down.n, AT (112));
    ok (down.cancels == 1 && down.req[1].answers == 1 && down.req[1].ids == 40 && !down.disorder,
        "after a tenth of a second without a response a borrower makes the ids itself");
    node_parent (down.n, AT (113), false);
    ask (&down, 114, 100, 0, false);
    for (uint64_t ms = 115; ms < 125; ms++)
        node_tick (down.n, AT (ms));
    ok (down.req[1].answers == 2 && down.forwards == 1, "a borrower without a parent makes all ids itself");
    ok (state_of (&down, TERM + 200) == NODE_IDLE, "a borrower without a parent is idle when the sublease is over");
    node_parent (down.n, AT (TERM + 200), true);
    ok (down.wanted.number == 2, "a borrower requests a sublease from a new parent immediately");
    node_share_failed (down.n, AT (TERM + 201), ENOSYS);
    node_tick (down.n, AT (TERM + 2000));
    ok (down.wants == 3,
        "a borrower requests a sublease again from a parent without the module, because the module may be reloaded");
    node_share_failed (down.n, AT (TERM + 2001), ENOTSUP);
    node_tick (down.n, AT (TERM + 60000));
    ok (down.wants == 3, "a borrower sends no further request to a parent that grants no subleases");
    destroy (&down, TERM + 60000);
    destroy (&up, 20);
}

static void test_need (void)
{
    struct world up, down;
    uint64_t ms = 10;

    make_pair (&up, &down, NODE_SHARE_AUTO);
    for (; ms < 1900 && down.wants == 0; ms += 10) {
        ask (&down, ms, 1, 0, false);
        const struct id_run run = { (fluid_t)ms << 24, 1 };
        node_forwarded (down.n, AT (ms), down.tag, &run, 1);
    }
    ok (down.wants == 0, "a rank that has requests for a short time forwards them");
    for (; ms < 4000 && down.wants == 0; ms += 10) {
        ask (&down, ms, 1, 0, false);
        const struct id_run run = { (fluid_t)ms << 24, 1 };
        node_forwarded (down.n, AT (ms), down.tag, &run, 1);
        node_tick (down.n, AT (ms + 1));
    }
    ok (down.wants == 1 && down.wanted.size == 16 && pass (&up, &down, ms),
        "a rank whose requests continue gets a sublease");
    int forwards = down.forwards;
    for (uint64_t end = ms + 30000; ms < end; ms += 10) {
        int wants = down.wants;

        ask (&down, ms, 1, 0, false);
        node_tick (down.n, AT (ms));
        if (down.wants > wants)
            pass (&up, &down, ms);
    }
    ok (down.forwards <= forwards + 1 && down.wants > 2 && down.wants < 8 && !down.disorder,
        "a borrower sends no other messages than the request for its sublease, twice in a term");
    for (uint64_t end = ms + 8000; ms < end && down.wanted.size > 0; ms += 100)
        node_tick (down.n, AT (ms));
    ok (down.wanted.size == 0 && state_of (&down, ms) == NODE_IDLE,
        "a borrower whose requests cease returns the sublease");
    uint32_t per_ms;
    ok (lender_count (&up.n->sharing.lender, ms, &per_ms) == 1 && per_ms > 0,
        "until the lender receives the return, it does not use the numbers of the sublease");
    pass (&up, &down, ms);
    ok (lender_count (&up.n->sharing.lender, ms + 1, &per_ms) == 0 && per_ms == 0,
        "when the lender has received the return, it uses the numbers of the sublease");
    forwards = down.forwards;
    ask (&down, ms + 10, 1, 0, false);
    ok (down.forwards == forwards + 1, "a rank that has returned its sublease forwards the next request");
    destroy (&down, ms);
    destroy (&up, ms);
}

/* For some terms, too few requests in each window to borrow. */
static void test_seldom (void)
{
    struct world up, down;
    int asked = 0;

    make_pair (&up, &down, NODE_SHARE_AUTO);
    for (uint64_t ms = 20; ms < 4 * TERM; ms += 1000 / (DEMAND_BEGIN - 1) + 1, asked++) {
        ask (&down, ms, 1, 0, false);
        const struct id_run run = { (fluid_t)ms << 24, 1 };
        node_forwarded (down.n, AT (ms), down.tag, &run, 1);
        node_tick (down.n, AT (ms + 1));
    }
    ok (down.wants == 0 && asked > 1000 && down.forwards == asked && down.req[1].answers == asked && !down.disorder,
        "a rank with few requests forwards each of them, and never requests a sublease");
    destroy (&down, 4 * TERM);
    destroy (&up, 4 * TERM);
}

/* The size of what it borrowed last. */
static uint32_t width_of (const struct world *s)
{
    const struct borrower *b = &s->n->sharing.borrower;

    return (uint32_t)__builtin_popcountll (b->area[b->nareas - 1].granules) * FLUID_GRANULE;
}

static void test_lend_on (void)
{
    struct world up, mid, low;

    make_pair (&up, &mid, NODE_SHARE_AUTO);
    create (&low, 5, 16);
    set_clock (&low, AT (10));
    ok (!pass (&mid, &low, 10) && mid.wants == 1 && mid.wanted.size == 64,
        "a rank without requests of its own requests a sublease of four times the size that a child requests");
    pass (&up, &mid, 11);
    ok (pass (&mid, &low, 12) && low.n->sharing.borrower.area[0].generator == 1,
        "a borrower grants a part of its sublease to its child");
    ask (&low, 13, 16, 0, false);
    ask (&mid, 13, 16, 0, false);
    ok (low.req[1].last < mid.req[1].first && fluid_split (mid.req[1].first).sequence == 16,
        "a borrower's child gets the lower sequence numbers");
    node_tick (low.n, AT (9000));
    node_tick (mid.n, AT (9000));
    node_report (mid.n, AT (9000), &low.report);
    node_tick (mid.n, AT (10100));
    node_tick (mid.n, AT (11200));
    ok (low.report.borrowed_low_ms == 9000 && mid.report.borrowed_low_ms == 9000,
        "the position of a borrower includes the positions of its own borrowers");
    destroy (&mid, 12000);
    ok (mid.wanted.size == 0 && mid.wanted.end_ms >= 11 + TERM && mid.wanted.left_ms > 0,
        "a borrower with borrowers returns the time above the ends of their subleases, and reports for how long "
        "they use the rest");
    pass (&up, &mid, 12000);
    destroy (&up, 12001);
    ok (up.nback == 1 && up.back[0].end_ms >= 11 + TERM && up.back[0].left_ms > 0,
        "an owner with borrowers returns the time above the ends of their subleases, and reports for how long they "
        "use the rest");
    destroy (&low, 12001);
}

static void test_starved (void)
{
    struct world up, first, second;

    make_pair (&up, &first, 256);
    create (&second, 5, 256);
    memset (second.n->config.incarnation, '6', IDT_MSG_UUID_LEN);
    set_clock (&second, AT (10));
    ok (pass (&up, &first, 10) && width_of (&first) == 256, "the first borrower gets half of the available granules");
    up.n->config.share_keep = 768; /* as if the rank needed so much itself */
    ok (!pass (&up, &second, 12),
        "if the first borrower has all granules that the lender does not need, the second borrower gets nothing");
    node_tick (first.n, AT (10 + TERM / 2));
    ok (pass (&up, &first, 10 + TERM / 2) && width_of (&first) == 128,
        "after a second borrower got nothing, the renewal of the first one gets half of the granules");
    node_tick (second.n, AT (20 + TERM));
    ok (pass (&up, &second, 20 + TERM) && width_of (&second) == 64,
        "after the first borrower's renewal, the second borrower gets granules");
    node_tick (first.n, AT (30 + TERM));
    ok (pass (&up, &first, 30 + TERM) && width_of (&first) == 128,
        "beside a second borrower the first one keeps its half");
    destroy (&first, 40 + TERM);
    destroy (&second, 40 + TERM);
    destroy (&up, 40 + TERM);
}

static void test_refused (void)
{
    struct world up, down;
    struct share share;
    uint64_t retry_ms = 0;

    make_pair (&up, &down, 512);
    destroy (&up, 10);
    create (&up, 1, NODE_SHARE_OFF);
    errno = 0;
    ok (node_share (up.n, AT (10), &down.wanted, &share, &retry_ms) == -1 && errno == ENOTSUP,
        "a rank with fluid.share=off answers a request for a sublease with ENOTSUP");
    node_stop (up.n, AT (10));
    ok (node_share (up.n, AT (10), &down.wanted, &share, &retry_ms) == -1 && errno == EHOSTUNREACH,
        "a rank that is stopping answers a request for a sublease with EHOSTUNREACH");
    node_destroy (up.n);
    create (&up, 1, 16);
    ok (node_share (up.n, AT (10), &down.wanted, &share, &retry_ms) == 0, "a rank without a range grants no sublease");
    set_clock (&up, AT (10));
    give_lease (&up, 10);
    ask (&up, 11, 65536, 0, false);
    ok (node_share (up.n, AT (12), &down.wanted, &share, &retry_ms) == 0 && retry_ms == 1000,
        "a rank with a large backlog grants no sublease");
    struct loan loan;
    errno = 0;
    ok (node_lend (down.n, AT (12), "x", &loan) == -1 && errno == ENOTSUP, "a borrower grants no time to modules");
    destroy (&down, 12);
    destroy (&up, 12);
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
    ok (left && strcmp (left, "more") == 0 && next.n->sharing.lender.count == 1
            && lender_end (&next.n->sharing.lender) == lender_end (&up.n->sharing.lender),
        "the handover of a node contains its subleases");
    node_destroy (up.n);
    free (past);
    destroy (&next, 21);
    destroy (&down, 21);
}

int main (void)
{
    test_borrow ();
    test_order ();
    test_trouble ();
    test_need ();
    test_seldom ();
    test_lend_on ();
    test_starved ();
    test_refused ();
    test_reload ();
    return done_testing ();
}
