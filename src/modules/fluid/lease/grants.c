/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* grants.c - what a granter has granted
 *
 * Two invariants ensure that no id is made twice:
 * 1. A box is granted to one holder only, and the granter makes no id of it. It contains nothing of another granted box
 *    and nothing of which ids were made. It stays in the table until its holder promises not to use the rest, or the
 *    granter's own ids are past its end.
 * 2. This holds across restarts. A rank that returns what it holds keeps everything below the end of any granted box. A
 *    rank that crashes returns nothing. Rank 0 grants nothing above the durable horizon, and begins at it.
 *
 * Neither invariant depends on a clock: 'now' decides only how far a box goes.
 *
 * A whole generator is granted from the end of its last box on. So a table of whole generators needs only the last box
 * of each.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/lease/grants.h"

int grants_init (struct grants *g, uint64_t term_ms, uint32_t generators)
{
    *g = (struct grants){ .term_ms = term_ms, .generators = generators, .count = generators };
    if (generators > 0 && !(g->entry = calloc (generators, sizeof (*g->entry))))
        return errset (ENOMEM);
    return 0;
}

void grants_fini (struct grants *g)
{
    free (g->entry);
    *g = (struct grants){ 0 };
}

static bool make_table (struct grants *g)
{
    return g->entry || (g->entry = calloc (GRANTS_MAX, sizeof (*g->entry)));
}

/* A table of whole generators has an entry for each generator. Those after the last one that was granted are left out.
 */
const void *grants_table (const struct grants *g, size_t *size)
{
    size_t n = g->count;

    while (g->generators > 0 && n > 0 && g->entry[n - 1].box.range.hi_ms == 0)
        n--;
    *size = n * sizeof (*g->entry);
    return g->entry;
}

bool grants_restore (struct grants *g, uint64_t floor_ms, const void *table, size_t size)
{
    size_t max = g->generators > 0 ? g->generators : GRANTS_MAX;

    if (size % sizeof (*g->entry) != 0 || size > max * sizeof (*g->entry) || (size > 0 && !make_table (g)))
        return false;
    g->floor_ms = floor_ms;
    if (size > 0)
        memcpy (g->entry, table, size);
    g->count = g->generators > 0 ? g->generators : size / sizeof (*g->entry);
    return true;
}

/* --- entries ------------------------------------------------------------------------------------------ */

/* The entries that may concern a generator: from first_of () to before end_of (). */
static struct granted *first_of (const struct grants *g, uint32_t generator)
{
    return g->generators > 0 ? g->entry + generator : g->entry;
}

static struct granted *end_of (const struct grants *g, uint32_t generator)
{
    return g->generators > 0 ? g->entry + generator + 1 : g->entry + g->count;
}

static bool is_empty (const struct granted *o)
{
    return o->box.range.lo_ms >= o->box.range.hi_ms;
}

static bool is_life (const struct granted *o, uint32_t rank, const char *incarnation)
{
    return o->rank == rank && strcmp (o->incarnation, incarnation) == 0;
}

static bool is_of (const struct granted *o, const struct want *want)
{
    return is_life (o, want->rank, want->incarnation); /* rules ANSWER_ITS_OWN, END_ITS_OWN */
}

/* The highest number that a holder has sent; 0: no entry of that holder is left. */
static uint64_t heard_of (const struct grants *g, const struct want *want)
{
    for (const struct granted *o = first_of (g, want->rank); o < end_of (g, want->rank); o++)
        if (is_of (o, want))
            return o->number;
    return 0;
}

/* Keep the entries for which 'keeps' returns true. */
static void sift (struct grants *g, bool (*keeps) (const struct granted *o, const uint64_t *arg), const uint64_t *arg)
{
    size_t n = 0;

    assert (g->generators == 0);
    for (size_t i = 0; i < g->count; i++)
        if (keeps (&g->entry[i], arg))
            g->entry[n++] = g->entry[i];
    g->count = n;
}

