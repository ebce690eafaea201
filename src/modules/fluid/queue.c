/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* queue.c - requests for ids that wait
 *
 * 'missing' is the sum of count - got over the entries, whatever is done to them here.
 */
#include <assert.h>
#include <stdlib.h>

#include "modules/fluid/queue.h"

static void free_list (struct pending *p)
{
    while (p) {
        struct pending *next = p->next;
        free (p->run);
        free (p);
        p = next;
    }
}

void queue_fini (struct queue *q)
{
    free_list (q->first);
    free_list (q->spare);
    *q = (struct queue){0};
}

static struct pending *get_spare (struct queue *q)
{
    struct pending *p = q->spare;

    if (!p)
        return calloc (1, sizeof (*p));
    q->spare = p->next;
    *p = (struct pending){.run = p->run, .size = p->size};
    return p;
}

/* Link 'p' behind 'prev' (NULL: in front). */
static void link_in (struct queue *q, struct pending *p, struct pending *prev)
{
    p->prev = prev;
    p->next = prev ? prev->next : q->first;
    *(p->prev ? &p->prev->next : &q->first) = p;
    *(p->next ? &p->next->prev : &q->last) = p;
}

static void unlink_from (struct queue *q, struct pending *p)
{
    *(p->prev ? &p->prev->next : &q->first) = p->next;
    *(p->next ? &p->next->prev : &q->last) = p->prev;
}

struct pending *queue_add (struct queue *q, uint32_t count)
{
    struct pending *p = get_spare (q);

    if (!p)
        return NULL;
    p->count = count;
    link_in (q, p, q->last);
    q->length++;
    q->missing += count;
    return p;
}

void queue_to_front (struct queue *q, struct pending *p)
{
    unlink_from (q, p);
    link_in (q, p, NULL);
}

void queue_remove (struct queue *q, struct pending *p)
{
    unlink_from (q, p);
    q->length--;
    q->missing -= p->count - p->got;
    p->next = q->spare;
    q->spare = p;
}

static int grow (struct pending *p)
{
    size_t size = p->size > 0 ? 2 * p->size : p->count / FLUID_PER_MS + 2;
    struct run *run = realloc (p->run, size * sizeof (*run));

    if (!run)
        return -1;
    p->run = run;
    p->size = size;
    return 0;
}

static bool continues (const struct pending *p, fluid_t first)
{
    const struct run *last = p->nruns > 0 ? &p->run[p->nruns - 1] : NULL;

    return last && last->first + last->n == first && (first & FLUID_SEQUENCE_MAX) != 0;
}

int queue_add_run (struct queue *q, struct pending *p, fluid_t first, uint32_t n)
{
    assert (n <= p->count - p->got);
    if (continues (p, first))
        p->run[p->nruns - 1].n += n;
    else {
        if (p->nruns == p->size && grow (p) < 0)
            return -1;
        p->run[p->nruns++] = (struct run){first, n};
    }
    p->got += n;
    q->missing -= n;
    return 0;
}
