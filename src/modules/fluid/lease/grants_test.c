/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* grants_test.c - a box is granted to one holder, inside of what the granter holds, in any order and across restarts
 *
 * Whole generators come first, then parts, then time for other kinds of ids.
 */
#include <stdio.h>
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/grants.h"
#include "test/failing_alloc.h"

#define A "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define B "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define C "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
#define D "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
#define MS UINT64_C (1000)
#define NEVER UINT64_MAX

/* --- whole generators ------------------------------------------------------------------------------------ */

#define RANK 3
#define GENERATORS 5
#define LEASE 60

/* A root: the table, and the durable horizon. */
struct root {
    struct grants g;
    uint64_t horizon_ms;
};

static void root_start (struct root *r, uint64_t term_ms, uint64_t floor_ms, uint64_t horizon_ms)
{
    grants_init (&r->g, term_ms, GENERATORS);
    r->g.floor_ms = floor_ms;
    r->horizon_ms = horizon_ms;
}

static struct want whole_want (const char *who, uint64_t number, uint64_t end_ms)
{
    struct want w = { .rank = RANK, .number = number, .size = BOX_WHOLE, .end_ms = end_ms };

    strcpy (w.incarnation, who);
    return w;
}

static bool root_answer (struct root *r, uint64_t now_ms, const struct want *want, struct grant *grant)
{
    const struct box whole = { want->rank, UINT64_MAX, { 0, r->horizon_ms } };
    const struct grants_stock stock = { .whole = &whole, .until_us = NEVER };

    struct grant boxes[GRANTS_EACH];
    size_t n = grants_answer (&r->g, now_ms * MS, now_ms, &stock, want, boxes);

    if (n > 0)
        *grant = boxes[0];
    return n == 1;
}

/* A request without a promise. */
static bool gives (struct root *r, uint64_t now_ms, const char *who, uint64_t number, uint64_t lo, uint64_t hi)
{
    struct want w = whole_want (who, number, 0);
    struct grant g;

    return root_answer (r, now_ms, &w, &g) && g.box.range.lo_ms == lo && g.box.range.hi_ms == hi && g.number == number
           && g.rank == RANK && g.box.generator == RANK && g.box.granules == UINT64_MAX
           && strcmp (g.incarnation, who) == 0;
}

static bool denies (struct root *r, uint64_t now_ms, const char *who, uint64_t number)
{
    struct want w = whole_want (who, number, 0);
    struct grant g;

    return !root_answer (r, now_ms, &w, &g);
}

static void takes_back (struct root *r, uint64_t now_ms, const char *who, uint64_t number, uint64_t end_ms)
{
    struct want w = whole_want (who, number, end_ms);
    struct grant g;

    w.size = 0;
    root_answer (r, now_ms, &w, &g);
}

static void test_wholes (void)
{
    struct root r;

    root_start (&r, LEASE, 1000, 1000);
    ok (denies (&r, 1000, A, 1), "the root grants no range above the durable horizon");
    r.horizon_ms = 1120;
    ok (gives (&r, 1010, A, 1, 1000, 1070),
        "the first range begins at the horizon of the start, and ends one lease after now");
    ok (gives (&r, 1050, A, 1, 1000, 1070), "a repeated request gets the same range");
    ok (gives (&r, 1050, B, 1, 1070, 1110), "another incarnation gets a range of its own");
    ok (gives (&r, 1055, A, 1, 1110, 1115),
        "a repeated request of the first incarnation, after another was granted a range, gets a new range");
    ok (denies (&r, 1055, A, 2), "an empty range is not granted");
    ok (gives (&r, 1056, A, 2, 1110, 1116) && denies (&r, 1058, A, 1),
        "a lease request with a number below the last one is granted nothing");
    ok (gives (&r, 1090, A, 3, 1110, 1120), "a range ends at the horizon at the latest");
    struct want w = whole_want (C, 1, 0);
    struct grant g;
    w.rank = 4;
    ok (root_answer (&r, 1090, &w, &g) && g.box.generator == 4 && g.box.range.lo_ms == 1000,
        "the ranges of another generator do not depend on those of this one");
    grants_fini (&r.g);
}

/* A request states the end of what its sender accepted. What was granted above it is granted again. */
static void test_promise (void)
{
    struct root r;
    struct want w = whole_want (A, 2, 160);
    struct grant g;

    root_start (&r, LEASE, 0, 1000);
    gives (&r, 100, A, 1, 0, 160);
    ok (root_answer (&r, 110, &w, &g) && g.box.range.lo_ms == 0 && g.box.range.hi_ms == 170,
        "a renewal gets the whole range that was granted in a row");
    w = whole_want (A, 3, 160);
    ok (root_answer (&r, 105, &w, &g) && g.box.range.hi_ms == 165,
        "what was granted with an answer that got lost is taken back by the next request");
    w = whole_want (A, 4, 1);
    ok (root_answer (&r, 120, &w, &g) && g.box.range.lo_ms == 0 && g.box.range.hi_ms == 180,
        "a range that was taken back except for its begin is granted again from there");
    gives (&r, 130, B, 1, 180, 190);
    w = whole_want (A, 5, 100);
    ok (root_answer (&r, 140, &w, &g) && g.box.range.lo_ms == 190 && g.box.range.hi_ms == 200,
        "the promise of an incarnation that was replaced takes back nothing of the next one");
    w = whole_want (A, 6, 150);
    ok (root_answer (&r, 145, &w, &g) && g.box.range.lo_ms == 190 && g.box.range.hi_ms == 205,
        "a promise takes back nothing below the begin of the range");
    w = whole_want (A, 5, 190);
    ok (!root_answer (&r, 145, &w, &g) && grants_end (&r.g) == 205,
        "a promise that a later request overtook is ignored");
    grants_fini (&r.g);
}

static void test_back (void)
{
    struct root r;

    root_start (&r, LEASE, 0, 1000);
    gives (&r, 100, A, 1, 0, 160);
    gives (&r, 110, B, 1, 160, 170);
    takes_back (&r, 110, A, 2, 120);
    ok (grants_end (&r.g) == 170, "a return is accepted only from the incarnation that holds the last range");
    takes_back (&r, 110, B, 2, 170);
    ok (grants_end (&r.g) == 170, "a return at the end of the range itself takes back nothing");
    takes_back (&r, 110, B, 3, 165);
    takes_back (&r, 110, B, 3, 164);
    ok (grants_end (&r.g) == 165, "the rest of a range is taken back only once");
    ok (denies (&r, 120, B, 1) && denies (&r, 120, B, 2),
        "requests of an incarnation that arrive after its return are refused");
    gives (&r, 120, C, 1, 165, 180);
    takes_back (&r, 120, C, 2, 150);
    ok (gives (&r, 130, A, 3, 165, 190), "a return at a time before the begin of the range takes back only the range");
    grants_fini (&r.g);
}

