/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rng.h - random numbers that are a function of the seed alone (splitmix64) */
#ifndef CHAOS_RNG_H
#define CHAOS_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state; /* the seed; any value */
};

static inline uint64_t rng_next (struct rng *r)
{
    uint64_t z = r->state += UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Return a number 0 ... n - 1; n >= 1. The remainder is not distributed quite evenly, which does not matter here. */
static inline uint32_t rng_below (struct rng *r, uint32_t n)
{
    return (uint32_t)((rng_next (r) >> 32) % n);
}

static inline uint32_t rng_between (struct rng *r, uint32_t min, uint32_t max)
{
    return min + rng_below (r, max - min + 1);
}

#endif /* CHAOS_RNG_H */
