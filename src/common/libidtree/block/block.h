/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* block.h - ids at hand, and when to ask for how many more; a thinking part
 *
 * A block has at most 'most' ids, those that were asked for and did not come yet among them.  Times are microseconds of
 * CLOCK_BOOTTIME.  Rules:
 *
 * 1. An id is as old as the request that brought it, for it may have been made when that came in.
 * 2. Ids are given out in the order in which they came; those that are skipped are never given out.
 * 3. Only a call asks for more, so a block that nobody calls for is not renewed: where half of the ids are used, or of
 *    the time that the newest may be used.  One that comes later than all that the call before could have got, or is
 *    for more than a block has, asks for nothing.
 * 4. As many are asked for as are used before they are too old, but for two calls at least.  That is found by doubling
 *    where all were used.
 * 5. After a request that failed none is made for 'max_age_us'.
 */
#ifndef LIBIDTREE_BLOCK_H
#define LIBIDTREE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

#define BLOCK_FIRST 16 /* ids that are asked for first, and again after a while with less use */

struct block {
    fluid_t *ids; /* room for 'most' */
    uint32_t most;
    uint64_t max_age_us;

    uint32_t next, end;        /* at hand */
    uint32_t fresh;            /* from here on they are of the newest answer */
    uint64_t old_us, fresh_us; /* until when those before may be used, and these */
    uint32_t low;              /* so many left: half are used */

    uint32_t asked; /* 0: none are under way */
    uint64_t asked_us;
    uint32_t want, limit; /* to ask for, at most as many */
    uint32_t used;        /* since the newest answer */
    bool spoiled;         /* some that came were too old before they were used */
    bool alone;           /* the last call is not one that a block is for */
    uint64_t called_us, pause_us;
};

/* Returns 0, or -1 with errno ENOMEM. */
int block_init (struct block *b, uint32_t most, uint64_t max_age_us, uint64_t now_us);
void block_fini (struct block *b);

/* A call for 'n' ids: take them all, or none.  Returns whether they were taken. */
bool block_take (struct block *b, uint64_t now_us, uint32_t n, fluid_t *ids);

/* Whether the call can be served as soon as those under way have come.  If not, 'until_us' is when they are too old. */
bool block_will_do (const struct block *b, uint64_t now_us, uint32_t n);
uint64_t block_until_us (const struct block *b);

/* How many to ask for now; 0: none. */
uint32_t block_wants (const struct block *b, uint64_t now_us);
void block_asked (struct block *b, uint64_t now_us, uint32_t n);

/* They came: the place for them, in increasing order and above all before; then block_got ().  Or they will not,
 * because nobody waits for them any more, or the request failed; 'too_many': whenever it were made.
 */
fluid_t *block_place (struct block *b);
void block_got (struct block *b);
void block_cancel (struct block *b);
void block_failed (struct block *b, uint64_t now_us, bool too_many);

/* Ids above those at hand were given out. */
void block_skip (struct block *b);

#endif /* LIBIDTREE_BLOCK_H */
