/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_queue.c - requests of one kind that wait */
#include <stdlib.h>

#include "modules/flake/scheme_queue.h"

#define QUANTUM 4096 /* cost of one turn of an asker */

static void free_cb (void *item, void *arg)
{
    free (item);
}

int lane_init (struct lane *lane, uint32_t max_waiting)
{
    TAILQ_INIT (&lane->again);
    lane->waiting = turns_create (QUANTUM, max_waiting, 0);
    return lane->waiting ? 0 : -1;
}

void lane_fini (struct lane *lane)
{
    if (lane->waiting)
        turns_drain (lane->waiting, free_cb, NULL);
    turns_destroy (lane->waiting);
}

int lane_put (struct lane *lane, struct pending *p)
{
    p->lane = lane;
    return turns_put (lane->waiting, p->req.asker, p, p->req.count + FLAKE_REQUEST_COST);
}

void lane_put_again (struct lane *lane, struct pending *p)
{
    p->state = AGAIN;
    TAILQ_INSERT_TAIL (&lane->again, p, place);
}

struct pending *lane_current (struct lane *lane)
{
    struct pending *p = lane->current;

    if (p)
        return p;
    if ((p = TAILQ_FIRST (&lane->again)))
        TAILQ_REMOVE (&lane->again, p, place);
    while (!p && (p = turns_next (lane->waiting)) && !p->req.cookie) {
        free (p);
        p = NULL;
    }
    if (p)
        p->state = CURRENT;
    return lane->current = p;
}

void lane_went_up (struct lane *lane)
{
    lane->current->state = UP;
    lane->current = NULL;
}

void lane_forget (struct lane *lane, struct pending *p)
{
    p->req.cookie = NULL;
    if (p->state == WAITS)
        return;
    if (p->state == AGAIN)
        TAILQ_REMOVE (&lane->again, p, place);
    if (p->state == CURRENT)
        lane->current = NULL;
    free (p);
}

bool lane_is_empty (const struct lane *lane)
{
    return !lane->current && TAILQ_EMPTY (&lane->again) && turns_count (lane->waiting) == 0;
}

bool lane_serves (const struct lane *lane, uint64_t asker)
{
    return turns_flow_count (lane->waiting, asker) > 0 || (lane->current && lane->current->req.asker == asker);
}
