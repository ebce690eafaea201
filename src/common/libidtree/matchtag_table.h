/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* matchtag_table.h - matchtags in use, and the item that waits for each
 *
 * An all-zero struct is an empty table. Tags are 1, 2, 3, ... modulo 2^32, without 0 and without those in use. So a tag
 * is not reused for a long time, and a late response to a removed tag finds no item.
 */
#ifndef LIBIDTREE_MATCHTAG_TABLE_H
#define LIBIDTREE_MATCHTAG_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define MATCHTAG_TABLE_MAX (1U << 20) /* tags in use at a time */

struct matchtag_table_slot {
    uint32_t tag; /* 0: free */
    void *item;
};

struct matchtag_table {
    struct matchtag_table_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t count;
    uint32_t last; /* the tag that was given last */
};

/* Give 'item' a tag. Returns the tag, or 0 with errno ENOBUFS (MATCHTAG_TABLE_MAX tags are in use) or ENOMEM. */
uint32_t matchtag_table_add (struct matchtag_table *t, void *item);

/* The item of a tag; NULL: the tag is not in use. */
void *matchtag_table_find (const struct matchtag_table *t, uint32_t tag);

/* Remove a tag that is in use. */
void matchtag_table_remove (struct matchtag_table *t, uint32_t tag);

/* The next item at or after '*cursor' (0 at first), which is advanced; NULL: no further item. Tags must not be added or
 * removed meanwhile.
 */
void *matchtag_table_next (const struct matchtag_table *t, size_t *cursor);

/* Free the table, not the items.  Keeps errno. */
void matchtag_table_fini (struct matchtag_table *t);

#endif /* LIBIDTREE_MATCHTAG_TABLE_H */
