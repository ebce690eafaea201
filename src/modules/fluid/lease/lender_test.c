/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lender_test.c - what is lent is set aside, once, inside of what is held; limits, positions, and no memory */
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

/* The clocks agree: instance millisecond 'now_ms' is that of CLOCK_BOOTTIME. */
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
    ok (all && n == 64 + 32 + 16 + 8 + 4 + 2, "there are 126 shares, each with its own granules");
    ok (area_run (0, &first) == 0 && area_run (5, &first) == 0 && area_run (6, &first) == 0
            && area_run (UINT64_MAX, &first) == 0 && area_granules (8, 16) == 0 && area_granules (UINT32_MAX, 16) == 0,
        "what has holes, is not aligned, or is all, is none");
}

static void test_loans (void)
{
    struct lender l;
    uint64_t until_ms;

    lender_init (&l, TERM);
    ok (free_at (&l, 200) == UINT64_MAX && lender_end (&l) == 0, "who lent nothing has all");
    ok (asks (&l, 200, 1, 1, 32, 0) && is (3, 201, 1200) && got.number == 1 && got.incarnation[35] == '1',
        "the lowest numbers are lent, above what was made, for a term");
    ok (free_at (&l, 200) == UINT64_MAX && free_at (&l, 201) == ~UINT64_C (3) && free_at (&l, 1199) == ~UINT64_C (3)
            && free_at (&l, 1200) == UINT64_MAX,
        "and are set aside for as long");
    lender_free (&l, &whole, 150, &until_ms);
    ok (until_ms == 201, "what is free is so until a loan begins");
    lender_free (&l, &whole, 201, &until_ms);
    ok (until_ms == 1200, "or ends");
    ok (asks (&l, 300, 2, 1, 512, 0) && is (UINT64_C (0xffffffff) << 32, 301, 1300), "a large one is aligned");
    ok (asks (&l, 300, 3, 1, 64, 0) && is (0xf0, 301, 1300), "the next one is of what is left");
    ok (asks (&l, 400, 1, 1, 32, 0) && is (3, 201, 1200), "a retry gets the same answer");
    ok (!asks (&l, 400, 1, 0, 32, 0) && free_at (&l, 400) == (UINT64_C (0xffffff0c)),
        "a lower number none, and ends nothing");
    ok (lender_end (&l) == 1300, "the end of all is the end of the last");
    uint32_t ranks[LENDER_MAX];
    l.loan[2].rank = 5;
    ok (lender_ranks (&l, 400, ranks) == 2 && ranks[0] == 0 && ranks[1] == 5, "each rank that has some is told once");
    ok (lender_ranks (&l, 1299, ranks) == 2 && lender_ranks (&l, 1300, ranks) == 0, "until its loan is over");
    lender_fini (&l);
}

static void test_wants (void)
{
    struct lender l;

    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    ok (asks (&l, 700, 1, 2, 16, 1200) && is (1, 201, 1700) && l.count == 1, "a renewal makes the loan longer");
    ok (asks (&l, 800, 1, 3, 32, 850) && is (3, 850, 1800) && l.count == 2 && free_at (&l, 849) == ~UINT64_C (1)
            && free_at (&l, 850) == ~UINT64_C (3),
        "another size begins where the one before ends");
    ok (asks (&l, 900, 1, 4, 32, 1800) && is (3, 850, 1900) && l.count == 2, "and is renewed as it is");
    ok (!asks (&l, 900, 1, 3, 32, 850) && free_at (&l, 1850) == ~UINT64_C (3),
        "a want that was overtaken is not heard");
    ok (!asks (&l, 1000, 1, 5, 0, 1010) && free_at (&l, 1009) == ~UINT64_C (3) && free_at (&l, 1010) == UINT64_MAX,
        "what is given back is free from its end on");
    ok (!asks (&l, 1000, 1, 5, 0, 1010) && !asks (&l, 1000, 1, 4, 32, 1800),
        "who gave back has nothing, whatever comes late");
    ok (!asks (&l, 1000, 2, 9, 0, 0) && l.count == 2, "another one's return ends nothing here");
    ok (!asks (&l, 1000, 1, 6, 0, 0) && l.count == 0 && free_at (&l, 849) == UINT64_MAX,
        "nothing was used, so all is free");
    lender_fini (&l);
}