/* Ranges that were granted to one incarnation in a row are returned as one. */
static void test_back_of_a_row (void)
{
    struct root r;

    root_start (&r, LEASE, 0, 1000);
    gives (&r, 100, A, 1, 0, 160);
    gives (&r, 120, A, 2, 0, 180);
    gives (&r, 140, A, 3, 0, 200);
    takes_back (&r, 145, A, 4, 145);
    ok (gives (&r, 145, B, 1, 145, 205), "the rest of three ranges in a row of one incarnation is returned together");
    gives (&r, 150, C, 1, 205, 210);
    gives (&r, 160, B, 2, 210, 220);
    takes_back (&r, 170, B, 3, 170);
    ok (gives (&r, 170, D, 1, 210, 230), "a return takes back nothing below a range of another incarnation");
    grants_raise (&r.g, 240);
    ok (gives (&r, 190, D, 2, 240, 250), "a range that does not follow its holder's last one stands alone");
    takes_back (&r, 195, D, 3, 215);
    ok (gives (&r, 195, C, 2, 240, 255), "a return takes back nothing below a gap that was never granted");
    grants_fini (&r.g);
}

static void test_handover (void)
{
    struct root r, next;
    size_t size;

    root_start (&r, LEASE, 40, 1000);
    root_start (&next, LEASE, 170, 170);
    gives (&r, 100, A, 1, 40, 160);
    gives (&r, 110, B, 3, 160, 170);
    const void *table = grants_table (&r.g, &size);
    ok (size == (RANK + 1) * sizeof (struct granted) && !grants_restore (&next.g, 40, table, size - 1)
            && !grants_restore (&next.g, 40, table, (GENERATORS + 1) * sizeof (struct granted))
            && next.g.floor_ms == 170,
        "a table with an invalid size is refused");
    ok (grants_restore (&next.g, 40, table, size) && next.g.count == GENERATORS, "a valid table is restored");
    ok (gives (&next, 120, B, 3, 160, 170) && denies (&next, 120, B, 2),
        "with a restored table a repeated request gets the grant of the former table, and an old number gets nothing");
    next.horizon_ms = 1000;
    ok (gives (&next, 120, A, 2, 170, 180), "with a restored table new ranges begin above all earlier ones");
    grants_reopen (&next.g, RANK, 200);
    ok (gives (&next, 130, A, 3, 180, 190), "reopening a generator at a time above its last end changes nothing");
    grants_reopen (&next.g, RANK, 150);
    ok (gives (&next, 130, B, 4, 150, 190),
        "after a generator was reopened at a time, ranges are granted from that time on");
    grants_fini (&r.g);
    grants_fini (&next.g);
    countdown = 0;
    ok (grants_init (&r.g, LEASE, GENERATORS) < 0 && errno == ENOMEM,
        "without memory a table of whole generators cannot be made");
    countdown = -1;
    grants_fini (&r.g);
}

static void test_raise (void)
{
    struct root r;

    root_start (&r, LEASE, 0, 1000);
    ok (grants_end (&r.g) == 0, "the end of all boxes is that of the start if nothing was granted");
    grants_raise (&r.g, 90);
    ok (gives (&r, 100, A, 1, 90, 160), "no range begins below a published watermark");
    grants_raise (&r.g, 80);
    grants_raise (&r.g, 170);
    ok (gives (&r, 150, A, 1, 90, 160) && denies (&r, 110, B, 1) && gives (&r, 150, B, 1, 170, 210),
        "after the watermark rose, a repeated request gets the same range as before, and a new request gets a range "
        "above");
    grants_raise (&r.g, 200);
    ok (gives (&r, 160, B, 2, 200, 220),
        "a range that is extended begins at the watermark that was published meanwhile");
    grants_raise (&r.g, 900);
    ok (grants_end (&r.g) == 900, "the end of all boxes is not below a published watermark");
    grants_fini (&r.g);
}

/* --- whole generators: all histories of a small world ------------------------------------------------------ */

/* A root with crashes and clean stops, and three lives that request one generator. Each sequence of DEPTH events is
 * played. Answers may arrive at any later time or never, so a grant counts as used immediately. The disk is written
 * immediately or, in crashes, before the answer. Random histories have lost answers, too.
 */
#define DEPTH 7
#define LIVES 3
#define TIMES 64

struct world {
    struct root root;
    uint64_t now;
    int owner[TIMES]; /* the life that may make ids of this millisecond */
    uint64_t number[LIVES], promised[LIVES], lo[LIVES], hi[LIVES];
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
    EV_COUNT = EV_BACK + LIVES,
    EV_LOSE = EV_COUNT,
    EV_ALL = EV_LOSE + LIVES
};

static const char *const names[LIVES] = { A, B, C };

static void mark (struct world *w, int life, const struct box *b)
{
    for (uint64_t t = b->range.lo_ms; t < b->range.hi_ms; t++) {
        if (w->owner[t] != 0 && w->owner[t] != life + 1)
            w->overlaps++;
        w->owner[t] = life + 1;
    }
}

/* The life uses nothing from 'end' on. */
static void unmark (struct world *w, int life, uint64_t end)
{
    for (uint64_t t = end; t < TIMES; t++)
        if (w->owner[t] == life + 1)
            w->owner[t] = 0;
}

/* The request 'number', or a repetition of it. */
static void ask (struct world *w, int life, uint64_t number, bool lost)
{
    struct want q = whole_want (names[life], number, w->promised[life]);
    struct grant g;

    if (number == 0 || !root_answer (&w->root, w->now, &q, &g))
        return;
    if (g.box.range.hi_ms > w->root.horizon_ms)
        w->overlaps++;
    if (w->closed[life])
        return;
    mark (w, life, &g.box);
    if (lost)
        return;
    w->lo[life] = g.box.range.lo_ms;
    w->hi[life] = g.box.range.hi_ms;
}

static void ask_anew (struct world *w, int life, bool lost)
{
    w->promised[life] = w->hi[life];
    if (!w->closed[life] && w->hi[life] > 0)
        unmark (w, life, w->hi[life]);
    ask (w, life, ++w->number[life], lost);
}

/* The life closes: it used all but the last seven milliseconds, which belong to more than one range. */
static void give_back (struct world *w, int life)
{
    if (w->hi[life] == 0)
        return;
    if (!w->closed[life]) {
        uint64_t end = w->hi[life] > w->lo[life] + 7 ? w->hi[life] - 7 : w->lo[life];
        unmark (w, life, end);
        w->hi[life] = end;
        w->closed[life] = true;
        w->number[life]++;
    }
    takes_back (&w->root, w->now, names[life], w->number[life], w->hi[life]);
}

static void restart (struct world *w, uint64_t horizon)
{
    grants_fini (&w->root.g);
    root_start (&w->root, 4, horizon, horizon);
    if (w->now < horizon)
        w->now = horizon;
}

