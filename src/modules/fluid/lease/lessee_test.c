/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee_test.c - a lessee takes answers once, stays inside its ranges, asks in time */
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/lessee.h"

#define ME "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define LEASE 60000
#define MS UINT64_C (1000)

static struct lease_grant grant (const struct lessee *h, uint64_t number, uint64_t lo, uint64_t hi)
{
    struct lease_grant g = { .generator = h->generator, .number = number, .lo_ms = lo, .hi_ms = hi };

    memcpy (g.incarnation, h->incarnation, sizeof (g.incarnation));
    return g;
}

static bool take (struct lessee *h, uint64_t now_ms, uint64_t number, uint64_t lo, uint64_t hi)
{
    struct lease_grant g = grant (h, number, lo, hi);

    return lessee_take (h, now_ms * MS, now_ms, &g);
}

static uint64_t ask (struct lessee *h, uint64_t now_ms)
{
    struct lease_want w;

    lessee_ask (h, now_ms * MS, now_ms, &w);
    return w.number;
}

static bool may (const struct lessee *h, uint64_t now_ms)
{
    struct range r;

    return lessee_range (h, now_ms * MS, now_ms, &r) && r.lo_ms <= now_ms && now_ms < r.hi_ms;
}

/* CLOCK_BOOTTIME missed a part of what a lease lasts. */
static void test_lost_time (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 2, 1, 10, LEASE);
    ok (may (&h, 10000) && may (&h, 50000), "what is held may be used");
    lessee_lost_time (&h, 40000 * MS);
    ok (may (&h, 10000) && !may (&h, 50000), "not as long where time was missed");
    ask (&h, 500000);
    lessee_lost_time (&h, 2 * LEASE * MS);
    ok (take (&h, 500001, 2, 500000, 560000) && !may (&h, 500001), "what was asked for before is as old as that");
}

static void test_take (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, LEASE);
    ok (!may (&h, 0) && lessee_end (&h) == 0 && lessee_due (&h, 5, 0) == 5,
        "a new lessee holds nothing and asks at once");
    ok (ask (&h, 1) == 1 && ask (&h, 2) == 1, "a repetition carries the same number");
    ok (!take (&h, 2, 2, 0, 100) && !may (&h, 50), "an answer to another number is not taken");
    struct lease_grant other = grant (&h, 1, 10, 100);
    other.incarnation[0] ^= 1;
    ok (!lessee_take (&h, 2 * MS, 2, &other) && !may (&h, 50), "nor one to another incarnation of the same rank");
    ok (take (&h, 2, 1, 10, 100) && !may (&h, 9) && may (&h, 10) && may (&h, 99) && !may (&h, 100),
        "ours is, and allows what is inside");
    ok (!take (&h, 2, 1, 100, 200) && !may (&h, 100), "the same answer is taken once");
    ok (ask (&h, 50) == 2 && take (&h, 50, 2, 100, 150) && may (&h, 99) && may (&h, 149) && h.nranges == 1,
        "touching ranges become one");
    ok (ask (&h, 60) == 3 && take (&h, 60, 3, 170, 180) && may (&h, 149) && !may (&h, 160) && may (&h, 170),
        "others leave a gap that is not used");
    ok (ask (&h, 60) == 4 && !take (&h, 60, 4, 190, 200) && !may (&h, 195) && may (&h, 149) && may (&h, 175),
        "a third is dropped");
    ok (ask (&h, 160) == 5 && take (&h, 160, 5, 200, 230) && may (&h, 170) && may (&h, 200),
        "but not when the first is over");
    ok (ask (&h, 300) == 6 && !take (&h, 300, 6, 230, 290) && lessee_due (&h, 300 * MS, 300) == 300 * MS,
        "after a range that came too late the next want goes at once");
    ok (ask (&h, 301) == 7 && !take (&h, 301, 7, 280, 400) && !may (&h, 310) && !h.asking,
        "a range that begins below the end of another is not taken, and the next want has a new number");
}

