/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate.h - get FLUIDs from the instance
 *
 * Ids come from the generator of the broker that the handle is connected to. If that broker has no generator, they come
 * from the generator of one of its ancestors. Ids strictly increase from call to call on one handle.
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

/* As idt_fluid_generate (), but without blocking: returns a future for idt_fluid_generate_get (). */
idt_future_t *idt_fluid_generate_async (idt_t *h, uint32_t n);

/* Wait for a future of idt_fluid_generate_async () and store its ids. 'n' must be the same in both calls. Fails as
 * idt_fluid_generate (), and with EPROTO if the answer is not exactly 'n' ids in increasing order.
 */
int idt_fluid_generate_get (idt_future_t *f, uint32_t n, fluid_t *ids);

/* Prefetch up to 'n' ids. idt_fluid_generate () then returns these ids without a message, as long as they were
 * requested less than 'max_age_ms' ago. 'n' 0 ends prefetching. Never blocks. A second call changes both values and
 * drops the prefetched ids. Prefetching is useful if the generator is some hops away, or if the program often needs a
 * few ids.
 *
 * 1. Ids still increase from call to call. idt_fluid_generate_async () still sends a message, and drops prefetched ids.
 * 2. The timestamp of a prefetched id may be up to 'max_age_ms' old, and may be below the watermark. The age is
 *    measured with CLOCK_BOOTTIME, so time in which the host is suspended counts.
 * 3. A call that finds half of the ids used up, or half of their time over, requests the next ids. The answer is read
 *    by the reactor, or by a later call that needs these ids. The library requests only as many ids as the program is
 *    likely to use before they are too old. While the program does not use the handle, the library requests no ids.
 * 4. If the prefetched ids do not suffice, and enough ids are already requested and will be young enough,
 *    idt_fluid_generate () waits for these. Otherwise it sends a request, and fails as it does without prefetching.
 *    After a refusal the library prefetches nothing for 'max_age_ms'.
 * 5. Prefetched ids stay usable when the connection is lost, but not when the handle is closed. Ids that are not used
 *    are lost.
 * 6. In a child process after fork (), the functions fail with ENOTCONN and return no prefetched id. The child must
 *    open its own handle.
 *
 * Returns 0, or -1 with errno set and nothing changed:
 *   EINVAL   n is above IDT_FLUID_MAX_COUNT, or 'max_age_ms' is 0
 *   EDEADLK  the handle is an inline module's, which may not wait
 *   ENOTSUP  the kernel cannot clear memory in a child process at fork () (before Linux 4.14)
 *   ENOMEM
 */
int idt_fluid_prefetch (idt_t *h, uint32_t n, uint32_t max_age_ms);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_GENERATE_H */
