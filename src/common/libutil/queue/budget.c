/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* budget.c - limits for the pending items of one requester, alone and in a pool that all requesters share */
#include <assert.h>

#include "libutil/queue/budget.h"

#define MAX_WIDENED 63

void budget_init (struct budget *a, struct budget_pool *pool, uint64_t max_items, uint64_t max_bytes,
                  uint64_t patience_us)
{
    *a = (struct budget){ .pool = pool,
                          .max_items = max_items ? max_items : BUDGET_NO_LIMIT,
                          .max_bytes = max_bytes ? max_bytes : BUDGET_NO_LIMIT,
                          .patience_us = patience_us };
}

/* The limit after the valve has doubled it 'times' times. */
static uint64_t widen (uint64_t limit, unsigned times)
{
    return limit > BUDGET_NO_LIMIT >> times ? BUDGET_NO_LIMIT : limit << times;
}

static bool has_share (const struct budget *a)
{
    const struct budget_pool *p = a->pool;

    return !p
           || (p->items < p->max_items && a->items < p->max_items - p->items && p->bytes < p->max_bytes
               && a->bytes < p->max_bytes - p->bytes);
}

static bool has_room (const struct budget *a)
{
    return a->items < widen (a->max_items, a->widened) && a->bytes < widen (a->max_bytes, a->widened);
}

enum budget_verdict budget_charge (struct budget *a, uint64_t bytes, uint64_t now_us)
{
    return has_share (a) ? budget_force (a, bytes, now_us) : BUDGET_FULL;
}

enum budget_verdict budget_force (struct budget *a, uint64_t bytes, uint64_t now_us)
{
    a->items++;
    a->bytes += bytes;
    if (a->pool) {
        a->pool->items++;
        a->pool->bytes += bytes;
    }
    if (!a->waits && !has_room (a)) {
        a->waits = true;
        a->moved_us = now_us;
    }
    return a->waits ? BUDGET_WAIT : BUDGET_GO;
}

bool budget_release (struct budget *a, uint64_t items, uint64_t bytes, uint64_t now_us)
{
    bool waited = a->waits;

    assert (a->items >= items && a->bytes >= bytes);
    a->items -= items;
    a->bytes -= bytes;
    if (a->pool) {
        assert (a->pool->items >= items && a->pool->bytes >= bytes);
        a->pool->items -= items;
        a->pool->bytes -= bytes;
    }
    a->moved_us = now_us;
    if (a->items > a->max_items / 2 || a->bytes > a->max_bytes / 2)
        return false;
    a->waits = false;
    a->widened = 0;
    return waited;
}

uint64_t budget_patience (const struct budget *a)
{
    if (!a->waits || a->patience_us > BUDGET_NEVER - a->moved_us)
        return BUDGET_NEVER;
    return a->moved_us + a->patience_us;
}

bool budget_open (struct budget *a, uint64_t now_us)
{
    uint64_t opens_us = budget_patience (a);

    if (opens_us == BUDGET_NEVER || now_us < opens_us)
        return false;
    do
        a->widened++;
    while (!has_room (a) && a->widened < MAX_WIDENED);
    a->waits = false;
    return true;
}
