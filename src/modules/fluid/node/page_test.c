/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_test.c - a node that shares its generator: the test plays the clients that have the page and swap its word
 *
 * Rules have the names of doc/model/page.pml.
 */
#include <errno.h>
#include <string.h>

#include "libpage/page.h"
#include "modules/fluid/node/private.h"
#include "test/node_world.h"
#include "test/tap.h"

#define OWNER WORLD_UUID
#define IDLER "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define MS UINT64_C (1000)
#define T0 UINT64_C (100000000)
#define AT(ms) (T0 + (ms)*MS)
#define LEASE 60000U

struct shared {
    struct world w;
    struct page page;
    uint64_t clock_us; /* what the clock shows during a call; 0: the time of the call */
    uint64_t ahead_us; /* a process always writes the word of a time so far ahead; 0: it does not */
};

static struct word word_of (const struct shared *s)
{
    return word_unpack (atomic_load (&s->page.word));
}

/* Write what that process writes: a word that is valid except for its time. */
static void write_ahead (struct shared *s)
{
    uint64_t ms = (s->clock_us + s->ahead_us - T0) / MS;
    struct word w = word_of (s);

    if (s->ahead_us == 0 || w.closed || (ms <= w.ms && w.used >= PAGE_OWN_FIRST))
        return;
    w.used = ms > w.ms ? 1 : w.used + 1;
    w.ms = ms > w.ms ? ms : w.ms;
    atomic_store (&s->page.word, word_pack (w));
}

/* Each reading advances the time. The worst moment for a write is between the node's reading of the word and its swap.
 */
static uint64_t now_cb (void *arg)
{
    struct shared *s = arg;

    write_ahead (s);
    if (s->clock_us > 0)
        s->clock_us += 7;
    return s->clock_us;
}

static void create (struct shared *s, uint32_t rank, uint32_t max_generators, uint32_t lanes)
{
    static struct node_ops ops;
    struct node_config config = { .rank = rank,
                                  .max_generators = max_generators,
                                  .lanes = lanes,
                                  .size = rank + 1,
                                  .lease_ms = LEASE,
                                  .max_backlog_ms = 2000,
                                  .forward_timeout_ms = 5000,
                                  .max_waiting = 100,
                                  .share = NODE_SHARE_AUTO,
                                  .share_keep = 512 };

    memset (s, 0, sizeof (*s));
    memcpy (config.incarnation, OWNER, sizeof (config.incarnation));
    ops = world_ops;
    ops.now_us = now_cb;
    s->w.n = node_create (&config, &ops, s);
}

/* The instance's time is 0 at T0. */
static void set_clock (struct shared *s, uint64_t at_us)
{
    const struct idt_clock_sample sample = { at_us, at_us - T0, at_us - T0, at_us, 0 };

    node_parent (s->w.n, at_us, true);
    node_sample (s->w.n, at_us, &sample);
}

static void give_lease (struct shared *s, uint64_t now_ms, uint64_t lo_ms, uint64_t hi_ms)
{
    struct grant grant = {
        .rank = 1, .incarnation = OWNER, .number = s->w.own_number, .box = { 1, UINT64_MAX, { lo_ms, hi_ms } }
    };
    const struct lease_answer answer = { .grant = &grant, .ngrant = 1, .has_epoch = true, .epoch_ms = 4711 };

    node_lease_answered (s->w.n, AT (now_ms), s->w.lease_tag, &answer);
}

static bool publish (struct shared *s, uint64_t ms)
{
    return node_page_publish (s->w.n, AT (ms), AT (ms));
}

/* An owner of generator 1 (with lanes, of 3, 5, ... too) with a page, at millisecond 10. */
static void share_lanes (struct shared *s, uint32_t lanes)
{
    create (s, 1, 2 * lanes, lanes);
    set_clock (s, AT (10));
    give_lease (s, 10, 10, 10 + LEASE);
    if (node_page_open (s->w.n, AT (10), &s->page, &s->page, "an-instance") < 0 || !publish (s, 10))
        ok (false, "a page can be opened on a rank with a lease");
}

