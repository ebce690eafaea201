/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand_test.c - which size is requested for a need that is steady, in bursts, in a closed loop, growing, or
 * changing */
#include "libutil/minmax.h"
#include "test/tap.h"
#include "modules/fluid/lease/box.h"
#include "modules/fluid/lease/demand.h"

#define SECOND UINT64_C (1000000)

struct play {
    struct demand d;
    uint64_t now_us;
    uint32_t changes, most;
};

static void start (struct play *p)
{
    *p = (struct play){ .now_us = 5 * SECOND };
}

static uint32_t look (struct play *p, uint32_t before)
{
    uint32_t size = demand_size (&p->d, p->now_us);

    p->changes += size != before;
    p->most = size > p->most ? size : p->most;
    return size;
}

/* What is not served here comes from the parent. */
static void note (struct demand *d, uint64_t now_us, uint32_t ids, bool lacked)
{
    demand_note (d, now_us, ids, lacked);
    if (lacked)
        demand_note_from_above (d, now_us, ids);
}

/* 'requests' a second of 'ids' each arrive for so many seconds. A part makes its size in each millisecond; requests
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
        note (&p->d, p->now_us, ids, left < ids);
        left -= left < ids ? left : ids;
        size = look (p, size);
    }
    return size;
}

static uint32_t rests (struct play *p, uint64_t us)
{
    uint32_t before = p->d.size;

    p->now_us += us;
    return look (p, before);
}

static void test_steady (void)
{
    struct play p;

    start (&p);
    ok (rests (&p, 100 * SECOND) == 0 && demand_due (&p.d) == UINT64_MAX, "a rank without requests requests no part");
    ok (comes (&p, 60, 15, 1) == 0, "a rank with few requests requests no part");
    start (&p);
    for (int i = 0; i < 100; i++)
        note (&p.d, p.now_us, 1, true);
    ok (rests (&p, 2 * SECOND) == 0 && p.changes == 0, "a rank with many requests in a single window requests no part");
    start (&p);
    for (int i = 0; i < 3000; i++)
        note (&p.d, p.now_us += 1000, 1, false);
    ok (look (&p, 0) == 0, "a rank that serves all requests requests no part");
    start (&p);
    ok (comes (&p, 1, 1000, 1) == 16, "a rank whose requests were forwarded in two windows requests a part");
    ok (comes (&p, 120, 1000, 1) == 16 && p.changes == 1,
        "with a steady need the size of the requested part does not change");
    ok (demand_due (&p.d) <= p.now_us + DEMAND_WINDOW_US, "the size may change in each window while a part is wanted");
}

static void test_silence (void)
{
    struct play p;
    uint64_t us = 0;

    start (&p);
    comes (&p, 4, 1000, 1);
    while (us < 20 * SECOND && rests (&p, 10000) > 0)
        us += 10000;
    ok (us >= 4 * SECOND && us <= 5 * SECOND, "a rank without requests no longer wants its part after 4 to 5 seconds");
    start (&p);
    comes (&p, 3, 1000, 16);
    for (us = 0; us < 20 * SECOND && rests (&p, 10000) > 0;)
        us += 10000;
    ok (us >= 4 * SECOND && us <= 5 * SECOND && p.changes == 3,
        "a size that is halved during a silence does not prolong it");
    start (&p);
    comes (&p, 4, 1000, 1);
    ok (comes (&p, 10, 1, 1) == 0, "a rank with a request in each second no longer wants its part");
    start (&p);
    comes (&p, 4, 1000, 1);
    ok (comes (&p, 60, 5, 1) == 16 && p.changes == 1, "a rank with five requests in each second keeps its part");
    start (&p);
    comes (&p, 4, 1000, 1);
    ok (rests (&p, UINT32_MAX * SECOND) == 0 && p.changes == 2 && demand_due (&p.d) == UINT64_MAX,
        "a rank without requests for a very long time no longer wants its part");
    ok (comes (&p, 1, 1000, 1) == 16, "a rank whose requests come again wants a part again");
}

static uint32_t size_for (uint32_t requests, uint32_t ids)
{
    struct play p;

    start (&p);
    return comes (&p, 5, requests, ids);
}

static void test_sizes (void)
{
    ok (size_for (1000, 4) == 16 && size_for (1000, 5) == 32 && size_for (1000, 32) == 128
            && size_for (1000, 33) == 256,
        "the first size is four times the need that was seen, rounded up to a power of two");
    ok (size_for (1000, 129) == BOX_MAX_PART && size_for (1000, BOX_MAX_PART) == BOX_MAX_PART,
        "the largest size is that of a whole without one granule");
    ok (size_for (1000, BOX_MAX_PART + 1) == 0 && size_for (100, 65536) == 0,
        "a rank whose requests need more than the largest size in a millisecond requests no part after four seconds");
    ok (size_for (50, 1000) == BOX_MAX_PART && size_for (50, 100) == 128,
        "the requested size is large enough for a burst in four milliseconds");
}

static void test_too_much (void)
{
    struct play p;

    start (&p);
    ok (comes (&p, 4, 1000, 2000) > 0 && comes (&p, 1, 1000, 2000) == 0 && comes (&p, 60, 1000, 2000) == 0
            && p.changes == 2,
        "a part that serves nothing for four seconds is given up, and is not wanted again");
    ok (comes (&p, 60, 1000, 127) == 0 && comes (&p, 5, 1000, 126) > 0,
        "a rank that needed too much requests a part again when it needs an eighth of the largest size");
    start (&p);
    comes (&p, 10, 1000, 2000);
    p.now_us += 3 * SECOND;
    ok (p.d.size == 0 && comes (&p, 1, 1000, 2000) > 0, "after two seconds of silence it requests a part again, too");
    start (&p);
    for (int i = 0; i < 20; i++) {
        comes (&p, 3, 1000, 2000);
        comes (&p, 1, 1000, 200);
    }
    ok (p.d.size > 0 && p.changes == 1, "a part that serves some requests each four seconds is kept");
}

/* --- closed loops ---------------------------------------------------------------------------------------------- */