static void play (struct world *w, int event)
{
    if (event == EV_TIME)
        w->now += 3;
    else if (event == EV_STORE && w->root.horizon_ms < w->now + 6)
        w->root.horizon_ms = w->now + 8;
    else if (event == EV_CRASH)
        restart (w, w->root.horizon_ms);
    else if (event == EV_STOP)
        restart (w, grants_end (&w->root.g));
    else if (event >= EV_LOSE)
        ask_anew (w, event - EV_LOSE, true);
    else if (event >= EV_BACK)
        give_back (w, event - EV_BACK);
    else if (event >= EV_RETRY)
        ask (w, event - EV_RETRY, w->number[event - EV_RETRY], false);
    else if (event >= EV_WANT)
        ask_anew (w, event - EV_WANT, false);
}

static void test_all (void)
{
    long histories = 1, overlaps = 0;

    for (int i = 0; i < DEPTH - 1; i++)
        histories *= EV_COUNT;
    for (long history = 0; history < histories; history++) {
        struct world w = { .now = 0 };

        root_start (&w.root, 4, 0, 0);
        play (&w, EV_STORE); /* if nothing could be granted, the event is free */
        for (long h = history, i = 0; i < DEPTH - 1; i++, h /= EV_COUNT)
            play (&w, h % EV_COUNT);
        overlaps += w.overlaps;
        grants_fini (&w.root.g);
    }
    ok (overlaps == 0, "in all %ld histories of %d events no two lives may make ids of the same millisecond", histories,
        DEPTH);
}

static void test_random (void)
{
    uint64_t seed = 1;
    long overlaps = 0;

    for (int run = 0; run < 20000; run++) {
        struct world w = { .now = 0 };

        root_start (&w.root, 4, 0, 0);
        while (w.now < TIMES - 16) {
            seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407;
            play (&w, (seed >> 33) % EV_ALL);
        }
        overlaps += w.overlaps;
        grants_fini (&w.root.g);
    }
    ok (overlaps == 0, "in 20000 long random histories no two lives may make ids of the same millisecond");
}

/* --- parts --------------------------------------------------------------------------------------------------- */

#define TERM 1000
#define GENERATOR 7

static const struct box whole = { GENERATOR, UINT64_MAX, { 100, 100000 } };
static struct grant got[GRANTS_EACH]; /* the last answer */

static struct want want_of (unsigned holder, uint64_t number, uint32_t size, uint64_t end_ms)
{
    struct want w = { .rank = holder, .number = number, .size = size, .end_ms = end_ms };

    snprintf (w.incarnation, sizeof (w.incarnation), "aaaaaaaa-aaaa-4aaa-8aaa-%012u", holder);
    return w;
}

/* The clocks agree: instance millisecond 'now_ms' is CLOCK_BOOTTIME in milliseconds. */
static size_t answers (struct grants *g, uint64_t now_ms, uint32_t keep, const struct want *want)
{
    const struct grants_stock stock = { &whole, 100000 * MS, now_ms + 1, keep };

    return grants_answer (g, now_ms * MS, now_ms, &stock, want, got);
}

static size_t asks (struct grants *g, uint64_t now_ms, unsigned holder, uint64_t number, uint32_t size, uint64_t end_ms)
{
    struct want w = want_of (holder, number, size, end_ms);

    return answers (g, now_ms, 0, &w);
}

static bool is_box (const struct grant *g, uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    return g->box.generator == GENERATOR && g->box.granules == granules && g->box.range.lo_ms == lo_ms
           && g->box.range.hi_ms == hi_ms;
}

/* The first box of the last answer. */
static bool is (uint64_t granules, uint64_t lo_ms, uint64_t hi_ms)
{
    return is_box (&got[0], granules, lo_ms, hi_ms);
}

static uint64_t free_at (const struct grants *g, uint64_t ms)
{
    uint64_t until_ms;

    return grants_free (g, &whole, ms, &until_ms);
}

static void test_box_sizes (void)
{
    unsigned n = 0;

    for (uint64_t size = 0; size <= 2 * FLUID_PER_MS; size++)
        n += box_is_part_size (size);
    ok (n == 63 && box_is_part_size (16) && box_is_part_size (1008) && !box_is_part_size (0) && !box_is_part_size (1024)
            && !box_is_part_size (UINT64_MAX),
        "a part has one of 63 sizes: a multiple of 16 below that of the whole");
    ok (box_size (0) == 0 && box_size (5) == 32 && box_size (UINT64_MAX) == BOX_WHOLE,
        "the size of a box is 16 for each of its granules");
}

static void test_parts (void)
{
    struct grants g;
    uint64_t until_ms;

    grants_init (&g, TERM, 0);
    ok (free_at (&g, 200) == UINT64_MAX && grants_end (&g) == 0 && grants_top (&g, 200) == 0,
        "without parts all granules are free");
    ok (asks (&g, 200, 1, 1, 32, 0) && is (3, 201, 1200) && got[0].number == 1 && got[0].incarnation[35] == '1',
        "a part has the lowest free granules, begins above the granter's ids, and lasts a term");
    ok (free_at (&g, 200) == UINT64_MAX && free_at (&g, 201) == ~UINT64_C (3) && free_at (&g, 1199) == ~UINT64_C (3)
            && free_at (&g, 1200) == UINT64_MAX,
        "granules are not free while they are granted");
    grants_free (&g, &whole, 150, &until_ms);
    ok (until_ms == 201, "grants_free () returns a time up to which no part begins");
    grants_free (&g, &whole, 201, &until_ms);
    ok (until_ms == 1200, "grants_free () returns a time up to which no part ends");
    ok (asks (&g, 300, 2, 1, 512, 0) && is (UINT64_C (0xffffffff) << 2, 301, 1300),
        "the next part has the lowest granules that are free beside the others");
    ok (asks (&g, 300, 3, 1, 64, 0) && is (UINT64_C (15) << 34, 301, 1300), "a third part has the next granules");
    ok (grants_top (&g, 1200) == 38 && grants_top (&g, 1300) == 0,
        "grants_top () returns the first granule above all that is granted at that time or later");
    ok (asks (&g, 400, 1, 1, 32, 0) && is (3, 201, 1200), "a repeated request gets the same part");
    ok (!asks (&g, 400, 1, 0, 32, 0) && free_at (&g, 400) == UINT64_MAX << 38,
        "a request with a lower number gets nothing, and ends no part");
    ok (grants_end (&g) == 1300, "grants_end () returns the end of the part that ends last");
    uint32_t ranks[GRANTS_MAX];
    g.entry[1].rank = 1;
    ok (grants_ranks (&g, 400, ranks) == 2 && ranks[0] == 1 && ranks[1] == 3,
        "a rank is listed once, even if it has several parts");
    ok (grants_ranks (&g, 1299, ranks) == 2 && grants_ranks (&g, 1300, ranks) == 0,
        "a rank is listed until its part is over");
    const struct box other = { GENERATOR + 1, UINT64_MAX, { 100, 100000 } };
    ok (grants_free (&g, &other, 400, &until_ms) == UINT64_MAX, "all granules of another generator are free");
    grants_fini (&g);
}

