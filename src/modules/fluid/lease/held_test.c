/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* held_test.c - a rank keeps its promises, accepts each answer once, uses boxes inside their time only, and asks in
 * time
 *
 * Ranks that hold a whole generator come first, then ranks that hold a part.
 */
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/grants.h"
#include "modules/fluid/lease/held.h"

#define ME "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define MS UINT64_C (1000)

static struct want want;

/* The clocks agree: instance millisecond 'now_ms' is CLOCK_BOOTTIME in milliseconds. */
static void asks_for (struct held *h, uint64_t now_ms, uint32_t size, uint64_t low_ms)
{
    held_ask (h, now_ms * MS, now_ms, size, low_ms, 0, &want);
}

static bool takes (struct held *h, uint64_t now_ms, const struct grant *g)
{
    return held_take (h, now_ms * MS, now_ms, g, 1, 0, 0);
}

static uint64_t due_ms (const struct held *h, uint64_t now_ms, uint32_t size)
{
    uint64_t us = held_due (h, now_ms * MS, now_ms, size);

    return us == UINT64_MAX ? us : us / MS;
}

/* The granules that it may use; 0: none. */
static uint64_t at_us (const struct held *h, uint64_t now_us, uint64_t now_ms)
{
    struct lease l;

    return held_find (h, now_us, now_ms, &l) ? l.box.granules : 0;
}

static uint64_t at (const struct held *h, uint64_t now_ms)
{
    return at_us (h, now_ms * MS, now_ms);
}

/* --- a whole generator ----------------------------------------------------------------------------------- */

#define LEASE 60000

static struct grant whole_of (const struct held *h, uint64_t number, uint64_t lo, uint64_t hi)
{
    struct grant g = { .rank = h->want.rank, .number = number, .box = { h->want.rank, UINT64_MAX, { lo, hi } } };

    memcpy (g.incarnation, h->want.incarnation, sizeof (g.incarnation));
    return g;
}

static bool take (struct held *h, uint64_t now_ms, uint64_t number, uint64_t lo, uint64_t hi)
{
    struct grant g = whole_of (h, number, lo, hi);

    return takes (h, now_ms, &g);
}

static uint64_t ask (struct held *h, uint64_t now_ms)
{
    asks_for (h, now_ms, BOX_WHOLE, 0);
    return want.number;
}

static uint64_t due (const struct held *h, uint64_t now_ms)
{
    return due_ms (h, now_ms, BOX_WHOLE);
}

static bool may (const struct held *h, uint64_t now_ms)
{
    return at (h, now_ms) == UINT64_MAX;
}

/* CLOCK_BOOTTIME missed a part of the time of a lease. */
static void test_lost_time (void)
{
    struct held h;

    held_init (&h, 7, ME, true, LEASE);
    ask (&h, 1);
    take (&h, 2, 1, 10, LEASE);
    ok (may (&h, 10000) && may (&h, 50000), "a rank may use a range that it holds");
    held_lost_time (&h, 40000 * MS);
    ok (may (&h, 10000) && !may (&h, 50000) && !held_is_counted (&h, 40000 * MS),
        "time that the clock missed shortens the time for which a range may be used");
    ask (&h, 500000);
    held_lost_time (&h, 2 * LEASE * MS);
    ok (!take (&h, 500001, 2, 500000, 560000) && !may (&h, 500001),
        "time missed while a request is under way shortens the time for which the granted range may be used");
}

