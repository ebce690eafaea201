/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease_test.c - ranges of one generator are disjoint, for requests of any incarnation, in any order, and across
 * restarts
 */
#include <string.h>

#include <idtree/fluid.h>

#include "test/tap.h"
#include "modules/fluid/lease/lease.h"

#define A "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define B "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define C "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
#define D "dddddddd-dddd-4ddd-8ddd-dddddddddddd"

static struct lease_want want (const char *who, uint64_t number)
{
    struct lease_want w = { .generator = 3, .number = number };

    strcpy (w.incarnation, who);
    return w;
}

static struct lease_back back (const char *who, uint64_t end_ms)
{
    struct lease_back b = { .generator = 3, .end_ms = end_ms };

    strcpy (b.incarnation, who);
    return b;
}

static bool gives (struct lease_table *t, uint64_t now, const char *who, uint64_t number, uint64_t lo, uint64_t hi)
{
    struct lease_want w = want (who, number);
    struct lease_grant g;

    return lease_grant (t, now, &w, &g) && g.lo_ms == lo && g.hi_ms == hi && g.number == number && g.generator == 3
           && strcmp (g.incarnation, who) == 0;
}

static bool denies (struct lease_table *t, uint64_t now, const char *who, uint64_t number)
{
    struct lease_want w = want (who, number);
    struct lease_grant g;

    return !lease_grant (t, now, &w, &g);
}

static void test_grants (void)
{
    struct lease_table *t = lease_table_create (5, 60, 1000);
    struct lease_want w = want (A, 1);
    struct lease_grant g;

    ok (denies (t, 1000, A, 1), "the root grants no range above the durable horizon");
    lease_stored (t, 1120);
    ok (gives (t, 1010, A, 1, 1000, 1070),
        "the first range begins at the horizon of the start, and ends one lease after now");
    ok (gives (t, 1050, A, 1, 1000, 1070), "a repeated request gets the same range");
    ok (gives (t, 1050, B, 1, 1070, 1110), "another incarnation gets a range of its own");
    ok (gives (t, 1055, A, 1, 1110, 1115),
        "a repeated request of the first incarnation, after another was granted a range, gets a new range");
    ok (denies (t, 1055, A, 2), "an empty range is not granted");
    ok (gives (t, 1056, A, 2, 1115, 1116) && denies (t, 1058, A, 1),
        "a lease request with a number below the last one is granted nothing");
    ok (gives (t, 1090, A, 3, 1116, 1120), "a range ends at the horizon at the latest");
    w.generator = 5;
    ok (!lease_grant (t, 1090, &w, &g), "a lease request for a generator above the table is refused");
    w = want (A, 1);
    w.incarnation[0] = '\0';
    ok (!lease_grant (t, 1090, &w, &g), "a lease request without an incarnation is refused");
    free (t);

    t = lease_table_create (5, 60, FLUID_TIMESTAMP_MAX - 5);
    lease_stored (t, FLUID_TIMESTAMP_MAX + 100);
    ok (gives (t, FLUID_TIMESTAMP_MAX - 5, A, 1, FLUID_TIMESTAMP_MAX - 5, FLUID_TIMESTAMP_MAX + 1)
            && denies (t, FLUID_TIMESTAMP_MAX + 9, A, 2),
        "no range above the last timestamp is granted");
    free (t);
}

static void test_back (void)
{
    struct lease_table *t = lease_table_create (5, 60, 0);
    struct lease_back b;

    lease_stored (t, 1000);
    gives (t, 100, A, 1, 0, 160);
    gives (t, 110, B, 1, 160, 170);
    b = back (A, 120);
    ok (!lease_give_back (t, &b), "a return is accepted only from the incarnation that holds the last range");
    b = back (B, 170);
    ok (!lease_give_back (t, &b), "a return at the end of the range itself is not accepted");
    b = back (B, 165);
    ok (lease_give_back (t, &b) && !lease_give_back (t, &b), "the rest of a range is taken back only once");
    ok (denies (t, 120, B, 1) && denies (t, 120, B, 2),
        "requests of an incarnation that arrive after its return are refused");
    gives (t, 120, C, 1, 165, 180);
    b = back (C, 150);
    ok (lease_give_back (t, &b) && gives (t, 130, A, 2, 165, 190),
        "a return at a time before the begin of the range takes back only the range");
    free (t);
}

/* Ranges that were granted to one incarnation in a row are returned as one. */
static void test_back_of_a_row (void)
{
    struct lease_table *t = lease_table_create (5, 60, 0);
    struct lease_back b;

    lease_stored (t, 1000);
    gives (t, 100, A, 1, 0, 160);
    gives (t, 120, A, 2, 160, 180);
    gives (t, 140, A, 3, 180, 200);
    b = back (A, 145);
    ok (lease_give_back (t, &b) && gives (t, 145, B, 1, 145, 205),
        "the rest of three ranges in a row of one incarnation is returned together");
    gives (t, 150, C, 1, 205, 210);
    gives (t, 160, B, 2, 210, 220);
    b = back (B, 170);
    ok (lease_give_back (t, &b) && gives (t, 170, D, 1, 210, 230),
        "a return takes back nothing below a range of another incarnation");
    lease_raise (t, 240);
    gives (t, 190, D, 2, 240, 250);
    b = back (D, 215);
    ok (lease_give_back (t, &b) && gives (t, 195, C, 2, 240, 255),
        "a return takes back nothing below a gap that was never granted");
    free (t);
}

