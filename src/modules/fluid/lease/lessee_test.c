/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee_test.c - a lessee accepts answers once, makes ids inside its ranges only, and asks in time */
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

/* CLOCK_BOOTTIME missed a part of the time of a lease. */
static void test_lost_time (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 2, 1, 10, LEASE);
    ok (may (&h, 10000) && may (&h, 50000), "a lessee may use a range that it holds");
    lessee_lost_time (&h, 40000 * MS);
    ok (may (&h, 10000) && !may (&h, 50000),
        "time that the clock missed shortens the time for which a range may be used");
    ask (&h, 500000);
    lessee_lost_time (&h, 2 * LEASE * MS);
    ok (take (&h, 500001, 2, 500000, 560000) && !may (&h, 500001),
        "time missed while a request is under way shortens the time for which the granted range may be used");
}

static void test_take (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, LEASE);
    ok (!may (&h, 0) && lessee_end (&h) == 0 && lessee_due (&h, 5, 0) == 5,
        "a new lessee holds nothing, and requests a lease immediately");
    ok (ask (&h, 1) == 1 && ask (&h, 2) == 1, "a repeated request of a lessee has the same number");
    ok (!take (&h, 2, 2, 0, 100) && !may (&h, 50), "a lessee ignores an answer with another number than its request");
    struct lease_grant other = grant (&h, 1, 10, 100);
    other.incarnation[0] ^= 1;
    ok (!lessee_take (&h, 2 * MS, 2, &other) && !may (&h, 50),
        "a lessee ignores an answer to another incarnation of the same rank");
    ok (take (&h, 2, 1, 10, 100) && !may (&h, 9) && may (&h, 10) && may (&h, 99) && !may (&h, 100),
        "a lessee accepts the answer to its own request, and may use the range");
    ok (!take (&h, 2, 1, 100, 200) && !may (&h, 100), "a lessee accepts the same answer only once");
    ok (ask (&h, 50) == 2 && take (&h, 50, 2, 100, 150) && may (&h, 99) && may (&h, 149) && h.nranges == 1,
        "adjacent ranges of a lessee are joined");
    ok (ask (&h, 60) == 3 && take (&h, 60, 3, 170, 180) && may (&h, 149) && !may (&h, 160) && may (&h, 170),
        "two ranges that are not adjacent leave a gap that is not used");
    ok (ask (&h, 60) == 4 && !take (&h, 60, 4, 190, 200) && !may (&h, 195) && may (&h, 149) && may (&h, 175),
        "a third range that is not adjacent is dropped");
    ok (ask (&h, 160) == 5 && take (&h, 160, 5, 200, 230) && may (&h, 170) && may (&h, 200),
        "a third range is accepted if the first one has passed");
    ok (ask (&h, 300) == 6 && !take (&h, 300, 6, 230, 290) && lessee_due (&h, 300 * MS, 300) == 300 * MS,
        "after a range that arrived too late the next request is due immediately");
    ok (ask (&h, 301) == 7 && !take (&h, 301, 7, 280, 400) && !may (&h, 310) && !h.asking,
        "a range that begins below the end of another is not accepted, and the next request has a new number");
}

