/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - FLUIDs without a message: this process makes them, with the generator of a broker of its host
 *
 * A broker shares a page of memory with the users that fluid.attach allows. An id then takes one clock reading and one
 * compare-and-swap. Any number of processes and threads, and the broker itself, make ids with one generator. No id is
 * issued twice, and the ids of a page are in order: a new id is above all ids that existed when it was requested.
 *
 * The page works until its broker's lease is used up, even if the broker does not answer or is dead. A broker that is
 * restarted meanwhile does not know which ids were made from the old page. Therefore it makes ids of its generator only
 * above that whole lease; at rank 0 these lie up to two leases ahead. So until that lease is over, new ids from the old
 * page are below ids that other clients already got from the restarted broker.
 *
 * When the page cannot make an id, request it by message; idt_fluid_generate () does both.
 *
 * These functions use only libc; libidtree-page contains nothing else. Any thread may use a page. So may a child
 * process after fork (), if it is in the same time namespace (time_namespaces (7)). A process may be killed at any
 * instruction without damage to the page.
 */
#ifndef IDTREE_PAGE_H
#define IDTREE_PAGE_H

#include <stdint.h>

#include <idtree/fluid.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct idt_page idt_page_t;

#define IDT_PAGE_PER_MS 1008U /* ids a millisecond for all users of a page; 16 more are reserved for the broker */
#define IDT_PAGE_WAIT_MS 2    /* the longest single wait of idt_page_generate () */

/* Get the page of the broker at 'uri', such as "local:///run/idtree/local-3" (NULL: $IDTREE_URI, then $FLUX_URI, then
 * local:///run/idtree/local). Blocks for 'timeout_ms' at most (negative: no limit). NULL with errno set:
 *   ENOTSUP       the URI does not name a broker's own socket on this host, the broker has no generator, or this
 *                 process is in another time namespace than the broker, and so reads other clocks
 *   ENOENT, ECONNREFUSED   the broker shares no page (fluid.attach=off), or does not run
 *   EACCES, EPERM the page is not for this user (fluid.attach)
 *   ETIMEDOUT     the broker did not answer
 *   EPROTO        the answer is not a page of this version
 *   ENOMEM, EMFILE and the errors of connect (2), recvmsg (2) and mmap (2)
 */
idt_page_t *idt_page_open (const char *uri, int timeout_ms);
void idt_page_close (idt_page_t *page); /* NULL is allowed. No thread may use the page during or after the call. */

/* Store up to 'n' (>= 1) new ids in 'ids': increasing, all above 'after' (0: none), with timestamps not before the
 * call. One compare-and-swap makes all ids of a millisecond, so one call for many ids is faster than many calls. A call
 * for more ids than the millisecond has left waits for later milliseconds, about one for each IDT_PAGE_PER_MS ids.
 * Returns the number of ids, at least 1, or -1 with errno set:
 *   EAGAIN  request by message: the lease is used up, or is granted to other ranks as a whole, or 'after' is more than
 *           IDT_PAGE_WAIT_MS ahead
 *   ESTALE  the broker has closed this page permanently: idt_page_open () may get another one
 *   EINVAL  n is 0
 */
int idt_page_generate (idt_page_t *page, fluid_t after, uint32_t n, fluid_t *ids);

/* The UUID of the instance (borrowed; "": it has no UUID), the instance's epoch in Unix milliseconds, and the generator
 * of the page's ids.
 */
const char *idt_page_instance (const idt_page_t *page);
int64_t idt_page_epoch (const idt_page_t *page);
uint32_t idt_page_generator (const idt_page_t *page);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_PAGE_H */
