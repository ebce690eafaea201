/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_block.h - prefetched ids, and the decision when to request how many more; core
 *
 * A block has at most 'most' ids, including requested ids that have not arrived. Times are microseconds of
 * CLOCK_BOOTTIME. Rules:
 *
 * 1. The age of an id counts from the moment when it was requested, since a broker may have made it as soon as the
 *    request arrived.
 * 2. Ids are given out in the order in which they arrived. Ids that were skipped are never given out.
 * 3. Only a call requests more ids, so a block that is not used is not refilled. A call requests more when at most half
 *    of the ids are left, or when the newest ids have used up half of their time 'max_age_us'. Two kinds of calls
 *    request none: a call that comes more than 'max_age_us' after the previous one, because ids requested by the
 *    previous call would have expired; and a call for more ids than one request may have.
 * 4. The block requests as many ids as are used before they expire. To find that number, it doubles the size of the
 *    request each time no id of the newest response expired. If a call finds too few ids, the block requests at least
 *    enough for two such calls.
 * 5. After a failed request, no request is made for 'max_age_us'.
 */
#ifndef LIBIDTREE_ID_BLOCK_H
#define LIBIDTREE_ID_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

#define ID_BLOCK_FIRST 16 /* ids of the first request; also the smallest request after ids expired unused */

struct id_block {
    fluid_t *ids; /* an array of 'most' */
    uint32_t most;
    uint64_t max_age_us;

    uint32_t next, end;        /* the prefetched ids are ids[next] ... ids[end - 1] */
    uint32_t fresh;            /* ids from this index on are from the newest response */
    uint64_t old_us, fresh_us; /* when the ids before 'fresh' expire; when the ids from 'fresh' on do */
    uint32_t low;              /* request more when at most this many are left: half of the block after a response */

    uint32_t asked; /* ids that were requested and have not arrived; 0: none */
    uint64_t asked_us;
    uint32_t want, limit; /* how many ids the next request is for; the most that a request may be for */
    uint32_t used;        /* ids that were given out since the newest response */
    bool spoiled;         /* some ids of the newest response expired unused */
    bool alone;           /* the last call was too rare or too large for a block: see rule 3 */
    uint64_t called_us, pause_us;
};

/* Returns 0, or -1 with errno ENOMEM. */
int id_block_init (struct id_block *b, uint32_t most, uint64_t max_age_us, uint64_t now_us);
void id_block_fini (struct id_block *b);

/* Take 'n' ids. If the block has fewer, take no ids. Returns whether they were taken. */
bool id_block_take (struct id_block *b, uint64_t now_us, uint32_t n, fluid_t *ids);

/* id_block_will_do (): whether the requested ids will arrive in time and will be enough for a call for 'n' ids.
 * id_block_until_us (): when the requested ids expire.
 */
bool id_block_will_do (const struct id_block *b, uint64_t now_us, uint32_t n);
uint64_t id_block_until_us (const struct id_block *b);

/* How many ids to request now; 0: none. */
uint32_t id_block_wants (const struct id_block *b, uint64_t now_us);
void id_block_asked (struct id_block *b, uint64_t now_us, uint32_t n);

/* The end of a request. If the ids arrived, write them to id_block_place (), in increasing order and above all earlier
 * ids, then call id_block_got (). If the request was cancelled, call id_block_cancel (). If it failed, call
 * id_block_failed (); 'too_many' says that it failed because of its size, so that each later request of that size would
 * fail, too.
 */
fluid_t *id_block_place (struct id_block *b);
void id_block_got (struct id_block *b);
void id_block_cancel (struct id_block *b);
void id_block_failed (struct id_block *b, uint64_t now_us, bool too_many);

/* Drop all prefetched ids, because ids above them were given out to the program. */
void id_block_skip (struct id_block *b);

#endif /* LIBIDTREE_ID_BLOCK_H */
