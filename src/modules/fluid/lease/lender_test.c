/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lender_test.c - a sublease is granted once, inside of what is held, and set aside; limits, positions, and lack of
 * memory
 */
#include <stdio.h>
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/lender.h"
#include "test/failing_alloc.h"

#define TERM 1000
#define MS UINT64_C (1000)
#define GENERATOR 7

static const struct area whole = { GENERATOR, UINT64_MAX, { 100, 100000 }, 100000 * MS };
static struct share got;

static struct share_want want_of (unsigned borrower, uint64_t number, uint32_t size, uint64_t end_ms)
{
    struct share_want w = { .number = number, .size = size, .end_ms = end_ms };

    snprintf (w.incarnation, sizeof (w.incarnation), "aaaaaaaa-aaaa-4aaa-8aaa-%012u", borrower);
    return w;
}

/* The clocks agree: instance millisecond 'now_ms' is CLOCK_BOOTTIME in milliseconds. */
static bool lends (struct lender *l, uint64_t now_ms, uint32_t keep, const struct share_want *want)
{
    const struct lender_stock stock = { &whole, now_ms + 1, keep };

    return lender_answer (l, now_ms * MS, now_ms, &stock, want, &got);
}

static bool asks (struct lender *l, uint64_t now_ms, unsigned borrower, uint64_t number, uint32_t size, uint64_t end_ms)
{
    struct share_want w = want_of (borrower, number, size, end_ms);

    return lends (l, now_ms, 0, &w);
}

static bool is (uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    return got.generator == GENERATOR && got.granules == granules && got.range.lo_ms == lo_ms
           && got.range.hi_ms == hi_ms;
}

static uint64_t free_at (const struct lender *l, uint64_t ms)
{
    uint64_t until_ms;

    return lender_free (l, &whole, ms, &until_ms);
}

static void test_runs (void)
{
    uint32_t first, n = 0;
    bool all = true;

    for (uint32_t begin = 0; begin <= 2 * FLUID_PER_MS; begin++)
        for (uint32_t size = 0; size <= 2 * FLUID_PER_MS; size++) {
            uint64_t granules = area_granules (begin, size);

            if (granules != 0) {
                n++;
                all = all && area_run (granules, &first) == size && first == begin;
            }
        }
    ok (all && n == 64 + 32 + 16 + 8 + 4 + 2, "there are 126 possible subleases, each with its own set of granules");
    ok (area_run (0, &first) == 0 && area_run (5, &first) == 0 && area_run (6, &first) == 0
            && area_run (UINT64_MAX, &first) == 0 && area_granules (8, 16) == 0 && area_granules (UINT32_MAX, 16) == 0,
        "a set with gaps, an unaligned one, and the full set are not among them");
}

static void test_loans (void)
{
    struct lender l;
    uint64_t until_ms;

    lender_init (&l, TERM);
    ok (free_at (&l, 200) == UINT64_MAX && lender_end (&l) == 0, "without subleases all granules are free");
    ok (asks (&l, 200, 1, 1, 32, 0) && is (3, 201, 1200) && got.number == 1 && got.incarnation[35] == '1',
        "the lowest numbers are granted, above what was made, for a term");
    ok (free_at (&l, 200) == UINT64_MAX && free_at (&l, 201) == ~UINT64_C (3) && free_at (&l, 1199) == ~UINT64_C (3)
            && free_at (&l, 1200) == UINT64_MAX,
        "they are set aside for that term");
    lender_free (&l, &whole, 150, &until_ms);
    ok (until_ms == 201, "the result of lender_free () is valid until a sublease begins");
    lender_free (&l, &whole, 201, &until_ms);
    ok (until_ms == 1200, "or ends");
    ok (asks (&l, 300, 2, 1, 512, 0) && is (UINT64_C (0xffffffff) << 32, 301, 1300), "a large one is aligned");
    ok (asks (&l, 300, 3, 1, 64, 0) && is (0xf0, 301, 1300), "the next one is a part of the rest");
    ok (asks (&l, 400, 1, 1, 32, 0) && is (3, 201, 1200), "a retry gets the same answer");
    ok (!asks (&l, 400, 1, 0, 32, 0) && free_at (&l, 400) == (UINT64_C (0xffffff0c)),
        "a lower number gets none, and ends nothing");
    ok (lender_end (&l) == 1300, "lender_end () is the end of the last one");
    uint32_t ranks[LENDER_MAX];
    l.loan[2].rank = 5;
    ok (lender_ranks (&l, 400, ranks) == 2 && ranks[0] == 0 && ranks[1] == 5,
        "each rank with a sublease is listed once");
    ok (lender_ranks (&l, 1299, ranks) == 2 && lender_ranks (&l, 1300, ranks) == 0, "until its sublease is over");
    lender_fini (&l);
}

