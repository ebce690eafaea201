/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - the time below which no id will be made any longer
 *
 * Invariant: no rank can make an id below the watermark. Ids can be made only by
 *
 *   (1) a holder of a box of this root. Either it may use its boxes: then it reported a position at or above the
 *       watermark (POSITION_COUNTS_GRANTED), or all its boxes begin there or above (SILENT_ABOVE_BEGIN). Or it
 *       returned them, and is closed for good. Or a lease and a quarter have passed since the root granted its last
 *       box, so it uses none of them (USE_UNTIL_OVER, kept by held.c);
 *   (2) a holder of a box of an earlier root. As long as it may use that box, the watermark stays at the one
 *       that the earlier root stored (WAIT_AFTER_START). If the earlier root may still grant boxes, that is longer
 *       (WAIT_AFTER_TAKEOVER);
 *   (3) a holder of a later box. Such boxes begin at or above the watermark (BEGIN_ABOVE_TOLD, grants.c), also if
 *       they are granted by a root that starts at the stored horizon after a crash: the watermark is not above that
 *       (TELL_BELOW_HORIZON).
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

void holders_add (struct holders *set, uint32_t generator, const char *incarnation)
{
    set->count++;
    set->sum += hash (generator, incarnation);
}

static void holders_join (struct holders *set, const struct holders *other)
{
    set->count += other->count;
    set->sum += other->sum;
}

static bool same (const struct holders *a, const struct holders *b)
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

/* The index of a report, or where it would be inserted. */
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

        holders_join (&all->holders, &report->holders);
        if (report->holders.count > 0)
            all->low_ms = min_u64 (all->low_ms, report->low_ms);
    }
}

/* --- the root ------------------------------------------------------------------------------------- */

/* The newest holder of a generator, or a former one. */
struct live_holder {
    uint64_t hash;
    uint64_t until_ms; /* it may use its boxes until then; 0: no holder */
    uint64_t low_ms;   /* begin of the first box that it may use */
};

/* Holders that were replaced are grouped by the time until which they may use their boxes, rounded up to a quarter of
 * a lease. So a few rows are enough for any number of holders. The last 256 are kept one by one, because some of them
 * may report. If leases last a minute, a broker that restarts each second leaves 77 holders.
 */
#define ROWS 8
#define RECENT 256

struct watermark_row {
    uint64_t until_ms;
    struct holders holders;
    uint64_t low_ms; /* the lowest of the group */
};

/* All 'until_ms' and 'settled_ms' are results of passed_ms (): instance time without the steps of the root's clock. */
struct watermark {
    uint64_t lease_ms;
    uint64_t told_ms;
    uint64_t begin_ms;                 /* the time when the root started */
    uint64_t stepped_us;               /* sum of the steps of the root's clock since then */
    uint64_t settled_ms;               /* no box of an earlier root is in use from then on */
    struct live_holder recent[RECENT]; /* in order of their replacement */
    size_t nrecent;
    struct watermark_row row[ROWS];
    uint32_t ngenerators;
    struct live_holder live[];
};

/* How long after its grant a box may be in use, at most. The time of use begins earlier, at the request. */
static uint64_t use_ms (uint64_t lease_ms)
{
    return LEASE_AT_MOST_MS (LEASE_USE_MS (lease_ms));
}

/* The time that has passed. It does not advance for a root that waits for its begin (clock.h). */
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

static void put_into_row (struct watermark *w, uint64_t at_ms, const struct live_holder *live)
{
    uint64_t quarter_ms = w->lease_ms / 4 + 1, n = live->until_ms / quarter_ms + 1;
    struct watermark_row *row = &w->row[n % ROWS];

    if (live->until_ms <= at_ms)
        return;
    if (row->until_ms != n * quarter_ms) /* a group that has passed: reuse it */
        *row = (struct watermark_row){ .until_ms = n * quarter_ms, .low_ms = UINT64_MAX };
    holders_join (&row->holders, &(struct holders){ 1, live->hash });
    row->low_ms = min_u64 (row->low_ms, live->low_ms);
}

