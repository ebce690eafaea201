/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.h - ids that were asked for before somebody wants them; a thinking part
 *
 * A block is asked for when somebody waits.  One that was used up before it was old is followed by one of twice its
 * size, one that got old by one of half of it: so who comes seldom costs a message each, and who comes often nearly
 * none.  Where blocks are large the next one is asked for when a half is left, so that nobody waits for it.  Ids are
 * given out in increasing order, to who waited longest, and none that is older than POOL_AGE_US.
 */
#ifndef HTTP_ENDPOINTS_POOL_H
#define HTTP_ENDPOINTS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/fluid.h>

#define POOL_AGE_US 100000 /* of an id that is given out */
#define POOL_MAX_BLOCK 4096U
#define POOL_AHEAD 64U /* a block from which on the next one is asked for before somebody waits */

struct pool_client {
    TAILQ_ENTRY (pool_client) link;
    uint32_t n; /* ids it wants: POOL_MAX_BLOCK at most */
};
TAILQ_HEAD (pool_clients, pool_client);

struct pool {
    fluid_t ids[2 * POOL_MAX_BLOCK];
    uint32_t next, count; /* those that are left: ids[next] ... ids[count - 1] */
    uint32_t newer;       /* those from ids[newer] on came later; count: none */
    uint64_t came_us, newer_us;
    uint32_t block; /* how many are asked for next */
    bool asked;     /* a block is under way */
    struct pool_clients waiting;
    uint64_t missing; /* ids that those want */
    fluid_t passed;   /* nothing below is given out */
};

void pool_init (struct pool *p);

/* Ids for 'n', borrowed until the next call; NULL: there are none for it now, so that it has to wait. */
const fluid_t *pool_take (struct pool *p, uint64_t now_us, uint32_t n);

void pool_wait (struct pool *p, struct pool_client *c);

/* How many ids are to be asked for now; 0: none.  Then a block is under way until pool_came (). */
uint32_t pool_wants (struct pool *p);

/* The block came ('ids' is copied), or failed (NULL). */
void pool_came (struct pool *p, uint64_t now_us, const fluid_t *ids, uint32_t n);

/* Ids up to 'id' were given out in another way: who asks from now on gets none below. */
void pool_pass (struct pool *p, fluid_t id);

/* Whose turn it is, with '*ids' for it (borrowed until the next call), and it waits no more; NULL: nobody's. */
struct pool_client *pool_next (struct pool *p, uint64_t now_us, const fluid_t **ids);

/* All of those that wait, one by one: they get none. */
struct pool_client *pool_drop (struct pool *p);

#endif /* HTTP_ENDPOINTS_POOL_H */
