/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.h - prefetch ids in blocks, and hand them out in order; no I/O
 *
 * A block is requested when a client waits. If a block is used up before its ids are too old, the next block has twice
 * its size. If its ids get too old, the next block has half its size. So a rare request needs one message to the
 * broker, and frequent requests share few messages. If blocks have POOL_AHEAD ids or more, the next block is requested
 * when half of the current one is left, so that no client waits for it. Ids are handed out in increasing order, to the
 * client that has waited longest. Ids older than POOL_AGE_US are never handed out.
 */
#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/fluid.h>

#define POOL_AGE_US 100000 /* largest age in us of an id that is handed out */
#define POOL_MAX_BLOCK 4096U
#define POOL_AHEAD 64U /* smallest block after which the next one is requested early */

struct pool_client {
    TAILQ_ENTRY (pool_client) link;
    uint32_t n; /* number of ids that the client wants: at most POOL_MAX_BLOCK */
};
TAILQ_HEAD (pool_clients, pool_client);

struct pool {
    fluid_t ids[2 * POOL_MAX_BLOCK];
    uint32_t next, count; /* the remaining ids: ids[next] ... ids[count - 1] */
    uint32_t newer;       /* index of the first id of the newer block; equal to 'count' if there is no newer block */
    uint64_t came_us, newer_us;
    uint32_t block; /* size of the next block */
    bool asked;     /* a block has been requested */
    struct pool_clients waiting;
    uint64_t missing; /* number of ids that the waiting clients want */
    fluid_t passed;   /* ids up to this one are not handed out */
};

void pool_init (struct pool *p);

/* Take 'n' ids, borrowed until the next call. Returns NULL if the client has to wait. */
const fluid_t *pool_take (struct pool *p, uint64_t now_us, uint32_t n);

void pool_wait (struct pool *p, struct pool_client *c);

/* Return the size of the block that the caller must request now; 0: none. After a size above 0 a block is pending until
 * pool_came ().
 */
uint32_t pool_wants (struct pool *p);

/* The requested block has arrived ('ids' is copied), or the request failed ('ids' NULL). */
void pool_came (struct pool *p, uint64_t now_us, const fluid_t *ids, uint32_t n);

/* A client got ids up to 'id' directly from the broker, not from this pool. The pool drops its ids up to 'id', so later
 * requests get larger ones.
 */
void pool_pass (struct pool *p, fluid_t id);

/* Remove the client that has waited longest from the queue, and store its ids in '*ids' (borrowed until the next call).
 * Returns NULL if no client waits, or too few ids are left for it.
 */
struct pool_client *pool_next (struct pool *p, uint64_t now_us, const fluid_t **ids);

/* Remove the client that has waited longest, because it gets no ids. Returns NULL if no client waits. The caller
 * repeats this until NULL.
 */
struct pool_client *pool_drop (struct pool *p);

#endif /* HTTP_POOL_H */
