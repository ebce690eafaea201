/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* minmax.h - integers: the smaller and the larger of two, and numbers as big-endian bytes */
#ifndef LIBUTIL_MINMAX_H
#define LIBUTIL_MINMAX_H

#include <stdint.h>

static inline uint64_t min_u64 (uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline int64_t min_i64 (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64 (uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* --- big-endian bytes of any length: they sort like the numbers --------------------------------------------------
 *
 * With a constant length the compiler unrolls the loops to one load or store and a byte swap.
 */

/* The number in 'n' bytes, at most 8. */
static inline uint64_t get_be (const uint8_t *p, int n)
{
    uint64_t v = 0;

#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Store the low 'n' bytes of a number. */
static inline void put_be (uint8_t *p, int n, uint64_t v)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * (n - 1 - i));
}

#endif /* LIBUTIL_MINMAX_H */
