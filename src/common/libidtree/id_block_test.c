/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_block_test.c - prefetched ids: which are given out and until when, and how many are requested */
#include <string.h>

#include "libidtree/id_block.h"
#include "test/tap.h"

#define AGE_US UINT64_C (1000000)
#define MOST 64
#define START_US UINT64_C (5000000)

/* A broker that answers after 'trip_us', a caller, and counts of what happened. */
struct world {
    struct id_block b;
    uint64_t now_us;
    fluid_t last_made, last_given;
    uint64_t sent_us;
    unsigned long requests, made, given, missed, most, late, disorder;
};

static void start (struct world *w, uint32_t most)
{
    *w = (struct world){ .now_us = START_US };
    if (id_block_init (&w->b, most, AGE_US, w->now_us) < 0)
        bail_out ("id_block_init");
}

/* The upper part of an id is the time at which it was requested. */
static void answer (struct world *w)
{
    uint32_t n = w->b.asked;
    fluid_t *place = id_block_place (&w->b);

    for (uint32_t i = 0; i < n; i++)
        place[i] = w->last_made = (w->sent_us << 20) + (++w->made & 0xfffff);
    id_block_got (&w->b);
}

static void renew (struct world *w)
{
    uint32_t n = id_block_wants (&w->b, w->now_us);

    if (n == 0)
        return;
    id_block_asked (&w->b, w->now_us, n);
    w->sent_us = w->now_us;
    w->requests++;
    unsigned long held = w->b.end - w->b.next + n;
    w->most = held > w->most ? held : w->most;
}

static void given (struct world *w, const fluid_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w->disorder += ids[i] <= w->last_given;
        w->late += (ids[i] >> 20) + AGE_US <= w->now_us;
        w->last_given = ids[i];
    }
    w->given += n;
}

/* Wait for the requested ids. Returns whether they arrived. */
static bool wait_for (struct world *w, uint32_t n, uint64_t trip_us)
{
    if (!id_block_will_do (&w->b, w->now_us, n) || w->sent_us + trip_us >= id_block_until_us (&w->b))
        return false;
    w->now_us = w->sent_us + trip_us > w->now_us ? w->sent_us + trip_us : w->now_us;
    answer (w);
    return true;
}

static void by_message (struct world *w, uint32_t n, fluid_t *ids)
{
    id_block_cancel (&w->b);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = w->last_made = (w->now_us << 20) + (++w->made & 0xfffff);
    w->missed++;
    renew (w);
    id_block_skip (&w->b);
}

static void call (struct world *w, uint32_t n, uint64_t trip_us)
{
    fluid_t ids[MOST];

    if (id_block_take (&w->b, w->now_us, n, ids)
        || (wait_for (w, n, trip_us) && id_block_take (&w->b, w->now_us, n, ids)))
        renew (w);
    else
        by_message (w, n, ids);
    given (w, ids, n);
}

static void check (const struct world *w, const char *what)
{
    ok (w->disorder == 0 && w->late == 0 && w->most <= w->b.most,
        "%s: ids are in order, not expired, and never more than the limit (%lu given, %lu made, %lu requests, %lu "
        "missed)",
        what, w->given, w->made, w->requests, w->missed);
}

static void test_fast (void)
{
    struct world w;

    start (&w, MOST);
    renew (&w);
    for (int i = 0; i < 100000; i++, w.now_us++)
        call (&w, 1, 10);
    check (&w, "calls without pause");
    ok (w.missed == 0 && w.requests < 100000 / (MOST / 2),
        "calls without pause are all served from the block of ids, with few requests");
    ok (w.made - w.given <= MOST, "calls without pause lose no prefetched ids");
    id_block_fini (&w.b);
}

static void test_steady (void)
{
    struct world w;

    start (&w, MOST);
    renew (&w);
    for (int i = 0; i < 10000; i++, w.now_us += AGE_US / 20)
        call (&w, 1, 1000);
    check (&w, "twenty calls in the maximum age of an id");
    ok (w.missed == 0 && w.requests < 10000 / 4,
        "twenty calls in the maximum age of an id are all served from the block of ids, with less than a fourth as "
        "many requests as calls");
    ok (w.made < 3 * w.given,
        "twenty calls in the maximum age of an id request less than three times as many ids as they use");
    id_block_fini (&w.b);
}

/* Calls for more ids than the first request asks for. */
static void test_large (void)
{
    struct world w;

    start (&w, MOST);
    renew (&w);
    for (int i = 0; i < 1000; i++)
        call (&w, 2 * ID_BLOCK_FIRST, 10);
    check (&w, "calls for twice the size of the first request");
    ok (w.missed <= 2 && w.made - w.given <= 2 * MOST,
        "calls for twice the size of the first request are soon served from the block of ids");
    id_block_fini (&w.b);

    start (&w, MOST - 1);
    renew (&w);
    for (int i = 0; i < 1000; i++)
        call (&w, MOST, 10);
    check (&w, "calls for more ids than the block may have");
    ok (w.requests == 1 && w.missed == 1000, "calls for more ids than the block may have request no ids to prefetch");
    id_block_fini (&w.b);
}

