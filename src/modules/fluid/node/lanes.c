/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lanes.c - the generators of one rank, used as one
 *
 * No id is made twice, because (last_ms, lane) grows in lexical order, and all ids of one lane and millisecond are made
 * by one generator object.
 */
#include <assert.h>
#include <errno.h>

#include "libutil/errprintf.h"
#include "modules/fluid/node/lanes.h"

/* Begin to use the generator of a lane. No id of 'last_ms' may have been made with that generator. */
static void use_lane (struct lanes *l, uint32_t lane)
{
    struct fluid_gen_config config = { .generator = lanes_generator (l, lane),
                                       .lo_ms = l->gen.lo_ms,
                                       .hi_ms = l->gen.hi_ms };

    l->lane = lane;
    fluid_gen_init (&l->gen, &config); /* cannot fail: all values are in range */
    fluid_gen_advance (&l->gen, l->last_ms);
}

void lanes_init (struct lanes *l, uint32_t first, uint32_t step, uint32_t count)
{
    assert (count >= 1 && first + (uint64_t)(count - 1) * step <= FLUID_GENERATOR_MAX);
    *l = (struct lanes){ .first = first, .step = step > 0 ? step : 1, .count = count };
    use_lane (l, 0);
}

int lanes_set_range (struct lanes *l, uint64_t lo_ms, uint64_t hi_ms)
{
    return fluid_gen_set_range (&l->gen, lo_ms, hi_ms);
}

void lanes_advance (struct lanes *l, uint64_t ms)
{
    if (ms <= l->last_ms)
        return;
    l->last_ms = ms;
    l->used = 0;
    if (l->lane > 0)
        use_lane (l, 0);
    else
        fluid_gen_advance (&l->gen, ms);
}

void lanes_follow (struct lanes *l, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    lanes_advance (l, f.timestamp_ms + (f.generator >= l->first));
}

/* Whether 'now_ms' begins a new millisecond inside the range. Outside the range nothing may change, as with a single
 * generator.
 */
static bool may_step (const struct lanes *l, uint64_t now_ms)
{
    return now_ms > l->last_ms && now_ms >= l->gen.lo_ms && now_ms < l->gen.hi_ms;
}

int lanes_reserve (struct lanes *l, uint64_t now_ms, uint32_t want, fluid_t *first)
{
    if (l->count == 0)
        return errset (ERANGE);
    if (want > 0 && may_step (l, now_ms))
        lanes_advance (l, now_ms);
    int got = fluid_gen_reserve (&l->gen, now_ms, want, first);
    while (got < 0 && errno == EAGAIN && now_ms == l->last_ms && l->lane + 1 < l->count) {
        use_lane (l, l->lane + 1);
        got = fluid_gen_reserve (&l->gen, now_ms, want, first);
    }
    if (got > 0)
        l->used += (uint32_t)got;
    return got;
}

uint32_t lanes_per_ms (const struct lanes *l)
{
    return l->count * FLUID_PER_MS;
}

uint32_t lanes_left (const struct lanes *l, uint64_t ms)
{
    return lanes_per_ms (l) - (ms == l->last_ms ? l->used : 0);
}

uint32_t lanes_generator (const struct lanes *l, uint32_t lane)
{
    return l->first + lane * l->step;
}

bool lanes_own (const struct lanes *l, uint32_t generator)
{
    return l->count > 0 && generator >= l->first && (generator - l->first) % l->step == 0
           && (generator - l->first) / l->step < l->count;
}
