/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand_test.c - which size is requested for a need that is steady, in bursts, growing, or changing */
#include "test/tap.h"
#include "modules/fluid/lease/borrower.h"

#define SECOND UINT64_C (1000000)

struct play {
    struct demand d;
    uint64_t now_us;
    uint32_t changes, most;
};

static void start (struct play *p)
{
    *p = (struct play){ .now_us = 5 * SECOND };
    demand_init (&p->d, p->now_us);
}

/* 'requests' a second of 'ids' each arrive for so many seconds. A sublease makes its size in each millisecond; requests
 * that do not fit are forwarded.
 */
static uint32_t comes (struct play *p, uint32_t seconds, uint32_t requests, uint32_t ids)
{
    uint64_t end_us = p->now_us + seconds * SECOND, ms = 0, left = 0;
    uint32_t size = p->d.size;

    for (; p->now_us < end_us; p->now_us += SECOND / requests) {
        if (p->now_us / 1000 != ms) {
            ms = p->now_us / 1000;
            left = size;
        }
        demand_note (&p->d, p->now_us, ids, left < ids);
        left -= left < ids ? left : ids;
        p->changes += demand_size (&p->d, p->now_us) != size;
        size = demand_size (&p->d, p->now_us);
        p->most = size > p->most ? size : p->most;
    }
    return size;
}

static uint32_t rests (struct play *p, uint32_t seconds)
{
    uint32_t before = p->d.size, size = demand_size (&p->d, p->now_us += seconds * SECOND);

    p->changes += size != before;
    return size;
}

static void test_steady (void)
{
    struct play p;

    start (&p);
    ok (rests (&p, 100) == 0 && demand_due (&p.d) == UINT64_MAX, "a rank without requests requests no sublease");
    ok (comes (&p, 60, 15, 1) == 0, "a rank with few requests requests no sublease");
    ok (comes (&p, 1, 1000, 1) == 0 && comes (&p, 3, 1000, 1) == 16,
        "a rank whose requests were forwarded in two windows requests a sublease");
    ok (comes (&p, 120, 1000, 1) == 16 && p.changes == 1,
        "with a steady need the size of the requested sublease does not change");
    ok (demand_due (&p.d) != UINT64_MAX && rests (&p, 6) == 0, "a rank without requests no longer wants its sublease");
    start (&p);
    comes (&p, 4, 1000, 1);
    ok (rests (&p, UINT32_MAX) == 0, "a rank without requests for a very long time no longer wants its sublease");
}

static uint32_t size_for (uint32_t requests, uint32_t ids)
{
    struct play p;

    start (&p);
    return comes (&p, 4, requests, ids);
}

static void test_sizes (void)
{
    ok (size_for (1000, 8) == 16 && size_for (1000, 9) == 32 && size_for (1000, 100) == 256
            && size_for (1000, 256) == 512,
        "the requested size is twice the mean need, rounded up");
    ok (size_for (1000, 300) == 0 && size_for (100, 65536) == 0,
        "a rank that needs more than the largest size requests no sublease");
    ok (size_for (50, 1000) == 256 && size_for (50, 100) == 32 && size_for (30, 4096) == 512,
        "the requested size is large enough for a burst in four milliseconds");
}

static void test_changes (void)
{
    struct play p;

    start (&p);
    ok (comes (&p, 30, 1000, 2) == 16 && comes (&p, 30, 4000, 8) > 16 && p.most <= 64,
        "if requests are forwarded although there is a sublease, the requested size is doubled");
    uint32_t before = p.changes;
    comes (&p, 200, 4000, 8);
    ok (p.changes - before <= 2, "the requested size is doubled until no request is forwarded");
    ok (comes (&p, 120, 1000, 1) < p.most, "the requested size is halved if it was not needed for long");
    p.changes = 0;
    for (uint32_t ids = 1; ids < 200; ids += 2)
        comes (&p, 1, 1000, ids);
    ok (p.most >= 128 && p.changes <= 8, "a growing need changes the requested size at most once in a term");
}

/* With any variation of the need, the size changes at most once in a term; returns are not counted. */
static void test_waves (void)
{
    struct play p;
    bool good = true;

    for (uint32_t half = 1; half <= 40; half += 3) {
        start (&p);
        for (uint32_t t = 0; t < 600; t += 2 * half) {
            comes (&p, half, 1000, 1);
            comes (&p, half, 1000, 60);
        }
        good = good && p.changes <= 600 / 15 + 2;
        start (&p);
        for (uint32_t t = 0; t < 600; t += 2 * half) {
            comes (&p, half, 1000, 100);
            comes (&p, half, 1000, 300);
        }
        good = good && p.changes <= 2;
    }
    ok (good, "with waves of any length the requested size changes at most once in a term, and a rank that sometimes "
              "needs too much requests none");
}

static void test_peak (void)
{
    struct play p;

    start (&p);
    ok (demand_peak (&p.d) == 0, "a rank without requests has a peak of 0");
    demand_note (&p.d, p.now_us, 2000, false);
    demand_note (&p.d, p.now_us + 3999, 2000, false);
    ok (demand_peak (&p.d) == 1000, "the peak is the mean need of four milliseconds");
    demand_note (&p.d, p.now_us + 4000, 65536, false);
    ok (demand_peak (&p.d) == FLUID_PER_MS, "the peak is at most the number of ids of a millisecond");
    rests (&p, 3);
    ok (demand_peak (&p.d) == 0, "the peak is forgotten after two windows without requests");
}

int main (void)
{
    test_steady ();
    test_sizes ();
    test_changes ();
    test_waves ();
    test_peak ();
    return done_testing ();
}