static void test_when (void)
{
    struct lessee h;
    uint64_t due, last = 0;
    bool grows = true, slow = true;

    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, LEASE);
    ok (lessee_due (&h, 1 * MS, 1) == LEASE / 3 * MS, "a lease is renewed when a third of it has passed");
    ok (!lessee_may_join (&h, 10000 * MS, 10000) && lessee_may_join (&h, 15000 * MS, 15000),
        "the request for a renewal may be sent a twelfth of a lease earlier together with others");
    ask (&h, 20000);
    due = lessee_due (&h, 20000 * MS, 20000);
    ok (due >= 35000 * MS && due <= 38750 * MS,
        "while a lease is held, a request without an answer is repeated after a quarter of a lease");
    lessee_missed (&h, 20001 * MS, 20001);
    due = lessee_due (&h, 20001 * MS, 20001);
    ok (due >= 25000 * MS && due <= 26300 * MS,
        "while a lease is held, a request that is known to be lost is repeated after a twelfth of a lease");
    lessee_hurry (&h, 20002 * MS);
    ok (lessee_due (&h, 20002 * MS, 20002) == 20002 * MS,
        "when the parent is connected again, a request is due immediately");

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
    ok (slow, "while no lease is held, a request without an answer is repeated after 2 s");
    ok (grows && last >= 2000000,
        "while no lease is held, a request that was granted nothing is repeated after 100 ms, and then with growing "
        "pauses");
    lessee_init (&h, 9, ME, 6000);
    ask (&h, 1000);
    ok (lessee_due (&h, 1000 * MS, 1000) <= 1625 * MS,
        "while no lease is held, a request is repeated at most a twelfth of a lease later");
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
    ok (!lessee_in_use (&h, 0), "a lessee that was never granted a range has nothing in use");
    ask (&h, 100);
    ask (&h, 500);
    take (&h, 900, 1, 0, 1900);
    ok (may_at (&h, 1349 * MS + 999, 1000) && lessee_in_use (&h, 1349 * MS + 999) && !may_at (&h, 1350 * MS, 1000)
            && !lessee_in_use (&h, 1350 * MS),
        "a range may be used for a lease and a quarter after it was first requested, whatever the instance's time");
    ok (lessee_due (&h, 901 * MS, 901) < 1100 * MS, "a range that may be used only for a short time is renewed soon");
    ok (ask (&h, 1000) == 2 && take (&h, 1001, 2, 1900, 2000) && may_at (&h, 2249 * MS, 1950),
        "the answer to a later request extends the use of all ranges");
    ok (ask (&h, 3000) == 3 && ask (&h, 3999) == 3 && ask (&h, 4000) == 4 && !take (&h, 4001, 3, 3000, 5000),
        "a request that was repeated for a lease is replaced by a new one");
    ok (!take (&h, 6000, 4, 4000, 5000) && lessee_in_use (&h, 5249 * MS) && !may_at (&h, 5100 * MS, 4500),
        "a range that arrives too late counts as in use, because the root counts it as such");
}

/* The root no longer waits for this lessee, and may have published a higher watermark. */
static void test_lapsed (void)
{
    struct lessee h;

    lessee_init (&h, 7, ME, 1000);
    ask (&h, 100);
    take (&h, 101, 1, 0, 1900);
    ok (ask (&h, 1200) == 2 && take (&h, 1201, 2, 1900, 2900) && may_at (&h, 1202 * MS, 1500),
        "a range that was held in time may be used under the next lease");
    ok (ask (&h, 2450) == 3 && take (&h, 2451, 3, 2900, 3900) && !may_at (&h, 2451 * MS, 2000)
            && may_at (&h, 2451 * MS, 3000),
        "a range whose time of use was over may not be used under the next lease, even if it contains now");
    ok (ask (&h, 3800) == 4 && !take (&h, 3800, 4, 3700, 3800) && !may_at (&h, 3800 * MS, 3500),
        "a range whose time of use was over may not be used if the next lease arrives too late");
}

static void test_close (void)
{
    struct lessee h;
    struct lease_back back;

    lessee_init (&h, 7, ME, LEASE);
    ok (!lessee_close (&h, 5, &back), "a lessee that holds nothing has nothing to return");
    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ask (&h, 2);
    ok (lessee_close (&h, 50, &back) && back.end_ms == 50 && strcmp (back.incarnation, ME) == 0 && back.generator == 7,
        "a lessee that stops returns the unused part of its range");
    ok (!may (&h, 50) && !may (&h, 10) && !take (&h, 3, 2, 100, 200) && !may (&h, 150)
            && lessee_due (&h, 9, 9) == UINT64_MAX,
        "a lessee that stopped uses, accepts and requests nothing");

    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ask (&h, 2);
    take (&h, 2, 2, 120, 200);
    ok (lessee_close (&h, 50, &back) && back.end_ms == 120,
        "a lessee with two ranges returns only the last one, if the first is in use");
    lessee_init (&h, 7, ME, LEASE);
    ask (&h, 1);
    take (&h, 1, 1, 0, 100);
    ok (!lessee_close (&h, 100, &back), "a range that is used up is not returned");
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