/* Add an entry behind all others of its holder, so that they are adjacent. A rank may have as many entries as are free
 * then. So a rank that has none always finds one, whatever others ask for.
 */
static struct granted *add (struct grants *g, const struct granted *granted)
{
    size_t at = g->count, of_rank = 0;

    for (size_t i = 0; i < g->count; i++) {
        of_rank += g->entry[i].rank == granted->rank;
        if (is_life (&g->entry[i], granted->rank, granted->incarnation))
            at = i + 1;
    }
    if (!make_table (g) || of_rank + g->count >= GRANTS_MAX)
        return NULL;
    struct granted next = *granted; /* which may be in the table */
    memmove (&g->entry[at + 1], &g->entry[at], (g->count - at) * sizeof (*g->entry));
    g->count++;
    g->entry[at] = next;
    return &g->entry[at];
}

/* --- what is not granted ------------------------------------------------------------------------------ */

/* The granules of a generator that are in no granted box in a range of time. */
static uint64_t not_granted (const struct grants *g, uint32_t generator, const struct range *range)
{
    uint64_t granules = UINT64_MAX;

    for (const struct granted *o = first_of (g, generator); o < end_of (g, generator); o++) {
        const struct box *b = &o->box;

        if (b->generator == generator && b->range.lo_ms < range->hi_ms && range->lo_ms < b->range.hi_ms)
            granules &= ~b->granules; /* rules NEVER_USE_GRANTED, GRANT_ONCE, ANSWER_ITS_OWN */
    }
    return granules;
}

uint64_t grants_free (const struct grants *g, const struct box *whole, uint64_t ms, uint64_t *until_ms)
{
    *until_ms = max_u64 (whole->range.hi_ms, ms + 1);
    for (const struct granted *o = g->entry; o < g->entry + g->count; o++) {
        if (is_empty (o))
            continue;
        if (o->box.range.lo_ms > ms)
            *until_ms = min_u64 (*until_ms, o->box.range.lo_ms);
        else if (o->box.range.hi_ms > ms)
            *until_ms = min_u64 (*until_ms, o->box.range.hi_ms);
    }
    return whole->granules & not_granted (g, whole->generator, &(struct range){ ms, ms + 1 });
}

uint64_t grants_granules (const struct grants *g, uint64_t ms)
{
    uint64_t granules = 0;

    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (!is_empty (o) && o->box.range.hi_ms > ms)
            granules |= o->box.granules;
    return granules;
}

uint32_t grants_top (const struct grants *g, uint64_t ms)
{
    uint64_t granules = grants_granules (g, ms);

    return granules == 0 ? 0 : FLUID_GRANULES - (uint32_t)__builtin_clzll (granules);
}

/* The end of the last box of a generator. */
static uint64_t last_end_ms (const struct grants *g, uint32_t generator)
{
    uint64_t end_ms = 0;

    for (const struct granted *o = first_of (g, generator); o < end_of (g, generator); o++)
        if (o->box.generator == generator)
            end_ms = max_u64 (end_ms, o->box.range.hi_ms);
    return end_ms;
}

/* --- use ---------------------------------------------------------------------------------------------- */

static uint64_t position (const struct granted *o)
{
    return max_u64 (o->low_ms, o->box.range.lo_ms);
}

/* Whether the time of use of a box is over, at this and at an earlier reading of the time. */
static bool is_over (const struct granted *o, uint64_t now_us)
{
    return o->until_us <= now_us && o->lapsed_us > 0 && o->lapsed_us < now_us; /* rule LOOK_TWICE */
}

/* Whether the holder may still make ids of the box. */
static bool in_use (const struct granted *o, uint64_t now_us)
{
    return !is_over (o, now_us) && position (o) < o->box.range.hi_ms;
}

/* Whether a holder of a part still wants what it wanted in its last request. What it returned does not tell that: other
 * entries of the holder do.
 */
