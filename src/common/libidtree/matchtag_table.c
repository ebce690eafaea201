/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* matchtag_table.c - matchtags in use, and the item that waits for each
 *
 * Open addressing with linear probing; the table is at most half full. Tags are given in sequence, and Fibonacci
 * hashing spreads their home slots evenly. Adjacent home slots would form one long run, which each removal must walk.
 * There are no tombstones: a removal moves back the entries that the gap would separate from their home slots.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "libidtree/matchtag_table.h"

#define MATCHTAG_TABLE_FIRST_SIZE 16

static size_t home_of (const struct matchtag_table *t, uint32_t tag)
{
    return (size_t)((tag * UINT64_C (0x9e3779b97f4a7c15)) >> 32) & (t->size - 1);
}

/* The slot of a tag, or the free slot where it would be stored. */
static size_t probe (const struct matchtag_table *t, uint32_t tag)
{
    size_t i = home_of (t, tag);

    while (t->slots[i].tag != 0 && t->slots[i].tag != tag)
        i = (i + 1) & (t->size - 1);
    return i;
}

static int grow (struct matchtag_table *t)
{
    struct matchtag_table old = *t;
    size_t size = old.size ? 2 * old.size : MATCHTAG_TABLE_FIRST_SIZE;
    struct matchtag_table_slot *slots = calloc (size, sizeof (slots[0]));

    if (!slots)
        return -1;
    t->slots = slots;
    t->size = size;
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i].tag != 0)
            t->slots[probe (t, old.slots[i].tag)] = old.slots[i];
    }
    free (old.slots);
    return 0;
}

uint32_t matchtag_table_add (struct matchtag_table *t, void *item)
{
    assert (item);
    if (t->count == MATCHTAG_TABLE_MAX) {
        errno = ENOBUFS;
        return 0;
    }
    if (2 * t->count >= t->size && grow (t) < 0)
        return 0;
    do
        t->last++;
    while (t->last == 0 || matchtag_table_find (t, t->last));
    t->slots[probe (t, t->last)] = (struct matchtag_table_slot){ .tag = t->last, .item = item };
    t->count++;
    return t->last;
}

void *matchtag_table_find (const struct matchtag_table *t, uint32_t tag)
{
    return t->size > 0 && tag != 0 ? t->slots[probe (t, tag)].item : NULL;
}

void matchtag_table_remove (struct matchtag_table *t, uint32_t tag)
{
    size_t mask = t->size - 1;
    size_t gap = probe (t, tag);

    assert (t->slots[gap].tag == tag);
    for (size_t i = (gap + 1) & mask; t->slots[i].tag != 0; i = (i + 1) & mask) {
        if (((i - home_of (t, t->slots[i].tag)) & mask) < ((i - gap) & mask))
            continue; /* its home slot is behind the gap */
        t->slots[gap] = t->slots[i];
        gap = i;
    }
    t->slots[gap] = (struct matchtag_table_slot){ 0 };
    t->count--;
}

void *matchtag_table_next (const struct matchtag_table *t, size_t *cursor)
{
    while (*cursor < t->size) {
        const struct matchtag_table_slot *slot = &t->slots[(*cursor)++];
        if (slot->tag != 0)
            return slot->item;
    }
    return NULL;
}

void matchtag_table_fini (struct matchtag_table *t)
{
    int saved_errno = errno;

    free (t->slots);
    *t = (struct matchtag_table){ 0 };
    errno = saved_errno;
}
