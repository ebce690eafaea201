/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fifo.h - a queue of pointers that grows; an all-zero struct is an empty queue
 *
 * The queue does not dereference its pointers: the owner counts, limits and frees the items.
 */
#ifndef UTIL_FIFO_H
#define UTIL_FIFO_H

#include <stddef.h>

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

/* Free a large ring if it is empty. */
void fifo_shrink (struct fifo *q);

/* Free the ring, not the items, and empty the queue. Keeps errno. */
void fifo_fini (struct fifo *q);

#endif /* UTIL_FIFO_H */