static void test_what_is_kept (void)
{
    struct lender l;
    struct share_want w = want_of (1, 1, 512, 0);
    const struct lender_stock fenced = { NULL, 0, 0 };

    lender_init (&l, TERM);
    ok (!lends (&l, 200, 1009, &w), "who keeps all but 15 lends nothing");
    ok (lends (&l, 200, 900, &w) && is (15, 201, 1200), "the largest is lent that leaves what is kept");
    w = want_of (1, 2, 512, 1200);
    ok (!lender_answer (&l, 600 * MS, 600, &fenced, &w, &got) && free_at (&l, 600) == ~UINT64_C (15),
        "who holds no range that contains now lends nothing");
    w = want_of (1, 3, 512, 700);
    ok (!lender_answer (&l, 600 * MS, 600, &fenced, &w, &got) && free_at (&l, 700) == UINT64_MAX,
        "but hears what is given back");
    ok (lends (&l, 99900, 0, &(struct share_want){ .incarnation = "x", .number = 1, .size = 16 })
            && is (1, 99901, 100000) && !asks (&l, 99999, 2, 1, 16, 0),
        "nothing is lent beyond the end of what is held");
    lender_fini (&l);
}

static void test_use (void)
{
    struct lender l;
    struct area last = whole;
    struct share_want w = want_of (1, 1, 16, 0);
    struct lender_stock stock = { &last, 201, 0 };

    lender_init (&l, TERM);
    ok (lender_low_ms (&l, 0) == UINT64_MAX && lender_left_ms (&l, 0) == 0, "who lent nothing waits for nobody");
    last.until_us = 500 * MS;
    ok (lender_answer (&l, 200 * MS, 200, &stock, &w, &got) && got.use_ms == 300,
        "a loan is used no longer than the lender's own");
    lender_forget (&l, 506 * MS, 0);
    ok (lender_low_ms (&l, 506 * MS) == 201 && lender_left_ms (&l, 250 * MS) == 257,
        "it holds the position back for so long by a borrower's clock that is slower");
    lender_forget (&l, 507 * MS, 0);
    ok (lender_low_ms (&l, 507 * MS) == 201 && lender_left_ms (&l, 507 * MS) == 300,
        "and until another look at the time says so, too");
    lender_forget (&l, 508 * MS, 0);
    ok (lender_low_ms (&l, 508 * MS) == UINT64_MAX && lender_left_ms (&l, 508 * MS) == 0, "then no longer");
    lender_forget (&l, 520 * MS, 520);
    w = want_of (1, 2, 16, 1200);
    last.until_us = 900 * MS;
    ok (lender_answer (&l, 530 * MS, 530, &stock, &w, &got) && is (1, 520, 1530) && lender_low_ms (&l, 530 * MS) == 520,
        "what goes on after that begins where no position has been told");
    lender_position (&l, w.rank, w.incarnation, 1530);
    last.until_us = 100000 * MS;
    w = want_of (2, 1, 16, 0);
    ok (lender_answer (&l, 200 * MS, 200, &stock, &w, &got) && got.use_ms == 1250, "nor five quarters of a term");
    lender_position (&l, w.rank, w.incarnation, 600);
    lender_position (&l, w.rank, w.incarnation, 400);
    lender_position (&l, w.rank + 1, w.incarnation, 640);
    ok (lender_low_ms (&l, 700 * MS) == 600,
        "a borrower that is further lets it go on, and never back; no other rank does");
    w = want_of (2, 2, 0, 650);
    w.left_ms = 20;
    lender_answer (&l, 630 * MS, 630, &stock, &w, &got);
    lender_forget (&l, 650 * MS, 0);
    ok (lender_low_ms (&l, 650 * MS) == 600, "or one that gives back, when it says, by its clock");
    lender_forget (&l, 651 * MS, 0);
    lender_forget (&l, 652 * MS, 0);
    ok (lender_low_ms (&l, 652 * MS) == UINT64_MAX, "and no longer");
    w = want_of (2, 3, 16, 650);
    lender_answer (&l, 660 * MS, 660, &stock, &w, &got);
    ok (lender_low_ms (&l, 661 * MS) < 700, "what it has again counts again");
    w = want_of (2, 4, 0, 650);
    lender_answer (&l, 662 * MS, 662, &stock, &w, &got);
    ok (lender_low_ms (&l, 662 * MS) == UINT64_MAX, "who says that nobody uses anything is believed at once");
    last.until_us = 200 * MS;
    w = want_of (3, 1, 16, 0);
    ok (!lender_answer (&l, 200 * MS, 200, &stock, &w, &got), "what may not be used is not lent");
    lender_fini (&l);
}

