/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool_test.c - prefetched ids are handed out in order and once, and not when they are too old */
#include <stdlib.h>

#include "http/pool.h"
#include "test/tap.h"

static fluid_t next_id; /* the next id that the broker will give */

/* Pass the block that the pool has requested to the pool. Returns the block's size. */
static uint32_t come (struct pool *p, uint64_t now_us)
{
    static fluid_t ids[POOL_MAX_BLOCK];
    uint32_t n = pool_wants (p);

    for (uint32_t i = 0; i < n; i++)
        ids[i] = next_id++;
    if (n > 0)
        pool_came (p, now_us, ids, n);
    return n;
}

static void test_few (void)
{
    struct pool p;
    struct pool_client a = { .n = 1 }, b = { .n = 3 };
    const fluid_t *ids;

    next_id = 100;
    pool_init (&p);
    ok (pool_wants (&p) == 0 && !pool_take (&p, 0, 1), "no block is requested before a client waits");
    pool_wait (&p, &a);
    ok (come (&p, 10) == 1 && pool_wants (&p) == 0 && pool_next (&p, 10, &ids) == &a && ids[0] == 100,
        "the first client gets a block of one id");
    pool_wait (&p, &a);
    pool_wait (&p, &b);
    ok (!pool_take (&p, 20, 1), "the request of a new client does not overtake waiting clients");
    ok (come (&p, 20) == 4 && pool_next (&p, 20, &ids) == &a && ids[0] == 101 && pool_next (&p, 20, &ids) == &b
            && ids[0] == 102 && ids[2] == 104 && !pool_next (&p, 20, &ids),
        "one block of ids is requested for all waiting clients");
}

/* A client that waits for each answer gets increasing ids, although the ids of large answers do not come from the pool.
 */
static void test_passed (void)
{
    struct pool p;
    struct pool_client c = { .n = 1 };
    fluid_t ids[64], more[64];
    const fluid_t *got;

    pool_init (&p);
    for (fluid_t i = 0; i < 64; i++) {
        ids[i] = 1000 + i;
        more[i] = 2000 + i;
    }
    pool_came (&p, 0, ids, 64);
    ok ((got = pool_take (&p, 1, 1)) && *got == 1000, "a client gets prefetched ids without a request");
    pool_pass (&p, 1040);
    ok ((got = pool_take (&p, 2, 1)) && *got == 1041, "no id is given out below an id that a client got by message");
    pool_pass (&p, 1500);
    ok (!pool_take (&p, 3, 1), "prefetched ids below an id that a client got by message are dropped");
    pool_wait (&p, &c);
    ok (pool_wants (&p) > 0, "after prefetched ids were dropped a new block is requested");
    pool_came (&p, 4, ids, 64);
    ok (!pool_next (&p, 4, &got), "a block that arrives with ids below an id got by message is dropped");
    pool_wants (&p);
    pool_came (&p, 5, more, 64);
    ok (pool_next (&p, 5, &got) == &c && *got == 2000,
        "after a block was dropped a waiting client gets ids of the next block");
    pool_came (&p, 6, ids, 64);
    pool_pass (&p, 1000);
    ok ((got = pool_take (&p, 7, 2)) && *got == 2001,
        "a lower id got by message does not lower the bound for prefetched ids");
}

static void test_growth (void)
{
    struct pool p;
    struct pool_client c = { .n = 1 };
    const fluid_t *ids;
    fluid_t last = 0;
    bool ordered = true;
    unsigned messages = 0;

    next_id = 1;
    pool_init (&p);
    for (unsigned i = 0; i < 100000; i++) {
        if (!(ids = pool_take (&p, i, 1))) {
            pool_wait (&p, &c);
            messages += come (&p, i) > 0;
            ordered = ordered && pool_next (&p, i, &ids) == &c;
        }
        ordered = ordered && ids[0] > last;
        last = ids[0];
    }
    ok (ordered && last == 100000, "prefetched ids are given out in order, without gaps");
    ok (messages < 50, "a client with frequent requests needs few messages (%u)", messages);
}

