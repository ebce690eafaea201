/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_block_test.c - ids are available when they are needed, not too old, and in order */
#include <errno.h>

#include "test/tap.h"
#include "modules/ingest/node/entry.h"

#define NOW UINT64_C (1000000)

static bool fill (struct job_block *b, uint64_t first, uint32_t count)
{
    return job_block_filled (b, &(struct job_block_run){ first, count }, 1) == 0;
}

static void test_take (void)
{
    static const struct job_block_run runs[] = { { 100, 2 }, { 200, 1 } };
    struct job_block b;

    job_block_init (&b);
    ok (job_block_take (&b, NOW) == 0, "a new block has no ids");
    ok (job_block_ask (&b, NOW, 0) == 0, "without waiting jobs no ids are requested");
    ok (job_block_ask (&b, NOW, 1) == JOB_BLOCK_MIN_IDS, "for one waiting job a small block of ids is requested");
    ok (job_block_ask (&b, NOW, 5) == 0, "while a request for ids is under way no other is made");
    ok (job_block_filled (&b, runs, 2) == 0, "a response to a request for ids may have two runs");
    ok (job_block_take (&b, NOW) == 100 && job_block_take (&b, NOW) == 101 && job_block_take (&b, NOW) == 200
            && job_block_take (&b, NOW) == 0,
        "ids are taken from the runs in order, until the runs are used up");
    ok (job_block_ask (&b, NOW + 50, 3000) == 3000, "a request for ids is for at least as many as are wanted");
    ok (fill (&b, 300, 3000) && job_block_ask (&b, NOW + 50, 2000) == 0,
        "if enough ids are available no request is made");
    ok (job_block_ask (&b, NOW + 50, 100000) == JOB_BLOCK_MAX_IDS,
        "a request for ids is for at most JOB_BLOCK_MAX_IDS");
    job_block_fini (&b);
}

static void test_age (void)
{
    struct job_block b;

    job_block_init (&b);
    (void)job_block_ask (&b, NOW, 20);
    ok (fill (&b, 100, 20) && job_block_take (&b, NOW + JOB_BLOCK_MAX_AGE_MS) == 100,
        "an id may be JOB_BLOCK_MAX_AGE_MS old");
    (void)job_block_ask (&b, NOW + JOB_BLOCK_MAX_AGE_MS - 10, 100);
    ok (fill (&b, 200, 100) && job_block_take (&b, NOW + JOB_BLOCK_MAX_AGE_MS) == 101,
        "ids of an older block are taken first");
    ok (job_block_take (&b, NOW + JOB_BLOCK_MAX_AGE_MS + 1) == 200, "ids of a block that is too old are skipped");
    ok (job_block_take (&b, NOW + 2 * JOB_BLOCK_MAX_AGE_MS) == 0, "when all blocks are too old no id is available");
    ok (job_block_ask (&b, NOW + 900, 0) == 0, "after little use ids are not requested in advance");
    job_block_fini (&b);
}

static void test_order (void)
{
    static const struct job_block_run bad[] = { { 300, 5 }, { 304, 1 } };
    struct job_block b;

    job_block_init (&b);
    (void)job_block_ask (&b, NOW, 10);
    ok (fill (&b, 100, 16), "a block of ids is received");
    job_block_drop (&b);
    ok (job_block_take (&b, NOW) == 0, "job_block_drop () throws the received ids away");
    ok (job_block_ask (&b, NOW, 1) > 0 && !fill (&b, 115, 5) && errno == EPROTO,
        "a response with a run that is not above the ids received before is refused");
    ok (job_block_ask (&b, NOW + JOB_BLOCK_PAUSE_MS, 1) > 0 && job_block_filled (&b, bad, 2) < 0 && errno == EPROTO,
        "a response with runs that overlap is refused");
    ok (job_block_ask (&b, NOW + 2 * JOB_BLOCK_PAUSE_MS, 1) > 0 && !fill (&b, UINT64_MAX, 2),
        "a response with a run beyond the largest id is refused");
    ok (job_block_ask (&b, NOW + 3 * JOB_BLOCK_PAUSE_MS, 1) > 0 && !fill (&b, 400, 0),
        "a response with an empty run is refused");
    ok (job_block_take (&b, NOW + 3 * JOB_BLOCK_PAUSE_MS) == 0, "no id of a refused response is available");
    ok (job_block_ask (&b, NOW + 4 * JOB_BLOCK_PAUSE_MS, 1) > 0 && fill (&b, 116, 5)
            && job_block_take (&b, NOW + 200) == 116,
        "a response with a run above the ids received before is accepted");
    job_block_fini (&b);
}

static void test_failed (void)
{
    struct job_block b;

    job_block_init (&b);
    (void)job_block_ask (&b, NOW, 1);
    ok (job_block_due (&b) == UINT64_MAX, "while a request for ids is under way the block has no deadline");
    job_block_failed (&b);
    ok (job_block_due (&b) == NOW + JOB_BLOCK_PAUSE_MS && job_block_ask (&b, NOW + JOB_BLOCK_PAUSE_MS - 1, 1) == 0,
        "after a failed request for ids there is a pause");
    ok (job_block_ask (&b, NOW + JOB_BLOCK_PAUSE_MS, 1) > 0 && job_block_due (&b) == UINT64_MAX,
        "after the pause the next request for ids is made");
    job_block_failed (&b);
    ok (job_block_ask (&b, NOW + 500, 0) == 0 && job_block_due (&b) == UINT64_MAX,
        "after the pause no request is made if no ids are wanted");
    job_block_fini (&b);
}

/* Take 'rate' ids each millisecond for a second; a request takes 1 ms. Returns the number of requests, and in
 * '*without' how often no id was available.
 */
static unsigned use (struct job_block *b, uint64_t from_ms, unsigned rate, unsigned *without)
{
    static uint64_t next = 1000;
    unsigned asked = 0;

    *without = 0;
    for (uint64_t now = from_ms; now < from_ms + 1000; now++) {
        unsigned missing = 0;

        for (unsigned i = 0; i < rate; i++)
            missing += job_block_take (b, now) == 0;
        *without += missing;
        uint32_t n = job_block_ask (b, now, missing);
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
    struct job_block b;
    unsigned without, asked;

    job_block_init (&b);
    asked = use (&b, NOW, 50, &without);
    ok (asked < 60 && without < 200, "50,000 ids need %u requests, and %u jobs wait", asked, without);
    ok (b.size >= 1024, "under load the blocks of ids are large (%u)", b.size);
    asked = use (&b, NOW + 1000, 50, &without);
    ok (asked <= 50 && without == 0, "50,000 more ids need %u requests, and %u jobs wait", asked, without);
    (void)job_block_take (&b, NOW + 5000);
    ok (job_block_ask (&b, NOW + 5000, 1) == JOB_BLOCK_MIN_IDS,
        "after some time without jobs the blocks of ids are small again");
    job_block_fini (&b);
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
