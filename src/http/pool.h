/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.h - prefetch ids in blocks, and hand them out in order; no I/O
 *
 * A block is requested when a client waits. If it is used up before it is old, the next block has twice its size; if it
 * gets old, the next one has half of it. So a rare request needs one message to the broker, and frequent requests share
 * few. If blocks are large, the next one is requested when half of the current one is left, so that no client waits for
 * it. Ids are handed out in increasing order, to the client that has waited longest, and never if they are older than
 * POOL_AGE_US.
 */
#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/fluid.h>

#define POOL_AGE_US 100000 /* largest age of an id that is handed out */
#define POOL_MAX_BLOCK 4096U
#define POOL_AHEAD 64U /* smallest block after which the next one is requested early */

struct pool_client {
    TAILQ_ENTRY (pool_client) link;
    uint32_t n; /* ids that it wants: at most POOL_MAX_BLOCK */
};
TAILQ_HEAD (pool_clients, pool_client);

struct pool {
    fluid_t ids[2 * POOL_MAX_BLOCK];
    uint32_t next, count; /* the remaining ids: ids[next] ... ids[count - 1] */
    uint32_t newer;       /* index of the ids that came later; count: none */
    uint64_t came_us, newer_us;
    uint32_t block; /* size of the next block */
    bool asked;     /* a block has been requested */
    struct pool_clients waiting;
    uint64_t missing; /* ids that the waiting clients want */
    fluid_t passed;   /* smaller ids are not handed out */
};

void pool_init (struct pool *p);

/* Take 'n' ids, borrowed until the next call. NULL if the client has to wait. */
const fluid_t *pool_take (struct pool *p, uint64_t now_us, uint32_t n);

void pool_wait (struct pool *p, struct pool_client *c);

/* The size of the block to request now; 0: none. A block is then pending until pool_came (). */
uint32_t pool_wants (struct pool *p);

/* The block has arrived ('ids' is copied), or failed (NULL). */
void pool_came (struct pool *p, uint64_t now_us, const fluid_t *ids, uint32_t n);

/* Ids up to 'id' were handed out in another way: later requests get larger ones. */
void pool_pass (struct pool *p, fluid_t id);

/* Remove the next client from the queue and store its ids in '*ids' (borrowed until the next call). NULL if no client
 * can be served.
 */
struct pool_client *pool_next (struct pool *p, uint64_t now_us, const fluid_t **ids);

/* Remove a waiting client that gets no ids; the caller repeats this until NULL. */
struct pool_client *pool_drop (struct pool *p);

#endif /* HTTP_POOL_H */
