/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lender.c - the subleases that a rank has granted
 *
 * Two invariants, like those in lease.c:
 * 1. A sublease is granted to one borrower only, and the rank makes no id of it. It contains nothing of another
 *    sublease and nothing of which ids were made. It stays in the table until its borrower promises not to use the
 *    rest, or the rank's own ids are past its end.
 * 2. This holds across restarts, because everything below the end of any sublease counts as used when the rank returns
 *    what it holds; a rank that crashes returns nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/lender.h"

void lender_init (struct lender *l, uint64_t term_ms)
{
    *l = (struct lender){ .term_ms = term_ms };
}

void lender_fini (struct lender *l)
{
    free (l->loan);
    *l = (struct lender){ 0 };
}

const void *lender_table (const struct lender *l, size_t *size)
{
    *size = l->count * sizeof (*l->loan);
    return l->loan;
}

static bool make_table (struct lender *l)
{
    return l->loan || (l->loan = calloc (LENDER_MAX, sizeof (*l->loan)));
}

bool lender_restore (struct lender *l, uint64_t floor_ms, const void *table, size_t size)
{
    l->floor_ms = floor_ms;
    if (size == 0)
        return true;
    if (size > LENDER_MAX * sizeof (*l->loan) || !make_table (l))
        return false;
    memcpy (l->loan, table, size);
    l->count = size / sizeof (*l->loan);
    return true;
}

/* --- what is not subleased ---------------------------------------------------------------------- */

/* The granules of a generator that are in no sublease in a range of time. */
static uint64_t not_lent (const struct lender *l, uint32_t generator, const struct range *range)
{
    uint64_t granules = UINT64_MAX;

    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (o->generator == generator && o->range.lo_ms < range->hi_ms && range->lo_ms < o->range.hi_ms)
            granules &= ~o->granules; /* rules S_ASIDE, S_AREA */
    return granules;
}

uint64_t lender_free (const struct lender *l, const struct area *whole, uint64_t ms, uint64_t *until_ms)
{
    *until_ms = max_u64 (whole->range.hi_ms, ms + 1);
    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++) {
        if (o->range.lo_ms > ms)
            *until_ms = min_u64 (*until_ms, o->range.lo_ms);
        else if (o->range.hi_ms > ms)
            *until_ms = min_u64 (*until_ms, o->range.hi_ms);
    }
    return whole->granules & not_lent (l, whole->generator, &(struct range){ ms, ms + 1 });
}

uint32_t lender_top (const struct lender *l, uint64_t ms)
{
    uint64_t granules = 0;

    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (o->range.hi_ms > ms)
            granules |= o->granules;
    return granules == 0 ? 0 : FLUID_GRANULES - (uint32_t)__builtin_clzll (granules);
}

/* --- the table ---------------------------------------------------------------------------------- */

static bool is_life (const struct loan_out *o, uint32_t rank, const char *incarnation)
{
    return o->rank == rank && strcmp (o->borrower, incarnation) == 0;
}

static bool is_of (const struct loan_out *o, const struct share_want *want)
{
    return is_life (o, want->rank, want->incarnation); /* rules S_CLAIM, S_ANY */
}

static struct loan_out *current_of (const struct lender *l, const struct share_want *want)
{
    for (struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (!o->former && is_of (o, want))
            return o;
    return NULL;
}

/* The highest number that a borrower has sent; 0: no entry of that borrower is left. */
static uint64_t heard_of (const struct lender *l, const struct share_want *want)
{
    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (is_of (o, want))
            return o->number;
    return 0;
}

uint32_t lender_lent (const struct lender *l, const struct share_want *want)
{
    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (!o->former && is_of (o, want))
            return (uint32_t)__builtin_popcountll (o->granules) * FLUID_GRANULE;
    return 0;
}

static struct loan_out *add (struct lender *l, const struct loan_out *loan)
{
    if (!make_table (l) || l->count == LENDER_MAX)
        return NULL;
    l->loan[l->count] = *loan;
    return &l->loan[l->count++];
}

/* Keep the entries for which 'keeps' returns true. */
static void sift (struct lender *l, bool (*keeps) (const struct loan_out *o, const uint64_t *arg), const uint64_t *arg)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        if (keeps (&l->loan[i], arg))
            l->loan[n++] = l->loan[i];
    l->count = n;
}

static uint64_t position (const struct loan_out *o)
{
    return max_u64 (o->low_ms, o->range.lo_ms);
}

/* Whether the time of use of a sublease is over, at this and at an earlier reading of the time. */
static bool is_over (const struct loan_out *o, uint64_t now_us)
{
    return o->until_us <= now_us && o->lapsed_us > 0 && o->lapsed_us < now_us; /* rule T_SEEN */
}

