/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* be.h - numbers as big-endian bytes of any length: the bytes sort like the numbers
 *
 * With a constant length the compiler unrolls the loops to one load or store and a byte swap.
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
