/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* drr_queue.h - a queue that is served by turns over those who fill it (deficit round robin); no I/O
 *
 * A flow is what one asker has waiting, in order; its key is the caller's (a hash of a UUID, a rank).
 *
 * 1. Two flows that always have something have been served the same, by cost, but for two quanta and one item.
 *    A flow that had nothing is served before those that wait, for one quantum: once in a round, and one of a group.
 * 2. A flow that is not ready (nobody takes its answers now) keeps its items and gains nothing.
 * 3. No flow holds more of the limits than is still free (budget.h), so none fills the queue for the others.
 * 4. Flows may belong to a group, such as the connections of one user.  A group is served as one flow is, and holds of
 *    the limits what one flow may: its flows share that.
 * 5. All is O(1), but that an item may cost a step for each part of a quantum in its cost, and that a new flow looks
 *    for its group among those that have flows.
 */
#ifndef UTIL_DRR_QUEUE_H
#define UTIL_DRR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drr_queue;

typedef void (*drr_queue_f) (void *item, void *arg);

/* 'quantum' (above 0) is what a flow is served in its turn, in the unit of costs; at most 'max_items' wait, or items of
 * 'max_cost' and one more (0: no limit).  NULL with errno ENOMEM.
 */
struct drr_queue *drr_queue_create (uint32_t quantum, uint64_t max_items, uint64_t max_cost);

/* Items that are left are the caller's: drr_queue_drain () first. */
void drr_queue_destroy (struct drr_queue *t);

/* Add an item (borrowed, not NULL) to a flow.  Returns 0, or -1 with errno EXFULL (the flow's share of the limits is
 * used up) or ENOMEM.
 */
int drr_queue_put (struct drr_queue *t, uint64_t key, void *item, uint32_t cost);

/* The same for a flow of a group; DRR_QUEUE_ALONE: of none.  A flow's group is that of its first item. */
#define DRR_QUEUE_ALONE UINT64_C (0)
int drr_queue_put_of (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost);

/* The same beyond the limits, for what the flow's owner cannot repeat.  A flow has DRR_QUEUE_MAX_FORCED such items at
 * most: EXFULL.
 */
#define DRR_QUEUE_MAX_FORCED 4
int drr_queue_force (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost);

/* Take the next item.  NULL: no flow that is ready has one. */
void *drr_queue_next (struct drr_queue *t);

/* Whether a flow may be served.  It is remembered for a flow that has nothing, too, until it is ready. */
void drr_queue_ready (struct drr_queue *t, uint64_t key, bool ready);

/* Forget all flows; 'cb' (may be NULL) gets each item, in the order of its flow. */
void drr_queue_drain (struct drr_queue *t, drr_queue_f cb, void *arg);

size_t drr_queue_count (const struct drr_queue *t);                    /* items that wait */
uint64_t drr_queue_cost (const struct drr_queue *t);                   /* their cost; for tests */
bool drr_queue_waiting (const struct drr_queue *t);                    /* drr_queue_next () has something */
size_t drr_queue_flow_count (const struct drr_queue *t, uint64_t key); /* of one flow */

#endif /* UTIL_DRR_QUEUE_H */
