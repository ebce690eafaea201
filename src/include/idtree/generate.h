/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate.h - get FLUIDs from the instance
 *
 * Ids come from the generator of the broker that the handle is connected to, or, where that has none, from
 * an ancestor's.  They strictly increase from call to call on one handle.
 */
#ifndef IDTREE_GENERATE_H
#define IDTREE_GENERATE_H

#include <idtree/fluid.h>
#include <idtree/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IDT_FLUID_MAX_COUNT 65536U /* ids of one request */

/* Store 'n' new ids in 'ids', in increasing order.  Blocks.  Returns 0, or -1 with errno set and 'ids'
 * untouched:
 *   EINVAL        n is 0 or above IDT_FLUID_MAX_COUNT
 *   EAGAIN        the generator is asked for more than it can make in fluid.max-backlog
 *   EHOSTUNREACH  no generator could be reached until the broker's deadline
 *   EOVERFLOW     the 40 bits of time are used up
 */
int idt_fluid_generate (idt_t *h, uint32_t n, fluid_t *ids);

/* The same without blocking: returns a future for idt_fluid_generate_get (). */
idt_future_t *idt_fluid_generate_async (idt_t *h, uint32_t n);

/* Store the ids that a future of idt_fluid_generate_async () holds; 'n' as given there.  Waits.  Errors as
 * above, and EPROTO where the answer does not hold exactly 'n' ids in increasing order.
 */
int idt_fluid_generate_get (idt_future_t *f, uint32_t n, fluid_t *ids);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_GENERATE_H */