static void test_seldom (void)
{
    struct world w;

    start (&w, MOST);
    for (int i = 0; i < 1000; i++, w.now_us += AGE_US + 1)
        call (&w, 1, 1000);
    check (&w, "calls at intervals above the maximum age of an id");
    ok (w.missed == 1000 && w.requests <= 1, "calls at intervals above the maximum age of an id need one message each");
    id_block_fini (&w.b);
}

static uint32_t dice (uint32_t *state, uint32_t n)
{
    *state = *state * 1103515245 + 12345;
    return (*state >> 8) % n;
}

static void test_mixed (void)
{
    uint32_t state = 1;
    struct world w;

    for (uint32_t most = 1; most <= MOST; most += 7) {
        start (&w, most);
        renew (&w);
        for (int i = 0; i < 50000; i++) {
            uint64_t trip_us = dice (&state, 10) ? 100 : dice (&state, 2 * AGE_US);
            w.now_us += dice (&state, 100) ? dice (&state, 1000) : dice (&state, 2 * AGE_US);
            if (dice (&state, 1000) == 0 && w.b.asked > 0)
                id_block_failed (&w.b, w.now_us, false);
            call (&w, 1 + dice (&state, dice (&state, 50) ? 3 : MOST), trip_us);
        }
        check (&w, "calls of any size and at any interval, with failed and late responses");
        id_block_fini (&w.b);
    }
}

static void test_refused (void)
{
    struct world w;

    start (&w, MOST);
    for (int i = 0; i < 100; i++)
        call (&w, 1, 10);
    while (w.b.asked == 0)
        call (&w, 1, 10);
    uint32_t asked = w.b.asked;
    id_block_failed (&w.b, w.now_us, false);
    ok (asked > ID_BLOCK_FIRST && id_block_wants (&w.b, w.now_us) == 0,
        "after a refused request no ids are requested for the maximum age of an id");
    w.now_us += AGE_US - 1;
    ok (id_block_wants (&w.b, w.now_us) == 0,
        "one microsecond before the maximum age has passed, no ids are requested after a refusal");
    w.now_us++;
    ok (id_block_wants (&w.b, w.now_us) == asked / 2,
        "when the maximum age has passed after a refusal, half as many ids as before are requested");
    id_block_asked (&w.b, w.now_us, asked / 2);
    id_block_failed (&w.b, w.now_us, true);
    for (int i = 0; i < 1000; i++, w.now_us += AGE_US / 100)
        call (&w, 1, 10);
    ok (w.missed > 0 && w.b.limit == asked / 4 && w.b.want == asked / 4,
        "after a permanent refusal at most half as many ids are requested");
    check (&w, "after refusals");
    id_block_fini (&w.b);
}

static void test_unused (void)
{
    fluid_t id;
    struct world w;

    start (&w, MOST);
    for (int i = 0; i < 1000; i++)
        call (&w, 1, 10);
    ok (w.b.want == MOST, "frequent calls raise the number of ids in a request to the limit");
    w.now_us += AGE_US;
    ok (!id_block_take (&w.b, w.now_us, 1, &id) && w.b.next == w.b.end,
        "prefetched ids that have expired are not given out");
    ok (w.b.asked == 0 || id_block_until_us (&w.b) <= w.now_us,
        "a call does not wait for requested ids that would expire");
    id_block_cancel (&w.b);
    ok (id_block_wants (&w.b, w.now_us) <= MOST && w.b.want < MOST,
        "after a time without calls fewer ids are requested");
    id_block_fini (&w.b);
}

/* Ids of three responses: the ids of the first one keep their own age. */
static void test_three (void)
{
    fluid_t ids[MOST];
    struct world w;

    start (&w, MOST);
    renew (&w);
    answer (&w);
    w.now_us += AGE_US / 2;
    renew (&w);
    ok (id_block_take (&w.b, w.now_us, ID_BLOCK_FIRST - 4, ids) && w.b.asked > 0,
        "when the second request is made, a few ids of the first response are left");
    answer (&w);
    id_block_asked (&w.b, w.now_us, 1);
    answer (&w);
    w.now_us += AGE_US / 2;
    bool good = id_block_take (&w.b, w.now_us, 1, ids);
    ok (good && (ids[0] >> 20) == w.now_us - AGE_US / 2,
        "when the ids of an earlier response have expired, an id of a later response is given out");
    id_block_fini (&w.b);
}

int main (int argc, char *argv[])
{
    test_fast ();
    test_steady ();
    test_large ();
    test_seldom ();
    test_mixed ();
    test_refused ();
    test_unused ();
    test_three ();
    return done_testing ();
}
