/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* queue.c - events ordered by time: a heap with four children for each node */
#include <stdlib.h>

#include "sim/sim_check.h"
#include "sim/scale/queue.h"

#define WAYS 4

static bool earlier (const struct scale_event *a, const struct scale_event *b)
{
    return a->t_ns != b->t_ns ? a->t_ns < b->t_ns : a->order < b->order;
}

void queue_push (struct queue *q, struct scale_event e)
{
    size_t i = q->count++;

    if (i == q->size) {
        q->size = q->size ? 2 * q->size : 1024;
        q->event = must (realloc (q->event, q->size * sizeof (e)));
    }
    e.order = ++q->order;
    for (; i > 0 && earlier (&e, &q->event[(i - 1) / WAYS]); i = (i - 1) / WAYS)
        q->event[i] = q->event[(i - 1) / WAYS];
    q->event[i] = e;
}

/* The earliest child of 'i', which must have a child. */
static size_t first_child (const struct queue *q, size_t i)
{
    size_t first = WAYS * i + 1, end = first + WAYS < q->count ? first + WAYS : q->count;

    for (size_t k = first + 1; k < end; k++)
        if (earlier (&q->event[k], &q->event[first]))
            first = k;
    return first;
}

bool queue_pop (struct queue *q, struct scale_event *e)
{
    if (q->count == 0)
        return false;
    *e = q->event[0];
    struct scale_event last = q->event[--q->count];
    size_t i = 0;

    while (WAYS * i + 1 < q->count) {
        size_t k = first_child (q, i);

        if (!earlier (&q->event[k], &last))
            break;
        q->event[i] = q->event[k];
        i = k;
    }
    q->event[i] = last;
    return true;
}

void queue_fini (struct queue *q)
{
    free (q->event);
    *q = (struct queue){ 0 };
}
