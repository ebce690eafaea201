/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark_test.c - the watermark waits exactly for the ranks that may still make an id below it */
#include <errno.h>
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/grants.h"
#include "modules/fluid/lease/held.h"
#include "modules/fluid/lease/watermark.h"

#define A "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define B "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define C "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
#define LEASE 1000
#define NO_ID_BEFORE (LEASE + LEASE / 4 + LEASE / 40 + 1) /* a range granted at 0 cannot be used any longer */

static const struct lease_record fresh = { 0 };

static struct report report (const char *from, uint64_t low_ms)
{
    struct report r = { .low_ms = low_ms };

    strcpy (r.from, from);
    return r;
}

/* A report of 'from' for itself and one generator. */
static struct report own_report (const char *from, uint32_t generator, uint64_t low_ms)
{
    struct report r = report (from, low_ms);

    holders_add (&r.holders, generator, from);
    return r;
}

static void given (struct watermark *w, uint64_t now_ms, uint32_t rank, const char *who)
{
    struct grant g = { .rank = rank };

    strcpy (g.incarnation, who);
    watermark_given (w, now_ms, &g);
}

static void test_sets (void)
{
    struct holders a = { 0, 0 }, b = { 0, 0 }, c = { 0, 0 };

    holders_add (&a, 1, A);
    holders_add (&a, 2, B);
    holders_add (&b, 2, B);
    holders_add (&b, 1, A);
    ok (memcmp (&a.sum, &b.sum, sizeof (a.sum)) == 0 && a.count == 2,
        "the sum of a set of holders does not depend on their order");
    holders_add (&c, 1, B);
    holders_add (&c, 2, A);
    ok (a.sum != c.sum, "the sum of a set of holders depends on the holder of each generator");
    c = (struct holders){ 0, 0 };
    holders_add (&c, 1, A);
    holders_add (&c, 1, A);
    ok (a.sum != c.sum && c.sum != 0, "a set in which a holder was counted twice has another sum");
}

static void test_reports (void)
{
    struct reports reports = { .keep_us = 100 }, *r = &reports;
    struct report all = report (A, UINT64_MAX), x = own_report (A, 1, 50), y = own_report (B, 2, 40),
                  none = report (C, 7);

    ok (reports_take (r, 0, &y) == 0 && reports_take (r, 10, &x) == 0 && reports_take (r, 10, &none) == 0,
        "the reports of several children are accepted");
    reports_join (r, 20, &all);
    ok (all.holders.count == 2 && all.low_ms == 40,
        "reports are joined to the lowest position, without the positions of reports of an empty set");
    y.low_ms = 60;
    reports_take (r, 90, &y);
    all = report (A, UINT64_MAX);
    reports_join (r, 100, &all);
    ok (all.holders.count == 2 && all.low_ms == 50, "a child's newest report replaces the child's previous one");
    x.rank = 3;
    reports_take (r, 105, &x);
    all = report (A, UINT64_MAX);
    reports_join (r, 105, &all);
    ok (all.holders.count == 3,
        "a report of another incarnation of the same rank does not replace the report of the first");
    reports.count = 2;
    x.rank = 0;
    all = report (A, UINT64_MAX);
    reports_join (r, 110, &all);
    ok (all.holders.count == 1 && all.low_ms == 60, "the report of a child that has been silent for long is left out");
    free (reports.entry);

    reports = (struct reports){ .keep_us = 100 };
    bool sorted = true;
    for (int i = 0; i < 1000; i++) {
        x.from[0] = (char)('a' + i * 7 % 26);
        x.from[1] = (char)('a' + i * 11 % 27);
        sorted = sorted && reports_take (r, 0, &x) == 0;
    }
    all = report (A, UINT64_MAX);
    reports_join (r, 0, &all);
    ok (sorted && all.holders.count == 26 * 27, "each of many children counts once in the joined report");
    for (uint32_t i = 0; reports.count < REPORTS_MAX && i < 2 * REPORTS_MAX; i++) {
        memcpy (x.from, (char[4]){ (char)(1 + i / 1681 % 41), (char)(1 + i / 41 % 41), (char)(1 + i % 41), 'x' }, 4);
        sorted = sorted && reports_take (r, 0, &x) == 0;
    }
    x.from[3] = 'y';
    ok (sorted && reports_take (r, 0, &x) < 0 && errno == ENOBUFS,
        "reports of more than REPORTS_MAX children are refused");
    free (reports.entry);
}