static void test_take (void)
{
    struct held h;

    held_init (&h, 7, ME, true, LEASE);
    ok (!may (&h, 0) && held_end (&h) == 0 && held_due (&h, 5, 0, BOX_WHOLE) == 5,
        "a new rank holds nothing, and requests a lease immediately");
    ok (ask (&h, 1) == 1 && want.rank == 7 && want.size == BOX_WHOLE && want.end_ms == 0
            && strcmp (want.incarnation, ME) == 0,
        "the first request of a rank has number 1, and contains no promise");
    ok (ask (&h, 2) == 1, "a repeated request has the same number");
    ok (!take (&h, 2, 2, 0, 100) && !may (&h, 50), "a rank ignores an answer with another number than its request");
    struct grant other = whole_of (&h, 1, 10, 100);
    other.incarnation[0] ^= 1;
    ok (!takes (&h, 2, &other) && !may (&h, 50), "a rank ignores an answer to another incarnation of the same rank");
    other = whole_of (&h, 1, 10, 100);
    other.rank++;
    ok (!takes (&h, 2, &other) && !may (&h, 50), "a rank ignores an answer to another rank");
    ok (take (&h, 2, 1, 10, 100) && !may (&h, 9) && may (&h, 10) && may (&h, 99) && !may (&h, 100),
        "a rank accepts the answer to its own request, and may use the range");
    ok (!take (&h, 2, 1, 100, 200) && !may (&h, 100), "a rank accepts the same answer only once");
    ok (ask (&h, 50) == 2 && want.end_ms == 100 && take (&h, 50, 2, 10, 150) && may (&h, 99) && may (&h, 149)
            && h.count == 1,
        "a range that was extended replaces the former one");
    ok (ask (&h, 60) == 3 && want.end_ms == 150 && take (&h, 60, 3, 170, 180) && may (&h, 149) && !may (&h, 160)
            && may (&h, 170),
        "two ranges that are not adjacent leave a gap that is not used");
    ok (ask (&h, 60) == 4 && !take (&h, 60, 4, 190, 200) && !may (&h, 195) && may (&h, 149) && may (&h, 175),
        "a third range that is not adjacent is dropped");
    ok (ask (&h, 160) == 5 && want.end_ms == 180, "the next request returns a range that was dropped");
    ok (take (&h, 160, 5, 200, 230) && may (&h, 170) && may (&h, 200),
        "a third range is accepted if the first one has passed");
    ok (ask (&h, 300) == 6 && !take (&h, 300, 6, 230, 290) && due (&h, 300) == 300,
        "after a range that arrived too late the next request is due immediately");
    ok (ask (&h, 300) == 7 && !take (&h, 300, 7, 230, 290) && due (&h, 300) > 300,
        "after a second one it is due after a pause");
}

static bool refuses_whole (uint64_t granules, uint32_t generator, uint64_t lo, uint64_t hi)
{
    struct held h;

    held_init (&h, 7, ME, true, LEASE);
    ask (&h, 1);
    struct grant g = whole_of (&h, 1, lo, hi);
    g.box.granules = granules;
    g.box.generator = generator;
    return !takes (&h, 2, &g) && !may (&h, 20) && !h.asking && ask (&h, 3) == 2;
}

static void test_unsound_whole (void)
{
    ok (refuses_whole (UINT64_MAX >> 32, 7, 10, 100), "a rank that owns a generator refuses a part of it");
    ok (refuses_whole (UINT64_MAX, 8, 10, 100), "a rank that owns a generator refuses another one");
    ok (refuses_whole (UINT64_MAX, 7, 100, 100) && refuses_whole (UINT64_MAX, 7, 10, FLUID_TIMESTAMP_MAX + 2),
        "a rank that owns a generator refuses an invalid range");
    ok (!refuses_whole (UINT64_MAX, 7, 10, FLUID_TIMESTAMP_MAX + 1), "a range may contain the last timestamp");
}

/* The root drops the begin of a range that is extended when the watermark has passed it. */
static void test_watermark_rises (void)
{
    struct grants g;
    struct held h;
    const struct box whole = { 0, UINT64_MAX, { 0, 1000000 } };
    const struct grants_stock stock = { .whole = &whole, .until_us = UINT64_MAX };
    struct grant grant[GRANTS_EACH];
    bool all = true;

    held_init (&h, 0, ME, true, 600);
    grants_init (&g, 600, 1);
    for (uint64_t ms = 1000; ms < 5000; ms += 100) {
        grants_raise (&g, ms - 50);
        asks_for (&h, ms, BOX_WHOLE, 0);
        all = all && grants_answer (&g, ms * MS, ms, &stock, &want, grant) == 1 && takes (&h, ms, grant) && h.count == 1
              && may (&h, ms) && may (&h, ms + 599) && !may (&h, ms + 600);
    }
    ok (all, "each renewal is accepted while the watermark rises");
    grants_fini (&g);
    held_init (&h, 7, ME, true, LEASE);
    ask (&h, 1);
    take (&h, 2, 1, 10, 100);
    ask (&h, 50);
    ok (take (&h, 50, 2, 60, 150) && may (&h, 50) && may (&h, 149) && h.count == 2,
        "a range that begins after now does not replace the one that is in use");
}

