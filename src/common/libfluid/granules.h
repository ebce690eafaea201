/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* granules.h - the sequence numbers of a millisecond that a generator may use while others are reserved */
#ifndef LIBFLUID_GRANULES_H
#define LIBFLUID_GRANULES_H

#include <idtree/fluid.h>

/* Find the first run of sequence numbers from 'used' on whose granules are set in 'granules'. Returns the length of the
 * run and sets '*begin' to its first number; returns 0 if no such number is left.
 */
static inline uint32_t granules_run (uint64_t granules, uint32_t used, uint32_t *begin)
{
    uint32_t g = used / FLUID_GRANULE;
    uint64_t left = g < FLUID_GRANULES ? granules >> g : 0;

    if (left == 0)
        return 0;
    uint32_t skipped = (uint32_t)__builtin_ctzll (left);
    uint64_t gaps = ~(left >> skipped);
    uint32_t length = gaps == 0 ? FLUID_GRANULES : (uint32_t)__builtin_ctzll (gaps);

    *begin = skipped == 0 ? used : (g + skipped) * FLUID_GRANULE;
    return (g + skipped + length) * FLUID_GRANULE - *begin;
}

#endif /* LIBFLUID_GRANULES_H */