static void share (struct shared *s)
{
    share_lanes (s, 1);
}

static void destroy (struct shared *s, uint64_t ms)
{
    node_stop (s->w.n, AT (ms));
    node_destroy (s->w.n);
}

/* Act like a client: swap the word that it has read for another one. */
static void make (struct shared *s, uint64_t ms, uint32_t used)
{
    atomic_store (&s->page.word, word_pack ((struct word){ .ms = ms, .used = used, .first = word_of (s).first }));
}

static void ask (struct shared *s, uint64_t ms, uint32_t count, fluid_t after)
{
    node_block (s->w.n, AT (ms), &(struct node_request){ (void *)1, count, after, false, "someone", false, false });
}

/* --- which ranks have a page ------------------------------------------------------------------------- */

static void test_who (void)
{
    struct shared s;

    create (&s, 3, 2, 1);
    ok (node_page_open (s.w.n, AT (1), &s.page, &s.page, "") < 0 && errno == ENOTSUP,
        "a rank without a generator has no page");
    destroy (&s, 2);
    create (&s, 1, 2, 1);
    ok (node_page_open (s.w.n, AT (1), &s.page, &s.page, "") < 0 && errno == EAGAIN,
        "a rank that had no lease yet has no page");
    destroy (&s, 2);
    share (&s);
    struct page other = { .version = 0 };
    ok (node_page_open (s.w.n, AT (10), &other, &other, "") < 0 && errno == EAGAIN,
        "a rank has only one page at a time");
    ok (s.page.generator == 1 && s.page.epoch_ms == 4711 && strcmp (s.page.instance, "an-instance") == 0
            && atomic_load (&s.page.hi_ms) == 10 + LEASE && atomic_load (&s.page.offset_us) == -(int64_t)T0,
        "a page contains the generator, the instance, the end of the lease and the clock offset");
    ok (node_deadline (s.w.n) <= AT (1010), "the terms of a page are renewed each second");
    destroy (&s, 20);
}

/* --- one order -------------------------------------------------------------------------------------- */

static void test_order (void)
{
    struct shared s;
    fluid_t theirs;

    share (&s);
    make (&s, 20, 100);
    ask (&s, 20, 5, 0);
    struct fluid_fields f = fluid_split (s.w.req[1].first);
    ok (f.timestamp_ms == 20 && f.sequence == 100 && word_of (&s).used == 105,
        "a request gets the ids after the ids that clients made, and the word of the page shows them as used");
    make (&s, 21, 7);
    node_block (s.w.n, AT (21) - 50, &(struct node_request){ (void *)1, 1, 0, false, "someone", false, false });
    ok (s.w.req[1].answers == 1, "a request waits for a millisecond if clients have already made ids of it");
    node_tick (s.w.n, AT (21));
    ok (s.w.req[1].answers == 2 && fluid_split (s.w.req[1].first).sequence == 7,
        "a request that waited for the millisecond of clients' ids is served in that millisecond");
    make (&s, 22, 3);
    fluid_join (&(struct fluid_fields){ 22, 1, 2 }, &theirs);
    ask (&s, 22, 1, theirs);
    ok (s.w.req[1].answers == 3 && s.w.req[1].first == theirs + 1,
        "a request for ids above an id that a client made is served in the same millisecond");
    make (&s, 23, PAGE_OWN_FIRST);
    ask (&s, 23, FLUID_GRANULE, 0);
    ask (&s, 23, 1, 0);
    ok (s.w.req[1].answers == 4 && publish (&s, 23) && atomic_load (&s.page.kept) == FLUID_PER_MS / 2,
        "while a request waits, clients must leave half of each millisecond");
    node_tick (s.w.n, AT (24));
    ok (s.w.req[1].answers == 5 && publish (&s, 24) && atomic_load (&s.page.kept) == 0,
        "when no request waits, clients need not leave a part of each millisecond");
    ok (!s.w.disorder, "the ids of all answers increase beside clients that make ids");
    destroy (&s, 30);
}

