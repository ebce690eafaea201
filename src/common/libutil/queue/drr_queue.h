/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* drr_queue.h - a queue that serves its flows in turns (deficit round robin); no I/O
 *
 * A flow is the ordered list of the waiting items of one requester. The caller chooses the flow's key (a hash of a
 * UUID, a rank).
 *
 * 1. If two flows always have items, the queue serves both the same cost. The difference is at most two quanta and one
 *    item. A flow that had no items is served for one quantum before the flows that wait. It gets this advantage once
 *    in a round, and only one flow of a group gets it.
 * 2. A flow that is not ready (its answers cannot be sent now) keeps its items and gains no credit.
 * 3. A flow may hold at most as much of the limits as is still free (budget.h), so that one flow cannot fill the queue.
 * 4. Flows may belong to a group, such as the connections of one user. A group is served like one flow and may hold as
 *    much as one flow. Its flows share the service and the limits.
 * 5. All operations are O(1), with two exceptions. Serving an item takes a step for each quantum of its cost. A new
 *    flow looks for its group among the groups that have flows.
 */
#ifndef UTIL_DRR_QUEUE_H
#define UTIL_DRR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drr_queue;

typedef void (*drr_queue_f) (void *item, void *arg);

/* 'quantum' (above 0) is the cost that a flow is served in its turn. At most 'max_items' items wait. Their total cost
 * is at most 'max_cost' plus the cost of one item. 0: no limit. NULL with errno ENOMEM.
 */
struct drr_queue *drr_queue_create (uint32_t quantum, uint64_t max_items, uint64_t max_cost);

/* Free the queue. Items that are still in it are not freed: call drr_queue_drain () before. */
void drr_queue_destroy (struct drr_queue *t);

/* Add an item (borrowed, not NULL) to a flow. Returns 0, or -1 with errno EXFULL (the flow's share of the limits is
 * used up) or ENOMEM.
 */
int drr_queue_put (struct drr_queue *t, uint64_t key, void *item, uint32_t cost);

/* Like drr_queue_put () for a flow of a group; DRR_QUEUE_ALONE: no group. While a flow has items, it stays in the group
 * of the first of them.
 */
#define DRR_QUEUE_ALONE UINT64_C (0)
int drr_queue_put_of (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost);

/* Like drr_queue_put_of (), but beyond the limits, for items that the requester cannot send again. A flow has at most
 * DRR_QUEUE_MAX_FORCED such items; further ones fail with EXFULL.
 */
#define DRR_QUEUE_MAX_FORCED 4
int drr_queue_force (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost);

/* Take the next item. NULL if no ready flow has an item. */
void *drr_queue_next (struct drr_queue *t);

/* Set whether a flow may be served. The queue remembers a flow that is not ready even if the flow has no items. */
void drr_queue_ready (struct drr_queue *t, uint64_t key, bool ready);

/* Remove all flows. 'cb' (may be NULL) gets each item; the items of a flow are in order. */
void drr_queue_drain (struct drr_queue *t, drr_queue_f cb, void *arg);

size_t drr_queue_count (const struct drr_queue *t);  /* waiting items */
uint64_t drr_queue_cost (const struct drr_queue *t); /* total cost of the waiting items; for tests */
bool drr_queue_waiting (const struct drr_queue *t);  /* whether drr_queue_next () would return an item */
size_t drr_queue_flow_count (const struct drr_queue *t, uint64_t key); /* items of one flow */

#endif /* UTIL_DRR_QUEUE_H */