#define STEP_US 100    /* a client asks again so long after an answer from here, */
#define ABOVE_US 5000  /* or, in the mean, after its request went to the parent */
#define FORCE_US 50000 /* a larger size comes into force so late */

struct loop {
    struct play p;
    uint64_t ready_us[64]; /* when each client asks next */
    uint32_t clients, in_force;
    uint64_t force_us; /* when the size that is wanted comes into force */
    uint64_t left, served;
};

/* The parent's answers do not all take the same time. */
static uint64_t above_us (const struct loop *l, uint32_t client)
{
    return ABOVE_US - ABOVE_US * 2 / 5 + (l->served * 7919 + client * UINT64_C (104729)) % 41 * STEP_US;
}

static void loop_step (struct loop *l, uint32_t ids)
{
    struct play *p = &l->p;
    uint32_t before = p->d.size;

    if (p->now_us % 1000 == 0)
        l->left = l->in_force;
    for (uint32_t i = 0; i < l->clients; i++) {
        if (l->ready_us[i] > p->now_us)
            continue;
        bool lacked = l->left < ids;

        note (&p->d, p->now_us, ids, lacked);
        l->left -= lacked ? 0 : ids;
        l->served += lacked ? 0 : ids;
        l->ready_us[i] = p->now_us + (lacked ? above_us (l, i) : STEP_US);
    }
    if (look (p, before) != before)
        l->force_us = p->now_us + FORCE_US;
    if (p->now_us >= l->force_us || p->d.size < l->in_force)
        l->in_force = p->d.size;
    p->now_us += STEP_US;
}

static void loop_start (struct loop *l, uint32_t clients)
{
    *l = (struct loop){ .clients = clients };
    start (&l->p);
}

/* How long until at least 'size' is wanted, in milliseconds. */
static uint64_t loop_until (struct loop *l, uint32_t ids, uint32_t size)
{
    uint64_t begin_us = l->p.now_us;

    while (l->p.d.size < size && l->p.now_us < begin_us + 60 * SECOND)
        loop_step (l, ids);
    return (l->p.now_us - begin_us) / 1000;
}

static uint32_t loop_for (struct loop *l, uint32_t ids, uint32_t seconds)
{
    uint64_t end_us = l->p.now_us + seconds * SECOND;

    l->p.changes = 0;
    l->served = 0;
    while (l->p.now_us < end_us)
        loop_step (l, ids);
    return l->p.d.size;
}