static bool is_wanted (const struct granted *o, uint64_t now_us)
{
    return o->wanted > 0 && !o->returned && o->until_us > now_us;
}

void grants_raise (struct grants *g, uint64_t floor_ms)
{
    g->floor_ms = max_u64 (g->floor_ms, floor_ms);
}

void grants_look (struct grants *g, uint64_t now_us)
{
    for (struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (o->until_us <= now_us && o->lapsed_us == 0)
            o->lapsed_us = now_us;
}

static bool is_remembered (const struct granted *o, const uint64_t *arg)
{
    return (!is_empty (o) && o->box.range.hi_ms > arg[0]) || in_use (o, arg[1]) || is_wanted (o, arg[1]);
}

/* Rule KEEP_UNTIL_PASSED: a box is forgotten only when the rank makes no id below its end any longer. That its end has
 * passed is not enough.
 */
void grants_forget (struct grants *g, uint64_t now_us, uint64_t floor_ms)
{
    grants_raise (g, floor_ms);
    grants_look (g, now_us);
    sift (g, is_remembered, (const uint64_t[]){ g->floor_ms, now_us });
}

/* --- what each holder should get ------------------------------------------------------------------------ */

/* Whether this is the first entry of its holder that counts. All entries of a holder are adjacent. */
static bool is_first (const struct grants *g, const struct granted *o,
                      bool (*counts) (const struct granted *o, uint64_t now), uint64_t now)
{
    for (const struct granted *p = o; p > g->entry && is_life (p - 1, o->rank, o->incarnation);)
        if (counts (--p, now))
            return false;
    return true;
}

/* What one rank wants. */
struct wish {
    uint32_t rank, size;
};

/* What the holders of parts want, each once, without the requester 'but' (may be NULL). Returns their number. */
static size_t list_wishes (const struct grants *g, uint64_t now_us, const struct want *but,
                           struct wish wish[GRANTS_MAX])
{
    size_t n = 0;

    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (is_wanted (o, now_us) && is_first (g, o, is_wanted, now_us) && !(but && is_of (o, but)))
            wish[n++] = (struct wish){ o->rank, o->wanted };
    return n;
}

/* How many sequence numbers all get together if none gets more than 'most'. */
static uint32_t sum_of (const struct wish wish[], size_t n, uint32_t most)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += wish[i].size < most ? wish[i].size : most;
    return sum;
}

uint32_t grants_wanted (const struct grants *g, uint64_t now_us)
{
    struct wish wish[GRANTS_MAX];
    size_t n = list_wishes (g, now_us, NULL, wish);

    return sum_of (wish, n, BOX_MAX_PART);
}

/* How many of the ranks below 'rank' want more than 'most'. */
static uint32_t count_before (const struct wish wish[], size_t n, uint32_t rank, uint32_t most)
{
    uint32_t before = 0;

    for (size_t i = 0; i < n; i++)
        before += wish[i].rank < rank && wish[i].size > most;
    return before;
}

/* With a common limit for all, up to one granule a holder is left over. The lowest ranks get it. */
uint32_t grants_share (const struct grants *g, uint64_t now_us, const struct grants_stock *stock,
                       const struct want *want)
{
    uint32_t all = box_size (stock->whole->granules), size = all > stock->keep ? all - stock->keep : 0;
    uint32_t most = BOX_MAX_PART, sum;
    struct wish wish[GRANTS_MAX + 1];
    size_t n = list_wishes (g, now_us, want, wish);

    wish[n++] = (struct wish){ want->rank, want->size };
    while ((sum = sum_of (wish, n, most)) > size && most > BOX_MIN_SIZE)
        most -= BOX_MIN_SIZE;
    if (want->size <= most)
        return want->size;
    uint32_t before = count_before (wish, n, want->rank, most);
    return size >= sum + (before + 1) * BOX_MIN_SIZE ? most + BOX_MIN_SIZE : most;
}

/* --- requests: the promise ------------------------------------------------------------------------------ */

