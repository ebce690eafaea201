/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.c - blocks of memory that small messages reuse
 *
 * 'users' counts the blocks in use, and the owner.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "libmsg/pool.h"

struct msg_pool {
    size_t users; /* atomic */
    bool busy;    /* atomic: a thread uses the members below */
    size_t bytes; /* of unused blocks that are kept */
    void *first;  /* the list of unused blocks; each begins with the address of the next */
};

static bool enter (struct msg_pool *pool)
{
    return !__atomic_test_and_set (&pool->busy, __ATOMIC_ACQUIRE);
}

static void leave (struct msg_pool *pool)
{
    __atomic_clear (&pool->busy, __ATOMIC_RELEASE);
}

struct msg_pool *msg_pool_create (void)
{
    struct msg_pool *pool = calloc (1, sizeof (*pool));

    if (pool)
        pool->users = 1;
    return pool;
}

static void *take (struct msg_pool *pool)
{
    void *block = NULL;

    if (!enter (pool))
        return NULL;
    if ((block = pool->first)) {
        pool->first = *(void **)block;
        pool->bytes -= MSG_POOL_BLOCK;
    }
    leave (pool);
    return block;
}

void *msg_pool_get (struct msg_pool *pool)
{
    void *block = take (pool);

    if (!block && !(block = malloc (MSG_POOL_BLOCK)))
        return NULL;
    __atomic_add_fetch (&pool->users, 1, __ATOMIC_RELAXED);
    return block;
}

static bool keep (struct msg_pool *pool, void *block)
{
    bool kept;

    if (!enter (pool))
        return false;
    if ((kept = pool->bytes + MSG_POOL_BLOCK <= MSG_POOL_BYTES)) {
        *(void **)block = pool->first;
        pool->first = block;
        pool->bytes += MSG_POOL_BLOCK;
    }
    leave (pool);
    return kept;
}

static void one_less (struct msg_pool *pool)
{
    void *block;

    if (__atomic_sub_fetch (&pool->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    while ((block = pool->first)) {
        pool->first = *(void **)block;
        free (block);
    }
    free (pool);
}

void msg_pool_put (struct msg_pool *pool, void *block)
{
    if (!keep (pool, block))
        free (block);
    one_less (pool);
}

void msg_pool_let_go (struct msg_pool *pool)
{
    if (pool)
        one_less (pool);
}