static void test_when (void)
{
    struct lessee h;
    uint64_t due, last = 0;
    bool grows = true, slow = true;

    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, LEASE);
    ok (lessee_due (&h, 1 * MS, 1) == LEASE / 3 * MS, "a lease is renewed when a third of it is over");
    ok (!lessee_may_join (&h, 10000 * MS, 10000) && lessee_may_join (&h, 15000 * MS, 15000),
        "its want may go a twelfth of a lease earlier with others");
    ask (&h, 20000);
    due = lessee_due (&h, 20000 * MS, 20000);
    ok (due >= 35000 * MS && due <= 38750 * MS, "while a lease is held its repetition waits a quarter of one");
    lessee_missed (&h, 20001 * MS, 20001);
    due = lessee_due (&h, 20001 * MS, 20001);
    ok (due >= 25000 * MS && due <= 26300 * MS, "or a twelfth, if the want is known to be lost");
    lessee_hurry (&h, 20002 * MS);
    ok (lessee_due (&h, 20002 * MS, 20002) == 20002 * MS, "when the parent is back it goes at once");

    lessee_init (&h, 8, ME, LEASE);
    for (uint64_t now = 1000, i = 0; i < 12; i++) {
        ask (&h, now);
        due = lessee_due (&h, now * MS, now) - now * MS;
        slow = slow && due >= 2000000 && due <= 2500000;
        lessee_missed (&h, now * MS, now);
        due = lessee_due (&h, now * MS, now) - now * MS;
        grows = grows && due >= 100000 && due <= 6250000 && (due >= last || due >= 2000000);
        last = due;
        now += due / MS + 1;
    }
    ok (slow, "while nothing is held a want that is under way is repeated after 2 s");
    ok (grows && last >= 2000000, "one that got nothing after 100 ms, then later");
    lessee_init (&h, 9, ME, 6000);
    ask (&h, 1000);
    ok (lessee_due (&h, 1000 * MS, 1000) <= 1625 * MS, "but not later than after a twelfth of a lease");
}

static bool may_at (const struct lessee *h, uint64_t now_us, uint64_t now_ms)
{
    struct range r;

    return lessee_range (h, now_us, now_ms, &r);
}

static void test_use (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, 1000);
    ok (!lessee_in_use (&h, 0), "who was given nothing uses nothing");
    ask (&h, 100);
    ask (&h, 500);
    take (&h, 900, 1, 0, 1900);
    ok (may_at (&h, 1349 * MS + 999, 1000) && lessee_in_use (&h, 1349 * MS + 999) && !may_at (&h, 1350 * MS, 1000)
            && !lessee_in_use (&h, 1350 * MS),
        "a range is used a lease and a quarter after it was first asked for, not longer, whatever the time is");
    ok (lessee_due (&h, 901 * MS, 901) < 1100 * MS, "what is of use for a short time only is renewed soon");
    ok (ask (&h, 1000) == 2 && take (&h, 1001, 2, 1900, 2000) && may_at (&h, 2249 * MS, 1950),
        "the answer to a later want prolongs the use of all");
    ok (ask (&h, 3000) == 3 && ask (&h, 3999) == 3 && ask (&h, 4000) == 4 && !take (&h, 4001, 3, 3000, 5000),
        "a want that was repeated for a lease is replaced by a new one");
    ok (!take (&h, 6000, 4, 4000, 5000) && lessee_in_use (&h, 5249 * MS) && !may_at (&h, 5100 * MS, 4500),
        "whose answer counts as in use, as it does for the root, even where it comes too late");
}

/* The root has ceased to wait for it, and may have told a watermark above it. */
static void test_lapsed (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, 1000);
    ask (&h, 100);
    take (&h, 101, 1, 0, 1900);
    ok (ask (&h, 1200) == 2 && take (&h, 1201, 2, 1900, 2900) && may_at (&h, 1202 * MS, 1500),
        "what is held in time is used on under the next lease");
    ok (ask (&h, 2450) == 3 && take (&h, 2451, 3, 2900, 3900) && !may_at (&h, 2451 * MS, 2000)
            && may_at (&h, 2451 * MS, 3000),
        "what was held for too long is not, though the time here has not passed it");
    ok (ask (&h, 3800) == 4 && !take (&h, 3800, 4, 3700, 3800) && !may_at (&h, 3800 * MS, 3500),
        "nor is it where the next lease comes too late");
}

static void test_close (void)
{
    struct lessee h;
    struct lease_back back;

    lessee_init (&h, 7, ME, LEASE);
    ok (!lessee_close (&h, 5, &back), "who holds nothing has nothing to give back");
    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ask (&h, 2);
    ok (lessee_close (&h, 50, &back) && back.end_ms == 50 && strcmp (back.incarnation, ME) == 0 && back.generator == 7,
        "what was not used is given back");
    ok (!may (&h, 50) && !may (&h, 10) && !take (&h, 3, 2, 100, 200) && !may (&h, 150)
            && lessee_due (&h, 9, 9) == UINT64_MAX,
        "afterwards nothing may be used or taken, and nothing is asked for");

    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ask (&h, 2);
    take (&h, 2, 2, 120, 200);
    ok (lessee_close (&h, 50, &back) && back.end_ms == 120,
        "of two ranges the whole second one, which is the last given");
    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ok (!lessee_close (&h, 100, &back), "a range that is used up is not given back");
}

int main (void)
{
    test_take ();
    test_lost_time ();
    test_when ();
    test_use ();
    test_lapsed ();
    test_close ();
    return done_testing ();
}