/* An empty box of a part is kept while its holder wants something. */
static bool is_kept (const struct granted *o, const uint64_t *arg)
{
    return !is_empty (o) || (o->wanted > 0 && !o->returned);
}

/* End the use of a box that its holder returned. The return states for how long the rest is still used. */
static void end_use (struct granted *o, uint64_t now_us, uint64_t left_ms)
{
    if (left_ms == 0)
        o->low_ms = o->box.range.hi_ms;
    else
        o->until_us = min_u64 (o->until_us, now_us + LEASE_AT_MOST_MS (left_ms) * 1000); /* rule WAIT_FOR_SLOW_CLOCKS */
}

/* Take back what is at or above 'end_ms', but not below the begin: what is below may be another holder's (rule
 * RETURN_INSIDE).
 */
static void cut (struct granted *o, uint64_t end_ms)
{
    struct range *r = &o->box.range;

    if (end_ms < r->hi_ms)
        r->hi_ms = max_u64 (end_ms, r->lo_ms);
}

/* Take back the granules of a box that its holder does not keep. If it keeps some of them, the box is split; without
 * room for that, nothing is taken back.
 */
static void cut_part (struct grants *g, struct granted *o, const struct want *want)
{
    uint64_t kept = o->box.granules & want->kept;

    if (kept == o->box.granules || o->box.range.hi_ms <= want->end_ms)
        return;
    struct granted *rest = kept != 0 ? add (g, o) : NULL;
    if (kept != 0 && !rest)
        return;
    if (rest)
        rest->box.granules = kept;
    o->box.granules &= ~kept;
    o->returned = true;
    cut (o, want->end_ms);
}

static void hear_one (struct grants *g, uint64_t now_us, struct granted *o, const struct want *want)
{
    o->number = want->number;
    o->wanted = want->size;
    if (want->end_ms > 0 && want->kept != 0)
        cut_part (g, o, want);
    else if (want->end_ms > 0)
        cut (o, want->end_ms);
    if (want->size == 0)
        end_use (o, now_us, want->left_ms);
}

static void hear (struct grants *g, uint64_t now_us, const struct want *want)
{
    struct granted *end = end_of (g, want->rank); /* without those that are added */

    for (struct granted *o = first_of (g, want->rank); o < end; o++)
        if (is_of (o, want))
            hear_one (g, now_us, o, want);
    if (g->generators == 0)
        sift (g, is_kept, NULL);
}

/* --- requests: the answer --------------------------------------------------------------------------------- */

/* The end of the next box, and how long it may be used. */
struct term {
    uint64_t hi_ms, use_ms, until_us;
};

static struct term next_term (const struct grants *g, uint64_t now_us, uint64_t now_ms,
                              const struct grants_stock *stock)
{
    uint64_t left_ms = stock->until_us > now_us ? (stock->until_us - now_us) / 1000 : 0;
    struct term t = {
        /* Rule END_A_LEASE_FROM_NOW: a term from now, so that repeated requests do not move the end further. Rules
         * INSIDE_HELD, HORIZON_FIRST: not above what the granter holds.
         */
        .hi_ms = min_u64 (stock->whole->range.hi_ms, now_ms + g->term_ms),
        .use_ms = min_u64 (left_ms, LEASE_USE_MS (g->term_ms)), /* rule USE_WITHIN_OWN_USE */
    };

    t.until_us = now_us + LEASE_AT_MOST_MS (t.use_ms) * 1000; /* rule WAIT_FOR_SLOW_CLOCKS */
    return t;
}

/* Whether a box can go on as a part of what the granter holds now. */
static bool is_inside (const struct grants_stock *stock, const struct granted *o)
{
    const struct box *b = &o->box, *whole = stock->whole;

    return b->generator == whole->generator && (b->granules & ~whole->granules) == 0
           && b->range.hi_ms >= whole->range.lo_ms;
}

