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

/* Keep up to 'n' ids at hand, for idt_fluid_generate () to give out without a message while none of them was asked for
 * more than 'max_age_ms' ago; 'n' 0: no more.  Never blocks.  Calling it again changes both, and drops those at hand.
 * For who is some hops away from a generator, or asks often for few.
 *
 * 1. Ids increase from call to call as ever.  idt_fluid_generate_async () is a message as ever, and drops those at
 *    hand.
 * 2. Their time may lie back by 'max_age_ms', and by a host's suspension, which CLOCK_BOOTTIME counts; so may the
 *    watermark lie above them.
 * 3. The next ones are asked for by the call that finds half of them used, or of the time; their answer waits for a
 *    call that needs it, or for the reactor.  As few are asked for as are used before they are too old.  A handle that
 *    nobody calls asks for none.
 * 4. Where they do not do, idt_fluid_generate () asks by message and fails as it does without; it waits for those under
 *    way before, as long as they may be used then.  After a refusal no more are asked for ahead for 'max_age_ms'.
 * 5. Ids at hand outlast the connection, not the handle.  What is not given out is lost.
 * 6. In a child that was forked none of them is given out: ENOTCONN; it opens its own handle.
 *
 * Returns 0, or -1 with errno set and nothing changed:
 *   EINVAL   n is above IDT_FLUID_MAX_COUNT, or 'max_age_ms' 0
 *   EDEADLK  an inline module's, which may not wait
 *   ENOTSUP  the kernel has no memory that a child finds empty (before Linux 4.14)
 *   ENOMEM
 */
int idt_fluid_prefetch (idt_t *h, uint32_t n, uint32_t max_age_ms);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_GENERATE_H */
