/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* budget.h - what one asker has under way, alone and of a pool that all share; a thinking part
 *
 * 1. No account takes more of a pool than the pool has free then.  So one greedy asker gets a half, two a third each,
 *    and a newcomer always finds room.  Nobody needs a list of askers for that.
 * 2. An account at its own limit waits: whoever fills it is not to bring more.  It goes over by what is charged
 *    meanwhile.
 * 3. Whoever waits goes on when a half of the limit is used, or by the valve: after 'patience_us' in which nothing was
 *    released the limit doubles, until half is reached again.  So every wait ends, also where the one whom it waits for
 *    needs more to go on.
 */
#ifndef UTIL_BUDGET_H
#define UTIL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_NO_LIMIT UINT64_MAX
#define BUDGET_NEVER UINT64_MAX /* a time */

/* Owners set the limits; an all-zero rest is an empty pool. */
struct budget_pool {
    uint64_t max_items;
    uint64_t max_bytes;
    uint64_t items;
    uint64_t bytes;
};

struct budget {
    struct budget_pool *pool; /* borrowed; NULL: none */
    uint64_t max_items;       /* own limits, above 0 */
    uint64_t max_bytes;
    uint64_t patience_us; /* BUDGET_NEVER: no valve */
    uint64_t items;
    uint64_t bytes;
    unsigned widened; /* times that the limit has doubled */
    bool waits;
    uint64_t moved_us; /* when it began to wait, or something was released since */
};

enum budget_verdict {
    BUDGET_GO,   /* charged */
    BUDGET_WAIT, /* charged; bring no more until budget_release () or budget_open () says so */
    BUDGET_FULL, /* not charged: its share of the pool is used up */
};

/* Limits of 0 mean none. */
void budget_init (struct budget *a, struct budget_pool *pool, uint64_t max_items, uint64_t max_bytes,
                  uint64_t patience_us);

/* Add one item of so many bytes. */
enum budget_verdict budget_charge (struct budget *a, uint64_t bytes, uint64_t now_us);

/* The same for what must not be refused: never BUDGET_FULL. */
enum budget_verdict budget_force (struct budget *a, uint64_t bytes, uint64_t now_us);

/* Take out what was charged.  Returns true once where the account waited: go on. */
bool budget_release (struct budget *a, uint64_t items, uint64_t bytes, uint64_t now_us);

/* When the valve opens; BUDGET_NEVER: the account does not wait, or has none. */
uint64_t budget_patience (const struct budget *a);

/* Open the valve if it is time.  Returns true where the account waited and may go on. */
bool budget_open (struct budget *a, uint64_t now_us);

/* Take out all that it has. */
void budget_clear (struct budget *a);

#endif /* UTIL_BUDGET_H */