static void test_when (void)
{
    struct held h;
    uint64_t at_ms, last = 0;
    bool grows = true, slow = true;

    held_init (&h, 7, ME, true, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, LEASE);
    ok (due (&h, 1) == LEASE / 3, "a lease is renewed when a third of it has passed");
    ok (!held_may_join (&h, 10000 * MS, 10000) && held_may_join (&h, 15000 * MS, 15000),
        "the request for a renewal may be sent a twelfth of a lease earlier together with others");
    ask (&h, 20000);
    at_ms = due (&h, 20000);
    ok (at_ms >= 35000 && at_ms <= 38750 && !held_may_join (&h, 20000 * MS, 20000),
        "while a lease is held, a request without an answer is repeated after a quarter of a lease");
    held_missed (&h, 20001 * MS, 20001, 0);
    at_ms = due (&h, 20001);
    ok (at_ms >= 25000 && at_ms <= 26300,
        "while a lease is held, a request that is known to be lost is repeated after a twelfth of a lease");
    held_hurry (&h, 20002 * MS);
    ok (due (&h, 20002) == 20002, "if more may be granted now, a request under way is repeated immediately");
    ask (&h, 20003);
    held_moved (&h, 20004 * MS);
    ok (due (&h, 20004) == 20004, "when the parent is connected again, a request under way is repeated immediately");
    take (&h, 20005, 2, 0, 80005);
    held_moved (&h, 20006 * MS);
    ok (due (&h, 20006) > 40000, "a new parent is no reason to renew a whole generator earlier");

    held_init (&h, 8, ME, true, LEASE);
    for (uint64_t now = 1000, i = 0; i < 12; i++) {
        ask (&h, now);
        uint64_t us = held_due (&h, now * MS, now, BOX_WHOLE) - now * MS;
        slow = slow && us >= 2000000 && us <= 2500000;
        held_missed (&h, now * MS, now, 0);
        us = held_due (&h, now * MS, now, BOX_WHOLE) - now * MS;
        grows = grows && us >= 100000 && us <= 6250000 && (us >= last || us >= 2000000);
        last = us;
        now += us / MS + 1;
    }
    ok (slow, "while no lease is held, a request without an answer is repeated after 2 s");
    ok (grows && last >= 2000000,
        "while no lease is held, a request that was granted nothing is repeated after 100 ms, and then with growing "
        "pauses");
    held_init (&h, 9, ME, true, 6000);
    ask (&h, 1000);
    ok (due (&h, 1000) <= 1625, "while no lease is held, a request is repeated at most a twelfth of a lease later");
}

static void test_use_of_whole (void)
{
    struct held h;

    held_init (&h, 7, ME, true, 1000);
    ok (!held_is_counted (&h, 0), "the granter does not wait for a rank that was never granted a range");
    ask (&h, 100);
    ask (&h, 500);
    take (&h, 900, 1, 0, 1900);
    ok (at_us (&h, 1349 * MS + 999, 1000) && held_is_counted (&h, 1349 * MS + 999) && !at_us (&h, 1350 * MS, 1000)
            && !held_is_counted (&h, 1350 * MS),
        "a range may be used for a lease and a quarter after it was first requested, whatever the instance's time");
    ok (held_due (&h, 901 * MS, 901, BOX_WHOLE) < 1100 * MS,
        "a range that may be used only for a short time is renewed soon");
    ok (ask (&h, 1000) == 2 && take (&h, 1001, 2, 0, 2000) && at_us (&h, 2249 * MS, 1950),
        "the answer to a later request extends the use of all that it contains");
    ok (ask (&h, 3000) == 3 && ask (&h, 3999) == 3 && ask (&h, 4000) == 4 && !take (&h, 4001, 3, 3000, 5000),
        "a request that was repeated for a lease is replaced by a new one");
    ok (!take (&h, 6000, 4, 4000, 5000) && held_is_counted (&h, 5249 * MS) && !at_us (&h, 5100 * MS, 4500),
        "the granter waits for a rank whose range arrived too late");
}