static void test_wants (void)
{
    struct grants g;

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 16, 0);
    ok (asks (&g, 700, 1, 2, 16, 1200) && is (1, 201, 1700) && g.count == 1, "a renewal extends the part");
    ok (asks (&g, 800, 1, 3, 32, 1700) == 2 && is (1, 201, 1800) && is_box (&got[1], 2, 801, 1800) && g.count == 2,
        "a holder that wants more gets a further box");
    ok (asks (&g, 900, 1, 4, 32, 1800) == 2 && is (1, 201, 1900) && is_box (&got[1], 2, 801, 1900) && g.count == 2,
        "a renewal extends all boxes of a holder");
    ok (asks (&g, 900, 1, 4, 32, 1800) == 2 && is (1, 201, 1900) && is_box (&got[1], 2, 801, 1900),
        "a repeated request gets all boxes again");
    ok (!asks (&g, 900, 1, 3, 32, 850) && free_at (&g, 1850) == ~UINT64_C (3),
        "a request that a later one overtook is ignored");
    uint32_t per_ms;
    ok (grants_count (&g, 900, &per_ms) == 1 && per_ms == 32, "a holder of two boxes is counted once");
    ok (!asks (&g, 1000, 1, 5, 0, 1010) && free_at (&g, 1009) == ~UINT64_C (3) && free_at (&g, 1010) == UINT64_MAX,
        "granules are free from the end that their holder promised with the return");
    ok (!asks (&g, 1000, 1, 5, 0, 1010) && !asks (&g, 1000, 1, 4, 32, 1800),
        "after a return, earlier requests that arrive late get nothing");
    ok (!asks (&g, 1000, 2, 9, 0, 1) && g.count == 2, "the return of another holder ends no part of this one");
    ok (!asks (&g, 1000, 1, 6, 0, 1) && g.count == 0 && free_at (&g, 849) == UINT64_MAX,
        "after the return of a part that was not used, its granules are free immediately");
    grants_fini (&g);
}

static size_t keeps (struct grants *g, uint64_t now_ms, unsigned holder, uint64_t number, uint32_t size,
                     uint64_t end_ms, uint64_t kept)
{
    struct want w = want_of (holder, number, size, end_ms);

    w.kept = kept;
    return answers (g, now_ms, 0, &w);
}

/* A holder returns some of its granules. */
static void test_kept (void)
{
    struct grants g;

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 64, 0);
    asks (&g, 200, 2, 1, 16, 0);
    ok (keeps (&g, 300, 1, 2, 32, 350, 5) == 1 && is (5, 201, 1300),
        "a holder that keeps some granules gets these extended");
    ok (free_at (&g, 349) == ~UINT64_C (31) && free_at (&g, 350) == ~UINT64_C (21) && g.count == 3,
        "the granules that a holder does not keep are free from the end that it promised");
    ok (keeps (&g, 310, 1, 2, 32, 350, 5) == 1 && is (5, 201, 1300) && g.count == 3,
        "a repeated return of some granules changes nothing");
    ok (keeps (&g, 320, 1, 3, 32, 1300, 0) == 1 && is (5, 201, 1320) && free_at (&g, 400) == ~UINT64_C (21),
        "what was returned is not extended");
    ok (keeps (&g, 330, 1, 4, 32, 100, 5) == 1 && is (5, 201, 1330) && free_at (&g, 330) == ~UINT64_C (21)
            && free_at (&g, 201) == ~UINT64_C (21),
        "a promise below the begin of a box takes back all granules that are not kept");
    ok (keeps (&g, 340, 1, 5, 32, 400, 1 << 4) == 1 && is (10, 341, 1340) && free_at (&g, 399) == ~UINT64_C (31)
            && free_at (&g, 400) == ~UINT64_C (26),
        "a holder that keeps only granules that it does not have returns all, and gets others");
    ok (keeps (&g, 345, 1, 6, 32, 0, 2) == 1 && is (10, 341, 1345), "without an end nothing is promised");
    while (g.count < GRANTS_MAX)
        g.entry[g.count++] = (struct granted){ .rank = 9, .box = { 99, 1, { 100, 100000 } } };
    ok (keeps (&g, 350, 1, 7, 16, 500, 2) == 1 && is (10, 341, 1350) && free_at (&g, 600) == ~UINT64_C (26),
        "if the table is full, a box is not split, and nothing of it is taken back");
    ok (keeps (&g, 360, 1, 8, 16, 500, 10) == 1 && is (10, 341, 1360), "a holder may keep all that it has");
    grants_fini (&g);
}

/* A holder has at most GRANTS_EACH boxes. */
static void test_each (void)
{
    struct grants g;
    size_t n = 0;

    grants_init (&g, TERM, 0);
    for (unsigned i = 1; i <= 20; i++)
        n = asks (&g, 200 + i, 1, i, 16 * i, i > 1 ? 1199 + i : 0);
    ok (n == GRANTS_EACH && g.count == GRANTS_EACH && grants_wanted (&g, 230 * MS) == 320,
        "a holder gets at most eight boxes, and what it wants counts once");
    uint32_t per_ms, ranks[GRANTS_MAX];
    ok (grants_count (&g, 230, &per_ms) == 1 && per_ms == 128 && grants_ranks (&g, 230, ranks) == 1,
        "a holder of eight boxes is counted and listed once");
    grants_fini (&g);
}

/* Two holders get further boxes in turn. What a request costs depends on that, see list_wanted (). */
static void test_adjacent (void)
{
    struct grants g;
    bool adjacent = true;

    grants_init (&g, TERM, 0);
    for (unsigned i = 1; i <= 4; i++) {
        asks (&g, 200 + i, 1, i, 16 * i, i > 1 ? 1199 + i : 0);
        asks (&g, 200 + i, 2, i, 16 * i, i > 1 ? 1199 + i : 0);
    }
    keeps (&g, 210, 1, 5, 16, 300, 1 | 1 << 2);
    for (size_t i = 1; i < g.count; i++)
        adjacent = adjacent && strcmp (g.entry[i - 1].incarnation, g.entry[i].incarnation) <= 0;
    ok (g.count == 8 && adjacent, "all entries of a holder are adjacent");
    grants_fini (&g);
}

