/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - the root's table of leases
 *
 * Two invariants ensure that no id is made twice:
 * 1. Ranges of one generator that were granted to different incarnations or for different numbers are disjoint, because
 *    each begins at or after the end of all that were granted before.
 * 2. This holds across restarts, because no range ends after the durable horizon, and a new table grants nothing below
 *    the horizon that it was created with.
 *
 * Neither invariant depends on a clock: 'now' decides only how far a range goes.
 */
#include <assert.h>
#include <idtree/fluid.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/lease.h"

#define END_MS ((uint64_t)FLUID_TIMESTAMP_MAX + 1) /* end of time: no range and no horizon is above it */

void lease_request_fini (struct lease_request *req)
{
    free ((void *)req->want);
    free ((void *)req->back);
    *req = (struct lease_request){ 0 };
}

struct lease_table *lease_table_create (uint32_t ngenerators, uint64_t lease_ms, uint64_t horizon_ms)
{
    struct lease_table *t = calloc (1, sizeof (*t) + ngenerators * sizeof (t->holding[0]));

    if (t) {
        t->ngenerators = ngenerators;
        t->lease_ms = lease_ms;
        t->reach_ms = 2 * lease_ms;
        t->base_ms = horizon_ms;
        t->stored_ms = horizon_ms;
    }
    return t;
}

uint64_t lease_next_store (const struct lease_table *t)
{
    uint64_t ahead_ms = t->reach_ms - t->reach_ms / 4;

    if (t->storing || t->closed || t->stored_ms >= END_MS)
        return UINT64_MAX;
    return t->stored_ms >= ahead_ms ? t->stored_ms - ahead_ms + 1 : 0;
}

bool lease_must_store (struct lease_table *t, uint64_t now_ms, uint64_t *horizon_ms)
{
    if (now_ms < lease_next_store (t))
        return false;
    t->storing = true;
    *horizon_ms = min_u64 (now_ms + t->reach_ms, END_MS);
    return true;
}

void lease_stored (struct lease_table *t, uint64_t horizon_ms)
{
    t->storing = false;
    t->stored_ms = max_u64 (t->stored_ms, horizon_ms);
}

void lease_store_failed (struct lease_table *t)
{
    t->storing = false;
}

/* The saved bytes are the lower limit of grants (base_ms), and all entries up to the last generator that was ever
 * granted.
 */
static uint32_t count_used (const struct lease_table *t)
{
    uint32_t n = t->ngenerators;

    while (n > 0 && t->holding[n - 1].hi_ms == 0)
        n--;
    return n;
}

size_t lease_save_size (const struct lease_table *t)
{
    return sizeof (t->base_ms) + count_used (t) * sizeof (t->holding[0]);
}

void lease_save (const struct lease_table *t, void *data)
{
    memcpy (data, &t->base_ms, sizeof (t->base_ms));
    memcpy ((char *)data + sizeof (t->base_ms), t->holding, count_used (t) * sizeof (t->holding[0]));
}

int lease_load (struct lease_table *t, const void *data, size_t size)
{
    if (size < sizeof (t->base_ms) || size > sizeof (t->base_ms) + t->ngenerators * sizeof (t->holding[0])
        || (size - sizeof (t->base_ms)) % sizeof (t->holding[0]) != 0)
        return -1;
    memcpy (&t->base_ms, data, sizeof (t->base_ms));
    memcpy (t->holding, (const char *)data + sizeof (t->base_ms), size - sizeof (t->base_ms));
    return 0;
}

void lease_reopen (struct lease_table *t, uint32_t generator, uint64_t end_ms)
{
    struct lease_holding *h = &t->holding[generator];

    *h = (struct lease_holding){ .hi_ms = min_u64 (h->hi_ms, end_ms) };
}

static bool same_incarnation (const struct lease_holding *h, const char *incarnation)
{
    return h->incarnation[0] != '\0' && strcmp (h->incarnation, incarnation) == 0;
}

/* Set 'h' to the next range of its generator. If 'same' is set, that range is for the holder of the last one, otherwise
 * for another incarnation. Returns whether there is such a range.
 */