/* A report of a position moves the word. A forwarded request must ask for ids above all that were made, even if the
 * root's time is behind the new position.
 */
static void test_newest (void)
{
    struct report all = { .low_ms = UINT64_MAX };
    struct shared s;
    fluid_t theirs;

    share (&s);
    make (&s, 20, 100);
    fluid_join (&(struct fluid_fields){ 20, 1, 99 }, &theirs);
    node_positions (s.w.n, AT (500), &all);
    ok (word_of (&s).ms == 500, "no id is made below a position that the node has reported");
    node_positions (s.w.n, AT (600), &all);
    ask (&s, 10 + LEASE, 1, 0);
    ok (s.w.forwards == 1 && s.w.after == theirs,
        "a forwarded request asks for ids above the last id that was made, not above the reported position");
    destroy (&s, 10 + LEASE);
}

/* All ids of all lanes are made in a millisecond, and then none of the page. */
static void test_lanes (void)
{
    struct shared s;

    share_lanes (&s, 4);
    ask (&s, 20, 4 * FLUID_PER_MS, 0);
    struct fluid_fields f = fluid_split (s.w.req[1].last);
    ok (s.w.req[1].answers == 1 && s.w.req[1].ids == 4 * FLUID_PER_MS && f.timestamp_ms == 20 && f.generator == 7,
        "a rank with a page makes all ids of its lanes");
    ok (word_of (&s).ms == 20 && word_of (&s).used == FLUID_PER_MS,
        "clients make no id of a millisecond in which a rank with a page used its lanes");
    ask (&s, 21, FLUID_PER_MS + 1, 0);
    publish (&s, 21);
    ask (&s, 21, 10, 0);
    ok (s.w.req[1].answers == 3 && !s.w.disorder && fluid_split (s.w.req[1].last).timestamp_ms == 21,
        "the ids of a lane that are left are made even if the page was read meanwhile");
    destroy (&s, 30);
}

/* --- the rules ----------------------------------------------------------------------------------------- */

static void test_past (void)
{
    struct shared s;
    struct report all = { .low_ms = UINT64_MAX };

    share (&s);
    make (&s, 20, 100);
    node_positions (s.w.n, AT (50), &all);
    ok (all.low_ms == 50 && word_of (&s).ms == 50 && word_of (&s).used == 0,
        "PAST_FIRST: when a rank has reported its position, no client can make an id below that position");
    destroy (&s, 60);
}

static void test_close (void)
{
    struct shared s;

    share (&s);
    make (&s, 777, 3);
    node_stop (s.w.n, AT (777));
    ok (word_of (&s).closed && atomic_load (&s.page.hi_ms) == 0, "a node that stops closes its page");
    ok (s.w.nwant == 1 && s.w.want[0].size == 0 && s.w.want[0].end_ms == 778,
        "CLOSE_IN_ONE: a node that stops returns only time above all ids that clients made");
    node_destroy (s.w.n);
}

static void test_gap (void)
{
    struct shared s;

    share (&s);
    node_tick (s.w.n, AT (45000)); /* it requests more */
    give_lease (&s, 61000, 61000, 61000 + LEASE);
    node_tick (s.w.n, AT (61000));
    publish (&s, 61000);
    ok (atomic_load (&s.page.hi_ms) == 61000 + LEASE && word_of (&s).ms == 61000,
        "WORD_FIRST: no client makes an id in the gap between two leases");
    destroy (&s, 61010);
}