/* The need of a holder changes again and again: what it returned is neither counted nor kept for long. */
static void test_returned (void)
{
    struct grants g;
    size_t n;

    grants_init (&g, TERM, 0);
    n = asks (&g, 200, 1, 1, 32, 0);
    for (unsigned i = 1; i <= 20; i++) {
        keeps (&g, 200 + 10 * i, 1, 2 * i, 16, 202 + 10 * i, 1);
        n = asks (&g, 205 + 10 * i, 1, 2 * i + 1, 32, 1200 + 10 * i);
    }
    uint32_t per_ms;
    ok (grants_count (&g, 403, &per_ms) == 1 && per_ms == 32, "a holder is counted even if its first box is over");
    ok (n == 2 && g.count == 22, "a holder that has returned many boxes gets a further one");
    ok (grants_wanted (&g, 410 * MS) == 32, "what it wants counts once");
    grants_position (&g, 1, got[0].incarnation, 402);
    grants_forget (&g, 410 * MS, 402);
    ok (g.count == 2, "boxes that were returned are forgotten when they are over, and not only with their time of use");
    grants_fini (&g);
}

/* Another incarnation of a rank is another holder. */
static void test_incarnations (void)
{
    struct grants g;

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 16, 0);
    ok (asks (&g, 300, 2, 1, 16, 1) && is (2, 301, 1300) && free_at (&g, 400) == ~UINT64_C (3),
        "a new incarnation of a rank gets other granules, and ends no part of the former one");
    ok (asks (&g, 300, 1, 1, 16, 0) && is (1, 201, 1200), "a retry of the former incarnation gets its own part");
    struct want other = want_of (1, 7, 0, 1);
    other.rank = 9;
    answers (&g, 310, 0, &other);
    ok (free_at (&g, 400) == ~UINT64_C (3),
        "a return of the same incarnation in the name of another rank has no effect");
    grants_fini (&g);
}

static void test_what_is_kept (void)
{
    struct grants g;
    struct want w = want_of (1, 1, 512, 0);
    const struct grants_stock fenced = { .whole = NULL };

    grants_init (&g, TERM, 0);
    ok (!answers (&g, 200, 1009, &w), "a rank that needs all numbers except 15 itself grants nothing");
    ok (answers (&g, 200, 900, &w) && is (0x7f, 201, 1200),
        "a rank grants the largest size that leaves the numbers that it needs itself");
    w = want_of (1, 2, 512, 1200);
    ok (!grants_answer (&g, 600 * MS, 600, &fenced, &w, got) && free_at (&g, 600) == ~UINT64_C (0x7f),
        "a rank that holds no range that contains now grants nothing");
    w = want_of (1, 3, 512, 700);
    ok (!grants_answer (&g, 600 * MS, 600, &fenced, &w, got) && free_at (&g, 700) == UINT64_MAX,
        "a rank that holds no range that contains now accepts returns");
    ok (answers (&g, 99900, 0, &(struct want){ .incarnation = "x", .number = 1, .size = 16 }) && is (1, 99901, 100000)
            && !asks (&g, 99999, 2, 1, 16, 0),
        "no part ends after the range that the granter holds");
    grants_fini (&g);
}

/* A part that is granted of a box that begins later begins with that box. */
static void test_begin_of_whole (void)
{
    struct grants g;
    const struct box late = { GENERATOR, 0xff, { 500, 100000 } };
    const struct grants_stock stock = { &late, 100000 * MS, 301, 0 };
    struct want w = want_of (1, 1, 512, 0);

    grants_init (&g, TERM, 0);
    ok (grants_answer (&g, 300 * MS, 300, &stock, &w, got) && is (0xff, 500, 1300),
        "a part has no granule and no time that the granter does not hold");
    grants_fini (&g);
}

/* The boxes in the answer to holder 1, if the granter holds 'held' at 'now_ms', and made ids below 'from_ms'. */
static size_t from (struct grants *g, uint64_t now_ms, uint64_t number, struct box held, uint64_t from_ms)
{
    const struct grants_stock stock = { &held, 100000 * MS, from_ms, 0 };
    struct want w = want_of (1, number, 16, number > 1 ? 1200 : 0);

    return grants_answer (g, now_ms * MS, now_ms, &stock, &w, got);
}

/* The granter holds another box, or has made ids, since it granted the first part to holder 1. */
static void test_extensions (void)
{
    static const struct box others[] = {
        { GENERATOR + 1, UINT64_MAX, { 100, 100000 } },
        { GENERATOR, 6, { 100, 100000 } },
        { GENERATOR, UINT64_MAX, { 1250, 100000 } },
    };
    struct grants g;

    for (size_t i = 0; i < 3; i++) {
        grants_init (&g, TERM, 0);
        from (&g, 200, 1, whole, 201);
        ok (from (&g, 1190, 2, others[i], 1191) == 1 && got[0].box.range.lo_ms >= 1191
                && g.entry[0].box.range.hi_ms == 1200,
            "a part is not extended by what its granter does not hold now (%zu)", i);
        grants_fini (&g);
    }
    grants_init (&g, TERM, 0);
    from (&g, 200, 1, whole, 201);
    ok (from (&g, 300, 2, (struct box){ GENERATOR, UINT64_MAX, { 100, 1100 } }, 301) <= 1
            && g.entry[0].box.range.hi_ms == 1200,
        "a part does not become shorter if its granter holds less now");
    ok (from (&g, 1190, 3, whole, 1201) > 0 && g.entry[0].box.range.hi_ms == 1200,
        "a part is not extended below ids of its granter");
    grants_fini (&g);
    grants_init (&g, TERM, 0);
    from (&g, 200, 1, whole, 201);
    grants_raise (&g, 1300);
    ok (from (&g, 1190, 2, whole, 1191) == 1 && is (1, 201, 1200),
        "a part is not extended below the position of its granter");
    grants_fini (&g);
    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 16, 0);
    g.entry[0].box.range.hi_ms = 350;
    asks (&g, 360, 2, 1, 16, 0);
    ok (is (1, 361, 1360) && from (&g, 370, 2, whole, 340) == 1 && is (2, 340, 1370)
            && g.entry[0].box.range.hi_ms == 350,
        "a part is not extended by what another holder has");
    grants_fini (&g);
}

