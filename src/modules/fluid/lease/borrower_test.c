/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* borrower_test.c - a borrower keeps its promises, accepts only the answer to its newest request, and asks in time */
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/borrower.h"

#define ME "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define TERM 1000
#define MS UINT64_C (1000)

static struct share_want want;

static void asks (struct borrower *b, uint64_t now_ms, uint32_t size, uint64_t low_ms)
{
    borrower_ask (b, now_ms * MS, now_ms, size, low_ms, &want);
}

static struct share share_of (uint64_t number, uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    struct share s = { .incarnation = ME,
                       .number = number,
                       .generator = 7,
                       .granules = granules,
                       .range = { lo_ms, hi_ms },
                       .use_ms = 1250 };
    return s;
}

static bool takes (struct borrower *b, uint64_t now_ms, const struct share *s)
{
    return borrower_take (b, now_ms * MS, now_ms, s);
}

static bool gets (struct borrower *b, uint64_t now_ms, uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    struct share s = share_of (b->want.number, granules, lo_ms, hi_ms);

    return takes (b, now_ms, &s);
}

/* The granules that it may use at 'now_ms'; 0: none. */
static uint64_t at (const struct borrower *b, uint64_t now_ms)
{
    struct area a;

    return borrower_area (b, now_ms * MS, now_ms, &a) ? a.granules : 0;
}

static uint64_t due_ms (const struct borrower *b, uint64_t now_ms, uint32_t size)
{
    uint64_t us = borrower_due (b, now_ms * MS, now_ms, size);

    return us == UINT64_MAX ? us : us / MS;
}

static void test_answers (void)
{
    struct borrower b;

    borrower_init (&b, ME, TERM);
    ok (at (&b, 10) == 0 && borrower_end (&b) == 0 && due_ms (&b, 10, 0) == UINT64_MAX && due_ms (&b, 10, 16) == 10,
        "a rank that needs a sublease and has none requests one immediately");
    asks (&b, 10, 32, 5);
    ok (want.number == 1 && want.size == 32 && want.end_ms == 5 && strcmp (want.incarnation, ME) == 0,
        "the first request of a borrower has number 1");
    asks (&b, 20, 32, 8);
    ok (want.number == 1 && want.end_ms == 5, "a request without an answer is repeated unchanged");
    struct share other = share_of (1, 3, 30, 1000);
    other.incarnation[0] = 'b';
    ok (!takes (&b, 20, &other) && !gets (&b, 20, 5, 30, 1000) && at (&b, 40) == 0,
        "a borrower ignores an answer with another number than its request");
    asks (&b, 21, 32, 8);
    ok (want.number == 2, "a borrower ignores an invalid grant, and makes a new request");
    struct share first = share_of (1, 3, 30, 1000);
    ok (!takes (&b, 22, &first) && gets (&b, 22, 3, 30, 1000), "a borrower ignores an answer to an earlier request");
    ok (at (&b, 29) == 0 && at (&b, 30) == 3 && at (&b, 999) == 3 && at (&b, 1000) == 0,
        "a borrower uses the grant for its newest request inside the granted range");
    first.number = 2;
    ok (!takes (&b, 23, &first), "a borrower accepts a grant only once");
}

static bool refuses (struct share s)
{
    struct borrower b;

    borrower_init (&b, ME, TERM);
    asks (&b, 10, 32, 5);
    return !takes (&b, 20, &s) && at (&b, 40) == 0;
}

static void test_unsound (void)
{
    struct share s = share_of (1, 3, 30, 1000);

    ok (refuses (share_of (1, 0, 30, 1000)) && refuses (share_of (1, 6, 30, 1000))
            && refuses (share_of (1, 15, 30, 1000)),
        "a borrower refuses a grant of no granules, of granules that are no aligned run, and of more than it "
        "requested");
    ok (refuses (share_of (1, 3, 30, 30)) && refuses (share_of (1, 3, 30, FLUID_TIMESTAMP_MAX + 2)),
        "a borrower refuses a grant with an invalid range");
    s.generator = FLUID_GENERATOR_MAX + 1;
    ok (refuses (s), "a borrower refuses a grant with an invalid generator");
    s = share_of (1, 3, 5, 20);
    ok (refuses (s), "a borrower refuses a grant whose range has passed");
    s = share_of (1, 3, 30, 1000);
    s.use_ms = 10;
    ok (refuses (s), "a borrower refuses a grant whose time of use is over");
}

static void test_use (void)
{
    struct borrower b;

    borrower_init (&b, ME, TERM);
    asks (&b, 10, 32, 5);
    asks (&b, 400, 32, 5);
    gets (&b, 500, 3, 30, 5000);
    ok (at (&b, 1259) == 3 && at (&b, 1260) == 0,
        "the time of use of a sublease begins when the request was first sent");
    borrower_lost_time (&b, 100 * MS);
    ok (at (&b, 1159) == 3 && at (&b, 1160) == 0,
        "time that the borrower's clock missed shortens the time of use of a sublease");
    asks (&b, 1200, 32, 600);
    borrower_lost_time (&b, 200 * MS);
    gets (&b, 1201, 3, 30, 9000);
    ok (at (&b, 2249) == 3 && at (&b, 2250) == 0,
        "time missed while a request is under way shortens the time of use of the sublease that it gets");
}