/* Add a holder that was replaced to 'recent'. If there is no room, the oldest entry is moved to a row. */
static void replace (struct watermark *w, uint64_t at_ms, const struct live_holder *live)
{
    size_t n = 0;

    if (live->until_ms <= at_ms)
        return;
    for (size_t i = 0; i < w->nrecent; i++)
        if (w->recent[i].until_ms > at_ms)
            w->recent[n++] = w->recent[i];
    if (n == RECENT) {
        put_into_row (w, at_ms, &w->recent[0]);
        memmove (&w->recent[0], &w->recent[1], --n * sizeof (w->recent[0]));
    }
    w->recent[n++] = *live;
    w->nrecent = n;
}

/* The begin of the first box that a new holder may use, if a box from 'lo_ms' on is granted to it. The holder may
 * be a former one that uses its former boxes under the new lease, too. Holders in rows, and holders of an earlier
 * root, are not known by name. So the result is the lowest begin of all holders that it may be.
 */
static uint64_t first_of (const struct watermark *w, uint64_t at_ms, uint64_t h, uint64_t lo_ms)
{
    if (at_ms < w->settled_ms)
        return 0;
    for (size_t i = 0; i < w->nrecent; i++)
        if (w->recent[i].hash == h && w->recent[i].until_ms > at_ms)
            lo_ms = min_u64 (lo_ms, w->recent[i].low_ms);
    for (size_t i = 0; i < ROWS; i++)
        if (w->row[i].until_ms > at_ms)
            lo_ms = min_u64 (lo_ms, w->row[i].low_ms);
    return lo_ms;
}

void watermark_given (struct watermark *w, uint64_t now_ms, const struct grant *grant)
{
    struct live_holder *live = &w->live[grant->rank];
    uint64_t h = hash (grant->rank, grant->incarnation), at_ms = passed_ms (w, now_ms);

    bool same = live->hash == h;
    if (!same)
        replace (w, at_ms, live);
    *live = (struct live_holder){ h, at_ms + use_ms (w->lease_ms),
                                  same ? live->low_ms : first_of (w, at_ms, h, grant->box.range.lo_ms) };
}

void watermark_back (struct watermark *w, uint64_t now_ms, const struct want *back)
{
    if (back->rank >= w->ngenerators || w->live[back->rank].hash != hash (back->rank, back->incarnation))
        return;
    struct live_holder *live = &w->live[back->rank];

    if (back->left_ms == 0)
        *live = (struct live_holder){ 0 };
    else if (back->left_ms < use_ms (w->lease_ms)) /* rule TELL_TIME_LEFT */
        live->until_ms = min_u64 (live->until_ms, passed_ms (w, now_ms) + LEASE_AT_MOST_MS (back->left_ms));
}

static struct holders count_live (const struct watermark *w, uint64_t at_ms)
{
    struct holders set = { 0, 0 };

    for (uint32_t g = 0; g < w->ngenerators; g++)
        if (w->live[g].until_ms > at_ms)
            holders_join (&set, &(struct holders){ 1, w->live[g].hash });
    for (size_t i = 0; i < w->nrecent; i++)
        if (w->recent[i].until_ms > at_ms)
            holders_join (&set, &(struct holders){ 1, w->recent[i].hash });
    for (size_t i = 0; i < ROWS; i++)
        if (w->row[i].until_ms > at_ms)
            holders_join (&set, &w->row[i].holders);
    return set;
}

/* --- holders that do not report ----------------------------------------------------------------------- */

#define NEWEST 4
#define STEPS 20000 /* steps of a search; few are needed, because holders that report are among the last */

/* Holders that may be left out because of the begin of their boxes, in order of their grants. Those in rows count as
 * groups.
 */
struct silent {
    struct {
        struct holders holders;
        uint64_t low_ms;
    } group[ROWS + RECENT + NEWEST];
    size_t count;
    unsigned steps;
};

/* A holder whose boxes begin at or below the current watermark cannot be left out. */
static void add_silent (const struct watermark *w, struct silent *s, struct holders holders, uint64_t low_ms)
{
    if (low_ms <= w->told_ms || holders.count == 0)
        return;
    s->group[s->count].holders = holders;
    s->group[s->count++].low_ms = low_ms;
}