/* Whether the borrower may still make ids of the sublease. */
static bool in_use (const struct loan_out *o, uint64_t now_us)
{
    return !is_over (o, now_us) && position (o) < o->range.hi_ms;
}

void lender_look (struct lender *l, uint64_t now_us)
{
    for (struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (o->until_us <= now_us && o->lapsed_us == 0)
            o->lapsed_us = now_us;
}

static bool is_remembered (const struct loan_out *o, const uint64_t *arg)
{
    return o->range.hi_ms > arg[0] || in_use (o, arg[1]);
}

/* Rule S_KEEP: a sublease is forgotten only when the rank makes no id below its end any longer. That its end has passed
 * is not enough.
 */
void lender_forget (struct lender *l, uint64_t now_us, uint64_t floor_ms)
{
    l->floor_ms = max_u64 (l->floor_ms, floor_ms);
    lender_look (l, now_us);
    sift (l, is_remembered, (const uint64_t[]){ l->floor_ms, now_us });
}

/* --- requests ----------------------------------------------------------------------------------- */

static bool is_not_empty (const struct loan_out *o, const uint64_t *arg)
{
    return o->range.lo_ms < o->range.hi_ms;
}

/* End the use of a sublease that its borrower returned. The return states for how long the rest is still used. */
static void end_use (struct loan_out *o, uint64_t now_us, uint64_t left_ms)
{
    if (left_ms == 0)
        o->low_ms = o->range.hi_ms;
    else
        o->until_us = min_u64 (o->until_us, now_us + LEASE_AT_MOST_MS (left_ms) * 1000); /* rule W_SLOW */
}

/* Take back everything above the end that a borrower promises. */
static void hear (struct lender *l, uint64_t now_us, const struct share_want *want)
{
    for (struct loan_out *o = l->loan; o < l->loan + l->count; o++) {
        if (!is_of (o, want))
            continue;
        o->number = want->number;
        o->range.hi_ms = min_u64 (o->range.hi_ms, want->end_ms);
        if (want->size == 0)
            end_use (o, now_us, want->left_ms);
    }
    sift (l, is_not_empty, NULL);
}

/* Find a run of free granules of 'size'. It is the borrower's former run 'had', if that has the size and is free.
 * Otherwise it is the lowest aligned run.
 */
static uint64_t find_run (uint64_t granules, uint32_t size, uint64_t had)
{
    uint32_t first;

    if (area_run (had, &first) == size && (granules & had) == had)
        return had;
    for (first = 0; first < FLUID_PER_MS; first += size) {
        uint64_t run = area_granules (first, size);

        if ((granules & run) == run)
            return run;
    }
    return 0;
}

/* The largest run of at most 'size' that leaves what the rank keeps. */
static uint64_t choose (uint64_t granules, uint32_t size, uint32_t keep, uint64_t had)
{
    uint32_t left = (uint32_t)__builtin_popcountll (granules) * FLUID_GRANULE;

    for (; size >= AREA_MIN_SIZE; size /= 2) {
        uint64_t run = left >= size && left - size >= keep ? find_run (granules, size, had) : 0;

        if (run != 0)
            return run;
    }
    return 0;
}

/* Fill in the sublease to grant after 'had' (may be NULL). Returns whether there is one. */
static bool next_loan (const struct lender *l, uint64_t now_us, uint64_t now_ms, const struct lender_stock *stock,
                       const struct share_want *want, const struct loan_out *had, struct loan_out *loan)
{
    const struct area *whole = stock->whole;
    uint64_t lo_ms = max_u64 (stock->from_ms, had ? had->range.hi_ms : 0); /* rule S_PAST */
    uint64_t left_ms = whole->until_us > now_us ? (whole->until_us - now_us) / 1000 : 0;

    *loan = (struct loan_out){
        .rank = want->rank, .number = want->number, .answered = want->number, .generator = whole->generator
    };
    memcpy (loan->borrower, want->incarnation, sizeof (loan->borrower));
    loan->range.lo_ms = max_u64 (max_u64 (lo_ms, l->floor_ms), whole->range.lo_ms); /* rule W_FIRST */
    loan->range.hi_ms = min_u64 (whole->range.hi_ms, now_ms + l->term_ms);          /* rule S_WITHIN */
    loan->use_ms = min_u64 (left_ms, LEASE_USE_MS (l->term_ms));                    /* rule W_TERM */
    loan->until_us = now_us + LEASE_AT_MOST_MS (loan->use_ms) * 1000;               /* rule W_SLOW */
    if (loan->range.lo_ms >= loan->range.hi_ms || loan->use_ms == 0)
        return false;
    uint64_t granules = whole->granules & not_lent (l, whole->generator, &loan->range);
    loan->granules = choose (granules, want->size, stock->keep, had ? had->granules : 0);
    return loan->granules != 0;
}

static bool goes_on (const struct loan_out *had, const struct loan_out *loan)
{
    return had->generator == loan->generator && had->granules == loan->granules
           && had->range.hi_ms == loan->range.lo_ms;
}

/* Add a sublease to the table. Returns its entry, which may be the one that it extends; NULL: the table is full. */
static struct loan_out *set_aside (struct lender *l, uint64_t now_us, struct loan_out *had, const struct loan_out *loan)
{
    if (had && goes_on (had, loan)) {
        if (is_over (had, now_us))                                      /* its position was no longer reported */
            had->range.lo_ms = max_u64 (had->range.lo_ms, l->floor_ms); /* rule W_FIRST */
        had->range.hi_ms = loan->range.hi_ms;
        had->answered = loan->answered;
        had->use_ms = loan->use_ms;
        had->until_us = max_u64 (had->until_us, loan->until_us);
        had->lapsed_us = 0;
        return had;
    }
    struct loan_out *o = add (l, loan);
    if (o && had)
        had->former = true;
    return o;
}

static void fill (const struct loan_out *o, struct share *share)
{
    *share = (struct share){ .number = o->answered,
                             .generator = o->generator,
                             .granules = o->granules,
                             .range = o->range,
                             .use_ms = o->use_ms };
    memcpy (share->incarnation, o->borrower, sizeof (share->incarnation));
}

bool lender_answer (struct lender *l, uint64_t now_us, uint64_t now_ms, const struct lender_stock *stock,
                    const struct share_want *want, struct share *share)
{
    uint64_t heard = heard_of (l, want);
    struct loan_out loan;

    if (want->number < heard) /* rule S_NUMBER */
        return false;
    if (want->number > heard)
        hear (l, now_us, want);
    struct loan_out *o = current_of (l, want);
    bool again = o && o->answered == want->number;

    if (want->size == 0)
        return false;
    if (!again) {
        if (!stock->whole || !next_loan (l, now_us, now_ms, stock, want, o, &loan)
            || !(o = set_aside (l, now_us, o, &loan)))
            return false;
    }
    fill (o, share);
    return true;
}

/* --- ends and positions --------------------------------------------------------------------------- */

uint64_t lender_end (const struct lender *l)
{
    uint64_t end_ms = l->floor_ms;

    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        end_ms = max_u64 (end_ms, o->range.hi_ms);
    return end_ms;
}

uint64_t lender_low_ms (const struct lender *l, uint64_t now_us)
{
    uint64_t low_ms = UINT64_MAX;

    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (in_use (o, now_us))
            low_ms = min_u64 (low_ms, position (o)); /* rule W_LOAN */
    return low_ms;
}

/* The end of the use of a sublease. If only one reading of the time found the sublease over, the clock may have jumped.
 * There will be no second reading, so a full time of use from now is assumed.
 */
static uint64_t last_use_us (const struct loan_out *o, uint64_t now_us)
{
    return o->until_us > now_us ? o->until_us : now_us + o->use_ms * 1000;
}

uint64_t lender_left_ms (const struct lender *l, uint64_t now_us)
{
    uint64_t until_us = now_us;

    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (in_use (o, now_us))
            until_us = max_u64 (until_us, last_use_us (o, now_us)); /* rule W_LENT */
    return (until_us - now_us + 999) / 1000;
}

void lender_position (struct lender *l, uint32_t rank, const char *incarnation, uint64_t low_ms)
{
    for (struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (is_life (o, rank, incarnation))
            o->low_ms = max_u64 (o->low_ms, low_ms);
}

void lender_jumped (struct lender *l, uint64_t us)
{
    for (struct loan_out *o = l->loan; o < l->loan + l->count; o++) {
        o->until_us += us; /* rule T_LENT */
        o->lapsed_us = 0;
    }
}

size_t lender_count (const struct lender *l, uint64_t now_ms, uint32_t *per_ms)
{
    size_t n = 0;

    *per_ms = 0;
    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (!o->former && now_ms < o->range.hi_ms) {
            *per_ms += (uint32_t)__builtin_popcountll (o->granules) * FLUID_GRANULE;
            n++;
        }
    return n;
}

static bool contains (const uint32_t *ranks, size_t n, uint32_t rank)
{
    for (size_t i = 0; i < n; i++)
        if (ranks[i] == rank)
            return true;
    return false;
}

/* A rank is listed once, although several incarnations of it may have subleases. */
size_t lender_ranks (const struct lender *l, uint64_t now_ms, uint32_t *ranks)
{
    size_t n = 0;

    for (const struct loan_out *o = l->loan; o < l->loan + l->count; o++)
        if (now_ms < o->range.hi_ms && !contains (ranks, n, o->rank))
            ranks[n++] = o->rank;
    return n;
}