/* Whether a box can be extended to 'hi_ms'. */
static bool is_extendable (const struct grants *g, const struct grants_stock *stock, const struct granted *o,
                           uint64_t hi_ms)
{
    const struct range next = { o->box.range.hi_ms, hi_ms };

    return next.lo_ms < next.hi_ms && next.lo_ms >= stock->from_ms && next.lo_ms >= g->floor_ms
           && (o->box.granules & ~not_granted (g, o->box.generator, &next)) == 0;
}

static void extend (struct grants *g, uint64_t now_us, struct granted *o, uint64_t hi_ms)
{
    if (g->generators > 0 || is_over (o, now_us)) /* the watermark does not wait for this holder below the floor */
        o->box.range.lo_ms = max_u64 (o->box.range.lo_ms, g->floor_ms); /* rule BEGIN_ABOVE_TOLD */
    o->box.range.hi_ms = hi_ms;
}

static void renew_use (struct granted *o, const struct term *term, uint64_t number)
{
    o->answered = number;
    o->use_ms = term->use_ms;
    o->until_us = max_u64 (o->until_us, term->until_us);
    o->lapsed_us = 0;
}

/* How much of its boxes a holder keeps at most. A holder has a term to return what is more than its share. After that,
 * boxes above its share are not extended, because others lack them.
 */
static uint32_t may_keep (struct grants *g, uint64_t now_us, uint64_t now_ms, const struct want *want, uint32_t share)
{
    uint64_t over_us = now_us;
    uint32_t has = 0;

    for (const struct granted *o = first_of (g, want->rank); o < end_of (g, want->rank); o++)
        if (is_of (o, want) && !o->returned && o->box.range.hi_ms > now_ms) {
            has += box_size (o->box.granules);
            over_us = o->over_us > 0 ? min_u64 (over_us, o->over_us) : over_us;
        }
    for (struct granted *o = first_of (g, want->rank); o < end_of (g, want->rank); o++)
        if (is_of (o, want))
            o->over_us = has > share ? over_us : 0;
    return has > share && now_us - over_us >= g->term_ms * 1000 ? share : BOX_WHOLE;
}

/* Extend the boxes of a holder, at most 'most' of them, as far as that is possible. Returns the size of those that last
 * on, and the number of all that are not over and were not returned in '*count'.
 */
static uint32_t extend_all (struct grants *g, uint64_t now_us, uint64_t now_ms, const struct grants_stock *stock,
                            const struct want *want, const struct term *term, uint32_t most, size_t *count)
{
    uint32_t size = 0;

    *count = 0;
    for (struct granted *o = first_of (g, want->rank); o < end_of (g, want->rank); o++) {
        if (!is_of (o, want) || is_empty (o) || o->returned)
            continue;
        bool inside = is_inside (stock, o) && size + box_size (o->box.granules) <= most;
        bool more = inside && is_extendable (g, stock, o, term->hi_ms);
        if (more)
            extend (g, now_us, o, term->hi_ms);
        *count += o->box.range.hi_ms > now_ms;
        if (!inside)
            continue;
        if (more || (want->size != BOX_WHOLE && o->box.range.hi_ms > now_ms)) {
            renew_use (o, term, want->number);
            size += box_size (o->box.granules);
        }
    }
    return size;
}

/* The lowest 'size' of some granules. The granter keeps the high sequence numbers, so that in a millisecond its own ids
 * are above those of its children.
 */
static uint64_t lowest (uint64_t granules, uint32_t size)
{
    while (box_size (granules) > size)
        granules &= ~(UINT64_C (1) << (63 - __builtin_clzll (granules)));
    return granules;
}

/* The granules of a further box of at most 'size', so that the granter has what it keeps. A whole is all or nothing. */
static uint64_t choose (uint64_t granules, const struct want *want, uint32_t size, uint32_t keep)
{
    uint32_t left = box_size (granules);

    if (want->size == BOX_WHOLE)
        return granules == UINT64_MAX ? granules : 0;
    return lowest (granules, (uint32_t)min_u64 (size, left > keep ? left - keep : 0));
}

