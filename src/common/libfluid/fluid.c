/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - the bits of a FLUID: [timestamp 40 | generator 14 | sequence 10] (RFC 19); and the generator, whose caller
 * passes in the time
 *
 * No id is made twice, because (last_ms, used) increases in lexical order with each reservation and never decreases.
 * This is true for any time range, any granules and any order of calls.
 */
#include "idtree/fluid.h"
#include "libfluid/granules.h"
#include "libutil/errprintf.h"

#define SEQUENCE_BITS 10
#define GENERATOR_BITS 14
#define TIMESTAMP_SHIFT (GENERATOR_BITS + SEQUENCE_BITS)

struct fluid_fields fluid_split (fluid_t id)
{
    return (struct fluid_fields){
        .timestamp_ms = id >> TIMESTAMP_SHIFT,
        .generator = (id >> SEQUENCE_BITS) & FLUID_GENERATOR_MAX,
        .sequence = id & FLUID_SEQUENCE_MAX,
    };
}

int fluid_join (const struct fluid_fields *fields, fluid_t *id)
{
    if (fields->timestamp_ms > FLUID_TIMESTAMP_MAX)
        return errset (EOVERFLOW);
    if (fields->generator > FLUID_GENERATOR_MAX || fields->sequence > FLUID_SEQUENCE_MAX)
        return errset (EINVAL);
    *id = fields->timestamp_ms << TIMESTAMP_SHIFT | (fluid_t)fields->generator << SEQUENCE_BITS | fields->sequence;
    return 0;
}

int fluid_range (uint64_t from_ms, uint64_t to_ms, fluid_t *lower, fluid_t *upper)
{
    if (from_ms > FLUID_TIMESTAMP_MAX || to_ms > FLUID_TIMESTAMP_MAX)
        return errset (EOVERFLOW);
    if (from_ms > to_ms)
        return errset (EINVAL);
    *lower = from_ms << TIMESTAMP_SHIFT;
    *upper = to_ms << TIMESTAMP_SHIFT;
    return 0;
}

/* --- generator ------------------------------------------------------------------------------ */

int fluid_gen_set_range (struct fluid_gen *gen, uint64_t lo_ms, uint64_t hi_ms)
{
    if (lo_ms > hi_ms)
        return errset (EINVAL);
    if (hi_ms > FLUID_TIMESTAMP_MAX + 1)
        return errset (EOVERFLOW);
    gen->lo_ms = lo_ms;
    gen->hi_ms = hi_ms;
    return 0;
}

int fluid_gen_init (struct fluid_gen *gen, const struct fluid_gen_config *config)
{
    const struct fluid_gen_config c = config ? *config : (struct fluid_gen_config){ 0 };
    struct fluid_gen made = { .generator = c.generator };

    if (c.generator > FLUID_GENERATOR_MAX)
        return errset (EINVAL);
    if (fluid_gen_set_range (&made, c.lo_ms, c.hi_ms) < 0)
        return -1;
    *gen = made;
    return 0;
}

void fluid_gen_advance (struct fluid_gen *gen, uint64_t ms)
{
    if (ms > gen->last_ms) {
        gen->last_ms = ms;
        gen->used = 0;
    }
}

void fluid_gen_follow (struct fluid_gen *gen, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    fluid_gen_advance (gen, f.timestamp_ms + (f.generator > gen->generator));
    if (f.generator == gen->generator && f.timestamp_ms == gen->last_ms && f.sequence >= gen->used)
        gen->used = f.sequence + 1;
}

/* Whether ids may be made at 'now_ms'. Returns 0, or the errno that says why not. */
static int refusal (const struct fluid_gen *gen, uint64_t now_ms)
{
    if (now_ms > FLUID_TIMESTAMP_MAX)
        return EOVERFLOW;
    if (now_ms < gen->lo_ms || now_ms >= gen->hi_ms)
        return ERANGE;
    if (now_ms < gen->last_ms || (now_ms == gen->last_ms && gen->used == FLUID_PER_MS))
        return EAGAIN;
    return 0;
}

/* Take the next 'count' ids of the latest millisecond, which must have that many ids left. */
static int take (struct fluid_gen *gen, uint32_t count, fluid_t *first)
{
    struct fluid_fields fields = { gen->last_ms, gen->generator, gen->used };

    fluid_join (&fields, first); /* cannot fail: all fields are in range */
    gen->used += count;
    return (int)count;
}

int fluid_gen_reserve (struct fluid_gen *gen, uint64_t now_ms, uint32_t want, fluid_t *first)
{
    int why = want == 0 ? EINVAL : refusal (gen, now_ms);
    if (why != 0)
        return errset (why);
    fluid_gen_advance (gen, now_ms);

    uint32_t left = FLUID_PER_MS - gen->used;
    return take (gen, want < left ? want : left, first);
}

int fluid_gen_reserve_in (struct fluid_gen *gen, uint64_t now_ms, uint64_t granules, uint32_t want, fluid_t *first)
{
    uint32_t begin = 0;
    int why = want == 0 ? EINVAL : refusal (gen, now_ms);
    if (why != 0)
        return errset (why);
    uint32_t left = granules_run (granules, now_ms == gen->last_ms ? gen->used : 0, &begin);
    if (left == 0)
        return errset (EAGAIN);

    fluid_gen_advance (gen, now_ms);
    gen->used = begin;
    return take (gen, want < left ? want : left, first);
}