static void test_age (void)
{
    struct pool p;
    struct pool_client c = { .n = 1 };
    const fluid_t *ids;

    next_id = 1;
    pool_init (&p);
    p.block = 64;
    pool_wait (&p, &c);
    ok (come (&p, 0) == 64 && pool_next (&p, 0, &ids) == &c && pool_take (&p, POOL_AGE_US, 1),
        "prefetched ids below the age limit are given out");
    ok (!pool_take (&p, POOL_AGE_US + 1, 1), "prefetched ids above the age limit are not given out");
    pool_wait (&p, &c);
    ok (come (&p, POOL_AGE_US + 2) == 32 && pool_next (&p, POOL_AGE_US + 2, &ids) == &c && ids[0] == 65,
        "after prefetched ids have expired the next block is smaller");
}

static void test_failure (void)
{
    struct pool p;
    struct pool_client a = { .n = 1 }, b = { .n = 2 };
    const fluid_t *ids;

    pool_init (&p);
    pool_wait (&p, &a);
    pool_wait (&p, &b);
    ok (pool_wants (&p) == 3, "one block for all waiting clients is requested");
    pool_came (&p, 0, NULL, 3);
    ok (!pool_next (&p, 0, &ids) && pool_drop (&p) == &a && pool_drop (&p) == &b && !pool_drop (&p) && p.missing == 0
            && pool_wants (&p) == 0,
        "if the request for a block fails, waiting clients get an error");
}

/* A client repeatedly wants more ids than remain. */
static void test_rest (void)
{
    struct pool p;
    struct pool_client c = { .n = 256 };
    const fluid_t *ids;
    fluid_t last = 0;
    bool good = true;

    next_id = 1;
    pool_init (&p);
    p.block = POOL_MAX_BLOCK - 1;
    for (unsigned i = 0; i < 1000; i++) {
        if (!(ids = pool_take (&p, i, 256))) {
            pool_wait (&p, &c);
            come (&p, i);
            good = good && pool_next (&p, i, &ids) == &c;
        }
        good = good && ids[0] == last + 1 && ids[255] == last + 256;
        last = good ? ids[255] : last;
    }
    ok (good, "ids left in a block are given out before the ids of the next block, and no id is lost");
}

/* The next block is requested while ids of the current block remain. */
static void test_ahead (void)
{
    struct pool p;
    const fluid_t *ids = NULL;
    fluid_t last = 0;
    unsigned waits = 0, under_way = 0;
    bool good = true;

    next_id = 1;
    pool_init (&p);
    p.block = POOL_AHEAD;
    struct pool_client c = { .n = 1 };
    pool_wait (&p, &c);
    good = come (&p, 0) == POOL_AHEAD && pool_next (&p, 0, &ids) == &c;
    last = ids[0];
    for (unsigned i = 1; i < 100000 && good; i++) {
        if ((ids = pool_take (&p, i, 1))) {
            good = ids[0] == last + 1;
            last = ids[0];
        }
        else
            waits++;
        under_way = p.asked ? under_way + 1 : 0;
        if (under_way == 20
            || (!p.asked && pool_wants (&p) > 0
                && ++under_way > 20)) { /* the block arrives 20 requests after it was requested */
            static fluid_t block[POOL_MAX_BLOCK];
            uint32_t n = p.block;

            for (uint32_t k = 0; k < n; k++)
                block[k] = next_id++;
            pool_came (&p, i, block, n);
        }
    }
    ok (good && waits == 0 && last == 100000,
        "with large blocks no client waits for the next block, and all ids are in order");
    while (pool_take (&p, 100000, 1))
        ;
    (void)pool_wants (&p);
    pool_came (&p, 100000, NULL, 0);
    ok (pool_wants (&p) == 0, "after a failed request for a block, no block is requested before a client waits");
}

int main (void)
{
    test_ahead ();
    test_few ();
    test_passed ();
    test_growth ();
    test_age ();
    test_failure ();
    test_rest ();
    return done_testing ();
}
