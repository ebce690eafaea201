/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - the bits of a FLUID: [timestamp 40 | generator 14 | sequence 10] (RFC 19) */
#include "idtree/fluid.h"
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
