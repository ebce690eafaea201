/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate.h - get FLUIDs from the instance
 *
 * Ids come from the generator of the broker that the handle is connected to or, if that has none, from an ancestor's.
 * Ids strictly increase from call to call on one handle.
 */
#ifndef IDTREE_GENERATE_H
#define IDTREE_GENERATE_H

#include <idtree/fluid.h>
#include <idtree/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define IDT_FLUID_MAX_COUNT 65536U /* ids in one request */

/* Store 'n' new ids in 'ids', in increasing order. Blocks. Returns 0, or -1 with errno set and 'ids' untouched:
 *   EINVAL        n is 0 or above IDT_FLUID_MAX_COUNT
 *   EAGAIN        more ids are requested than the generator can make in fluid.max-backlog
 *   EHOSTUNREACH  no generator was reached before the broker's deadline
 *   EOVERFLOW     the 40 bits of time are used up
 */
int idt_fluid_generate (idt_t *h, uint32_t n, fluid_t *ids);

/* The same without blocking: returns a future for idt_fluid_generate_get (). */
idt_future_t *idt_fluid_generate_async (idt_t *h, uint32_t n);

/* Store the ids of a future of idt_fluid_generate_async (); 'n' must be the same as there. Waits. Fails as above, and
 * with EPROTO if the answer is not exactly 'n' ids in increasing order.
 */
int idt_fluid_generate_get (idt_future_t *f, uint32_t n, fluid_t *ids);

/* Prefetch up to 'n' ids. idt_fluid_generate () then returns them without a message, as long as they were requested
 * less than 'max_age_ms' ago. 'n' 0 ends prefetching. Never blocks. A second call changes both values and drops the
 * prefetched ids. Useful if the generator is some hops away, or if few ids are needed often.
 *
 * 1. Ids still increase from call to call. idt_fluid_generate_async () still sends a message, and drops prefetched ids.
 * 2. The timestamp of an id may be up to 'max_age_ms' old, and below the watermark. The age is measured with
 *    CLOCK_BOOTTIME, so time in which the host is suspended counts.
 * 3. The call that finds half of the ids, or half of their time, used up requests the next ones. Their answer is read
 *    by a later call that needs it, or by the reactor. The library requests only as many as are used before they are
 *    too old. A handle that is not used requests none.
 * 4. If the prefetched ids do not suffice, idt_fluid_generate () sends a request and fails as it does without
 *    prefetching. It waits for ids already requested, if they will be young enough. After a refusal the library
 *    prefetches nothing for 'max_age_ms'.
 * 5. Prefetched ids survive the connection, not the handle. Ids that are not used are lost.
 * 6. A forked child gets none of them: ENOTCONN. It must open its own handle.
 *
 * Returns 0, or -1 with errno set and nothing changed:
 *   EINVAL   n is above IDT_FLUID_MAX_COUNT, or 'max_age_ms' is 0
 *   EDEADLK  the handle is an inline module's, which may not wait
 *   ENOTSUP  the kernel has no memory that is empty in a child (before Linux 4.14)
 *   ENOMEM
 */
int idt_fluid_prefetch (idt_t *h, uint32_t n, uint32_t max_age_ms);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_GENERATE_H */