static void test_root (void)
{
    struct watermark *w = watermark_create (10, LEASE, &fresh, 0);
    struct report none = report (C, UINT64_MAX), a = own_report (A, 1, 90), b = own_report (A, 1, 250);
    struct want back = { .rank = 1, .incarnation = B };

    ok (watermark_raise (w, 50, 5000, &none) == 50 && !watermark_any_holder (w, 50),
        "while no lease is held the watermark is the root's time");
    ok (watermark_raise (w, 60, 55, &none) == 55, "the watermark does not exceed the durable horizon");
    given (w, 100, 1, A);
    ok (watermark_raise (w, 200, 5000, &none) == 55, "a holder that has not reported holds the watermark back");
    ok (watermark_raise (w, 200, 5000, &a) == 90, "a holder that has reported holds the watermark at its position");
    holders_add (&b.holders, 2, B);
    ok (watermark_raise (w, 300, 5000, &b) == 90,
        "a report that counts a holder without a lease does not raise the watermark");
    given (w, 310, 2, B);
    ok (watermark_raise (w, 320, 5000, &b) == 250,
        "when all holders have reported, the watermark is their lowest position");
    b.low_ms = 100;
    ok (watermark_raise (w, 330, 5000, &b) == 250, "the watermark never decreases");
    watermark_back (w, 330, &back);
    b.low_ms = 320;
    ok (watermark_raise (w, 340, 5000, &b) == 320, "the return of a holder that was replaced has no effect");
    back.rank = 2;
    watermark_back (w, 330, &back);
    a.low_ms = 335;
    ok (watermark_raise (w, 350, 5000, &a) == 335, "the watermark does not wait for a holder that returned its ranges");
    ok (watermark_raise (w, 100 + NO_ID_BEFORE - 1, 5000, &none) == 335
            && watermark_raise (w, 100 + NO_ID_BEFORE, 5000, &none) == 100 + NO_ID_BEFORE,
        "the watermark waits a lease and a quarter for a silent holder, and no longer");
    free (w);
}

/* A holder that returned its ranges has granted parts of them, of which others make ids a while longer, by clocks that
 * are at most 2 % slower.
 */
static void test_parts (void)
{
    struct watermark *w = watermark_create (10, LEASE, &fresh, 0);
    const struct report none = report (C, UINT64_MAX);
    struct want back = { .rank = 1, .incarnation = A, .left_ms = 200 };

    given (w, 100, 1, A);
    watermark_back (w, 300, &back);
    ok (watermark_raise (w, 504, 5000, &none) == 0 && watermark_raise (w, 505, 5000, &none) == 505,
        "after a holder's return the watermark waits while others use parts of its ranges");
    given (w, 600, 1, A);
    back.left_ms = 100 * LEASE;
    watermark_back (w, 700, &back);
    ok (watermark_raise (w, 600 + NO_ID_BEFORE - 1, 50000, &none) == 505
            && watermark_raise (w, 600 + NO_ID_BEFORE, 50000, &none) == 600 + NO_ID_BEFORE,
        "the watermark waits for parts of a holder's ranges no longer than it waits for the ranges themselves");
    free (w);
}

static void test_replaced (void)
{
    struct watermark *w = watermark_create (10, LEASE, &fresh, 0);
    struct report b = own_report (B, 1, 100), both = own_report (B, 1, 120);

    given (w, 0, 1, A);
    given (w, 10, 1, B);
    ok (watermark_raise (w, 200, 5000, &b) == 0, "the watermark waits for a replaced holder");
    holders_add (&both.holders, 1, A);
    ok (watermark_raise (w, 200, 5000, &both) == 120, "the watermark does not wait for a replaced holder that reports");
    b.low_ms = 1500;
    given (w, 1000, 1, B);
    ok (watermark_raise (w, NO_ID_BEFORE - 1, 5000, &b) == 120
            && watermark_raise (w, NO_ID_BEFORE + LEASE / 4 + 1, 5000, &b) == 1500,
        "the watermark waits for a replaced holder until its ranges can no longer be in use, up to a quarter of a "
        "lease longer");
    for (uint64_t now = 2000; now < 20000; now += 10)
        given (w, now, 1, now % 20 == 0 ? A : B);
    struct report last = own_report (B, 1, 30000);
    given (w, 20000, 1, B);
    ok (watermark_raise (w, 20001, 50000, &last) == 1500
            && watermark_raise (w, 19980 + NO_ID_BEFORE - 1, 50000, &last) == 1500,
        "the watermark waits for any number of replaced holders");
    given (w, 21000, 1, B);
    ok (watermark_raise (w, 20000 + NO_ID_BEFORE + LEASE / 4, 50000, &last) > 21000,
        "when the ranges of replaced holders can no longer be in use, the watermark rises");
    free (w);
}

