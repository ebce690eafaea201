/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* minmax.h - the smaller and the larger of two numbers */
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

#endif /* LIBUTIL_MINMAX_H */