static void test_save (void)
{
    struct lease_table *t = lease_table_create (5, 60, 40), *next = lease_table_create (5, 60, 170);
    char data[4096];

    lease_stored (t, 1000);
    gives (t, 100, A, 1, 40, 160);
    gives (t, 110, B, 3, 160, 170);
    size_t size = lease_save_size (t);
    lease_save (t, data);
    ok (size < 1000 && lease_load (next, data, size - 1) < 0 && lease_load (next, data, sizeof (data)) < 0
            && lease_load (next, data, size) == 0,
        "a saved table is loaded completely, and a truncated one is refused");
    ok (gives (next, 120, B, 3, 160, 170) && denies (next, 120, B, 2),
        "with a loaded table a repeated request gets the grant of the former table, and an old number gets nothing");
    lease_stored (next, 1000);
    ok (gives (next, 120, A, 2, 170, 180), "with a loaded table new ranges begin above all earlier ones");
    lease_reopen (next, want (A, 1).generator, 200);
    ok (gives (next, 130, A, 3, 180, 190), "reopening a generator at a time above its last end changes nothing");
    lease_reopen (next, want (A, 1).generator, 150);
    ok (gives (next, 130, B, 4, 150, 190),
        "after a generator was reopened at a time, ranges are granted from that time on");
    free (next);
    free (t);
}

static void test_horizon (void)
{
    struct lease_table *t = lease_table_create (5, 60, 0);
    uint64_t h = 0;

    ok (lease_must_store (t, 100, &h) && h == 220, "the horizon is first raised to two leases from now");
    ok (!lease_must_store (t, 100, &h) && lease_next_store (t) == UINT64_MAX,
        "while a store is under way no further store is requested");
    lease_store_failed (t);
    ok (lease_must_store (t, 101, &h) && h == 221, "a store is requested again after a failure");
    lease_stored (t, h);
    ok (lease_next_store (t) == 132 && !lease_must_store (t, 131, &h) && lease_must_store (t, 132, &h),
        "the horizon is raised when it is less than one and a half leases away");
    ok (gives (t, 170, A, 1, 0, 221), "until a higher horizon is stored, ranges end at the durable horizon");
    ok (lease_close (t) == 221 && denies (t, 180, A, 2) && denies (t, 170, A, 1), "a closed table grants nothing");
    free (t);

    t = lease_table_create (5, 60, 500);
    ok (lease_close (t) == 500, "a stop without grants stores the horizon of the start");
    free (t);
}

static void test_end_of_time (void)
{
    const uint64_t end = UINT64_C (1) << 40;
    struct lease_table *t = lease_table_create (5, 60, end - 1000);
    uint64_t horizon = 0;

    ok (lease_must_store (t, end - 119, &horizon) && horizon == end, "no horizon above the end of time is stored");
    lease_stored (t, horizon);
    ok (!lease_must_store (t, end - 1, &horizon) && !lease_must_store (t, end + 1000, &horizon)
            && lease_next_store (t) == UINT64_MAX,
        "when the horizon is at the end of time, no further store is requested");
    ok (gives (t, end - 1, A, 1, end - 1000, end) && denies (t, end + 5, A, 2),
        "no range above the end of time is granted");
    ok (lease_close (t) == end, "a clean stop stores no horizon above the end of time");
    free (t);

    t = lease_table_create (5, 60, end);
    ok (!lease_must_store (t, end, &horizon) && denies (t, end, A, 1),
        "a root that starts at the end of time grants nothing and stores nothing");
    free (t);
}

static void test_raise (void)
{
    struct lease_table *t = lease_table_create (5, 60, 0);

    lease_stored (t, 1000);
    lease_raise (t, 90);
    ok (gives (t, 100, A, 1, 90, 160), "no range begins below a published watermark");
    lease_raise (t, 80);
    lease_raise (t, 170);
    ok (gives (t, 150, A, 1, 90, 160) && denies (t, 110, B, 1) && gives (t, 150, B, 1, 170, 210),
        "after the watermark rose, a repeated request gets the same range as before, and a new request gets a range "
        "above");
    lease_raise (t, 900);
    ok (lease_close (t) == 900, "a clean stop stores a horizon that is not below a published watermark");
    free (t);
}

static void test_foreign_lease (void)
{
    struct lease_table *t = lease_table_create (5, 60, 500);
    struct lease_want w = want (A, 7);
    struct lease_grant g;

    lease_stored (t, 1000);
    w.have_hi_ms = 1000;
    ok (lease_grant (t, 600, &w, &g) && !t->fenced_by_foreign,
        "a rank that reports a lease up to the durable horizon got that lease from this root");
    w.number++;
    w.have_hi_ms = 1001;
    ok (!lease_grant (t, 700, &w, &g) && t->fenced_by_foreign && denies (t, 800, B, 1),
        "a rank that reports a lease above the durable horizon makes the root stop all grants");
    free (t);
}