static void given_from (struct watermark *w, uint64_t now_ms, uint32_t rank, const char *who, uint64_t lo_ms)
{
    struct grant g = { .rank = rank, .box = { rank, UINT64_MAX, { lo_ms, now_ms + LEASE } } };

    strcpy (g.incarnation, who);
    watermark_given (w, now_ms, &g);
}

/* One broker is restarted each tenth of a lease, and crashes before it reports, or after; each life is granted ranges
 * above all earlier ones. Another broker always reports.
 */
static void crash_on (const char *what, bool tells)
{
    struct watermark *w = watermark_create (10, LEASE, &fresh, 0);
    char life[IDT_MSG_UUID_LEN + 1] = A;
    uint64_t behind_ms = 0, last = 0, stood_ms = 0, most_ms = 0;

    given_from (w, 0, 1, A, 0);
    given_from (w, 0, 2, B, 0);
    for (uint64_t now = 100; now < 40 * LEASE; now += 100) {
        struct report all = own_report (B, 2, now);

        if (tells) { /* this life, or the one before, whose report was not dropped yet */
            holders_add (&all.holders, 1, life);
            all.low_ms = now - 100;
        }
        uint64_t ms = watermark_raise (w, now, 50000, &all);
        stood_ms = ms > last ? 0 : stood_ms + 100;
        most_ms = stood_ms > most_ms ? stood_ms : most_ms;
        behind_ms = now - ms;
        last = ms;
        life[0] = (char)('a' + now / 100 % 26);
        given_from (w, now, 1, life, now - 100 + LEASE);
        given_from (w, now, 2, B, now - 100 + LEASE);
    }
    ok (most_ms <= LEASE + LEASE / 2 + 100, "%s: the watermark does not advance for at most %ju ms", what,
        (uintmax_t)most_ms);
    ok (behind_ms <= LEASE, "%s: at the end the watermark is %ju ms behind", what, (uintmax_t)behind_ms);
    free (w);
}

/* Holders that do not report are left out only if their ranges begin above the watermark. */
static void test_begin (void)
{
    struct watermark *w = watermark_create (10, LEASE, &fresh, 0);
    struct report b = own_report (B, 2, 3000);

    given_from (w, 100, 2, B, 50);
    given_from (w, 2800, 2, B, 1100);
    given_from (w, 2800, 1, A, 2850);
    ok (watermark_raise (w, 2900, 5000, &b) == 2850,
        "a holder that has not reported holds the watermark at the begin of its range");
    given_from (w, 2900, 1, C, 3800);
    b.low_ms = 3100;
    ok (watermark_raise (w, 3200, 5000, &b) == 2850,
        "a holder that was replaced before it reported holds the watermark at the begin of its range");
    holders_add (&b.holders, 1, A);
    ok (watermark_raise (w, 3200, 5000, &b) == 3100,
        "a replaced holder that reports, and a new holder whose range begins above, do not hold the watermark back");
    b = own_report (C, 1, 3500);
    ok (watermark_raise (w, 3600, 5000, &b) == 3100,
        "the watermark waits for a holder that has reported and then became silent");
    b = own_report (C, 3, 3500);
    ok (watermark_raise (w, 3600, 5000, &b) == 3100,
        "a report that counts a holder without a lease does not stand for another holder");
    free (w);
}

static void test_restart (void)
{
    struct lease_record r = { .horizon_ms = 3000, .watermark_ms = 700, .settle_ms = 1000 };
    struct report none = report (C, UINT64_MAX);
    struct watermark *w = watermark_create (10, 100, &r, 3000);

    ok (watermark_raise (w, 3999, 9000, &none) == 700, "a new root starts with the stored watermark");
    watermark_record (w, 3200, 0, &r);
    ok (r.watermark_ms == 700 && r.settle_ms == 800,
        "a new root stores for how long leases of an earlier root may still be in use");
    ok (watermark_raise (w, 4000, 9000, &none) == 4000,
        "when leases of an earlier root can no longer be in use, the watermark rises");
    watermark_record (w, 4000, 0, &r);
    ok (r.watermark_ms == 4000 && r.settle_ms > 125 && r.settle_ms < 130,
        "a root stores for how long its own leases may be in use");
    free (w);

    r = (struct lease_record){ .horizon_ms = 3000, .watermark_ms = 3000, .settle_ms = 1000 };
    w = watermark_create (10, 100, &r, 3000);
    ok (watermark_raise (w, 3001, 9000, &none) == 3001,
        "when a root starts after a clean stop without holders, the watermark rises immediately");
    free (w);
}

