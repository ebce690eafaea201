/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inspect.h - what a node holds and knows, for those who judge it: the simulators
 *
 * Nothing here changes the node.  Pointers are borrowed for its life, and show what is so now.
 */
#ifndef FLUID_NODE_INSPECT_H
#define FLUID_NODE_INSPECT_H

#include "modules/fluid/lease/borrower.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/lessee.h"
#include "modules/fluid/node/lanes.h"
#include "modules/fluid/node/node.h"

#define NODE_FORWARDS_MAX 3 /* that are under way at a time */

const struct node_config *node_config (const struct node *n);
enum node_state node_state (const struct node *n); /* as last seen by node_tick () */
bool node_is_stopped (const struct node *n);

/* What it holds of its generator, and its other generators.  Where it owns none both are empty. */
bool node_owns_generator (const struct node *n);
const struct lessee *node_lessee (const struct node *n);
const struct lanes *node_lanes (const struct node *n);

/* What it is lent, and the end of all that it has lent. */
const struct borrower *node_borrower (const struct node *n);
uint64_t node_lent_end_ms (const struct node *n);

/* The instance's clock here, known or not, and whether it may be believed: it is known and has missed no time. */
const struct clock *node_instance_clock (const struct node *n);
bool node_is_sure_of_time (const struct node *n);

/* The newest timestamp that its own generator used or left behind; 0: none. */
uint64_t node_newest_ms (const struct node *n);

/* The tags of combined requests that are under way to the parent: that of all, newcomers', and what an owner passed on;
 * 0 where there is none.
 */
void node_forward_tags (const struct node *n, uint32_t tag[NODE_FORWARDS_MAX]);

#endif /* FLUID_NODE_INSPECT_H */