/* --- all histories of a small world ------------------------------------------------------------- */

/* A root with crashes and clean stops, and three lives that request one generator. Each sequence of DEPTH events is
 * played. Answers may arrive at any later time or never, so a grant counts as used immediately. The disk is written
 * immediately or, in crashes, before the answer.
 */
#define DEPTH 7
#define LIVES 3
#define TIMES 64

struct world {
    struct lease_table *t;
    uint64_t disk, now;
    int owner[TIMES]; /* the life that may make ids of this millisecond */
    uint64_t number[LIVES], lo[LIVES], hi[LIVES];
    bool closed[LIVES];
    int overlaps;
};

enum {
    EV_TIME,
    EV_STORE,
    EV_CRASH,
    EV_STOP,
    EV_WANT,
    EV_RETRY = EV_WANT + LIVES,
    EV_BACK = EV_RETRY + LIVES,
    EV_COUNT = EV_BACK + LIVES
};

static const char *const names[LIVES] = { A, B, "cccccccc-cccc-4ccc-8ccc-cccccccccccc" };

static void mark (struct world *w, int life, const struct lease_grant *g)
{
    for (uint64_t t = g->lo_ms; t < g->hi_ms; t++) {
        if (w->owner[t] != 0 && w->owner[t] != life + 1)
            w->overlaps++;
        w->owner[t] = life + 1;
    }
}

static void ask (struct world *w, int life, uint64_t number)
{
    struct lease_want q = want (names[life], number);
    struct lease_grant g;

    if (number == 0 || !lease_grant (w->t, w->now, &q, &g))
        return;
    if (g.hi_ms > w->disk)
        w->overlaps++;
    if (g.lo_ms != w->hi[life]
        && g.hi_ms != w->hi[life]) /* adjacent ranges are joined; a repeated answer changes nothing */
        w->lo[life] = g.lo_ms;
    w->hi[life] = g.hi_ms;
    if (!w->closed[life])
        mark (w, life, &g);
}

/* The life closes: it used all but the last seven milliseconds, which belong to more than one range. */
static void give_back (struct world *w, int life)
{
    struct lease_back b;

    if (w->hi[life] == 0)
        return;
    if (!w->closed[life]) {
        uint64_t end = w->hi[life] > w->lo[life] + 7 ? w->hi[life] - 7 : w->lo[life];
        for (uint64_t t = end; t < w->hi[life]; t++)
            w->owner[t] = 0;
        w->hi[life] = end;
        w->closed[life] = true;
    }
    b = back (names[life], w->hi[life]);
    lease_give_back (w->t, &b);
}

static void restart (struct world *w, uint64_t horizon)
{
    free (w->t);
    w->disk = horizon;
    w->t = lease_table_create (5, 4, horizon);
    if (w->now < horizon)
        w->now = horizon;
}

static void play (struct world *w, int event)
{
    uint64_t h;

    if (event == EV_TIME)
        w->now += 3;
    else if (event == EV_STORE && lease_must_store (w->t, w->now, &h)) {
        w->disk = h;
        lease_stored (w->t, h);
    }
    else if (event == EV_CRASH)
        restart (w, w->disk);
    else if (event == EV_STOP)
        restart (w, lease_close (w->t));
    else if (event >= EV_BACK)
        give_back (w, event - EV_BACK);
    else if (event >= EV_RETRY)
        ask (w, event - EV_RETRY, w->number[event - EV_RETRY]);
    else if (event >= EV_WANT)
        ask (w, event - EV_WANT, ++w->number[event - EV_WANT]);
}

static void test_all (void)
{
    long histories = 1, overlaps = 0;

    for (int i = 0; i < DEPTH - 1; i++)
        histories *= EV_COUNT;
    for (long history = 0; history < histories; history++) {
        struct world w = { .t = lease_table_create (5, 4, 0) };

        play (&w, EV_STORE); /* if nothing could be granted, the event is free */
        for (long h = history, i = 0; i < DEPTH - 1; i++, h /= EV_COUNT)
            play (&w, h % EV_COUNT);
        overlaps += w.overlaps;
        free (w.t);
    }
    ok (overlaps == 0, "in all %ld histories of %d events no two lives may make ids of the same millisecond", histories,
        DEPTH);
}

static void test_random (void)
{
    uint64_t seed = 1;
    long overlaps = 0;

    for (int run = 0; run < 20000; run++) {
        struct world w = { .t = lease_table_create (5, 4, 0) };

        while (w.now < TIMES - 16) {
            seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407;
            play (&w, (seed >> 33) % EV_COUNT);
        }
        overlaps += w.overlaps;
        free (w.t);
    }
    ok (overlaps == 0, "in 20000 long random histories no two lives may make ids of the same millisecond");
}

int main (void)
{
    test_grants ();
    test_back ();
    test_back_of_a_row ();
    test_save ();
    test_horizon ();
    test_end_of_time ();
    test_raise ();
    test_foreign_lease ();
    test_all ();
    test_random ();
    return done_testing ();
}
