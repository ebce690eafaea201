/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inspect.h - read access to a node's state for the simulators
 *
 * No function here changes the node. Returned pointers are borrowed for the node's life and show its current state.
 */
#ifndef FLUID_NODE_INSPECT_H
#define FLUID_NODE_INSPECT_H

#include "modules/fluid/lease/borrower.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/lessee.h"
#include "modules/fluid/node/lanes.h"
#include "modules/fluid/node/node.h"

#define NODE_FORWARDS_MAX 3 /* under way at a time */

const struct node_config *node_config (const struct node *n);
enum node_state node_state (const struct node *n); /* as of the last node_tick () */
bool node_is_stopped (const struct node *n);

/* Its ranges of its own generator, and its other generators. Both are empty if it owns no generator. */
bool node_owns_generator (const struct node *n);
const struct lessee *node_lessee (const struct node *n);
const struct lanes *node_lanes (const struct node *n);

/* The subleases it received, and the end of all that it has granted. */
const struct borrower *node_borrower (const struct node *n);
uint64_t node_lent_end_ms (const struct node *n);

/* The instance's time here, which may be unknown; and whether it is reliable: known, and no missed time is unresolved.
 */
const struct clock *node_instance_clock (const struct node *n);
bool node_is_sure_of_time (const struct node *n);

/* The newest timestamp that its own generator used or skipped; 0: none yet. */
uint64_t node_newest_ms (const struct node *n);

/* The tags of the combined requests under way to the parent: of all, of newcomers, of what an owner passed on. 0: not
 * under way.
 */
void node_forward_tags (const struct node *n, uint32_t tag[NODE_FORWARDS_MAX]);

#endif /* FLUID_NODE_INSPECT_H */
