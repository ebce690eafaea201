/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* freelist.h - keep freed blocks of one size for later allocations, for one thread
 *
 * Objects that are needed for each request are thus allocated only once. The list keeps at most FREELIST_BYTES.
 */
#ifndef UTIL_FREELIST_H
#define UTIL_FREELIST_H

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#define FREELIST_BYTES ((size_t)64 << 10)

struct freelist {
    size_t size; /* of a block, at least the size of a pointer */
    size_t bytes;
    void *first; /* each free block begins with the address of the next one */
};

static inline void freelist_init (struct freelist *s, size_t size)
{
    assert (size >= sizeof (void *));
    *s = (struct freelist){ .size = size };
}

/* A block with undefined content. NULL with errno ENOMEM. */
static inline void *freelist_get (struct freelist *s)
{
    void *p = s->first;

    if (!p)
        return malloc (s->size);
    s->first = *(void **)p;
    s->bytes -= s->size;
    return p;
}

/* Give a block back. NULL is allowed. */
static inline void freelist_put (struct freelist *s, void *p)
{
    if (!p || s->bytes + s->size > FREELIST_BYTES) {
        free (p);
        return;
    }
    *(void **)p = s->first;
    s->first = p;
    s->bytes += s->size;
}

static inline void freelist_fini (struct freelist *s)
{
    void *p;

    while ((p = s->first)) {
        s->first = *(void **)p;
        free (p);
    }
    s->bytes = 0;
}

#endif /* UTIL_FREELIST_H */