static void test_wants (void)
{
    struct lender l;

    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    ok (asks (&l, 700, 1, 2, 16, 1200) && is (1, 201, 1700) && l.count == 1, "a renewal extends the sublease");
    ok (asks (&l, 800, 1, 3, 32, 850) && is (3, 850, 1800) && l.count == 2 && free_at (&l, 849) == ~UINT64_C (1)
            && free_at (&l, 850) == ~UINT64_C (3),
        "another size begins at the end of the former one");
    ok (asks (&l, 900, 1, 4, 32, 1800) && is (3, 850, 1900) && l.count == 2, "and is renewed without change");
    ok (!asks (&l, 900, 1, 3, 32, 850) && free_at (&l, 1850) == ~UINT64_C (3),
        "a request that was overtaken is ignored");
    ok (!asks (&l, 1000, 1, 5, 0, 1010) && free_at (&l, 1009) == ~UINT64_C (3) && free_at (&l, 1010) == UINT64_MAX,
        "returned granules are free from the promised end on");
    ok (!asks (&l, 1000, 1, 5, 0, 1010) && !asks (&l, 1000, 1, 4, 32, 1800),
        "after a return, late requests get nothing");
    ok (!asks (&l, 1000, 2, 9, 0, 0) && l.count == 2, "a return of another borrower ends nothing here");
    ok (!asks (&l, 1000, 1, 6, 0, 0) && l.count == 0 && free_at (&l, 849) == UINT64_MAX,
        "after a return of an unused sublease all is free");
    lender_fini (&l);
}

static void test_what_is_kept (void)
{
    struct lender l;
    struct share_want w = want_of (1, 1, 512, 0);
    const struct lender_stock fenced = { NULL, 0, 0 };

    lender_init (&l, TERM);
    ok (!lends (&l, 200, 1009, &w), "a rank that keeps all but 15 numbers grants nothing");
    ok (lends (&l, 200, 900, &w) && is (15, 201, 1200), "the largest size that leaves enough is granted");
    w = want_of (1, 2, 512, 1200);
    ok (!lender_answer (&l, 600 * MS, 600, &fenced, &w, &got) && free_at (&l, 600) == ~UINT64_C (15),
        "a rank without a range that contains now grants nothing");
    w = want_of (1, 3, 512, 700);
    ok (!lender_answer (&l, 600 * MS, 600, &fenced, &w, &got) && free_at (&l, 700) == UINT64_MAX,
        "but accepts returns");
    ok (lends (&l, 99900, 0, &(struct share_want){ .incarnation = "x", .number = 1, .size = 16 })
            && is (1, 99901, 100000) && !asks (&l, 99999, 2, 1, 16, 0),
        "nothing is granted beyond the end of what is held");
    lender_fini (&l);
}

static void test_use (void)
{
    struct lender l;
    struct area last = whole;
    struct share_want w = want_of (1, 1, 16, 0);
    struct lender_stock stock = { &last, 201, 0 };

    lender_init (&l, TERM);
    ok (lender_low_ms (&l, 0) == UINT64_MAX && lender_left_ms (&l, 0) == 0,
        "without subleases the position is not held back");
    last.until_us = 500 * MS;
    ok (lender_answer (&l, 200 * MS, 200, &stock, &w, &got) && got.use_ms == 300,
        "a sublease is not used longer than the lender's own lease");
    lender_forget (&l, 506 * MS, 0);
    ok (lender_low_ms (&l, 506 * MS) == 201 && lender_left_ms (&l, 250 * MS) == 257,
        "it holds the position back for that time, by a borrower's clock that is slower");
    lender_forget (&l, 507 * MS, 0);
    ok (lender_low_ms (&l, 507 * MS) == 201 && lender_left_ms (&l, 507 * MS) == 300,
        "and until a second reading of the time confirms it");
    lender_forget (&l, 508 * MS, 0);
    ok (lender_low_ms (&l, 508 * MS) == UINT64_MAX && lender_left_ms (&l, 508 * MS) == 0, "then no longer");
    lender_forget (&l, 520 * MS, 520);
    w = want_of (1, 2, 16, 1200);
    last.until_us = 900 * MS;
    ok (lender_answer (&l, 530 * MS, 530, &stock, &w, &got) && is (1, 520, 1530) && lender_low_ms (&l, 530 * MS) == 520,
        "an extension after that begins at the reported position");
    lender_position (&l, w.rank, w.incarnation, 1530);
    last.until_us = 100000 * MS;
    w = want_of (2, 1, 16, 0);
    ok (lender_answer (&l, 200 * MS, 200, &stock, &w, &got) && got.use_ms == 1250,
        "the time of use is at most five quarters of a "
        "term");
    lender_position (&l, w.rank, w.incarnation, 600);
    lender_position (&l, w.rank, w.incarnation, 400);
    lender_position (&l, w.rank + 1, w.incarnation, 640);
    ok (lender_low_ms (&l, 700 * MS) == 600,
        "a borrower's report raises the position, and never lowers it; a report of another rank does not");
    w = want_of (2, 2, 0, 650);
    w.left_ms = 20;
    lender_answer (&l, 630 * MS, 630, &stock, &w, &got);
    lender_forget (&l, 650 * MS, 0);
    ok (lender_low_ms (&l, 650 * MS) == 600, "a return with a time of use ends the wait after that time, by the "
                                             "borrower's clock");
    lender_forget (&l, 651 * MS, 0);
    lender_forget (&l, 652 * MS, 0);
    ok (lender_low_ms (&l, 652 * MS) == UINT64_MAX, "and no longer");
    w = want_of (2, 3, 16, 650);
    lender_answer (&l, 660 * MS, 660, &stock, &w, &got);
    ok (lender_low_ms (&l, 661 * MS) < 700, "a new sublease holds the position back again");
    w = want_of (2, 4, 0, 650);
    lender_answer (&l, 662 * MS, 662, &stock, &w, &got);
    ok (lender_low_ms (&l, 662 * MS) == UINT64_MAX, "a return without further use ends the wait immediately");
    last.until_us = 200 * MS;
    w = want_of (3, 1, 16, 0);
    ok (!lender_answer (&l, 200 * MS, 200, &stock, &w, &got), "a sublease that could not be used is not granted");
    lender_fini (&l);
}

