/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* past.h - what a node leaves to the next one on its broker, so that a reload is not seen from outside
 *
 * The bytes are for the same process: no other machine, and no other start of the broker, reads them.
 */
#ifndef FLUID_PAST_H
#define FLUID_PAST_H

#include "modules/fluid/node/node.h"

/* After node_stop (): the newest id that was answered, the clock, and what the node's owner leaves with it ('more', at
 * rank 0 from authority_leave (); NULL: nothing).  Returns bytes to be freed, or NULL with errno ENOMEM.
 */
void *node_leave (const struct node *n, const void *more, size_t more_size, size_t *size);

/* Before node_start_root (), and before anything else: go on where the node before stopped.  What cannot be read is
 * left out.  Returns 'more', which lies in 'data'; NULL: there is none.
 */
const void *node_remember (struct node *n, const void *data, size_t size, size_t *more_size);

#endif /* FLUID_PAST_H */