/* Add the holders that got their first box last, NEWEST of them. The holders of all other generators must report. */
static void add_newest (const struct watermark *w, uint64_t at_ms, struct silent *s)
{
    const struct live_holder *newest[NEWEST] = { NULL };

    for (uint32_t g = 0; g < w->ngenerators; g++) {
        const struct live_holder *live = &w->live[g];

        for (size_t i = 0; live && live->until_ms > at_ms && i < NEWEST; i++)
            if (!newest[i] || live->low_ms > newest[i]->low_ms) {
                const struct live_holder *other = newest[i];
                newest[i] = live;
                live = other;
                if (!live)
                    break;
            }
    }
    for (size_t i = 0; i < NEWEST && newest[i]; i++)
        add_silent (w, s, (struct holders){ 1, newest[i]->hash }, newest[i]->low_ms);
}

static void find_silent (const struct watermark *w, uint64_t at_ms, struct silent *s)
{
    s->count = 0;
    s->steps = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (w->row[i].until_ms > at_ms)
            add_silent (w, s, w->row[i].holders, w->row[i].low_ms);
    for (size_t i = 0; i < w->nrecent; i++)
        if (w->recent[i].until_ms > at_ms)
            add_silent (w, s, (struct holders){ 1, w->recent[i].hash }, w->recent[i].low_ms);
    add_newest (w, at_ms, s);
}

/* Whether some groups from index 'i' on are exactly the holders in 'lack'. If so, lowers '*low_ms' to the lowest begin
 * of these groups.
 */
static bool make_up (struct silent *s, size_t i, struct holders lack, uint64_t *low_ms)
{
    if (lack.count == 0)
        return lack.sum == 0;
    for (; i < s->count && s->steps++ < STEPS; i++) {
        const struct holders *l = &s->group[i].holders;
        struct holders rest = { lack.count - l->count, lack.sum - l->sum };

        if (l->count <= lack.count && make_up (s, i + 1, rest, low_ms)) {
            *low_ms = min_u64 (*low_ms, s->group[i].low_ms);
            return true;
        }
    }
    return false;
}

/* Up to where the watermark may rise although some holders did not report; 0: it may not rise. A broker that crashes
 * again and again leaves holders that never report. Each was granted only boxes above all earlier ones, so the
 * watermark may rise to the begin of these (rule SILENT_ABOVE_BEGIN).
 */
static uint64_t bound_of_silent (const struct watermark *w, uint64_t at_ms, const struct holders *live,
                                 const struct holders *told)
{
    struct holders lack = { live->count - told->count, live->sum - told->sum };
    uint64_t low_ms = UINT64_MAX;
    struct silent s;

    if (told->count > live->count)
        return 0;
    find_silent (w, at_ms, &s);
    return make_up (&s, 0, lack, &low_ms) ? low_ms : 0;
}

bool watermark_any_holder (const struct watermark *w, uint64_t now_ms)
{
    uint64_t at_ms = passed_ms (w, now_ms);

    return at_ms < w->settled_ms || count_live (w, at_ms).count > 0;
}

uint64_t watermark_raise (struct watermark *w, uint64_t now_ms, uint64_t horizon_ms, const struct report *all)
{
    uint64_t at_ms = passed_ms (w, now_ms);
    struct holders live = count_live (w, at_ms);
    uint64_t ms = min_u64 (min_u64 (all->low_ms, now_ms), horizon_ms); /* rule TELL_BELOW_HORIZON */

    if (at_ms < w->settled_ms) /* rule WAIT_AFTER_START */
        return w->told_ms;
    if (!same (&live, &all->holders)) /* rule POSITION_COUNTS_GRANTED */
        ms = min_u64 (ms, bound_of_silent (w, at_ms, &live, &all->holders));
    w->told_ms = max_u64 (w->told_ms, ms);
    return w->told_ms;
}

void watermark_record (const struct watermark *w, uint64_t now_ms, uint64_t grants_ms, struct lease_record *record)
{
    record->watermark_ms = w->told_ms;
    record->settle_ms = use_ms (w->lease_ms) + (grants_ms > 0 ? LEASE_AT_MOST_MS (grants_ms) : 0);
    uint64_t at_ms = passed_ms (w, now_ms);

    if (w->settled_ms > at_ms + record->settle_ms) /* an earlier root's leases were longer */
        record->settle_ms = w->settled_ms - at_ms;
}
