/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* past.h - what a node leaves to the next one on its broker, so that a reload is not seen from outside
 *
 * The bytes are for the same process: no other machine, and no other start of the broker, reads them.
 */
#ifndef FLUID_PAST_H
#define FLUID_PAST_H

#include "modules/fluid/node/node.h"

/* After node_stop (): the newest id that was answered, the clock, and at rank 0 the table of leases.  'stored' is what a
 * clean stop has stored there, and is NULL where it could not be: then the table is left out.  Returns bytes to be freed,
 * or NULL with errno ENOMEM.
 */
void *node_leave (const struct node *n, const struct lease_record *stored, size_t *size);

/* Before node_start_root (), and before anything else: go on where the node before stopped.  'data' is borrowed until
 * node_start_root () returns.  What cannot be read, or does not fit, is left out: rank 0 takes the clock and the leases
 * only where its store holds just what the node before stored last, so that nobody else was root meanwhile.
 */
void node_remember (struct node *n, const void *data, size_t size);

#endif /* FLUID_PAST_H */