/* A child asks for a part, or returns it (size 0). Returns whether something was granted. */
static bool ask_part (struct shared *s, uint64_t ms, uint64_t number, uint32_t size, uint64_t end_ms)
{
    const struct want want = { .rank = 3, .incarnation = IDLER, .number = number, .size = size, .end_ms = end_ms };

    return node_lease_request (s->w.n, AT (ms), (void *)1, &(struct lease_request){ &want, 1, .is_part = true }) == 0
           && s->w.answer.ngrant == 1;
}

static void test_part (void)
{
    struct shared s;

    share (&s);
    make (&s, 20, 900);
    ok (ask_part (&s, 20, 1, 128, 0) && s.w.grant[0].box.range.lo_ms == 21,
        "a part begins above all ids that clients have made");
    ok (s.w.grant[0].box.granules == 0xff && word_of (&s).first == 8,
        "NUMBERS_IN_WORD: clients make no id of granules of a part");
    ok (word_of (&s).used == 900 && publish (&s, 20), "when a part begins, the ids that clients made before stay used");
    make (&s, 25, 128);
    ask_part (&s, 25, 2, 0, 30);
    publish (&s, 25);
    ok (word_of (&s).first == 8, "clients make no id of a returned part before its end");
    make (&s, 30, 129);
    publish (&s, 30);
    ok (word_of (&s).first == 0, "clients may make ids of a returned part from its end on");
    destroy (&s, 40);
}

static void test_doubt (void)
{
    struct shared s;

    share (&s);
    node_lost_time (s.w.n, AT (20), 5000000);
    publish (&s, 20);
    ok (atomic_load (&s.page.hi_ms) == 0 && atomic_load (&s.page.until_us) == 0,
        "while the node does not know the time, clients make no ids either");
    destroy (&s, 30);
}

static void test_spoilt (void)
{
    struct shared s;

    share (&s);
    make (&s, 20, 100);
    publish (&s, 20);
    make (&s, 20, 50);
    ok (!publish (&s, 20) && s.w.logs > 0 && word_of (&s).closed,
        "a page with an invalid word is closed, and the log says so");
    ok (node_page_open (s.w.n, AT (21), &s.page, &s.page, "") < 0 && errno == ENOTSUP,
        "after a page with an invalid word no other page can be opened");
    ask (&s, 21, 20, 0);
    node_tick (s.w.n, AT (22));
    struct fluid_fields f = fluid_split (s.w.req[1].first);
    ok (f.timestamp_ms == 21 && f.sequence == PAGE_OWN_FIRST,
        "after a page with an invalid word the node continues immediately, with sequence numbers that no client may "
        "use");
    f = fluid_split (s.w.req[1].last);
    ok (s.w.req[1].answers == 1 && f.timestamp_ms == 22 && f.sequence == PAGE_OWN_FIRST + 3 && !s.w.disorder,
        "after a page with an invalid word the node makes as many ids in each millisecond as it has sequence "
        "numbers of its own");
    ok (!ask_part (&s, 25, 1, 128, 0) && s.w.lease_replies == 1,
        "after a page with an invalid word the node grants no part");
    node_stop (s.w.n, AT (30));
    ok (s.w.nwant == 1 && s.w.want[0].size == 0 && s.w.want[0].end_ms == 10 + LEASE,
        "a node that stops after a page with an invalid word returns nothing of that lease");
    node_destroy (s.w.n);
}

/* A client that writes a time ahead of now does not delay other requests. */
static void test_ahead (void)
{
    struct shared s;

    share (&s);
    publish (&s, 20);
    make (&s, 40000, 1);
    ask (&s, 21, 1, 0);
    node_tick (s.w.n, AT (22));
    ok (word_of (&s).closed && s.w.req[1].answers == 1 && fluid_split (s.w.req[1].first).timestamp_ms == 22,
        "a page with a word of a time that no clock has shown is closed, and ids are made without the page");
    give_lease (&s, 45000, 60010, 45000 + LEASE);
    destroy (&s, 45000);

    share (&s);
    publish (&s, 20);
    make (&s, 500, 1);
    ask (&s, 21, 1, 0);
    node_tick (s.w.n, AT (22));
    ok (word_of (&s).closed && s.w.req[1].answers == 1, "a page with a word that is half a second ahead is closed");
    destroy (&s, 600);
}

