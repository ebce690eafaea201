/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fifo.c - a queue of pointers that grows
 *
 * Items are in slots head, head + 1, ... head + count - 1 (mod size) of a ring.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "libutil/queue/fifo.h"

#define FIFO_FIRST_SIZE 8

static int grow (struct fifo *q)
{
    size_t size = q->size ? 2 * q->size : FIFO_FIRST_SIZE;
    const void **items = calloc (size, sizeof (items[0]));

    if (!items)
        return -1;
    for (size_t i = 0; i < q->count; i++)
        items[i] = q->items[(q->head + i) & (q->size - 1)];
    free (q->items);
    q->items = items;
    q->size = size;
    q->head = 0;
    return 0;
}

int fifo_push (struct fifo *q, const void *item)
{
    assert (item);
    if (q->count == q->size && grow (q) < 0)
        return -1;
    assert (q->count < q->size);
    q->items[(q->head + q->count++) & (q->size - 1)] = item;
    return 0;
}

const void *fifo_pop (struct fifo *q)
{
    if (q->count == 0)
        return NULL;
    const void *item = q->items[q->head];
    q->head = (q->head + 1) & (q->size - 1);
    q->count--;
    return item;
}

void fifo_shrink (struct fifo *q)
{
    if (q->count == 0 && q->size > FIFO_FIRST_SIZE)
        fifo_fini (q);
}

void fifo_fini (struct fifo *q)
{
    int saved_errno = errno;

    free (q->items);
    *q = (struct fifo){ 0 };
    errno = saved_errno;
}
