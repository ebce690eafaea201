/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_queue.c - a queue of requests of one kind */
#include <stdlib.h>

#include "modules/flake/scheme_queue.h"

#define QUANTUM 4096 /* ids and costs that a requester gets in one turn */

static void free_cb (void *item, void *arg)
{
    free (item);
}

int scheme_queue_init (struct scheme_queue *queue, uint32_t max_waiting)
{
    TAILQ_INIT (&queue->again);
    queue->waiting = drr_queue_create (QUANTUM, max_waiting, 0);
    return queue->waiting ? 0 : -1;
}

void scheme_queue_fini (struct scheme_queue *queue)
{
    if (queue->waiting)
        drr_queue_drain (queue->waiting, free_cb, NULL);
    drr_queue_destroy (queue->waiting);
}

int scheme_queue_put (struct scheme_queue *queue, struct flake_pending *p)
{
    p->queue = queue;
    return drr_queue_put_of (queue->waiting, p->req.user, p->req.asker, p, p->req.count + FLAKE_REQUEST_COST);
}

void scheme_queue_put_again (struct scheme_queue *queue, struct flake_pending *p)
{
    p->state = AGAIN;
    TAILQ_INSERT_TAIL (&queue->again, p, place);
}

struct flake_pending *scheme_queue_current (struct scheme_queue *queue)
{
    struct flake_pending *p = queue->current;

    if (p)
        return p;
    if ((p = TAILQ_FIRST (&queue->again)))
        TAILQ_REMOVE (&queue->again, p, place);
    while (!p && (p = drr_queue_next (queue->waiting)) && !p->req.cookie) {
        free (p);
        p = NULL;
    }
    if (p)
        p->state = CURRENT;
    return queue->current = p;
}

void scheme_queue_went_up (struct scheme_queue *queue)
{
    queue->current->state = UP;
    queue->current = NULL;
}

void scheme_queue_forget (struct scheme_queue *queue, struct flake_pending *p)
{
    p->req.cookie = NULL;
    if (p->state == WAITS)
        return;
    if (p->state == AGAIN)
        TAILQ_REMOVE (&queue->again, p, place);
    if (p->state == CURRENT)
        queue->current = NULL;
    free (p);
}

bool scheme_queue_is_empty (const struct scheme_queue *queue)
{
    return !queue->current && TAILQ_EMPTY (&queue->again) && drr_queue_count (queue->waiting) == 0;
}

bool scheme_queue_serves (const struct scheme_queue *queue, uint64_t asker)
{
    return drr_queue_flow_count (queue->waiting, asker) > 0 || (queue->current && queue->current->req.asker == asker);
}