static void test_use (void)
{
    struct grants g;
    struct want w = want_of (1, 1, 16, 0);
    struct grants_stock stock = { &whole, 500 * MS, 201, 0 };

    grants_init (&g, TERM, 0);
    ok (grants_low_ms (&g, 0) == UINT64_MAX && grants_left_ms (&g, 0) == 0,
        "without parts the granter's position is not held back");
    ok (grants_answer (&g, 200 * MS, 200, &stock, &w, got) && got[0].use_ms == 300,
        "a part may not be used for longer than the granter's own lease");
    grants_forget (&g, 506 * MS, 0);
    ok (grants_low_ms (&g, 506 * MS) == 201 && grants_left_ms (&g, 250 * MS) == 257,
        "a part holds the granter's position back for its time of use, measured by a holder's clock that is slower");
    grants_forget (&g, 507 * MS, 0);
    ok (grants_low_ms (&g, 507 * MS) == 201 && grants_left_ms (&g, 507 * MS) == 300,
        "a part holds the granter's position back until a second reading of the time confirms that its time of use is "
        "over");
    grants_forget (&g, 508 * MS, 0);
    ok (grants_low_ms (&g, 508 * MS) == UINT64_MAX && grants_left_ms (&g, 508 * MS) == 0,
        "a part whose time of use is over does not hold the position back");
    grants_forget (&g, 520 * MS, 520);
    w = want_of (1, 2, 16, 1200);
    stock.until_us = 900 * MS;
    ok (grants_answer (&g, 530 * MS, 530, &stock, &w, got) && is (1, 520, 1530) && grants_low_ms (&g, 530 * MS) == 520,
        "a part that is extended after its time of use begins at the position that was reported meanwhile");
    grants_look (&g, 909 * MS);
    ok (grants_low_ms (&g, 909 * MS) == 520,
        "the time of use of an extended part is over only after two further readings");
    grants_position (&g, w.rank, w.incarnation, 1530);
    stock.until_us = 100000 * MS;
    w = want_of (2, 1, 16, 0);
    ok (grants_answer (&g, 200 * MS, 200, &stock, &w, got) && got[0].use_ms == 1250,
        "the time of use of a part is at most five quarters of a term");
    grants_position (&g, w.rank, w.incarnation, 600);
    grants_position (&g, w.rank, w.incarnation, 400);
    grants_position (&g, w.rank + 1, w.incarnation, 640);
    ok (grants_low_ms (&g, 700 * MS) == 600,
        "a report of the holder raises the position and never lowers it, and a report of another rank has no effect");
    w = want_of (2, 2, 0, 650);
    w.left_ms = 20;
    grants_answer (&g, 630 * MS, 630, &stock, &w, got);
    grants_forget (&g, 650 * MS, 0);
    ok (grants_low_ms (&g, 650 * MS) == 600,
        "a part that was returned with a time of use holds the position back for that time, by the holder's clock");
    grants_forget (&g, 651 * MS, 0);
    ok (grants_low_ms (&g, 651 * MS) == 600, "the holder's clock may be slower than the granter's");
    grants_forget (&g, 652 * MS, 0);
    ok (grants_low_ms (&g, 652 * MS) == UINT64_MAX,
        "a returned part does not hold the position back after its time of use");
    w = want_of (2, 3, 16, 650);
    grants_answer (&g, 660 * MS, 660, &stock, &w, got);
    ok (grants_low_ms (&g, 661 * MS) < 700, "a new part of the same holder holds the position back again");
    w = want_of (2, 4, 0, 650);
    grants_answer (&g, 662 * MS, 662, &stock, &w, got);
    ok (grants_low_ms (&g, 662 * MS) == UINT64_MAX,
        "a part that is returned without a time of use no longer holds the position back");
    stock.until_us = 200 * MS;
    w = want_of (3, 1, 16, 0);
    ok (!grants_answer (&g, 200 * MS, 200, &stock, &w, got), "a part whose time of use would be 0 is not granted");
    grants_fini (&g);
}

/* The granter's own position is past what its holder may still use. */
static void test_slow_holder (void)
{
    struct grants g;

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 16, 0);
    struct want w = want_of (1, 2, 16, 1200);
    grants_position (&g, w.rank, w.incarnation, 250);
    grants_forget (&g, 320 * MS, 310);
    ok (answers (&g, 325, 0, &w) && is (1, 201, 1325) && grants_low_ms (&g, 330 * MS) == 250,
        "a renewal does not raise the position of a part above what its holder has reported");
    grants_fini (&g);
}

static void test_forget (void)
{
    struct grants g;

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 16, 0);
    grants_forget (&g, 5000 * MS, 1199);
    ok (g.count == 1 && free_at (&g, 1199) == ~UINT64_C (1),
        "a part is remembered until the granter's ids are past its end");
    grants_forget (&g, 5001 * MS, 1199);
    ok (g.count == 1, "a part is remembered at any time while the granter's ids are not past its end");
    grants_fini (&g);
    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 16, 0);
    grants_forget (&g, 1300 * MS, 1200);
    ok (g.count == 1, "a part is remembered while it is in use");
    grants_forget (&g, 5000 * MS, 1200);
    grants_jumped (&g, 4000 * MS);
    grants_forget (&g, 5001 * MS, 1200);
    grants_forget (&g, 5002 * MS, 1200);
    ok (g.count == 1 && grants_low_ms (&g, 5002 * MS) == 201,
        "if the clock jumped after the first reading, the second reading does not end a part");
    grants_forget (&g, 6000 * MS, 1200);
    ok (g.count == 1, "after a jump of the clock two further readings are needed to end a part");
    grants_forget (&g, 6001 * MS, 1200);
    ok (g.count == 0 && grants_end (&g) == 1200,
        "grants_end () is not below the end of a forgotten part, so that this time is not returned");
    ok (asks (&g, 1100, 2, 1, 16, 0) && got[0].box.range.lo_ms == 1200,
        "the time of a forgotten part is not granted again");
    grants_fini (&g);
}

static void test_limits (void)
{
    struct grants g;
    unsigned n = 0;

    grants_init (&g, TERM, 0);
    countdown = 0;
    ok (!asks (&g, 200, 1, 1, 16, 0) && failures > 0 && free_at (&g, 300) == UINT64_MAX,
        "without memory no part is granted");
    countdown = -1;
    ok (asks (&g, 200, 1, 1, 16, 0), "when memory is available again a part is granted");
    for (unsigned i = 2; i <= 64; i++)
        n += (unsigned)asks (&g, 200, i, 1, 16, 0);
    uint32_t per_ms;
    ok (n == 63 && grants_count (&g, 300, &per_ms) == 64 && per_ms == 1024 && free_at (&g, 300) == 0
            && !asks (&g, 200, 65, 1, 16, 0),
        "64 holders with a granule each have all granules");
    grants_fini (&g);
}

static bool rank_asks (struct grants *g, uint64_t now_ms, uint32_t rank, unsigned holder, uint64_t number,
                       uint32_t size, uint64_t end_ms)
{
    struct want w = want_of (holder, number, size, end_ms);

    w.rank = rank;
    return answers (g, now_ms, 0, &w) > 0;
}

/* A rank asks in the name of one incarnation after another, and then other ranks want something. */
static void test_greedy_rank (void)
{
    struct grants g;
    unsigned n = 0, others = 0;

    grants_init (&g, TERM, 0);
    for (uint64_t ms = 200; n < 2 * GRANTS_MAX && rank_asks (&g, ms, 5, n + 1, 1, 512, 0); n++, ms += 2)
        rank_asks (&g, ms, 5, n + 1, 2, 0, ms + 2);
    ok (n == GRANTS_MAX / 2, "one rank fills half of the table: %u", n);
    for (uint64_t ms = 800; others < GRANTS_MAX && rank_asks (&g, ms, 10 + others, 1, 1, 512, 0); others++, ms += 2)
        rank_asks (&g, ms, 10 + others, 1, 2, 0, ms + 2);
    ok (others == GRANTS_MAX / 2, "a rank that has nothing always finds a free entry: %u", others);
    grants_fini (&g);
}

