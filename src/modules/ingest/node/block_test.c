/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* block_test.c - ids are there when they are needed, young, and in order */
#include <errno.h>

#include "test/tap.h"
#include "modules/ingest/node/block.h"

#define NOW UINT64_C (1000000)

static bool fill (struct block *b, uint64_t first, uint32_t count)
{
    return block_filled (b, &(struct block_run){ first, count }, 1) == 0;
}

static void test_take (void)
{
    static const struct block_run runs[] = { { 100, 2 }, { 200, 1 } };
    struct block b;

    block_init (&b);
    ok (block_take (&b, NOW) == 0, "there is no id before there is one");
    ok (block_ask (&b, NOW, 0) == 0, "none is asked for where none is wanted");
    ok (block_ask (&b, NOW, 1) == BLOCK_MIN_IDS, "for one job a small block is asked for");
    ok (block_ask (&b, NOW, 5) == 0, "... once");
    ok (block_filled (&b, runs, 2) == 0, "it comes in two runs");
    ok (block_take (&b, NOW) == 100 && block_take (&b, NOW) == 101 && block_take (&b, NOW) == 200
            && block_take (&b, NOW) == 0,
        "which are taken in their order, to their end");
    ok (block_ask (&b, NOW + 50, 3000) == 3000, "as many are asked for as are wanted");
    ok (fill (&b, 300, 3000) && block_ask (&b, NOW + 50, 2000) == 0, "where enough are there none are");
    ok (block_ask (&b, NOW + 50, 100000) == BLOCK_MAX_IDS, "more than BLOCK_MAX_IDS never");
    block_fini (&b);
}

static void test_age (void)
{
    struct block b;

    block_init (&b);
    (void)block_ask (&b, NOW, 20);
    ok (fill (&b, 100, 20) && block_take (&b, NOW + BLOCK_MAX_AGE_MS) == 100, "an id may be as old as that");
    (void)block_ask (&b, NOW + BLOCK_MAX_AGE_MS - 10, 100);
    ok (fill (&b, 200, 100) && block_take (&b, NOW + BLOCK_MAX_AGE_MS) == 101, "those of an older block come first");
    ok (block_take (&b, NOW + BLOCK_MAX_AGE_MS + 1) == 200, "... until they are too old");
    ok (block_take (&b, NOW + 2 * BLOCK_MAX_AGE_MS) == 0, "all are, some time");
    ok (block_ask (&b, NOW + 900, 0) == 0, "who used few is not asked for more");
    block_fini (&b);
}

static void test_order (void)
{
    static const struct block_run bad[] = { { 300, 5 }, { 304, 1 } };
    struct block b;

    block_init (&b);
    (void)block_ask (&b, NOW, 10);
    ok (fill (&b, 100, 16), "a block comes");
    block_drop (&b);
    ok (block_take (&b, NOW) == 0, "it is thrown away");
    ok (block_ask (&b, NOW, 1) > 0 && !fill (&b, 115, 5) && errno == EPROTO, "one that is not above it is not taken");
    ok (block_ask (&b, NOW + BLOCK_PAUSE_MS, 1) > 0 && block_filled (&b, bad, 2) < 0 && errno == EPROTO,
        "nor is one that overlaps itself");
    ok (block_ask (&b, NOW + 2 * BLOCK_PAUSE_MS, 1) > 0 && !fill (&b, UINT64_MAX, 2), "nor one beyond the end");
    ok (block_ask (&b, NOW + 3 * BLOCK_PAUSE_MS, 1) > 0 && !fill (&b, 400, 0), "nor an empty one");
    ok (block_take (&b, NOW + 3 * BLOCK_PAUSE_MS) == 0, "nothing of them is there");
    ok (block_ask (&b, NOW + 4 * BLOCK_PAUSE_MS, 1) > 0 && fill (&b, 116, 5) && block_take (&b, NOW + 200) == 116,
        "one that is above is");
    block_fini (&b);
}

static void test_failed (void)
{
    struct block b;

    block_init (&b);
    (void)block_ask (&b, NOW, 1);
    ok (block_due (&b) == UINT64_MAX, "while a request is under way there is nothing to wait for");
    block_failed (&b);
    ok (block_due (&b) == NOW + BLOCK_PAUSE_MS && block_ask (&b, NOW + BLOCK_PAUSE_MS - 1, 1) == 0,
        "after one that failed there is a pause");
    ok (block_ask (&b, NOW + BLOCK_PAUSE_MS, 1) > 0 && block_due (&b) == UINT64_MAX, "... and then another");
    block_failed (&b);
    ok (block_ask (&b, NOW + 500, 0) == 0 && block_due (&b) == UINT64_MAX, "... if one is wanted still");
    block_fini (&b);
}

/* 'rate' ids a millisecond for a second, of which 100 and more are wanted at a time; returns how many requests, and
 * in '*without' how often there was none.  A request takes 1 ms.
 */
static unsigned use (struct block *b, uint64_t from_ms, unsigned rate, unsigned *without)
{
    static uint64_t next = 1000;
    unsigned asked = 0;

    *without = 0;
    for (uint64_t now = from_ms; now < from_ms + 1000; now++) {
        unsigned missing = 0;

        for (unsigned i = 0; i < rate; i++)
            missing += block_take (b, now) == 0;
        *without += missing;
        uint32_t n = block_ask (b, now, missing);
        if (n > 0) {
            asked++;
            (void)fill (b, next, n);
            next += n;
        }
    }
    return asked;
}

static void test_size (void)
{
    struct block b;
    unsigned without, asked;

    block_init (&b);
    asked = use (&b, NOW, 50, &without);
    ok (asked < 60 && without < 200, "50,000 ids take %u requests, and %u jobs wait", asked, without);
    ok (b.size >= 1024, "blocks are large then (%u)", b.size);
    asked = use (&b, NOW + 1000, 50, &without);
    ok (asked <= 50 && without == 0, "50,000 more take %u, and %u wait", asked, without);
    (void)block_take (&b, NOW + 5000);
    ok (block_ask (&b, NOW + 5000, 1) == BLOCK_MIN_IDS, "after some time without jobs they are small");
    block_fini (&b);
}

int main (void)
{
    test_take ();
    test_age ();
    test_order ();
    test_failed ();
    test_size ();
    return done_testing ();
}
