/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* radix_test.c - sorted arrays are in order and have the same items as before, for any keys */
#include <stdlib.h>

#include "libutil/radix.h"
#include "test/tap.h"

#define MANY 70000

struct item {
    uint64_t key[2];
    uint32_t number; /* not part of the key */
};

static inline uint64_t key_cb (const void *item, int word)
{
    return ((const struct item *)item)->key[word];
}

static void sort_cb (void *items, size_t count)
{
    radix_sort (items, count, sizeof (struct item), key_cb, sort_cb);
}

static uint64_t next_random (void)
{
    static uint64_t state;
    uint64_t z = (state += UINT64_C (0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

static struct item random_key (size_t i)
{
    return (struct item){ .key = { next_random (), next_random () } };
}

static struct item lower_key (size_t i)
{
    return (struct item){ .key = { 77, next_random () } };
}

static struct item same_key (size_t i)
{
    return (struct item){ .key = { 1, 2 } };
}

static struct item rising_key (size_t i)
{
    return (struct item){ .key = { i / 300, i } };
}

static struct item falling_key (size_t i)
{
    return (struct item){ .key = { -(uint64_t)i, i } };
}

/* In each pass one item is far from all others. */
static struct item lonely_key (size_t i)
{
    return (struct item){ .key = { i < 64 ? UINT64_C (1) << i : 0, i < 128 ? UINT64_C (1) << (i & 63) : i % 3 } };
}

static struct item few_keys (size_t i)
{
    return (struct item){ .key = { next_random () & UINT64_C (0x8000000000000001), next_random () & 3 } };
}

static const struct {
    const char *name;
    struct item (*make) (size_t i);
} shapes[] = {
    { "random", random_key },
    { "the same in their upper half", lower_key },
    { "all the same", same_key },
    { "sorted", rising_key },
    { "sorted in reverse", falling_key },
    { "increasingly far from each other", lonely_key },
    { "of few kinds", few_keys },
};

/* Sort 'count' items. Whether the keys are in order, each item occurs once with its key, and the memory after the array
 * is unchanged.
 */
static bool sorts (struct item (*make) (size_t i), size_t count)
{
    struct item *before = calloc (count + 1, sizeof (*before)), *items = calloc (count + 1, sizeof (*items));
    char *seen = calloc (count + 1, 1);
    bool good = before && items && seen;

    for (size_t i = 0; good && i < count; i++) {
        before[i] = make (i);
        before[i].number = i;
        items[i] = before[i];
    }
    if (good)
        sort_cb (items, count);
    for (size_t i = 0; good && i < count; i++) {
        const struct item *x = &items[i];
        good = x->number < count && !seen[x->number]++ && memcmp (x->key, before[x->number].key, sizeof (x->key)) == 0;
        good &= i == 0 || x[-1].key[0] < x->key[0] || (x[-1].key[0] == x->key[0] && x[-1].key[1] <= x->key[1]);
    }
    good = good && items[count].number == 0 && items[count].key[0] == 0;
    free (seen);
    free (items);
    free (before);
    return good;
}

int main (void)
{
    for (size_t i = 0; i < sizeof (shapes) / sizeof (shapes[0]); i++) {
        bool good = sorts (shapes[i].make, MANY);

        for (size_t count = 0; count <= 300; count++)
            good &= sorts (shapes[i].make, count);
        ok (good, "any number of keys is sorted if the keys are %s", shapes[i].name);
    }
    return done_testing ();
}