/* The root no longer waits for this rank, and may have published a higher watermark. */
static void test_lapsed (void)
{
    struct held h;

    held_init (&h, 7, ME, true, 1000);
    ask (&h, 100);
    take (&h, 101, 1, 0, 1900);
    ok (ask (&h, 1200) == 2 && take (&h, 1201, 2, 0, 2900) && at_us (&h, 1202 * MS, 1500),
        "a range that was held in time may be used under the next lease");
    ok (ask (&h, 2450) == 3 && take (&h, 2451, 3, 2900, 3900) && !at_us (&h, 2451 * MS, 2000)
            && at_us (&h, 2451 * MS, 3000) && h.count == 1,
        "a range whose time of use was over may not be used under the next lease, even if it contains now");
    ok (ask (&h, 3800) == 4 && !take (&h, 3800, 4, 3700, 3800) && !at_us (&h, 3800 * MS, 3500) && h.count == 0,
        "a range whose time of use was over may not be used if the next lease arrives too late");
}

static void test_stop_of_whole (void)
{
    struct held h;

    held_init (&h, 7, ME, true, LEASE);
    ok (!held_return (&h, 5, 0, &want), "a rank that holds nothing has nothing to return");
    held_init (&h, 7, ME, true, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ask (&h, 2);
    ok (held_return (&h, 50, 30, &want) && want.end_ms == 50 && want.left_ms == 30 && want.size == 0
            && strcmp (want.incarnation, ME) == 0 && want.rank == 7 && want.number == 3,
        "a rank that stops returns all that it holds, even while a request is under way");
    held_close (&h);
    ok (!may (&h, 50) && !may (&h, 10) && !take (&h, 3, 2, 100, 200) && !may (&h, 150)
            && held_due (&h, 9, 9, BOX_WHOLE) == UINT64_MAX && !held_is_counted (&h, 3 * MS)
            && !held_may_join (&h, 60000 * MS, 60000),
        "a rank that stopped uses, accepts and requests nothing");
    held_init (&h, 7, ME, true, LEASE);
    ask (&h, 1);
    held_close (&h);
    ok (!take (&h, 2, 1, 0, 100) && !may (&h, 50), "a rank that stopped without a return accepts no answer");
}

/* --- a part -------------------------------------------------------------------------------------------------- */

#define TERM 1000

static struct grant part_of (uint64_t number, uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    struct grant g = {
        .incarnation = ME, .rank = 4, .number = number, .box = { 7, granules, { lo_ms, hi_ms } }, .use_ms = 1250
    };
    return g;
}

static bool gets (struct held *h, uint64_t now_ms, uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    struct grant g = part_of (h->want.number, granules, lo_ms, hi_ms);

    return takes (h, now_ms, &g);
}

static void begin (struct held *h)
{
    held_init (h, 4, ME, false, TERM);
}

static void test_answers (void)
{
    struct held h;

    begin (&h);
    ok (at (&h, 10) == 0 && held_end (&h) == 0 && due_ms (&h, 10, 0) == UINT64_MAX && due_ms (&h, 10, 16) == 10,
        "a rank that needs a part and has none requests one immediately");
    asks_for (&h, 10, 32, 5);
    ok (want.number == 1 && want.size == 32 && want.end_ms == 5 && strcmp (want.incarnation, ME) == 0,
        "the first request for a part has number 1, and promises that nothing from the own position on was used");
    asks_for (&h, 20, 32, 8);
    ok (want.number == 1 && want.end_ms == 5, "a request without an answer is repeated unchanged");
    struct grant other = part_of (1, 3, 30, 1000);
    other.incarnation[0] = 'b';
    ok (!takes (&h, 20, &other) && !gets (&h, 20, 7, 30, 1000) && at (&h, 40) == 0,
        "a rank ignores the answer to another incarnation");
    asks_for (&h, 21, 32, 8);
    ok (want.number == 2, "a rank ignores an invalid grant, and makes a new request");
    struct grant first = part_of (1, 3, 30, 1000);
    ok (!takes (&h, 22, &first) && gets (&h, 22, 3, 30, 1000), "a rank ignores an answer to an earlier request");
    ok (at (&h, 29) == 0 && at (&h, 30) == 3 && at (&h, 999) == 3 && at (&h, 1000) == 0,
        "a rank uses the grant for its newest request inside the granted range");
    first.number = 2;
    ok (!takes (&h, 23, &first), "a rank accepts a grant only once");
}

static bool refuses (struct grant g)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 32, 5);
    return !takes (&h, 20, &g) && at (&h, 40) == 0;
}

