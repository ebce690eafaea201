/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* search.h - find a number in a sorted array
 *
 * Clusters and runs are records of 16 bytes that begin with an int64_t, in ascending order. Most documents grow evenly,
 * so linear interpolation between the first and the last key gives the approximate position of a key. A window around
 * that position is enlarged until it contains the key, and then halved until one record is left.
 */
#ifndef COMPRESSOR_SEARCH_H
#define COMPRESSOR_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#define IDSEARCH_RECORD 16 /* bytes */
#define IDSEARCH_WINDOW 4  /* records: the first window extends this far in both directions */

static inline int64_t idsearch_key (const void *records, size_t i)
{
    return *(const int64_t *)((const char *)records + i * IDSEARCH_RECORD);
}

/* The index of the last of 'n' (>= 1) records with a key at or below 'key', which must not be below the first key. */
static inline size_t idsearch (const void *records, size_t n, int64_t key)
{
    int64_t first = idsearch_key (records, 0);
    int64_t last = idsearch_key (records, n - 1);
    size_t reach = IDSEARCH_WINDOW;
    size_t lo;
    size_t hi;

    if (key >= last)
        return n - 1;
    size_t guess = (int64_t)((double)(key - first) / (double)(last - first) * (double)(int64_t)(n - 1));
    for (;; reach *= 8) {
        lo = guess > reach ? guess - reach : 0;
        hi = guess + reach < n - 1 ? guess + reach : n - 1;
        if (idsearch_key (records, lo) <= key && key < idsearch_key (records, hi))
            break;
    }
    for (size_t len = hi - lo; len > 1;) { /* key of lo <= key < key of lo + len */
        size_t half = len / 2;
        lo += idsearch_key (records, lo + half) <= key ? half : 0;
        len -= half;
    }
    return lo;
}

#endif /* COMPRESSOR_SEARCH_H */
