/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* keys.c - find a duplicate key in an object
 *
 * Keys are put into a hash table. If some keys have escapes, or were chosen to collide in the table, the keys are
 * sorted instead, which takes n log n time for every set of keys.
 */
#include <stdlib.h>

#include "libjsonview/private.h"
#include "libutil/minmax.h"

#define PROBES 8 /* for each key, before keys are sorted instead */

static uint64_t load_short (const char *p, uint32_t size)
{
    uint32_t a, b;

    if (size < 4)
        return size > 0 ? (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[size / 2] << 8
                              | (unsigned char)p[size - 1]
                        : 0;
    memcpy (&a, p, 4);
    memcpy (&b, p + size - 4, 4);
    return (uint64_t)a << 32 | b;
}

static uint32_t hash (const struct jv *key)
{
    static const uint64_t odd = UINT64_C (0x9e3779b97f4a7c15);
    uint64_t h = key->size * odd;

    if (key->size < 8)
        h ^= load_short (key->text, key->size);
    else {
        for (uint32_t i = 0; i + 8 < key->size; i += 8) {
            h = (h ^ load (key->text + i)) * odd;
            h ^= h >> 32;
        }
        h ^= load (key->text + key->size - 8);
    }
    h *= odd;
    return (uint32_t)(h >> 32);
}

/* Put the keys into a table. Returns whether this decided the question: then '*twice' is a duplicate key, or NULL. */
static bool try_table (const struct jv *object, uint32_t *table, uint32_t mask, const struct jv **twice)
{
    uint32_t probes = PROBES * object->count;
    const struct jv *key;

    memset (table, 0, (mask + 1) * sizeof (*table));
    *twice = NULL;
    jv_foreach (object, key) {
        uint32_t i = hash (key) & mask;

        for (; table[i]; i = (i + 1) & mask) {
            if (same_plain (object + table[i], key)) {
                *twice = key;
                return true;
            }
            if (probes-- == 0)
                return false;
        }
        if (key->escaped)
            return false;
        table[i] = (uint32_t)(key - object);
    }
    return true;
}

static int compare_keys (const void *a, const void *b)
{
    const struct jv *x = *(const struct jv *const *)a, *y = *(const struct jv *const *)b;
    int rc;

    if (x->escaped || y->escaped)
        rc = jv_compare (x, y);
    else if ((rc = memcmp (x->text, y->text, min_u64 (x->size, y->size))) == 0)
        rc = x->size < y->size ? -1 : x->size > y->size;
    return rc ? rc : x < y ? -1 : 1;
}

static const struct jv *find_sorted (const struct jv *object, const struct jv **keys)
{
    uint32_t n = 0;
    const struct jv *key;

    jv_foreach (object, key)
        keys[n++] = key;
    qsort (keys, n, sizeof (*keys), compare_keys);
    for (uint32_t i = 1; i < n; i++)
        if (jv_same (keys[i - 1], keys[i]))
            return keys[i];
    return NULL;
}

/* The table has at most 4 places of 4 bytes for each key. */
const struct jv *jv_find_twice (const struct jv *object, void *room)
{
    uint32_t mask = 3;
    const struct jv *twice;

    while (mask < 2 * object->count)
        mask = 2 * mask + 1;
    return try_table (object, room, mask, &twice) ? twice : find_sorted (object, room);
}