static void test_unsound (void)
{
    struct grant g = part_of (1, 3, 30, 1000);

    ok (refuses (part_of (1, 0, 30, 1000)) && refuses (part_of (1, 7, 30, 1000))
            && refuses (part_of (1, UINT64_MAX, 30, 1000)),
        "a rank refuses a grant of no granules, and of more than it requested");
    ok (!refuses (part_of (1, 1, 30, 1000)) && !refuses (part_of (1, 5 << 20, 30, 1000)),
        "a rank accepts a grant of any granules, if they are not more than it requested");
    ok (refuses (part_of (1, 3, 30, 30)) && refuses (part_of (1, 3, 30, FLUID_TIMESTAMP_MAX + 2)),
        "a rank refuses a grant with an invalid range");
    g.box.generator = FLUID_GENERATOR_MAX + 1;
    ok (refuses (g), "a rank refuses a grant with an invalid generator");
    g = part_of (1, 3, 5, 20);
    ok (refuses (g), "a rank refuses a grant whose range has passed");
    g = part_of (1, 3, 30, 1000);
    g.use_ms = 10;
    ok (refuses (g), "a rank refuses a grant whose time of use is over");
}

static void test_use (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 32, 5);
    asks_for (&h, 400, 32, 5);
    gets (&h, 500, 3, 30, 5000);
    ok (at (&h, 1259) == 3 && at (&h, 1260) == 0, "the time of use of a part begins when the request was first sent");
    held_lost_time (&h, 100 * MS);
    ok (at (&h, 1159) == 3 && at (&h, 1160) == 0, "time that the clock missed shortens the time of use of a part");
    asks_for (&h, 1200, 32, 600);
    held_lost_time (&h, 200 * MS);
    gets (&h, 1201, 3, 30, 9000);
    ok (at (&h, 2249) == 3 && at (&h, 2250) == 0,
        "time missed while a request is under way shortens the time of use of the part that it gets");
}

static void test_renewal (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 32, 5);
    gets (&h, 20, 3, 30, 1020);
    ok (due_ms (&h, 100, 32) == 145, "the renewal of a part is due an eighth of a term after it was granted");
    asks_for (&h, 520, 32, 400);
    ok (want.number == 2 && want.end_ms == 1020 && at (&h, 900) == 3,
        "a request for a renewal does not end the present part earlier");
    ok (gets (&h, 530, 3, 30, 1520) && h.count == 1 && at (&h, 1519) == 3,
        "a renewed part of the same granules replaces the shorter one");
    asks_for (&h, 1030, 32, 400);
    ok (gets (&h, 1030, 12, 1600, 2000) && at (&h, 1519) == 3 && at (&h, 1550) == 0 && at (&h, 1600) == 12,
        "a box with other granules is used from its begin on");
    asks_for (&h, 1040, 32, 400);
    ok (gets (&h, 1050, 48, 1100, 2000) && at (&h, 1099) == 3 && at (&h, 1100) == 51 && at (&h, 1520) == 48
            && at (&h, 1700) == 60 && h.count == 3,
        "all boxes that contain a time are used together");
    struct lease l;
    ok (held_find (&h, 1060 * MS, 1060, &l) && l.box.range.lo_ms == 30 && l.box.range.hi_ms == 1100,
        "what may be used is valid until a further box begins");
    ok (held_find (&h, 1200 * MS, 1200, &l) && l.box.range.lo_ms == 1100 && l.box.range.hi_ms == 1520,
        "what may be used is valid until one of the boxes ends");
    ok (held_granules (&h) == 63 && held_end (&h) == 2000, "the granules and the end of all boxes are known");
}

