/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* be.h - numbers of any length in big endian bytes, so that bytes sort as the numbers do */
#ifndef UTIL_BE_H
#define UTIL_BE_H

#include <stdint.h>

/* The number in 'n' bytes, at most 8. */
static inline uint64_t get_be (const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Store the low 'n' bytes of a number. */
static inline void put_be (uint8_t *p, int n, uint64_t v)
{
    for (int i = n; i-- > 0; v >>= 8)
        p[i] = (uint8_t)v;
}

#endif /* UTIL_BE_H */