/* A client that waits for each answer shows how much it needs only if it gets that. */
static void test_loops (void)
{
    static const struct {
        uint32_t clients, ids, size;
    } loops[] = { { 1, 1, 16 }, { 4, 1, 64 }, { 12, 1, 128 }, { 1, 25, 256 }, { 25, 1, 256 } };
    struct loop l;

    for (size_t i = 0; i < sizeof (loops) / sizeof (loops[0]); i++) {
        loop_start (&l, loops[i].clients);
        uint64_t first_ms = loop_until (&l, loops[i].ids, 1), rest_ms = loop_until (&l, loops[i].ids, loops[i].size);
        ok (first_ms >= 100 && first_ms <= 300 && rest_ms <= 1000,
            "closed loop, %u clients, %u ids: a part is wanted after %u ms, and %u numbers after %u ms more",
            loops[i].clients, loops[i].ids, (unsigned)first_ms, loops[i].size, (unsigned)rest_ms);
        loop_for (&l, loops[i].ids, 10);
        uint32_t size = loop_for (&l, loops[i].ids, 120);
        ok (size >= loops[i].size && size <= 2 * loops[i].size && l.p.changes == 0
                && l.served >= UINT64_C (120000) * 9 * loops[i].clients * loops[i].ids,
            "closed loop, %u clients, %u ids: the size stays, and the part serves all", loops[i].clients, loops[i].ids);
    }
}

/* The part may not serve all that the clients could use. */
static void test_large_loops (void)
{
    uint32_t changes = 0;
    bool all = true;

    for (uint32_t n = 26; n <= 64; n += 7) {
        struct loop l;

        loop_start (&l, n);
        loop_for (&l, 2, 10);
        all = loop_for (&l, 2, 60) == BOX_MAX_PART && all;
        changes += l.p.changes;
    }
    ok (all && changes == 0,
        "clients in a closed loop that need more than half of the largest size, or more than all of "
        "it, keep that size");
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static void test_changes (void)
{
    struct play p;

    start (&p);
    ok (comes (&p, 30, 1000, 2) == 16 && comes (&p, 30, 4000, 8) > 16 && p.most <= 64,
        "if requests are forwarded although there is a part, the requested size is doubled");
    uint32_t before = p.changes;
    comes (&p, 200, 4000, 8);
    ok (p.changes == before, "the requested size is doubled until no request is forwarded");
    ok (comes (&p, 120, 1000, 1) < p.most, "the requested size is halved if it was not needed for long");
    start (&p);
    comes (&p, 1, 1000, 16);
    before = p.d.size;
    ok (before == 64 && comes (&p, 4, 1000, 1) == 64 && comes (&p, 2, 1000, 1) == 32 && comes (&p, 5, 1000, 1) == 16,
        "the requested size is halved after five seconds in which half of it was enough");
    start (&p);
    for (uint32_t ids = 1; ids < 200; ids += 2)
        comes (&p, 1, 1000, ids);
    ok (p.most >= 256 && p.changes <= 6, "a growing need changes the requested size once for each power of two");
}

/* The most changes in waves of twice 'half' seconds for ten minutes, with at most 'halvings' in each: a size is halved
 * in each five seconds of the lower half, and then doubled again.
 */
static uint32_t flaps (uint32_t half, uint32_t halvings)
{
    return 4 + 2 * (uint32_t)min_u64 (half / 5, halvings) * (600 / (2 * half) + 1);
}

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
        good = good && p.changes <= flaps (half, 2) && p.d.size > 0;
        start (&p);
        for (uint32_t t = 0; t < 600; t += 2 * half) {
            comes (&p, half, 1000, 100);
            comes (&p, half, 1000, 600);
        }
        good = good && p.changes <= flaps (half, 3) && p.d.size > 0;
    }
    ok (good, "with waves of any length the requested size is halved only after five seconds");
}

static void test_now (void)
{
    struct play p;

    start (&p);
    ok (demand_now (&p.d, p.now_us) == 0, "a rank without a part needs none now");
    comes (&p, 1, 1000, 100);
    ok (p.d.size == 512 && demand_now (&p.d, p.now_us) == 200,
        "what is needed now is twice the largest burst in the last windows");
    comes (&p, 1, 1000, 10);
    ok (p.d.size == 512 && demand_now (&p.d, p.now_us) == 20, "what is needed now follows the need in half a second");
    rests (&p, SECOND / 2);
    ok (p.d.size == 512 && demand_now (&p.d, p.now_us) == 0, "in a silence nothing is needed now");
    demand_note (&p.d, p.now_us, 400, false);
    ok (demand_now (&p.d, p.now_us) == 200, "a burst is counted in its first window");
    demand_note (&p.d, p.now_us, 4000, false);
    ok (demand_now (&p.d, p.now_us) == 512, "not more is needed now than the size");
    rests (&p, SECOND / 2);
    demand_note (&p.d, p.now_us, 1, true);
    ok (demand_now (&p.d, p.now_us) == 512, "if numbers were lacking, all of the size is needed now");
}

int main (void)
{
    test_steady ();
    test_silence ();
    test_sizes ();
    test_too_much ();
    test_loops ();
    test_large_loops ();
    test_changes ();
    test_waves ();
    test_now ();
    return done_testing ();
}
