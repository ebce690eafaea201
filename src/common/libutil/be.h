/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* be.h - numbers of any length in big endian bytes, so that bytes sort as the numbers do
 *
 * With a constant length the loops are unrolled, which leaves one load or store and a swap of bytes.
 */
#ifndef UTIL_BE_H
#define UTIL_BE_H

#include <stdint.h>

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

#endif /* UTIL_BE_H */