/* Boxes of another generator came from another parent. */
static void test_generators (void)
{
    struct held h;
    struct grant g = part_of (2, 12, 100, 1100);

    begin (&h);
    asks_for (&h, 10, 32, 5);
    gets (&h, 20, 3, 30, 1020);
    asks_for (&h, 120, 32, 100);
    g.box.generator = 8;
    takes (&h, 130, &g);
    ok (at (&h, 99) == 3 && at (&h, 100) == 12 && at (&h, 1050) == 12,
        "boxes of two generators are not joined, and the newest is used");
}

static void test_many (void)
{
    struct held h;
    unsigned n = 0;

    begin (&h);
    for (unsigned i = 0; i < 2 * HELD_MAX; i++) {
        asks_for (&h, 10 + i, 16, 5);
        n += gets (&h, 10 + i, UINT64_C (1) << i, 10, 1000 + i);
    }
    ok (n == HELD_MAX && h.count == HELD_MAX && at (&h, 50) == 0xff, "a rank holds at most eight boxes");
    asks_for (&h, 1003, 16, 5);
    ok (gets (&h, 1003, 1 << 20, 1003, 2000) && at (&h, 1004) == (1 << 20 | 0xe0),
        "boxes that are over make room for others");
}

static struct grant boxes[3];

static bool takes_all (struct held *h, uint64_t now_ms, size_t n, uint32_t share, uint64_t retry_ms)
{
    return held_take (h, now_ms * MS, now_ms, boxes, n, share, retry_ms);
}

static void test_several (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 64, 5);
    boxes[0] = part_of (1, 3, 30, 1010);
    boxes[1] = part_of (1, 12, 10, 1010);
    boxes[0].use_ms = 1000;
    boxes[2] = part_of (1, 48, 10, 1010);
    boxes[2].incarnation[0] = 'b';
    ok (takes_all (&h, 20, 3, 48, 0) && at (&h, 25) == 12 && at (&h, 30) == 15 && h.size == 64 && h.share == 48,
        "a rank takes all boxes of an answer that are its own");
    struct lease l;
    ok (held_find (&h, 35 * MS, 35, &l) && l.box.range.lo_ms == 30 && l.until_us == 1010 * MS,
        "boxes that are used together begin with the last of them, and may be used as long as the first");
    ok (due_ms (&h, 40, 64) > 130 && !takes_all (&h, 21, 3, 48, 0), "an answer with several boxes is accepted once");
    asks_for (&h, 135, 64, 100);
    boxes[0] = part_of (2, 3, 30, 1135);
    boxes[1] = part_of (2, 0, 30, 1135);
    boxes[2] = part_of (2, 12, 10, 1135);
    ok (takes_all (&h, 140, 3, 64, 60) && at (&h, 1134) == 15, "a box that is not valid does not hinder the others");
    ok (due_ms (&h, 141, 64) == 200, "a rank asks again when its parent may grant more");
}

static void test_shorter (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 32, 5);
    gets (&h, 20, 3, 30, 1020);
    asks_for (&h, 145, 32, 100);
    ok (gets (&h, 150, 3, 30, 900) && at (&h, 899) == 3 && at (&h, 950) == 3,
        "a grant that ends before the present part does not replace it");
}

static void test_moved (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 32, 5);
    gets (&h, 20, 3, 30, 1020);
    held_moved (&h, 121 * MS);
    ok (due_ms (&h, 121, 32) == 121 && at (&h, 121) == 3,
        "a rank with a new parent asks immediately, even if its part need not be renewed yet");
    asks_for (&h, 121, 32, 100);
    gets (&h, 122, 12, 122, 1122);
    ok (due_ms (&h, 122, 32) > 222, "after the answer of the new parent it asks as usual");
}

