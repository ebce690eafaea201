/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fifo.h - two parts of queues: a queue of pointers, and a list of freed blocks
 *
 * The queue grows; an all-zero struct is an empty queue. It does not dereference its pointers: the owner counts, limits
 * and frees the items.
 */
#ifndef UTIL_FIFO_H
#define UTIL_FIFO_H

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

struct fifo {
    const void **items; /* ring of 'size' slots, a power of two; NULL: none yet */
    size_t size;
    size_t head; /* slot of the oldest item */
    size_t count;
};

/* Add an item (not NULL) at the end.  Returns 0, or -1 with errno ENOMEM. */
int fifo_push (struct fifo *q, const void *item);

/* Take the oldest item. NULL if the queue is empty. */
const void *fifo_pop (struct fifo *q);

/* If the queue is empty and its ring is large, free the ring. */
void fifo_shrink (struct fifo *q);

/* Free the ring, not the items, and empty the queue. Keeps errno. */
void fifo_fini (struct fifo *q);

/* --- freed blocks of one size, kept for later allocations by one thread ------------------------------------------
 *
 * With such a list, objects that each request needs are not allocated for each request. The list keeps at most
 * FREELIST_BYTES.
 */

#define FREELIST_BYTES ((size_t)64 << 10)

struct freelist {
    size_t size; /* bytes of a block, at least the size of a pointer */
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

#endif /* UTIL_FIFO_H */
