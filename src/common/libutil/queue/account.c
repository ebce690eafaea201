/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* account.c - what one asker has under way, alone and of a pool that all share */
#include <assert.h>

#include "libutil/queue/account.h"

#define MAX_WIDENED 63

void account_init (struct account *a, struct account_pool *pool, uint64_t max_items, uint64_t max_bytes,
                   uint64_t patience_us)
{
    *a = (struct account){ .pool = pool,
                           .max_items = max_items ? max_items : ACCOUNT_NO_LIMIT,
                           .max_bytes = max_bytes ? max_bytes : ACCOUNT_NO_LIMIT,
                           .patience_us = patience_us };
}

/* A limit after the valve has opened so many times. */
static uint64_t widen (uint64_t limit, unsigned times)
{
    return limit > ACCOUNT_NO_LIMIT >> times ? ACCOUNT_NO_LIMIT : limit << times;
}

static bool has_share (const struct account *a)
{
    const struct account_pool *p = a->pool;

    return !p
           || (p->items < p->max_items && a->items < p->max_items - p->items && p->bytes < p->max_bytes
               && a->bytes < p->max_bytes - p->bytes);
}

static bool has_room (const struct account *a)
{
    return a->items < widen (a->max_items, a->widened) && a->bytes < widen (a->max_bytes, a->widened);
}

enum account_verdict account_charge (struct account *a, uint64_t bytes, uint64_t now_us)
{
    return has_share (a) ? account_force (a, bytes, now_us) : ACCOUNT_FULL;
}

enum account_verdict account_force (struct account *a, uint64_t bytes, uint64_t now_us)
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
    return a->waits ? ACCOUNT_WAIT : ACCOUNT_GO;
}

static void take_out (struct account *a, uint64_t items, uint64_t bytes)
{
    assert (a->items >= items && a->bytes >= bytes);
    a->items -= items;
    a->bytes -= bytes;
    if (a->pool) {
        a->pool->items -= items;
        a->pool->bytes -= bytes;
    }
}

bool account_release (struct account *a, uint64_t items, uint64_t bytes, uint64_t now_us)
{
    bool waited = a->waits;

    take_out (a, items, bytes);
    a->moved_us = now_us;
    if (a->items > a->max_items / 2 || a->bytes > a->max_bytes / 2)
        return false;
    a->waits = false;
    a->widened = 0;
    return waited;
}

uint64_t account_patience (const struct account *a)
{
    if (!a->waits || a->patience_us > ACCOUNT_NEVER - a->moved_us)
        return ACCOUNT_NEVER;
    return a->moved_us + a->patience_us;
}

bool account_open (struct account *a, uint64_t now_us)
{
    uint64_t opens_us = account_patience (a);

    if (opens_us == ACCOUNT_NEVER || now_us < opens_us)
        return false;
    do
        a->widened++;
    while (!has_room (a) && a->widened < MAX_WIDENED);
    a->waits = false;
    return true;
}

void account_clear (struct account *a)
{
    take_out (a, a->items, a->bytes);
    a->waits = false;
    a->widened = 0;
}
