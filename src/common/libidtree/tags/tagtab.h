/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tagtab.h - matchtags in use, and the item that waits for each
 *
 * An all-zero struct is an empty table. Tags are 1, 2, 3, ... modulo 2^32, without 0 and without those in use. So a tag
 * is not reused for a long time, and a late response to a removed tag finds no item.
 */
#ifndef LIBIDTREE_TAGTAB_H
#define LIBIDTREE_TAGTAB_H

#include <stddef.h>
#include <stdint.h>

#define TAGTAB_MAX (1U << 20) /* tags in use at a time */

struct tagtab_slot {
    uint32_t tag; /* 0: free */
    void *item;
};

struct tagtab {
    struct tagtab_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t count;
    uint32_t last; /* the tag that was given last */
};

/* Give 'item' a tag. Returns the tag, or 0 with errno ENOBUFS (TAGTAB_MAX tags are in use) or ENOMEM. */
uint32_t tagtab_add (struct tagtab *t, void *item);

/* The item of a tag; NULL: the tag is not in use. */
void *tagtab_find (const struct tagtab *t, uint32_t tag);

/* Remove a tag that is in use. */
void tagtab_remove (struct tagtab *t, uint32_t tag);

/* The next item at or after '*cursor' (0 at first), which is advanced; NULL: no further item. Tags must not be added or
 * removed meanwhile.
 */
void *tagtab_next (const struct tagtab *t, size_t *cursor);

/* Free the table, not the items.  Keeps errno. */
void tagtab_fini (struct tagtab *t);

#endif /* LIBIDTREE_TAGTAB_H */