static bool next_range (const struct lease_table *t, uint64_t now_ms, bool same, struct lease_holding *h)
{
    /* Rules START_AT_LAST_END, START_AT_HORIZON: begin at the end of all that was granted before, even if that is not
     * now.
     */
    uint64_t lo_ms = max_u64 (t->base_ms, h->hi_ms);
    /* Rule END_A_LEASE_FROM_NOW: end a lease from now, so that repeated requests do not move the end further. */
    uint64_t hi_ms = min_u64 (now_ms + t->lease_ms, END_MS);

    /* Rule HORIZON_FIRST: grant nothing above what is already durable. */
    hi_ms = min_u64 (hi_ms, t->stored_ms);
    if (hi_ms <= lo_ms)
        return false;
    h->from_ms = same && lo_ms == h->hi_ms ? h->from_ms : lo_ms;
    h->lo_ms = lo_ms;
    h->hi_ms = hi_ms;
    return true;
}

bool lease_grant (struct lease_table *t, uint64_t now_ms, const struct lease_want *want, struct lease_grant *grant)
{
    /* Rule STOP_CLOSES: a closed table stays closed, because its final horizon is known. */
    if (t->closed || t->fenced_by_foreign || want->generator >= t->ngenerators || want->incarnation[0] == '\0')
        return false;
    if (want->have_hi_ms > t->stored_ms) { /* this root granted no range that ends there (rule HIGHEST_HORIZON) */
        t->fenced_by_foreign = true;
        return false;
    }
    struct lease_holding *h = &t->holding[want->generator];
    bool same = same_incarnation (h, want->incarnation);

    if (strcmp (h->gone, want->incarnation) == 0)
        return false;
    if (same && want->number < h->number)
        return false;
    /* A retry gets the same answer (rule ANSWER_AGAIN). Every other request gets a range of its own (rule OWN_RANGE),
     * whether it is from a restarted broker or from a second one of the same rank.
     */
    if (!same || want->number > h->number) {
        if (!next_range (t, now_ms, same, h))
            return false;
        memcpy (h->incarnation, want->incarnation, sizeof (h->incarnation));
        h->number = want->number;
    }
    *grant = (struct lease_grant){
        .generator = want->generator, .number = h->number, .lo_ms = h->lo_ms, .hi_ms = h->hi_ms
    };
    memcpy (grant->incarnation, h->incarnation, sizeof (grant->incarnation));
    return true;
}

bool lease_give_back (struct lease_table *t, const struct lease_back *back)
{
    if (t->closed || back->generator >= t->ngenerators)
        return false;
    struct lease_holding *h = &t->holding[back->generator];

    /* Rules RETURN_BY_LESSEE, RETURN_INSIDE: accept a return only from the holder of the last range. Take back only
     * what that holder was granted in a row, because ranges below may be another incarnation's.
     */
    if (!same_incarnation (h, back->incarnation) || back->end_ms >= h->hi_ms)
        return false;
    h->hi_ms = max_u64 (back->end_ms, h->from_ms);
    memcpy (h->gone, h->incarnation, sizeof (h->gone)); /* its requests may still arrive, even in this message */
    h->incarnation[0] = '\0';
    return true;
}

void lease_raise (struct lease_table *t, uint64_t floor_ms)
{
    t->base_ms = max_u64 (t->base_ms, floor_ms); /* rule W_LO */
}

uint64_t lease_close (struct lease_table *t)
{
    /* Rule STOP_AT_LAST_END: the result is not below the end of any range that may still be in use, not only of the
     * root's own. Rule STOP_NOT_BELOW_BASE: the result is never below the horizon at the start, because ranges of an
     * earlier table may end there.
     */
    uint64_t end_ms = t->base_ms;

    t->closed = true;
    for (uint32_t g = 0; g < t->ngenerators; g++)
        end_ms = max_u64 (end_ms, t->holding[g].hi_ms);
    return end_ms;
}

/* --- conversion of sequence numbers to sets of granules, and back -------------------------------- */

static bool is_power_of_two (uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

uint64_t area_granules (uint32_t first, uint32_t size)
{
    if (!is_power_of_two (size) || size < AREA_MIN_SIZE || size > AREA_MAX_SIZE || first % size != 0
        || first > FLUID_PER_MS - size)
        return 0;
    return ((UINT64_C (1) << size / FLUID_GRANULE) - 1) << first / FLUID_GRANULE;
}

uint32_t area_run (uint64_t granules, uint32_t *first)
{
    if (granules == 0)
        return 0;
    uint32_t begin = (uint32_t)__builtin_ctzll (granules) * FLUID_GRANULE;
    uint32_t size = (uint32_t)__builtin_popcountll (granules) * FLUID_GRANULE;

    if (area_granules (begin, size) != granules)
        return 0;
    *first = begin;
    return size;
}
