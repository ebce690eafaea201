/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* radix.h - sort an array in place by the bits of a key of 128 bits, most significant first
 *
 * Each kind of item needs one function:
 *
 *     static void sort_cb (void *items, size_t count)
 *     {
 *         radix_sort (items, count, sizeof (struct item), key_cb, sort_cb);
 *     }
 *
 * The compiler inlines radix_sort () there, with the size and the key known at compile time. radix_sort () calls the
 * function again for parts of the array.
 *
 * A pass uses some bits of the key, beginning with the first bit that is not the same in all items. So bits that all
 * ids of a time share are scanned only once. A pass moves each item once, to the part of the array for the item's bits,
 * so no memory is allocated. A part with few items is sorted by insertion. Passes are nested at most 16 deep for any
 * keys, with 4 KiB of stack each. The time of a pass is proportional to the number of its items. Items with the same
 * key end up in any order.
 */
#ifndef LIBUTIL_RADIX_H
#define LIBUTIL_RADIX_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RADIX_BITS_MAX 8
#define RADIX_PARTS_MAX (1 << RADIX_BITS_MAX)
#define RADIX_FEW 16         /* up to this number of items, insertion is faster than a pass */
#define RADIX_ITEM_MAX 64    /* bytes */
#define RADIX_PREFETCH 65536 /* bytes: larger arrays exceed the nearest cache */

/* The upper (0) or lower (1) 64 bits of an item's key. */
typedef uint64_t (*radix_key_f) (const void *item, int word);

/* The function that sorts the items of one kind. */
typedef void (*radix_sort_f) (void *items, size_t count);

#define RADIX_INLINE static inline __attribute__ ((always_inline))

RADIX_INLINE void radix_insertion (char *items, size_t count, size_t size, radix_key_f key)
{
    char held[RADIX_ITEM_MAX];

    for (size_t i = 1; i < count; i++) {
        char *p = items + i * size;
        uint64_t upper = key (p, 0), lower = key (p, 1);

        memcpy (held, p, size);
        for (; p > items; p -= size) {
            uint64_t before = key (p - size, 0);
            if (before < upper || (before == upper && key (p - size, 1) <= lower))
                break;
            memcpy (p, p - size, size);
        }
        memcpy (p, held, size);
    }
}

/* The bits of one word of the key that are not the same in all items. */
RADIX_INLINE uint64_t radix_differences (const char *items, size_t count, size_t size, radix_key_f key, int word)
{
    uint64_t first = key (items, word), all = 0;

    for (size_t i = 1; i < count; i++)
        all |= key (items + i * size, word) ^ first;
    return all;
}

/* The bits that a pass uses. */
struct radix_digit {
    int word, shift;
    unsigned parts; /* a power of 2 */
};

RADIX_INLINE unsigned radix_part (const void *item, radix_key_f key, struct radix_digit digit)
{
    return key (item, digit.word) >> digit.shift & (digit.parts - 1);
}

/* Move each item into its part. Part 'k' consists of items next[k] ... end[k] - 1. Afterwards next[k] is end[k]. */
RADIX_INLINE void radix_distribute (char *items, size_t count, size_t size, radix_key_f key, struct radix_digit digit,
                                    size_t *next, const size_t *end)
{
    char held[RADIX_ITEM_MAX], other[RADIX_ITEM_MAX];

    for (unsigned k = 0; k < digit.parts; k++) {
        while (next[k] < end[k]) {
            memcpy (held, items + next[k] * size, size);
            for (unsigned to; (to = radix_part (held, key, digit)) != k;) {
                char *place = items + next[to]++ * size;
                memcpy (other, place, size);
                memcpy (place, held, size);
                memcpy (held, other, size);
                if (count * size > RADIX_PREFETCH) /* the part's next items will be written there */
                    __builtin_prefetch (place + 2 * size, 1);
            }
            memcpy (items + next[k]++ * size, held, size);
        }
    }
}

/* Sort 'count' items of 'size' bytes (at most RADIX_ITEM_MAX) by 'key'. 'again' is the function that calls radix_sort
 * ().
 */
RADIX_INLINE void radix_sort (void *items, size_t count, size_t size, radix_key_f key, radix_sort_f again)
{
    size_t next[RADIX_PARTS_MAX], end[RADIX_PARTS_MAX];
    struct radix_digit digit = { 0 };
    size_t start = 0;

    assert (size <= RADIX_ITEM_MAX);
    if (count <= RADIX_FEW) {
        radix_insertion (items, count, size, key);
        return;
    }
    uint64_t differ = radix_differences (items, count, size, key, 0);
    if (differ == 0 && (differ = radix_differences (items, count, size, key, digit.word = 1)) == 0)
        return;
    int top = 63 - __builtin_clzll (differ);
    int bits = 62 - __builtin_clzll (count); /* chosen so that a part has 2 to 4 items if the keys are spread evenly */
    bits = bits > RADIX_BITS_MAX ? RADIX_BITS_MAX : bits;
    digit.shift = top < bits ? 0 : top - bits + 1;
    digit.parts = 1u << bits;
    memset (next, 0, digit.parts * sizeof (next[0]));
    for (size_t i = 0; i < count; i++)
        next[radix_part ((char *)items + i * size, key, digit)]++;
    for (unsigned k = 0; k < digit.parts; k++) {
        end[k] = start + next[k];
        next[k] = start;
        start = end[k];
    }
    radix_distribute (items, count, size, key, digit, next, end);
    for (unsigned k = 0; k < digit.parts; k++) {
        start = k > 0 ? end[k - 1] : 0;
        if (end[k] - start > 1)
            again ((char *)items + start * size, end[k] - start);
    }
}

#endif /* LIBUTIL_RADIX_H */
