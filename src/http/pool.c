/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.c - ids that were asked for before somebody wants them */
#include <string.h>

#include "http/pool.h"

void pool_init (struct pool *p)
{
    memset (p, 0, sizeof (*p));
    p->block = 1;
    TAILQ_INIT (&p->waiting);
}

/* What is old is for nobody: the block was too large. */
static void drop_old (struct pool *p, uint64_t now_us)
{
    if (p->next == p->count || now_us - p->came_us <= POOL_AGE_US)
        return;
    p->next = p->count = 0;
    p->block = p->block > 1 ? p->block / 2 : 1;
}

static const fluid_t *take (struct pool *p, uint64_t now_us, uint32_t n)
{
    const fluid_t *ids = &p->ids[p->next];

    drop_old (p, now_us);
    if (n > p->count - p->next)
        return NULL;
    p->next += n;
    if (p->next == p->count && now_us - p->came_us <= POOL_AGE_US && p->block < POOL_MAX_BLOCK)
        p->block *= 2;
    return ids;
}

/* Nobody goes before those who wait. */
const fluid_t *pool_take (struct pool *p, uint64_t now_us, uint32_t n)
{
    return TAILQ_EMPTY (&p->waiting) ? take (p, now_us, n) : NULL;
}

void pool_wait (struct pool *p, struct pool_client *c)
{
    TAILQ_INSERT_TAIL (&p->waiting, c, link);
    p->missing += c->n;
}

uint32_t pool_wants (struct pool *p)
{
    uint64_t left = p->count - p->next, lack = p->missing > left ? p->missing - left : 0;
    uint64_t want = lack > p->block ? lack : p->block;

    if (p->asked || lack == 0)
        return 0;
    p->asked = true;
    return (uint32_t)(want > POOL_MAX_BLOCK - left ? POOL_MAX_BLOCK - left : want);
}

/* What was left goes first: it is of the same order. */
void pool_came (struct pool *p, uint64_t now_us, const fluid_t *ids, uint32_t n)
{
    uint32_t left = p->count - p->next;

    p->asked = false;
    if (!ids)
        return;
    drop_old (p, now_us);
    left = p->count - p->next;
    memmove (p->ids, p->ids + p->next, left * sizeof (p->ids[0]));
    n = n < POOL_MAX_BLOCK - left ? n : POOL_MAX_BLOCK - left;
    memcpy (p->ids + left, ids, n * sizeof (p->ids[0]));
    p->next = 0;
    p->count = left + n;
    if (left == 0)
        p->came_us = now_us;
}

static struct pool_client *remove_first (struct pool *p)
{
    struct pool_client *c = TAILQ_FIRST (&p->waiting);

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
