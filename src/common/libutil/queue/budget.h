/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* budget.h - limits for the pending items of one requester, alone and in a pool that all requesters share; no I/O
 *
 * 1. An account may use at most as much of a pool as is free in the pool. So one greedy requester gets a half, two get
 *    a third each, and a new requester always finds a free part. This needs no list of requesters.
 * 2. An account that reaches its own limit waits: its requester should bring no further items. Items that arrive
 *    nevertheless are charged, so that the use exceeds the limit.
 * 3. A waiting account continues when its use falls to half of the limit. There is a second way, the valve: after
 *    'patience_us' without a release the account continues with twice the limit, or with a larger multiple if its use
 *    exceeds that. The limit is the original one again when the use falls to half of the original one. So every wait
 *    ends, even if the peer needs further items before it can release any.
 */
#ifndef UTIL_BUDGET_H
#define UTIL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_NO_LIMIT UINT64_MAX
#define BUDGET_NEVER UINT64_MAX /* a time that never comes */

/* The owner sets the limits; the other members start as zero. */
struct budget_pool {
    uint64_t max_items;
    uint64_t max_bytes;
    uint64_t items;
    uint64_t bytes;
};

struct budget {
    struct budget_pool *pool; /* borrowed; NULL: no pool */
    uint64_t max_items;       /* limits of this account, above 0 */
    uint64_t max_bytes;
    uint64_t patience_us; /* BUDGET_NEVER: no valve */
    uint64_t items;
    uint64_t bytes;
    unsigned widened; /* how often the valve has doubled the limit */
    bool waits;
    uint64_t moved_us; /* when the account began to wait, or the last release */
};

enum budget_verdict {
    BUDGET_GO,   /* the item was charged */
    BUDGET_WAIT, /* charged, but no further items until budget_release () or budget_open () returns true */
    BUDGET_FULL, /* not charged: the account's share of the pool is used up */
};

/* Limits of 0 mean no limit. */
void budget_init (struct budget *a, struct budget_pool *pool, uint64_t max_items, uint64_t max_bytes,
                  uint64_t patience_us);

/* Add one item of 'bytes' bytes. */
enum budget_verdict budget_charge (struct budget *a, uint64_t bytes, uint64_t now_us);

/* Like budget_charge () for an item that must not be refused: never returns BUDGET_FULL. */
enum budget_verdict budget_force (struct budget *a, uint64_t bytes, uint64_t now_us);

/* Remove 'items' items of 'bytes' bytes in all. Returns true if the account waited and may continue now; true only once
 * for each wait.
 */
bool budget_release (struct budget *a, uint64_t items, uint64_t bytes, uint64_t now_us);

/* The time at which the valve opens; BUDGET_NEVER if the account does not wait or has no valve. */
uint64_t budget_patience (const struct budget *a);

/* Open the valve if its time has come. Returns true if the account waited and may continue now. */
bool budget_open (struct budget *a, uint64_t now_us);

#endif /* UTIL_BUDGET_H */