/* A holder renews all that it got, although it should return half of it. */
static void test_greedy_holder (void)
{
    struct grants g;
    unsigned number = 1, early = 0;
    uint64_t ms = 200;

    grants_init (&g, TERM, 0);
    asks (&g, ms, 1, number, 1008, 0);
    rank_asks (&g, ms, 3, 3, 1, 16, 0);
    for (; ms < 10000 && !asks (&g, ms + 1, 2, number, 512, 0); ms += 100) {
        grants_forget (&g, ms * MS, ms);
        early += asks (&g, ms, 1, ++number, 1008, 0) && ms < 200 + TERM;
        rank_asks (&g, ms, 3, 3, number, 16, 0);
    }
    ok (early == 10 && ms >= 200 + TERM && ms <= 400 + 2 * TERM,
        "a holder that keeps more than its share for a term gets no more time for it (%d ms)", (int)ms);
    asks (&g, ms, 1, ++number, 1008, 0);
    ok (free_at (&g, ms + 50) != UINT64_MAX, "and then it gets its share");
    grants_fini (&g);
}

/* Each part is returned except for two milliseconds, and granted to the next rank, until the table is full. */
static void test_full_table (void)
{
    struct grants g;
    unsigned n = 0;

    grants_init (&g, TERM, 0);
    for (uint64_t ms = 200; n < 2 * GRANTS_MAX && rank_asks (&g, ms, n, n + 1, 1, 512, 0); n++, ms += 2)
        rank_asks (&g, ms, n, n + 1, 2, 0, ms + 2);
    ok (n == GRANTS_MAX && g.count == GRANTS_MAX, "when the table is full, no further part is granted");
    ok (!rank_asks (&g, 200 + 2 * GRANTS_MAX, GRANTS_MAX / 2 - 1, GRANTS_MAX / 2, 1, 512, 0) && g.count == GRANTS_MAX,
        "when the table is full, a request with an old number gets nothing");
    grants_forget (&g, 99999 * MS, 300);
    grants_forget (&g, 100000 * MS, 300);
    ok (g.count < GRANTS_MAX && asks (&g, 600, 999, 1, 512, 0),
        "when some parts of a full table are over, others are granted");
    grants_fini (&g);
}

static void test_restore (void)
{
    struct grants g, next, none;
    size_t size;

    grants_init (&g, TERM, 0);
    grants_init (&next, TERM, 0);
    grants_init (&none, TERM, 0);
    grants_table (&g, &size);
    ok (size == 0 && grants_restore (&next, 50, NULL, 0) && next.floor_ms == 50 && next.count == 0,
        "an empty table is restored without memory");
    asks (&g, 200, 1, 1, 16, 0);
    asks (&g, 200, 2, 1, 32, 0);
    const void *table = grants_table (&g, &size);
    ok (!grants_restore (&next, 100, table, size - 1)
            && !grants_restore (&next, 100, table, (GRANTS_MAX + 1) * sizeof (struct granted)) && next.count == 0,
        "a table of parts with an invalid size is refused");
    countdown = 0;
    ok (!grants_restore (&none, 100, table, size) && none.count == 0, "without memory no table is restored");
    countdown = -1;
    ok (grants_restore (&next, 100, table, size) && next.floor_ms == 100 && free_at (&next, 300) == ~UINT64_C (7)
            && grants_low_ms (&next, 300 * MS) == 201,
        "granules that the former table granted are not free in a restored one");
    ok (asks (&next, 300, 1, 1, 16, 0) && is (1, 201, 1200) && asks (&next, 300, 1, 2, 16, 1200) && is (1, 201, 1300),
        "the holders of the former table are known to a restored one");
    grants_fini (&g);
    grants_fini (&next);
}

/* --- parts: how large -------------------------------------------------------------------------------------- */

static uint32_t share (const struct grants *g, unsigned holder, uint32_t size, uint32_t available)
{
    const struct grants_stock stock = { &whole, 100000 * MS, 301, FLUID_PER_MS - available };
    struct want w = want_of (holder, 9, size, 0);

    return grants_share (g, 300 * MS, &stock, &w);
}

static void test_share (void)
{
    struct grants g;

    grants_init (&g, TERM, 0);
    ok (share (&g, 1, 512, 512) == 512 && share (&g, 1, 512, 511) == 496 && share (&g, 1, 512, 0) == 16,
        "a single requester gets what it wants, or the largest size that is there");
    asks (&g, 200, 1, 1, 512, 0);
    asks (&g, 200, 2, 1, 64, 0);
    asks (&g, 200, 3, 1, 16, 0);
    ok (grants_wanted (&g, 300 * MS) == 592, "grants_wanted () returns the sum of what all holders want");
    ok (share (&g, 4, 256, 592 + 256) == 256, "if there is enough for all, each gets what it wants");
    ok (share (&g, 4, 256, 592 + 255) == 256 && share (&g, 1, 512, 591) == 496 && share (&g, 3, 16, 591) == 16,
        "if there is not enough for all, only the largest sizes are cut");
    ok (share (&g, 4, 64, 16 + 3 * 64) == 64 && share (&g, 1, 512, 16 + 3 * 64 - 1) == 112
            && share (&g, 4, 512, 16 + 64 + 2 * 208) == 208,
        "no holder gets more than a common limit, with which there is enough for all");
    ok (share (&g, 3, 16, 3 * 16) == 16 && share (&g, 4, 256, 3 * 16) == 16,
        "no size is below the least one, even if there is not enough for all");
    ok (share (&g, 1, 64, 3 * 64) == 64, "the former want of a requester does not count beside its new one");
    asks (&g, 210, 2, 2, 0, 1);
    ok (grants_wanted (&g, 300 * MS) == 528, "a holder that returned its part wants nothing");
    grants_look (&g, 5000 * MS);
    ok (grants_wanted (&g, 5000 * MS) == 0, "a holder whose time of use is over wants nothing");
    grants_fini (&g);
}

static uint32_t size_got (size_t n)
{
    uint32_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += box_size (got[i].box.granules);
    return size;
}

