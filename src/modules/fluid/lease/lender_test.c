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
        "a set of granules with gaps, an unaligned set, and the full set are no possible subleases");
}

static void test_loans (void)
{
    struct lender l;
    uint64_t until_ms;

    lender_init (&l, TERM);
    ok (free_at (&l, 200) == UINT64_MAX && lender_end (&l) == 0, "without subleases all granules are free");
    ok (asks (&l, 200, 1, 1, 32, 0) && is (3, 201, 1200) && got.number == 1 && got.incarnation[35] == '1',
        "a sublease has the lowest free granules, begins above the lender's ids, and lasts a term");
    ok (free_at (&l, 200) == UINT64_MAX && free_at (&l, 201) == ~UINT64_C (3) && free_at (&l, 1199) == ~UINT64_C (3)
            && free_at (&l, 1200) == UINT64_MAX,
        "granules are not free during their sublease");
    lender_free (&l, &whole, 150, &until_ms);
    ok (until_ms == 201, "lender_free () returns a time up to which no sublease begins");
    lender_free (&l, &whole, 201, &until_ms);
    ok (until_ms == 1200, "lender_free () returns a time up to which no sublease ends");
    ok (asks (&l, 300, 2, 1, 512, 0) && is (UINT64_C (0xffffffff) << 32, 301, 1300),
        "a large sublease has aligned granules");
    ok (asks (&l, 300, 3, 1, 64, 0) && is (0xf0, 301, 1300),
        "the next sublease has granules that are free beside the others");
    ok (asks (&l, 400, 1, 1, 32, 0) && is (3, 201, 1200), "a repeated request gets the same sublease");
    ok (!asks (&l, 400, 1, 0, 32, 0) && free_at (&l, 400) == (UINT64_C (0xffffff0c)),
        "a request with a lower number gets nothing, and ends no sublease");
    ok (lender_end (&l) == 1300, "lender_end () returns the end of the sublease that ends last");
    uint32_t ranks[LENDER_MAX];
    l.loan[2].rank = 5;
    ok (lender_ranks (&l, 400, ranks) == 2 && ranks[0] == 0 && ranks[1] == 5,
        "a rank is listed once, even if it has several subleases");
    ok (lender_ranks (&l, 1299, ranks) == 2 && lender_ranks (&l, 1300, ranks) == 0,
        "a rank is listed until its sublease is over");
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
        "a sublease of another size begins when the former one ends");
    ok (asks (&l, 900, 1, 4, 32, 1800) && is (3, 850, 1900) && l.count == 2,
        "a sublease of another size is renewed with the same begin");
    ok (!asks (&l, 900, 1, 3, 32, 850) && free_at (&l, 1850) == ~UINT64_C (3),
        "a request that a later one overtook is ignored");
    ok (!asks (&l, 1000, 1, 5, 0, 1010) && free_at (&l, 1009) == ~UINT64_C (3) && free_at (&l, 1010) == UINT64_MAX,
        "granules are free from the end that their borrower promised with the return");
    ok (!asks (&l, 1000, 1, 5, 0, 1010) && !asks (&l, 1000, 1, 4, 32, 1800),
        "after a return, earlier requests that arrive late get nothing");
    ok (!asks (&l, 1000, 2, 9, 0, 0) && l.count == 2, "the return of another borrower ends no sublease of this one");
    ok (!asks (&l, 1000, 1, 6, 0, 0) && l.count == 0 && free_at (&l, 849) == UINT64_MAX,
        "after the return of a sublease that was not used, its granules are free immediately");
    lender_fini (&l);
}

