/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* account.h - what one asker has under way, alone and of a pool that all share; a thinking part
 *
 * 1. No account takes more of a pool than the pool has free then.  So one greedy asker gets a half, two a third each,
 *    and a newcomer always finds room.  Nobody needs a list of askers for that.
 * 2. An account at its own limit waits: whoever fills it is not to bring more.  It goes over by what is charged
 *    meanwhile.
 * 3. Whoever waits goes on when a half of the limit is used, or by the valve: after 'patience_us' in which nothing was
 *    released the limit doubles, until half is reached again.  So every wait ends, also where the one whom it waits for
 *    needs more to go on.
 */
#ifndef UTIL_ACCOUNT_H
#define UTIL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_NO_LIMIT UINT64_MAX
#define ACCOUNT_NEVER UINT64_MAX /* a time */

/* Owners set the limits; an all-zero rest is an empty pool. */
struct account_pool {
    uint64_t max_items;
    uint64_t max_bytes;
    uint64_t items;
    uint64_t bytes;
};

struct account {
    struct account_pool *pool; /* borrowed; NULL: none */
    uint64_t max_items;        /* own limits, above 0 */
    uint64_t max_bytes;
    uint64_t patience_us; /* ACCOUNT_NEVER: no valve */
    uint64_t items;
    uint64_t bytes;
    unsigned widened; /* times that the limit has doubled */
    bool waits;
    uint64_t moved_us; /* when it began to wait, or something was released since */
};

enum account_verdict {
    ACCOUNT_GO,   /* charged */
    ACCOUNT_WAIT, /* charged; bring no more until account_release () or account_open () says so */
    ACCOUNT_FULL, /* not charged: its share of the pool is used up */
};

/* Limits of 0 mean none. */
void account_init (struct account *a, struct account_pool *pool, uint64_t max_items, uint64_t max_bytes,
                   uint64_t patience_us);

/* Add one item of so many bytes. */
enum account_verdict account_charge (struct account *a, uint64_t bytes, uint64_t now_us);

/* The same for what must not be refused: never ACCOUNT_FULL. */
enum account_verdict account_force (struct account *a, uint64_t bytes, uint64_t now_us);

/* Take out what was charged.  Returns true once where the account waited: go on. */
bool account_release (struct account *a, uint64_t items, uint64_t bytes, uint64_t now_us);

/* When the valve opens; ACCOUNT_NEVER: the account does not wait, or has none. */
uint64_t account_patience (const struct account *a);

/* Open the valve if it is time.  Returns true where the account waited and may go on. */
bool account_open (struct account *a, uint64_t now_us);

/* Take out all that it has. */
void account_clear (struct account *a);

#endif /* UTIL_ACCOUNT_H */