static void test_renewal (void)
{
    struct borrower b;

    borrower_init (&b, ME, TERM);
    asks (&b, 10, 32, 5);
    gets (&b, 20, 3, 30, 1020);
    ok (due_ms (&b, 100, 32) == 520, "the renewal of a sublease is due half a term before its end");
    asks (&b, 520, 32, 400);
    ok (want.number == 2 && want.end_ms == 1020 && at (&b, 900) == 3,
        "a request for a renewal does not end the present sublease earlier");
    ok (gets (&b, 530, 3, 30, 1520) && b.nareas == 1 && at (&b, 1519) == 3,
        "a renewed sublease of the same granules replaces the shorter one");
    asks (&b, 1030, 32, 400);
    ok (gets (&b, 1030, 12, 1600, 2000) && at (&b, 1519) == 3 && at (&b, 1550) == 0 && at (&b, 1600) == 12,
        "a sublease of other granules is used from its begin on");
    asks (&b, 1040, 32, 400);
    ok (gets (&b, 1050, 48, 1100, 2000) && at (&b, 1099) == 0 && at (&b, 1100) == 48 && at (&b, 1700) == 48
            && b.nareas == 2,
        "a borrower keeps two subleases: of three, it drops the oldest and uses the newest");
}

static void test_size (void)
{
    struct borrower b;

    borrower_init (&b, ME, TERM);
    asks (&b, 10, 32, 5);
    gets (&b, 20, 3, 30, 1020);
    ok (due_ms (&b, 50, 64) == 120, "a sublease of another size is requested only after a pause");
    asks (&b, 120, 64, 100);
    ok (want.number == 2 && want.size == 64 && want.end_ms == 120 + BORROWER_SWITCH_MS,
        "a request for another size promises that the present sublease ends soon");
    ok (at (&b, want.end_ms - 1) == 3 && at (&b, want.end_ms) == 0,
        "the present sublease is used until its promised end");
    ok (gets (&b, 130, 15, 170, 1200) && at (&b, 169) == 3 && at (&b, 170) == 15,
        "the sublease of another size is used after the promised end");
    asks (&b, 500, 128, 1500);
    ok (want.end_ms == 1500 && at (&b, 600) == 15,
        "the promised end is not below any id that was made or granted to others");
}

static void test_return (void)
{
    struct borrower b;

    borrower_init (&b, ME, TERM);
    ok (!borrower_close (&b, 5, 0, &want),
        "a borrower that has neither a sublease nor a request has nothing to return");
    asks (&b, 10, 32, 5);
    ok (want.number == 2 && borrower_close (&b, 7, 0, &want) && want.number == 3 && want.size == 0 && want.end_ms == 7,
        "a borrower that stops while a request is under way revokes the request");
    ok (!gets (&b, 11, 3, 30, 1020), "a borrower that has revoked its request ignores the answer");
    asks (&b, 20, 32, 5);
    gets (&b, 20, 3, 30, 1020);
    ok (due_ms (&b, 100, 0) == 100 && borrower_close (&b, 90, 33, &want) && want.end_ms == 90 && want.left_ms == 33,
        "a sublease that is no longer needed is returned immediately, with the time for which the rank's own "
        "borrowers still use it");
    ok (at (&b, 50) == 0 && due_ms (&b, 100, 0) == UINT64_MAX, "a borrower uses nothing of a returned sublease");
}

/* Repeat a request until the pauses are long: each is twice the last one, plus up to a quarter. */
static bool pauses_grow (struct borrower *b, uint64_t *now_ms, uint64_t most_ms)
{
    uint64_t least_ms = 100;

    for (int i = 0; i < 20; i++) {
        asks (b, *now_ms, 16, 5);
        borrower_missed (b, *now_ms * MS, 10);
        uint64_t pause_ms = due_ms (b, *now_ms, 16) - *now_ms;
        if (pause_ms < least_ms || pause_ms > least_ms + least_ms / 4)
            return false;
        least_ms = 2 * least_ms < most_ms ? 2 * least_ms : most_ms;
        *now_ms += pause_ms;
    }
    return true;
}

static void test_pauses (void)
{
    struct borrower b;
    uint64_t now_ms = 1000;

    borrower_init (&b, ME, 15000);
    ok (pauses_grow (&b, &now_ms, 15000) && b.want.number > 1,
        "a request without an answer is repeated, with pauses that grow up to a term");
    borrower_init (&b, ME, 1000000);
    ok (pauses_grow (&b, &now_ms, 30000) && b.want.number == 1,
        "a repeated request keeps its number as long as the answer would be useful");
    borrower_missed (&b, now_ms * MS, UINT64_MAX);
    ok (due_ms (&b, now_ms, 16) <= now_ms + 37500, "a pause is limited even if the parent's retry_ms is longer");
    borrower_refused (&b);
    ok (due_ms (&b, now_ms, 16) == UINT64_MAX,
        "a borrower sends no further request to a parent that grants no subleases");
    borrower_moved (&b, now_ms * MS);
    ok (due_ms (&b, now_ms, 16) == now_ms, "a borrower requests a sublease from a new parent immediately");
    now_ms += 1000000;
    asks (&b, now_ms, 16, 5);
    ok (b.want.number == 2, "a request that is a term old is replaced by a new one with another number");
    gets (&b, now_ms, 1, now_ms, now_ms + 1000000);
    borrower_missed (&b, now_ms * MS, 700);
    ok (due_ms (&b, now_ms, 32) >= now_ms + 700, "a borrower waits at least the retry_ms that its parent sent");
    borrower_moved (&b, now_ms * MS);
    ok (due_ms (&b, now_ms + 1, 16) == now_ms + 1 && at (&b, now_ms) == 1,
        "a borrower with a new parent requests a sublease immediately, and uses its present one meanwhile");
}

int main (void)
{
    test_answers ();
    test_unsound ();
    test_use ();
    test_renewal ();
    test_size ();
    test_return ();
    test_pauses ();
    return done_testing ();
}
