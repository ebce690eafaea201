/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.c - prefetch ids in blocks, and hand them out in order */
#include <assert.h>
#include <string.h>

#include "http/pool.h"

void pool_init (struct pool *p)
{
    memset (p, 0, sizeof (*p));
    p->block = 1;
    TAILQ_INIT (&p->waiting);
}

/* The older ids are used up or dropped. From now on the newer ids are the older ones. */
static void turn_over (struct pool *p)
{
    p->came_us = p->newer_us;
    p->newer = p->count;
    assert (p->next <= p->newer);
}

/* Drop ids that are too old. They were not used in time, so the next block has half the size. */
static void drop_old (struct pool *p, uint64_t now_us)
{
    while (p->next < p->count && now_us - p->came_us > POOL_AGE_US) {
        p->next = p->newer;
        p->block = p->block > 1 ? p->block / 2 : 1;
        turn_over (p);
    }
}

static void drop_passed (struct pool *p)
{
    while (p->next < p->count && p->ids[p->next] <= p->passed)
        if (++p->next == p->newer)
            turn_over (p);
}

void pool_pass (struct pool *p, fluid_t id)
{
    if (id > p->passed)
        p->passed = id;
    drop_passed (p);
}

static const fluid_t *take (struct pool *p, uint64_t now_us, uint32_t n)
{
    drop_old (p, now_us);
    if (n > p->count - p->next)
        return NULL;
    const fluid_t *ids = &p->ids[p->next];
    p->next += n;
    if (p->next >= p->newer) {
        if (p->block < POOL_MAX_BLOCK)
            p->block *= 2;
        turn_over (p);
    }
    return ids;
}

/* If clients wait already, a new request has to wait behind them. */
const fluid_t *pool_take (struct pool *p, uint64_t now_us, uint32_t n)
{
    return TAILQ_EMPTY (&p->waiting) ? take (p, now_us, n) : NULL;
}

void pool_wait (struct pool *p, struct pool_client *c)
{
    TAILQ_INSERT_TAIL (&p->waiting, c, link);
    p->missing += c->n;
}

static uint64_t least (uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint32_t pool_wants (struct pool *p)
{
    uint64_t left = p->count - p->next, lack = p->missing > left ? p->missing - left : 0;
    bool ahead = p->block >= POOL_AHEAD && left <= p->block / 2 && p->newer == p->count && p->count > 0;

    if (p->asked || (lack == 0 && !ahead))
        return 0;
    p->asked = true;
    return (uint32_t)least (lack > p->block ? lack : p->block, POOL_MAX_BLOCK);
}

/* Remaining ids are smaller than the ids of the new block, so they are handed out first. */
void pool_came (struct pool *p, uint64_t now_us, const fluid_t *ids, uint32_t n)
{
    p->asked = false;
    if (!ids) { /* request no new block before a client waits */
        p->block = 1;
        return;
    }
    drop_old (p, now_us);
    uint32_t left = p->count - p->next;
    memmove (p->ids, p->ids + p->next, left * sizeof (p->ids[0]));
    n = (uint32_t)least (n, 2 * POOL_MAX_BLOCK - left);
    memcpy (p->ids + left, ids, n * sizeof (p->ids[0]));
    p->next = 0;
    p->count = left + n;
    p->newer = left;
    p->newer_us = now_us;
    if (left == 0)
        turn_over (p);
    drop_passed (p);
}

static struct pool_client *remove_first (struct pool *p)
{
    struct pool_client *c = TAILQ_FIRST (&p->waiting);

    assert (p->missing >= c->n);
    TAILQ_REMOVE (&p->waiting, c, link);
    p->missing -= c->n;
    return c;
}

struct pool_client *pool_next (struct pool *p, uint64_t now_us, const fluid_t **ids)
{
    struct pool_client *c = TAILQ_FIRST (&p->waiting);

    if (!c || !(*ids = take (p, now_us, c->n)))
        return NULL;
    return remove_first (p);
}

struct pool_client *pool_drop (struct pool *p)
{
    return TAILQ_EMPTY (&p->waiting) ? NULL : remove_first (p);
}