/* The broker is paused between its reading of the clock and its reading of the word; clients continue. */
static void test_stopped (void)
{
    struct shared s;

    share (&s);
    publish (&s, 20);
    int logs = s.w.logs;
    make (&s, 5000, 3);
    s.clock_us = AT (5000);
    ask (&s, 20, 1, 0);
    ok (!word_of (&s).closed && s.w.logs == logs,
        "CLOCK_AFTER: ids that clients made while a broker was paused are valid");
    struct fluid_fields f = fluid_split (s.w.req[1].first);
    ok (s.w.req[1].answers == 1 && f.timestamp_ms == 5000 && f.sequence == 3,
        "a request that arrives after a pause of the broker does not wait if clients have made ids of the present "
        "millisecond");
    destroy (&s, 5001);
}

/* A process writes words all the time. Returns how often the node is called, at most, until a request is answered. */
static int most_ticks (struct shared *s, uint64_t ahead_us)
{
    int most = 0;

    s->clock_us = s->clock_us > 0 ? s->clock_us : AT (1000);
    s->ahead_us = ahead_us;
    for (uint64_t i = 0; i < 200; i++) {
        int ticks = 0, answers = s->w.req[1].answers;

        s->clock_us += 10 * MS + 5; /* at each part of a millisecond */
        write_ahead (s);
        node_block (s->w.n, s->clock_us, &(struct node_request){ (void *)1, 1, 0, false, "someone", false, false });
        while (s->w.req[1].answers == answers && ticks < 100) {
            uint64_t at_us = node_deadline (s->w.n);

            s->clock_us = at_us > s->clock_us ? at_us : s->clock_us;
            write_ahead (s);
            node_tick (s->w.n, s->clock_us);
            ticks++;
        }
        most = ticks > most ? ticks : most;
    }
    return most;
}

static void test_written_all_the_time (void)
{
    struct shared s;

    share (&s);
    ok (most_ticks (&s, 1) <= 2 && !word_of (&s).closed,
        "while a process always writes words of the present time, a request is answered within two calls");
    ok (most_ticks (&s, 100) <= 2 && !word_of (&s).closed,
        "while a process always writes words as far ahead as allowed, a request is answered within two calls");
    ok (most_ticks (&s, 900000) <= 2 && word_of (&s).closed,
        "a word that is further ahead than allowed is detected at the first reading");
    ok (!s.w.disorder, "the ids of all answers increase while a process writes words");
    destroy (&s, 9000);
}

/* After the lease in which the page was spoilt, everything is as before. */
static void test_spoilt_lease_is_over (void)
{
    struct shared s;

    share (&s);
    make (&s, 20, 100);
    publish (&s, 20);
    make (&s, 20, 50);
    publish (&s, 20);
    node_tick (s.w.n, AT (45000)); /* it requests more */
    give_lease (&s, 45000, 10 + LEASE, 45000 + LEASE);
    ask (&s, 10 + LEASE, 1000, 0);
    ok (s.w.req[1].answers == 1 && s.w.req[1].ids == 1000 && fluid_split (s.w.req[1].last).timestamp_ms == 10 + LEASE,
        "from the end of the lease with the invalid word on, all ids of a millisecond are made");
    destroy (&s, 11 + LEASE);
}

int main (void)
{
    test_who ();
    test_order ();
    test_newest ();
    test_lanes ();
    test_past ();
    test_close ();
    test_gap ();
    test_part ();
    test_doubt ();
    test_spoilt ();
    test_ahead ();
    test_stopped ();
    test_written_all_the_time ();
    test_spoilt_lease_is_over ();
    return done_testing ();
}