static void test_what_is_kept (void)
{
    struct lender l;
    struct share_want w = want_of (1, 1, 512, 0);
    const struct lender_stock fenced = { NULL, 0, 0 };

    lender_init (&l, TERM);
    ok (!lends (&l, 200, 1009, &w), "a rank that needs all numbers except 15 itself grants nothing");
    ok (lends (&l, 200, 900, &w) && is (15, 201, 1200),
        "a rank grants the largest size that leaves the numbers that it needs itself");
    w = want_of (1, 2, 512, 1200);
    ok (!lender_answer (&l, 600 * MS, 600, &fenced, &w, &got) && free_at (&l, 600) == ~UINT64_C (15),
        "a rank that holds no range that contains now grants nothing");
    w = want_of (1, 3, 512, 700);
    ok (!lender_answer (&l, 600 * MS, 600, &fenced, &w, &got) && free_at (&l, 700) == UINT64_MAX,
        "a rank that holds no range that contains now accepts returns");
    ok (lends (&l, 99900, 0, &(struct share_want){ .incarnation = "x", .number = 1, .size = 16 })
            && is (1, 99901, 100000) && !asks (&l, 99999, 2, 1, 16, 0),
        "no sublease ends after the range that the lender holds");
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
        "without subleases the lender's position is not held back");
    last.until_us = 500 * MS;
    ok (lender_answer (&l, 200 * MS, 200, &stock, &w, &got) && got.use_ms == 300,
        "a sublease may not be used for longer than the lender's own lease");
    lender_forget (&l, 506 * MS, 0);
    ok (lender_low_ms (&l, 506 * MS) == 201 && lender_left_ms (&l, 250 * MS) == 257,
        "a sublease holds the lender's position back for its time of use, measured by a borrower's clock that is "
        "slower");
    lender_forget (&l, 507 * MS, 0);
    ok (lender_low_ms (&l, 507 * MS) == 201 && lender_left_ms (&l, 507 * MS) == 300,
        "a sublease holds the lender's position back until a second reading of the time confirms that its time of "
        "use is over");
    lender_forget (&l, 508 * MS, 0);
    ok (lender_low_ms (&l, 508 * MS) == UINT64_MAX && lender_left_ms (&l, 508 * MS) == 0,
        "a sublease whose time of use is over does not hold the position back");
    lender_forget (&l, 520 * MS, 520);
    w = want_of (1, 2, 16, 1200);
    last.until_us = 900 * MS;
    ok (lender_answer (&l, 530 * MS, 530, &stock, &w, &got) && is (1, 520, 1530) && lender_low_ms (&l, 530 * MS) == 520,
        "a sublease that is extended after its time of use begins at the position that was reported meanwhile");
    lender_position (&l, w.rank, w.incarnation, 1530);
    last.until_us = 100000 * MS;
    w = want_of (2, 1, 16, 0);
    ok (lender_answer (&l, 200 * MS, 200, &stock, &w, &got) && got.use_ms == 1250,
        "the time of use of a sublease is at most five quarters of a term");
    lender_position (&l, w.rank, w.incarnation, 600);
    lender_position (&l, w.rank, w.incarnation, 400);
    lender_position (&l, w.rank + 1, w.incarnation, 640);
    ok (lender_low_ms (&l, 700 * MS) == 600,
        "a report of the borrower raises the position and never lowers it, and a report of another rank has no effect");
    w = want_of (2, 2, 0, 650);
    w.left_ms = 20;
    lender_answer (&l, 630 * MS, 630, &stock, &w, &got);
    lender_forget (&l, 650 * MS, 0);
    ok (lender_low_ms (&l, 650 * MS) == 600,
        "a sublease that was returned with a time of use holds the position back for that time, by the borrower's "
        "clock");
    lender_forget (&l, 651 * MS, 0);
    lender_forget (&l, 652 * MS, 0);
    ok (lender_low_ms (&l, 652 * MS) == UINT64_MAX,
        "a returned sublease does not hold the position back after its time of use");
    w = want_of (2, 3, 16, 650);
    lender_answer (&l, 660 * MS, 660, &stock, &w, &got);
    ok (lender_low_ms (&l, 661 * MS) < 700, "a new sublease of the same borrower holds the position back again");
    w = want_of (2, 4, 0, 650);
    lender_answer (&l, 662 * MS, 662, &stock, &w, &got);
    ok (lender_low_ms (&l, 662 * MS) == UINT64_MAX,
        "a sublease that is returned without a time of use no longer holds the position back");
    last.until_us = 200 * MS;
    w = want_of (3, 1, 16, 0);
    ok (!lender_answer (&l, 200 * MS, 200, &stock, &w, &got), "a sublease whose time of use would be 0 is not granted");
    lender_fini (&l);
}

static void test_forget (void)
{
    struct lender l;

    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    lender_forget (&l, 5000 * MS, 1199);
    ok (l.count == 1 && free_at (&l, 1199) == ~UINT64_C (1),
        "a sublease is remembered until the lender's ids are past its end");
    lender_forget (&l, 5001 * MS, 1199);
    ok (l.count == 1, "a sublease is remembered at any time while the lender's ids are not past its end");
    lender_fini (&l);
    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    lender_forget (&l, 1300 * MS, 1200);
    ok (l.count == 1, "a sublease is remembered while it is in use");
    lender_forget (&l, 5000 * MS, 1200);
    lender_jumped (&l, 4000 * MS);
    lender_forget (&l, 5001 * MS, 1200);
    lender_forget (&l, 5002 * MS, 1200);
    ok (l.count == 1 && lender_low_ms (&l, 5002 * MS) == 201,
        "if the clock jumped after the first reading, the second reading does not end a sublease");
    lender_forget (&l, 6000 * MS, 1200);
    ok (l.count == 1, "after a jump of the clock two further readings are needed to end a sublease");
    lender_forget (&l, 6001 * MS, 1200);
    ok (l.count == 0 && lender_end (&l) == 1200,
        "lender_end () is not below the end of a forgotten sublease, so that this time is not returned");
    ok (asks (&l, 1100, 2, 1, 16, 0) && got.range.lo_ms == 1200,
        "the time of a forgotten sublease is not granted again");
    lender_fini (&l);
}

static void test_limits (void)
{
    struct lender l;
    unsigned n = 0;

    lender_init (&l, TERM);
    countdown = 0;
    ok (!asks (&l, 200, 1, 1, 16, 0) && failures == 1 && free_at (&l, 300) == UINT64_MAX,
        "without memory no sublease is granted");
    countdown = -1;
    ok (asks (&l, 200, 1, 1, 16, 0), "when memory is available again a sublease is granted");
    for (unsigned i = 2; i <= 64; i++)
        n += asks (&l, 200, i, 1, 16, 0);
    uint32_t per_ms;
    ok (n == 63 && lender_count (&l, 300, &per_ms) == 64 && per_ms == 1024 && free_at (&l, 300) == 0
            && !asks (&l, 200, 65, 1, 16, 0),
        "64 borrowers with a granule each have all granules");
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
    ok (n == LENDER_MAX && l.count == LENDER_MAX, "when the table of subleases is full, no further one is granted");
    ok (!asks (&l, 200 + 2 * LENDER_MAX, LENDER_MAX / 2, 1, 512, 0) && l.count == LENDER_MAX,
        "when the table of subleases is full, a request with an old number gets nothing");
    lender_forget (&l, 99999 * MS, 300);
    lender_forget (&l, 100000 * MS, 300);
    ok (l.count < LENDER_MAX && asks (&l, 600, 999, 1, 512, 0),
        "when some subleases of a full table are over, others are granted");
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