/* The root's clock steps forward: that does not shorten the time of any lease. */
static void test_step (void)
{
    struct lease_record r = { .horizon_ms = 3000, .watermark_ms = 700, .settle_ms = 1000 };
    struct report none = report (C, UINT64_MAX);
    struct watermark *w = watermark_create (10, LEASE, &r, 3000);

    watermark_stepped (w, 500000);
    watermark_stepped (w, 250001);
    ok (watermark_raise (w, 4750, 9000, &none) == 700 && watermark_raise (w, 4751, 9000, &none) == 4751,
        "a step of the root's clock does not shorten the wait for leases of an earlier root");
    given (w, 5000, 1, A);
    watermark_stepped (w, 1000);
    ok (watermark_raise (w, 5000 + NO_ID_BEFORE, 9000, &none) == 4751
            && watermark_raise (w, 5001 + NO_ID_BEFORE, 9000, &none) == 5001 + NO_ID_BEFORE,
        "a step of the root's clock does not shorten the wait for a silent holder");
    free (w);
    r = (struct lease_record){ .horizon_ms = 3000, .watermark_ms = 700, .settle_ms = 5000 };
    w = watermark_create (10, 100, &r, 3000);
    watermark_record (w, 0, 0, &r);
    ok (r.settle_ms == 5000 && watermark_any_holder (w, 0),
        "a root that stops before its time began keeps the stored record");
    free (w);
}

/* --- all histories of a small world --------------------------------------------------------------- */

/* One generator and lives that request it. The clock of each was set by the root that it reached last, and is its
 * number of milliseconds behind. A life may make an id at its time while it may use a range. After each event it is
 * checked that no life can make an id below the published watermark.
 */
#define LIVES 2
#define DEPTH 5 /* plus two events that are always the first */
#define SMALL_LEASE 4

enum {
    EV_TIME,
    EV_STORE,
    EV_CRASH,
    EV_STOP,
    EV_TELL,
    EV_ASK,
    EV_LOSE = EV_ASK + LIVES,
    EV_REPORT = EV_LOSE + LIVES,
    EV_BACK = EV_REPORT + LIVES,
    EV_COUNT = EV_BACK + LIVES
};

struct world {
    struct grants g;
    uint64_t stored_ms; /* the durable horizon, which is above that of the start */
    struct watermark *w;
    struct reports reports;
    struct lease_record disk;
    uint64_t real, now; /* ms: of all clocks except the root's, which a restart may set ahead */
    uint64_t told;
    struct held life[LIVES];
    uint64_t offset[LIVES]; /* of its reading from 'real', set by the root that it reached */
    bool broken;
};

static const char *const names[] = { A, B };

static uint64_t life_us (const struct world *w)
{
    return (w->real + 1000) * 1000;
}

static uint64_t life_ms (const struct world *w, int life)
{
    return w->real + w->offset[life];
}

static void start (struct world *w)
{
    w->now = w->now > w->disk.horizon_ms ? w->now : w->disk.horizon_ms;
    grants_init (&w->g, SMALL_LEASE, 1);
    w->g.floor_ms = w->stored_ms = w->disk.horizon_ms;
    w->w = watermark_create (1, SMALL_LEASE, &w->disk, w->now);
    w->reports = (struct reports){ .keep_us = 1000000 };
}

static void end (struct world *w)
{
    grants_fini (&w->g);
    free (w->w);
    free (w->reports.entry);
}

/* A horizon is stored two leases ahead when it is less than one and a half away. */
static void store (struct world *w)
{
    struct lease_record r = { .horizon_ms = w->now + 2 * SMALL_LEASE };

    if (w->stored_ms >= w->now + SMALL_LEASE * 3 / 2)
        return;
    watermark_record (w->w, w->now, 0, &r);
    w->disk = r;
    w->stored_ms = r.horizon_ms;
}

static void clean_stop (struct world *w)
{
    struct lease_record r = { .horizon_ms = grants_end (&w->g) };

    watermark_record (w->w, w->now, 0, &r);
    if (!watermark_any_holder (w->w, w->now))
        r.watermark_ms = r.horizon_ms;
    w->disk = r;
}

static void tell (struct world *w)
{
    struct report all = report (C, UINT64_MAX);

    reports_join (&w->reports, 0, &all);
    uint64_t ms = watermark_raise (w->w, w->now, w->stored_ms, &all);
    grants_raise (&w->g, ms);
    if (w->told < ms)
        w->told = ms;
}