static void test_forget (void)
{
    struct lender l;

    lender_init (&l, TERM);
    asks (&l, 200, 1, 1, 16, 0);
    lender_forget (&l, 5000 * MS, 1199);
    ok (l.count == 1 && free_at (&l, 1199) == ~UINT64_C (1), "a loan is remembered until its lender is past its end");
    lender_forget (&l, 5001 * MS, 1199);
    ok (l.count == 1, "whatever time it is");
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
        "also where a clock that went too far is told of after one look");
    lender_forget (&l, 6000 * MS, 1200);
    ok (l.count == 1, "then two others are needed");
    lender_forget (&l, 6001 * MS, 1200);
    ok (l.count == 0 && lender_end (&l) == 1200,
        "what is below the end of one that is forgotten is not given back, either");
    ok (asks (&l, 1100, 2, 1, 16, 0) && got.range.lo_ms == 1200, "nor lent again");
    lender_fini (&l);
}

static void test_limits (void)
{
    struct lender l;
    unsigned n = 0;

    lender_init (&l, TERM);
    countdown = 0;
    ok (!asks (&l, 200, 1, 1, 16, 0) && failures == 1 && free_at (&l, 300) == UINT64_MAX,
        "without memory nothing is lent");
    countdown = -1;
    ok (asks (&l, 200, 1, 1, 16, 0), "and later it is");
    for (unsigned i = 2; i <= 64; i++)
        n += asks (&l, 200, i, 1, 16, 0);
    uint32_t per_ms;
    ok (n == 63 && lender_count (&l, 300, &per_ms) == 64 && per_ms == 1024 && free_at (&l, 300) == 0
            && !asks (&l, 200, 65, 1, 16, 0),
        "64 borrowers have all there is");
    lender_fini (&l);
}

/* Each loan is given back but for two milliseconds, and lent to the next: as many as the table has room for. */
static void test_full_table (void)
{
    struct lender l;
    unsigned n = 0;

    lender_init (&l, TERM);
    for (uint64_t ms = 200; n < 2 * LENDER_MAX && asks (&l, ms, n + 1, 1, 512, 0); n++, ms += 2)
        asks (&l, ms, n + 1, 2, 0, ms + 2);
    ok (n == LENDER_MAX && l.count == LENDER_MAX, "a full table lends nothing more");
    ok (!asks (&l, 200 + 2 * LENDER_MAX, LENDER_MAX / 2, 1, 512, 0) && l.count == LENDER_MAX, "nor for an old number");
    lender_forget (&l, 99999 * MS, 300);
    lender_forget (&l, 100000 * MS, 300);
    ok (l.count < LENDER_MAX && asks (&l, 600, 999, 1, 512, 0), "when some are over it does");
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
