/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - below what time no id will be made any more
 *
 * Invariant: nobody can make an id below the watermark any more.  Those who may make ids at all are
 * (1) a lessee of a range of this root.  It is live, and then one of those that reported a position at or above the
 *     watermark (W_SET); or it gave back, and is closed for good; or a lease and a quarter have passed since the root
 *     gave its last range, so that it uses none of them (W_USE, kept by lessee.c);
 * (2) a lessee of a range of a root before.  As long as it may use that, the watermark stays at what that
 *     root had stored (W_SETTLE);
 * (3) who is given a range later.  That begins at or above the watermark (W_LO, lease.c), also if a root gives it
 *     that starts after a crash, at the stored horizon: the watermark is not above it (W_HOR).
 */
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/lease/watermark.h"

/* --- sets --------------------------------------------------------------------------------------- */

static uint64_t mix (uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t hash (uint32_t generator, const char *incarnation)
{
    uint64_t h = generator + UINT64_C (0x9e3779b97f4a7c15);

    for (const char *p = incarnation; *p; p++)
        h = mix (h ^ (unsigned char)*p);
    return h;
}

void lessees_add (struct lessees *set, uint32_t generator, const char *incarnation)
{
    set->count++;
    set->sum += hash (generator, incarnation);
}

static void lessees_join (struct lessees *set, const struct lessees *other)
{
    set->count += other->count;
    set->sum += other->sum;
}

static bool same (const struct lessees *a, const struct lessees *b)
{
    return a->count == b->count && a->sum == b->sum;
}

/* --- children's reports --------------------------------------------------------------------------- */

struct report_entry {
    struct report report;
    uint64_t received_us;
};

static int compare (const struct report *a, const struct report *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp (a->from, b->from);
}

/* The place of a report, or where it would be. */
static size_t place (const struct reports *r, const struct report *report)
{
    size_t lo = 0, hi = r->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (compare (&r->entry[mid].report, report) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int grow (struct reports *r)
{
    size_t size = r->size ? 2 * r->size : 32;
    struct report_entry *entry;

    if (r->count == REPORTS_MAX)
        return errset (ENOBUFS);
    if (!(entry = realloc (r->entry, size * sizeof (*entry))))
        return -1;
    r->entry = entry;
    r->size = size;
    return 0;
}

int reports_take (struct reports *r, uint64_t now_us, const struct report *report)
{
    size_t i = place (r, report);

    if (i == r->count || compare (&r->entry[i].report, report) != 0) {
        if (r->count == r->size && grow (r) < 0)
            return -1;
        memmove (&r->entry[i + 1], &r->entry[i], (r->count - i) * sizeof (r->entry[0]));
        r->count++;
    }
    r->entry[i] = (struct report_entry){ .report = *report, .received_us = now_us };
    return 0;
}

static void drop_silent (struct reports *r, uint64_t now_us)
{
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++)
        if (now_us - r->entry[i].received_us < r->keep_us)
            r->entry[n++] = r->entry[i];
    r->count = n;
}

void reports_join (struct reports *r, uint64_t now_us, struct report *all)
{
    drop_silent (r, now_us);
    for (size_t i = 0; i < r->count; i++) {
        const struct report *report = &r->entry[i].report;

        lessees_join (&all->lessees, &report->lessees);
        if (report->lessees.count > 0)
            all->low_ms = min_u64 (all->low_ms, report->low_ms);
    }
}

/* --- the root ------------------------------------------------------------------------------------- */

/* The newest lessee of a generator. */
struct live {
    uint64_t hash;
    uint64_t until_ms; /* it may use what it was given; 0: nobody */
};

/* Those that were replaced, by when they cannot use their ranges any more: that is kept to a quarter of a lease, so
 * that a few rows are enough for any number.
 */
#define ROWS 8

struct row {
    uint64_t until_ms;
    struct lessees lessees;
};

/* All 'until' and 'settled_ms' are in passed_ms (): the instance's time without the steps of the root's clock. */
struct watermark {
    uint64_t lease_ms;
    uint64_t told_ms;
    uint64_t begin_ms;   /* the time when the root started */
    uint64_t stepped_us; /* by how much its clock was set forward since */
    uint64_t settled_ms; /* from then on nobody uses a range of a root before */
    struct row row[ROWS];
    uint32_t ngenerators;
    struct live live[];
};

/* How long after it was given a range may be in use: it is asked for before it is given. */
static uint64_t use_ms (uint64_t lease_ms)
{
    return LEASE_AT_MOST_MS (LEASE_USE_MS (lease_ms));
}

/* A root that waits for its time to begin (ahead.h) has none. */
static uint64_t passed_ms (const struct watermark *w, uint64_t now_ms)
{
    uint64_t stepped_ms = (w->stepped_us + 999) / 1000;

    return now_ms > w->begin_ms + stepped_ms ? now_ms - stepped_ms : w->begin_ms;
}

void watermark_stepped (struct watermark *w, uint64_t us)
{
    w->stepped_us += us;
}

struct watermark *watermark_create (uint32_t ngenerators, uint64_t lease_ms, const struct lease_record *stored,
                                    uint64_t now_ms)
{
    struct watermark *w = calloc (1, sizeof (*w) + ngenerators * sizeof (w->live[0]));

    if (!w)
        return NULL;
    w->ngenerators = ngenerators;
    w->lease_ms = lease_ms;
    w->told_ms = stored->watermark_ms;
    w->begin_ms = now_ms;
    if (stored->watermark_ms < stored->horizon_ms)
        w->settled_ms = now_ms + stored->settle_ms;
    return w;
}

static void replace (struct watermark *w, uint64_t at_ms, const struct live *live)
{
    uint64_t quarter_ms = w->lease_ms / 4 + 1, n = live->until_ms / quarter_ms + 1;
    struct row *row = &w->row[n % ROWS];

    if (live->until_ms <= at_ms)
        return;
    if (row->until_ms != n * quarter_ms) /* the one that was there has passed */
        *row = (struct row){ .until_ms = n * quarter_ms };
    lessees_join (&row->lessees, &(struct lessees){ 1, live->hash });
}

void watermark_given (struct watermark *w, uint64_t now_ms, const struct lease_grant *grant)
{
    struct live *live = &w->live[grant->generator];
    uint64_t h = hash (grant->generator, grant->incarnation), at_ms = passed_ms (w, now_ms);

    if (live->hash != h)
        replace (w, at_ms, live);
    *live = (struct live){ h, at_ms + use_ms (w->lease_ms) };
}

void watermark_back (struct watermark *w, uint64_t now_ms, const struct lease_back *back)
{
    if (back->generator >= w->ngenerators || w->live[back->generator].hash != hash (back->generator, back->incarnation))
        return;
    struct live *live = &w->live[back->generator];

    if (back->left_ms == 0)
        *live = (struct live){ 0, 0 };
    else if (back->left_ms < use_ms (w->lease_ms)) /* W_LENT */
        live->until_ms = min_u64 (live->until_ms, passed_ms (w, now_ms) + LEASE_AT_MOST_MS (back->left_ms));
}

static struct lessees count_live (const struct watermark *w, uint64_t at_ms)
{
    struct lessees set = { 0, 0 };

    for (uint32_t g = 0; g < w->ngenerators; g++)
        if (w->live[g].until_ms > at_ms)
            lessees_join (&set, &(struct lessees){ 1, w->live[g].hash });
    for (size_t i = 0; i < ROWS; i++)
        if (w->row[i].until_ms > at_ms)
            lessees_join (&set, &w->row[i].lessees);
    return set;
}

bool watermark_any_lessee (const struct watermark *w, uint64_t now_ms)
{
    uint64_t at_ms = passed_ms (w, now_ms);

    return at_ms < w->settled_ms || count_live (w, at_ms).count > 0;
}

uint64_t watermark_raise (struct watermark *w, uint64_t now_ms, uint64_t horizon_ms, const struct report *all)
{
    uint64_t at_ms = passed_ms (w, now_ms);
    struct lessees live = count_live (w, at_ms);
    uint64_t ms = min_u64 (min_u64 (all->low_ms, now_ms), horizon_ms); /* W_HOR */

    if (at_ms >= w->settled_ms && same (&live, &all->lessees) && ms > w->told_ms) /* W_SETTLE, W_SET */
        w->told_ms = ms;
    return w->told_ms;
}

void watermark_record (const struct watermark *w, uint64_t now_ms, struct lease_record *record)
{
    record->watermark_ms = w->told_ms;
    record->settle_ms = use_ms (w->lease_ms);
    uint64_t at_ms = passed_ms (w, now_ms);

    if (w->settled_ms > at_ms + record->settle_ms) /* an earlier root's leases were longer */
        record->settle_ms = w->settled_ms - at_ms;
}