static void test_forget (void)
{
    struct lender l;

    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    lender_forget (&l, 5000 * MS, 1199);
    ok (l.count == 1 && free_at (&l, 1199) == ~UINT64_C (1), "a sublease is remembered until its lender's ids are "
                                                             "past its end");
    lender_forget (&l, 5001 * MS, 1199);
    ok (l.count == 1, "at any later time");
    lender_fini (&l);
    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    lender_forget (&l, 1300 * MS, 1200);
    ok (l.count == 1, "and while it is in use");
    lender_forget (&l, 5000 * MS, 1200);
    lender_jumped (&l, 4000 * MS);
    lender_forget (&l, 5001 * MS, 1200);
    lender_forget (&l, 5002 * MS, 1200);
    ok (l.count == 1 && lender_low_ms (&l, 5002 * MS) == 201,
        "also if the clock turns out to have jumped after one reading");
    lender_forget (&l, 6000 * MS, 1200);
    ok (l.count == 1, "then two further readings are needed");
    lender_forget (&l, 6001 * MS, 1200);
    ok (l.count == 0 && lender_end (&l) == 1200, "time below the end of a forgotten sublease is not returned");
    ok (asks (&l, 1100, 2, 1, 16, 0) && got.range.lo_ms == 1200, "nor granted again");
    lender_fini (&l);
}

static void test_limits (void)
{
    struct lender l;
    unsigned n = 0;

    lender_init (&l, TERM);
    countdown = 0;
    ok (!asks (&l, 200, 1, 1, 16, 0) && failures == 1 && free_at (&l, 300) == UINT64_MAX,
        "without memory nothing is granted");
    countdown = -1;
    ok (asks (&l, 200, 1, 1, 16, 0), "with memory it is");
    for (unsigned i = 2; i <= 64; i++)
        n += asks (&l, 200, i, 1, 16, 0);
    uint32_t per_ms;
    ok (n == 63 && lender_count (&l, 300, &per_ms) == 64 && per_ms == 1024 && free_at (&l, 300) == 0
            && !asks (&l, 200, 65, 1, 16, 0),
        "64 borrowers have all granules");
    lender_fini (&l);
}

/* Each sublease is returned except for two milliseconds, and granted to the next borrower, until the table is full. */
static void test_full_table (void)
{
    struct lender l;
    unsigned n = 0;

    lender_init (&l, TERM);
    for (uint64_t ms = 200; n < 2 * LENDER_MAX && asks (&l, ms, n + 1, 1, 512, 0); n++, ms += 2)
        asks (&l, ms, n + 1, 2, 0, ms + 2);
    ok (n == LENDER_MAX && l.count == LENDER_MAX, "with a full table nothing is granted");
    ok (!asks (&l, 200 + 2 * LENDER_MAX, LENDER_MAX / 2, 1, 512, 0) && l.count == LENDER_MAX, "nor for an old number");
    lender_forget (&l, 99999 * MS, 300);
    lender_forget (&l, 100000 * MS, 300);
    ok (l.count < LENDER_MAX && asks (&l, 600, 999, 1, 512, 0), "when some subleases are over, others are granted");
    lender_fini (&l);
}

int main (void)
{
    test_runs ();
    test_loans ();
    test_wants ();
    test_what_is_kept ();
    test_use ();
    test_forget ();
    test_limits ();
    test_full_table ();
    return done_testing ();
}