/* The begin of a further box. */
static uint64_t next_lo_ms (const struct grants *g, const struct grants_stock *stock, const struct want *want)
{
    uint64_t lo_ms = max_u64 (stock->from_ms, stock->whole->range.lo_ms); /* rule BEGIN_ABOVE_MADE */

    if (want->size == BOX_WHOLE) /* rule GRANT_ONCE: even if that is not now */
        lo_ms = max_u64 (lo_ms, last_end_ms (g, stock->whole->generator));
    return max_u64 (lo_ms, g->floor_ms); /* rules BEGIN_ABOVE_TOLD, START_AT_HORIZON */
}

/* Put a box into the table. A whole generator begins at or above the end of all its earlier boxes, so these need not be
 * remembered. If the holder of a part has an empty entry, which remembers what it wants, that is used.
 */
static bool put (struct grants *g, const struct granted *next, const struct want *want)
{
    if (g->generators > 0) {
        g->entry[next->box.generator] = *next;
        return true;
    }
    for (struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (is_of (o, want) && is_empty (o)) {
            *o = *next;
            return true;
        }
    return add (g, next);
}

/* Grant a further box of at most 'size'. Returns whether something was granted. */
static bool grant_more (struct grants *g, const struct grants_stock *stock, const struct want *want,
                        const struct term *term, uint32_t size)
{
    struct granted next = { .rank = want->rank,
                            .number = want->number,
                            .answered = want->number,
                            .wanted = want->size,
                            .use_ms = term->use_ms,
                            .until_us = term->until_us };

    memcpy (next.incarnation, want->incarnation, sizeof (next.incarnation));
    next.box.generator = stock->whole->generator;
    next.box.range = (struct range){ next_lo_ms (g, stock, want), term->hi_ms };
    if (is_empty (&next))
        return false;
    uint64_t granules = stock->whole->granules & not_granted (g, next.box.generator, &next.box.range);
    next.box.granules = choose (granules, want, size, stock->keep);
    if (next.box.granules == 0)
        return false;
    return put (g, &next, want);
}

/* Remember that a holder wants something but got nothing. Then others get less at their next request. */
static void remember (struct grants *g, uint64_t now_us, const struct want *want)
{
    struct granted open = { .rank = want->rank, .number = want->number, .wanted = want->size };

    if (want->size == BOX_WHOLE)
        return;
    memcpy (open.incarnation, want->incarnation, sizeof (open.incarnation));
    open.until_us = now_us + g->term_ms * 1000;
    put (g, &open, want);
}

/* Extend what a holder has, and grant more if it should have more. */
static void serve (struct grants *g, uint64_t now_us, uint64_t now_ms, const struct grants_stock *stock,
                   const struct want *want)
{
    const struct term term = next_term (g, now_us, now_ms, stock);
    size_t count;

    if (term.use_ms == 0 || term.hi_ms <= now_ms) /* rule GRANT_NOT_PAST */
        return;
    uint32_t share = want->size == BOX_WHOLE ? BOX_WHOLE : grants_share (g, now_us, stock, want);
    uint32_t most = may_keep (g, now_us, now_ms, want, share);
    uint32_t has = extend_all (g, now_us, now_ms, stock, want, &term, most, &count);
    if (has < share && count < GRANTS_EACH)
        grant_more (g, stock, want, &term, share - has);
}

/* The boxes that answer a request. */
static size_t fill (const struct grants *g, const struct want *want, struct grant grant[GRANTS_EACH])
{
    size_t n = 0;

    for (const struct granted *o = first_of (g, want->rank); o < end_of (g, want->rank) && n < GRANTS_EACH; o++) {
        if (!is_of (o, want) || is_empty (o) || o->answered != want->number)
            continue;
        grant[n] = (struct grant){ .rank = o->rank, .number = o->answered, .box = o->box, .use_ms = o->use_ms };
        memcpy (grant[n++].incarnation, o->incarnation, sizeof (grant->incarnation));
    }
    return n;
}

size_t grants_answer (struct grants *g, uint64_t now_us, uint64_t now_ms, const struct grants_stock *stock,
                      const struct want *want, struct grant grant[GRANTS_EACH])
{
    assert (g->generators == 0 || want->rank < g->generators);
    uint64_t heard = heard_of (g, want);
    if (want->number < heard) /* rule NEWEST_WANT_ONLY */
        return 0;
    if (want->number > heard)
        hear (g, now_us, want);
    if (want->size == 0)
        return 0;
    size_t n = fill (g, want, grant);
    if (n > 0) /* rule ANSWER_AGAIN: a retry gets the same answer */
        return n;
    if (stock->whole)
        serve (g, now_us, now_ms, stock, want);
    if ((n = fill (g, want, grant)) == 0)
        remember (g, now_us, want);
    return n;
}

void grants_reopen (struct grants *g, uint32_t generator, uint64_t end_ms)
{
    struct granted *o = &g->entry[generator];

    assert (generator < g->generators);
    *o = (struct granted){ .box = { generator, UINT64_MAX, { 0, min_u64 (o->box.range.hi_ms, end_ms) } } };
}

/* --- ends and positions --------------------------------------------------------------------------- */

uint64_t grants_end (const struct grants *g)
{
    uint64_t end_ms = g->floor_ms;

    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        end_ms = max_u64 (end_ms, o->box.range.hi_ms);
    return end_ms;
}

uint64_t grants_low_ms (const struct grants *g, uint64_t now_us)
{
    uint64_t low_ms = UINT64_MAX;

    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (in_use (o, now_us))
            low_ms = min_u64 (low_ms, position (o)); /* rule POSITION_COUNTS_GRANTED */
    return low_ms;
}

/* The end of the use of a box. If only one reading of the time found the use over, the clock may have jumped. There
 * will be no second reading, so a full time of use from now is assumed.
 */
static uint64_t last_use_us (const struct granted *o, uint64_t now_us)
{
    return o->until_us > now_us ? o->until_us : now_us + o->use_ms * 1000;
}

uint64_t grants_left_ms (const struct grants *g, uint64_t now_us)
{
    uint64_t until_us = now_us;

    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (in_use (o, now_us))
            until_us = max_u64 (until_us, last_use_us (o, now_us)); /* rule TELL_TIME_LEFT */
    return (until_us - now_us + 999) / 1000;
}

void grants_position (struct grants *g, uint32_t rank, const char *incarnation, uint64_t low_ms)
{
    for (struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (is_life (o, rank, incarnation))
            o->low_ms = max_u64 (o->low_ms, low_ms);
}

void grants_jumped (struct grants *g, uint64_t us)
{
    for (struct granted *o = g->entry; o < g->entry + g->count; o++) {
        o->until_us += us; /* rule WAIT_AFTER_JUMP */
        o->lapsed_us = 0;
    }
}

/* --- status ----------------------------------------------------------------------------------------------- */

static bool lasts (const struct granted *o, uint64_t now_ms)
{
    return !is_empty (o) && now_ms < o->box.range.hi_ms;
}

size_t grants_count (const struct grants *g, uint64_t now_ms, uint32_t *per_ms)
{
    size_t n = 0;

    *per_ms = 0;
    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (lasts (o, now_ms)) {
            *per_ms += box_size (o->box.granules);
            n += is_first (g, o, lasts, now_ms);
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

/* A rank is listed once, although several incarnations of it may have boxes. */
size_t grants_ranks (const struct grants *g, uint64_t now_ms, uint32_t *ranks)
{
    size_t n = 0;

    for (const struct granted *o = g->entry; o < g->entry + g->count; o++)
        if (lasts (o, now_ms) && !contains (ranks, n, o->rank))
            ranks[n++] = o->rank;
    return n;
}
