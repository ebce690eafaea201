/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* past.h - the handover from a node to the next one on its broker, so that clients do not notice a reload
 *
 * The bytes are for the same process only: no other host and no later start of the broker reads them.
 */
#ifndef FLUID_PAST_H
#define FLUID_PAST_H

#include "modules/fluid/node/node.h"

/* Call after node_stop (). Returns the handover: the newest id that was answered, the clock, the subleases, and 'more'
 * (at rank 0 from authority_leave (); NULL: nothing). The caller frees it. Returns NULL with errno ENOMEM.
 */
void *node_leave (const struct node *n, const void *more, size_t more_size, size_t *size);

/* Call before node_start_root () and all other calls: continue where the previous node stopped. A handover that cannot
 * be read is ignored. Returns 'more', which lies in 'data', and its size; NULL if there is no such data.
 */
const void *node_remember (struct node *n, const void *data, size_t size, size_t *more_size);

#endif /* FLUID_PAST_H */