static bool answer (struct world *w, const struct want *want, struct grant *grant)
{
    const struct box whole = { 0, UINT64_MAX, { 0, w->stored_ms } };
    const struct grants_stock stock = { .whole = &whole, .until_us = UINT64_MAX };

    struct grant boxes[GRANTS_EACH];
    bool any = grants_answer (&w->g, w->now * 1000, w->now, &stock, want, boxes) > 0;

    *grant = boxes[0];
    return any;
}

/* It learns the root's time with the answer, late by its number. A lost answer may have been granted all the same. */
static void ask (struct world *w, int life, bool lost)
{
    struct want want;
    struct grant g;

    if (w->life[life].closed)
        return;
    held_ask (&w->life[life], life_us (w), life_ms (w, life), BOX_WHOLE, 0, 0, &want);
    if (!answer (w, &want, &g))
        return;
    watermark_given (w->w, w->now, &g);
    if (lost)
        return;
    if (w->now - (uint64_t)life > life_ms (w, life))
        w->offset[life] = w->now - (uint64_t)life - w->real;
    held_take (&w->life[life], life_us (w), life_ms (w, life), &g, 1, 0, 0);
}

static void send_report (struct world *w, int life)
{
    struct report r = report (names[life], life_ms (w, life));

    if (held_is_counted (&w->life[life], life_us (w)))
        holders_add (&r.holders, 0, names[life]);
    reports_take (&w->reports, 0, &r);
}

static void give_back (struct world *w, int life)
{
    struct want back;
    struct grant g;

    if (w->life[life].closed)
        return;
    bool any = held_return (&w->life[life], life_ms (w, life), 0, &back);
    held_close (&w->life[life]);
    if (!any)
        return;
    answer (w, &back, &g);
    watermark_back (w->w, w->now, &back);
}

static void restart (struct world *w)
{
    end (w);
    start (w);
}

static void play (struct world *w, int event)
{
    if (event == EV_TIME) {
        w->now += 2;
        w->real += 2;
    }
    else if (event == EV_STORE)
        store (w);
    else if (event == EV_CRASH)
        restart (w);
    else if (event == EV_STOP) {
        clean_stop (w);
        restart (w);
    }
    else if (event == EV_TELL)
        tell (w);
    else if (event >= EV_BACK)
        give_back (w, event - EV_BACK);
    else if (event >= EV_REPORT)
        send_report (w, event - EV_REPORT);
    else if (event >= EV_LOSE)
        ask (w, event - EV_LOSE, true);
    else
        ask (w, event - EV_ASK, false);
    for (int i = 0; i < LIVES; i++) {
        struct lease l;

        if (life_ms (w, i) < w->told && held_find (&w->life[i], life_us (w), life_ms (w, i), &l))
            w->broken = true;
    }
}

static void begin (struct world *w)
{
    *w = (struct world){ .now = 10, .real = 0, .offset = { 9, 9 } };
    for (int i = 0; i < LIVES; i++)
        held_init (&w->life[i], 0, names[i], true, SMALL_LEASE);
    w->disk = (struct lease_record){ .horizon_ms = 10, .watermark_ms = 10 };
    start (w);
    play (w, EV_STORE);
    play (w, EV_ASK);
}

static void test_all (void)
{
    long histories = 1, broken = 0, raised = 0;

    for (int i = 0; i < DEPTH; i++)
        histories *= EV_COUNT;
    for (long history = 0; history < histories; history++) {
        struct world w;

        begin (&w);
        for (long h = history, i = 0; i < DEPTH; i++, h /= EV_COUNT)
            play (&w, (int)(h % EV_COUNT));
        broken += w.broken;
        raised += w.told > 10;
        end (&w);
    }
    ok (broken == 0 && raised > 100,
        "in all %ld histories of %d events no id can be made below the published watermark", histories, DEPTH);
}

static void test_random (void)
{
    uint64_t seed = 1;
    long broken = 0;

    for (int run = 0; run < 20000; run++) {
        struct world w;

        begin (&w);
        for (int i = 0; i < 60; i++) {
            seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407;
            play (&w, (int)((seed >> 33) % EV_COUNT));
        }
        broken += w.broken;
        end (&w);
    }
    ok (broken == 0, "in 20000 long random histories no id can be made below the published watermark");
}

int main (void)
{
    test_sets ();
    test_reports ();
    test_root ();
    test_parts ();
    test_replaced ();
    test_begin ();
    crash_on ("a broker that crashes before it reports", false);
    crash_on ("a broker that crashes when it has reported", true);
    test_restart ();
    test_step ();
    test_all ();
    test_random ();
    return done_testing ();
}