/* A rank that wants much renews its part more often. */
static void test_often (void)
{
    struct held h;

    held_init (&h, 4, ME, false, 15000);
    asks_for (&h, 10, 128, 5);
    struct grant g = part_of (1, 0xff, 30, 15010);
    g.use_ms = 18750;
    takes (&h, 11, &g);
    ok (due_ms (&h, 12, 128) == 1886, "a part of 128 is renewed after an eighth of a term");
    held_init (&h, 4, ME, false, 15000);
    asks_for (&h, 10, 512, 5);
    takes (&h, 11, &g);
    ok (due_ms (&h, 12, 512) == 11 + 15000 / 32, "a rank that wants 512 renews its part after a 32th of a term");
}

static void test_size (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 32, 5);
    gets (&h, 20, 3, 30, 1020);
    ok (due_ms (&h, 30, 64) == 45, "another size is requested only after a pause");
    asks_for (&h, 50, 64, 40);
    ok (want.number == 2 && want.size == 64 && want.end_ms == 1020 && want.kept == 0 && at (&h, 1019) == 3,
        "a request for a larger size does not end the present part");
    asks_for (&h, 60, 128, 1500);
    ok (want.number == 3 && want.end_ms == 1500 && at (&h, 600) == 3,
        "the promised end is not below any id that was made or granted to others");
}

static void asks_less (struct held *h, uint64_t now_ms, uint32_t size, uint64_t low_ms, uint64_t kept)
{
    held_ask (h, now_ms * MS, now_ms, size, low_ms, kept, &want);
}

static void test_less (void)
{
    struct held h;

    begin (&h);
    asks_for (&h, 10, 64, 5);
    gets (&h, 20, 15, 30, 1020);
    asks_less (&h, 120, 32, 100, 5);
    ok (want.number == 2 && want.size == 32 && want.kept == 5 && want.end_ms == 120 + HELD_SWITCH_MS,
        "a rank that returns some granules promises to use them only for a short time");
    ok (at (&h, 169) == 15 && at (&h, 170) == 5 && at (&h, 1019) == 5,
        "the granules that are not returned are still used");
    asks_less (&h, 130, 32, 100, 5);
    ok (want.number == 2 && want.end_ms == 170 && want.kept == 5, "the repetition of such a request is unchanged");
    ok (gets (&h, 140, 5, 30, 1140) && at (&h, 169) == 15 && at (&h, 1139) == 5 && h.count == 2,
        "the answer extends what was kept");
    asks_less (&h, 300, 16, 1200, 1);
    ok (want.end_ms == 1200 && at (&h, 1139) == 5, "the promised end is not below the position of the rank");
    asks_less (&h, 1145, 32, 1142, 1 << 9);
    ok (want.end_ms == 1142 && want.number == 4, "what is over is not promised to be used for longer");
    held_init (&h, 4, ME, false, 80);
    asks_for (&h, 10, 32, 5);
    gets (&h, 11, 3, 11, 90);
    asks_less (&h, 30, 16, 12, 1);
    ok (want.end_ms == 40, "with a short term the returned granules are used for an eighth of a term more");
}

/* A box that ends earlier than the promise is not split. Without room a box is not split, and none of it is kept. */
static void test_split (void)
{
    struct held h;

    begin (&h);
    for (unsigned i = 0; i < HELD_MAX; i++) {
        asks_for (&h, 10, 64, 5);
        gets (&h, 10, UINT64_C (3) << 2 * i, 10, i == 0 ? 100 : 1000);
    }
    asks_less (&h, 60, 64, 20, 0x5555);
    ok (at (&h, 99) == 0xffff && h.count == HELD_MAX, "all granules are used until the promised end");
    ok ((at (&h, 110) & ~UINT64_C (0x5554)) == 0 && held_granules (&h) == 0xffff,
        "after the promised end only granules that were kept are used");
}

