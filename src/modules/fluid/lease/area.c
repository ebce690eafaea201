/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* area.c - conversion of sequence numbers to sets of granules, and back */
#include "modules/fluid/lease/area.h"

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