/* Two holders have everything, and a third one wants as much. */
static void test_shares (void)
{
    struct grants g;
    struct want third = want_of (3, 1, 512, 0);

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 512, 0);
    asks (&g, 200, 2, 1, 512, 0);
    ok (share (&g, 1, 512, 1024) == 512, "a holder keeps what it wants while there is enough");
    ok (!answers (&g, 210, 0, &third) && grants_wanted (&g, 210 * MS) == 1536 && share (&g, 2, 512, 1024) == 336,
        "what a requester wants is remembered, even if nothing is left, and the share of others is smaller");
    ok (size_got (asks (&g, 300, 1, 2, 512, 1200)) == 512 && is (UINT32_MAX, 201, 1300),
        "a holder keeps in a renewal what it has, even if its share is smaller");
    ok (share (&g, 1, 512, 1024) == 352 && share (&g, 2, 512, 1024) == 336 && share (&g, 1, 512, 1023) == 336
            && share (&g, 1, 512, 1008) == 336,
        "of what is left over by a common limit, the lowest ranks get one granule each");
    ok (size_got (keeps (&g, 300, 1, 3, 512, 350, (1 << 21) - 1)) == 336 && is ((1 << 21) - 1, 201, 1300),
        "a holder that returns what is above its share keeps its share");
    ok (size_got (answers (&g, 360, 0, &third)) == 176 && got[0].box.range.lo_ms == 361,
        "a requester that got nothing gets what another one has returned");
    asks (&g, 400, 2, 2, 0, 410);
    ok (asks (&g, 420, 3, 2, 512, 1360) == 2 && size_got (2) == 512 && got[0].box.range.lo_ms == 361,
        "a holder gets the rest of its share when others have returned theirs");
    grants_fini (&g);
}

/* A holder has two entries, the first of which ends before the second. */
static void test_count (void)
{
    struct grants g;
    uint32_t per_ms;

    grants_init (&g, TERM, 0);
    asks (&g, 200, 1, 1, 64, 0);
    keeps (&g, 300, 1, 2, 32, 350, 3);
    ok (grants_count (&g, 340, &per_ms) == 1 && per_ms == 64, "a holder of two boxes is counted once");
    ok (grants_count (&g, 400, &per_ms) == 1 && per_ms == 32,
        "a holder whose returned granules are over is counted for those that it kept");
    grants_look (&g, 1500 * MS);
    ok (grants_wanted (&g, 1500 * MS) == 32, "a holder's want counts as long as it may use any of its boxes");
    grants_fini (&g);
}

/* All is kept by the granter. */
static void test_starved (void)
{
    struct grants g;
    struct want w = want_of (1, 5, 64, 0), old = want_of (1, 4, 64, 0);
    uint32_t per_ms, ranks[GRANTS_MAX];

    grants_init (&g, TERM, 0);
    ok (!answers (&g, 200, 1024, &w) && g.count == 1 && grants_low_ms (&g, 200 * MS) == UINT64_MAX
            && grants_left_ms (&g, 200 * MS) == 0 && grants_end (&g) == 0 && free_at (&g, 300) == UINT64_MAX
            && grants_count (&g, 200, &per_ms) == 0 && grants_ranks (&g, 200, ranks) == 0 && grants_top (&g, 0) == 0,
        "a requester that got nothing is in the table, and holds nothing");
    ok (!answers (&g, 210, 0, &old), "a request that overtook the one that got nothing is answered only in order");
    grants_forget (&g, 1199 * MS, 1199);
    ok (g.count == 1, "a requester that got nothing is remembered for a term");
    grants_forget (&g, 1200 * MS, 1200);
    ok (g.count == 0, "a requester that got nothing is forgotten after a term");
    answers (&g, 1300, 1024, &w);
    asks (&g, 1300, 1, 6, 0, 1);
    ok (g.count == 0, "a requester that got nothing and returns is forgotten immediately");
    answers (&g, 1300, 1024, &w);
    ok (answers (&g, 1400, 0, &w) && is (15, 1401, 2400) && g.count == 1,
        "a requester that got nothing gets a part when there is one");
    w = want_of (1, 6, 64, 1);
    ok (!answers (&g, 1400, 1024, &w) && g.count == 1 && free_at (&g, 1500) == UINT64_MAX
            && grants_wanted (&g, 1500 * MS) == 64,
        "a holder that returns all of its part with a request is remembered like a requester that got nothing");
    grants_fini (&g);
}

/* --- time for other kinds of ids --------------------------------------------------------------------------- */

static bool gets_time (struct grants *g, uint64_t now_ms, const char *who, uint64_t number, uint64_t lo, uint64_t hi)
{
    const struct box held = { 0, UINT64_MAX, { 50, 100000 } };
    const struct grants_stock stock = { .whole = &held, .until_us = NEVER };
    struct want w = whole_want (who, number, 0);

    w.rank = 0;
    return grants_answer (g, now_ms * MS, now_ms, &stock, &w, got) == 1 && got[0].box.granules == UINT64_MAX
           && got[0].box.range.lo_ms == lo && got[0].box.range.hi_ms == hi;
}

static void returns_time (struct grants *g, uint64_t now_ms, const char *who, uint64_t number, uint64_t end_ms)
{
    const struct grants_stock none = { .whole = NULL };
    struct want w = whole_want (who, number, end_ms);

    w.rank = w.size = 0;
    grants_answer (g, now_ms * MS, now_ms, &none, &w, got);
}

static void test_time (void)
{
    struct grants g;

    grants_init (&g, 100, 1);
    ok (gets_time (&g, 60, A, 1, 50, 160) && gets_time (&g, 100, A, 2, 50, 200),
        "time is granted from the begin of the box, and follows what was granted last");
    ok (gets_time (&g, 120, B, 3, 200, 220) && g.count == 1, "time of another holder begins after all earlier time");
    returns_time (&g, 121, A, 4, 60);
    ok (grants_end (&g) == 220, "a return of a holder that was replaced has no effect");
    returns_time (&g, 122, B, 5, 1);
    ok (gets_time (&g, 130, C, 6, 200, 230),
        "after a holder returned all of its time, no time of an earlier holder is granted again");
    returns_time (&g, 131, C, 7, 210);
    ok (gets_time (&g, 140, D, 8, 210, 240), "time that was returned is granted again");
    returns_time (&g, 141, D, 9, 1);
    ok (gets_time (&g, 142, A, 10, 210, 242), "the end of earlier time is known after all holders returned theirs");
    grants_fini (&g);
}

int main (void)
{
    test_wholes ();
    test_promise ();
    test_back ();
    test_back_of_a_row ();
    test_handover ();
    test_raise ();
    test_all ();
    test_random ();
    test_box_sizes ();
    test_parts ();
    test_wants ();
    test_kept ();
    test_each ();
    test_adjacent ();
    test_returned ();
    test_incarnations ();
    test_what_is_kept ();
    test_begin_of_whole ();
    test_extensions ();
    test_use ();
    test_slow_holder ();
    test_forget ();
    test_limits ();
    test_greedy_rank ();
    test_greedy_holder ();
    test_full_table ();
    test_restore ();
    test_share ();
    test_shares ();
    test_count ();
    test_starved ();
    test_time ();
    return done_testing ();
}