static void test_return (void)
{
    struct held h;

    begin (&h);
    ok (!held_return (&h, 5, 0, &want), "a rank that has neither a part nor a request has nothing to return");
    asks_for (&h, 10, 32, 5);
    ok (want.number == 2 && held_return (&h, 7, 0, &want) && want.number == 3 && want.size == 0 && want.end_ms == 7,
        "a rank that stops while a request is under way revokes the request");
    ok (!held_return (&h, 7, 0, &want), "what was returned is not returned again");
    ok (!gets (&h, 11, 3, 30, 1020), "a rank that has revoked its request ignores the answer");
    asks_for (&h, 20, 32, 5);
    gets (&h, 20, 3, 30, 1020);
    ok (due_ms (&h, 100, 0) == 100 && held_return (&h, 90, 33, &want) && want.end_ms == 90 && want.left_ms == 33,
        "a part that is no longer needed is returned immediately, with the time for which others still use it");
    ok (at (&h, 50) == 0 && due_ms (&h, 100, 0) == UINT64_MAX, "a rank uses nothing of a returned part");
    asks_for (&h, 200, 32, 100);
    gets (&h, 200, 3, 150, 1200);
    asks_for (&h, 210, 64, 100);
    ok (at (&h, 215) == 3 && held_return (&h, 211, 0, &want) && want.number == h.want.number && want.end_ms == 211
            && !gets (&h, 216, 15, 260, 1200) && at (&h, 215) == 0,
        "a rank returns its part even while a request for another size is under way");
}

/* Repeat a request until the pauses are long: each is twice the last one, plus up to a quarter. */
static bool pauses_grow (struct held *h, uint64_t *now_ms, uint64_t most_ms)
{
    uint64_t least_ms = 100;

    for (int i = 0; i < 20; i++) {
        asks_for (h, *now_ms, 16, 5);
        held_missed (h, *now_ms * MS, *now_ms, 0);
        uint64_t pause_ms = due_ms (h, *now_ms, 16) - *now_ms;
        if (pause_ms < least_ms || pause_ms > least_ms + least_ms / 4)
            return false;
        least_ms = 2 * least_ms < most_ms ? 2 * least_ms : most_ms;
        *now_ms += pause_ms;
    }
    return true;
}

static void test_pauses (void)
{
    struct held h;
    uint64_t now_ms = 1000;

    begin (&h);
    asks_for (&h, 10, 16, 5);
    ok (due_ms (&h, 10, 16) >= 135 && due_ms (&h, 10, 16) <= 167,
        "a request for a part that is not answered is repeated after an eighth of a term");
    held_init (&h, 4, ME, false, 15000);
    ok (pauses_grow (&h, &now_ms, 1875) && h.want.number > 1,
        "a request that got nothing is repeated, with pauses that grow up to an eighth of a term");
    held_init (&h, 4, ME, false, 1000000);
    ok (pauses_grow (&h, &now_ms, 2000) && h.want.number == 1,
        "a repeated request keeps its number as long as the answer would be useful");
    held_missed (&h, now_ms * MS, now_ms, UINT64_MAX);
    ok (due_ms (&h, now_ms, 16) <= now_ms + 1250000, "a pause is limited even if the parent's retry_ms is longer");
    held_refused (&h);
    ok (due_ms (&h, now_ms, 16) == UINT64_MAX, "a rank sends no further request to a parent that grants no parts");
    held_moved (&h, now_ms * MS);
    ok (due_ms (&h, now_ms, 16) == now_ms, "a rank requests a part from a new parent immediately");
    now_ms += 1000000;
    asks_for (&h, now_ms, 16, 5);
    ok (h.want.number == 2, "a request that is a term old is replaced by a new one with another number");
    gets (&h, now_ms, 1, now_ms, now_ms + 1000000);
    held_missed (&h, now_ms * MS, now_ms, 700);
    ok (due_ms (&h, now_ms, 32) >= now_ms + 700, "a rank waits at least the retry_ms that its parent sent");
    held_moved (&h, now_ms * MS);
    ok (due_ms (&h, now_ms + 1, 16) == now_ms + 1 && at (&h, now_ms) == 1,
        "a rank with a new parent requests a part immediately, and uses its present one meanwhile");
}

int main (void)
{
    test_take ();
    test_unsound_whole ();
    test_watermark_rises ();
    test_lost_time ();
    test_when ();
    test_use_of_whole ();
    test_lapsed ();
    test_stop_of_whole ();
    test_answers ();
    test_unsound ();
    test_use ();
    test_renewal ();
    test_shorter ();
    test_generators ();
    test_many ();
    test_several ();
    test_moved ();
    test_often ();
    test_size ();
    test_less ();
    test_split ();
    test_return ();
    test_pauses ();
    return done_testing ();
}
