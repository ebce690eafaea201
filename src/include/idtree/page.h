/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - FLUIDs without a message: made in this process, with the generator of a broker of this host
 *
 * A broker shares a page of memory with those who may have it (fluid.attach): an id costs a reading of the clock and a
 * compare-and-swap.  Processes and threads, as many as there are, and the broker itself make ids of one generator, none
 * twice, and those of each page are in order: an id is above all that were there when it was asked for.  The broker
 * need not answer, nor live, until its lease is used up.  One that is started again meanwhile does not know of what is
 * made by the page of the one before: ids of its generator lie above that whole lease, at rank 0 up to two leases
 * ahead.  So until the lease is over those of the old page are below, also below some that others got before.  Where it
 * cannot be done this way ask it by message (idt_fluid_generate (), which does both).
 *
 * These functions use libc alone; libidtree-page has nothing else.  Any thread may use a page, and so may a child
 * process after fork (), in the same time namespace (time_namespaces (7)).  A process that is killed at any instruction
 * leaves the page as good as it was.
 */
#ifndef IDTREE_PAGE_H
#define IDTREE_PAGE_H

#include <stdint.h>

#include <idtree/fluid.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct idt_page idt_page_t;

#define IDT_PAGE_PER_MS 1008U /* ids that all who have a page make of one millisecond; the other 16 are the broker's */
#define IDT_PAGE_WAIT_MS 2    /* the longest that idt_page_generate () waits for a millisecond to come */

/* Get the page of the broker at 'uri', "local:///run/idtree/local-3" or its like (NULL: $IDTREE_URI, then $FLUX_URI,
 * then local:///run/idtree/local).  Blocks for 'timeout_ms' at most.  NULL with errno set:
 *   ENOTSUP       the URI names no broker's own socket on this host, or one that has no generator, or this process
 *                 reads other clocks than the broker (they are in different time namespaces)
 *   ENOENT, ECONNREFUSED   the broker shares no page (fluid.attach=off), or does not run
 *   EACCES, EPERM the page is not for this user (fluid.attach)
 *   ETIMEDOUT     the broker did not answer
 *   EPROTO        what came is not a page of this version
 *   ENOMEM, EMFILE and what connect (2), recvmsg (2) and mmap (2) say
 */
idt_page_t *idt_page_open (const char *uri, int timeout_ms);
void idt_page_close (idt_page_t *page); /* NULL is fine.  No other thread may use it then. */

/* Store up to 'n' (>= 1) new ids in 'ids': increasing, all above 'after' (0: none), none made of a time before the
 * call.  Those of one millisecond cost one swap, so blocks are cheaper.  Returns how many, 1 at least, or -1 with
 * errno set:
 *   EAGAIN  ask by message: the lease is used up, or all of it lent, or 'after' lies more than IDT_PAGE_WAIT_MS ahead
 *   ESTALE  the page is closed for good: idt_page_open () may get another one
 *   EINVAL  n is 0
 */
int idt_page_generate (idt_page_t *page, fluid_t after, uint32_t n, fluid_t *ids);

/* The UUID of the instance ("": it has none; borrowed), its epoch in Unix milliseconds, and the generator that ids of
 * this page name.
 */
const char *idt_page_instance (const idt_page_t *page);
int64_t idt_page_epoch (const idt_page_t *page);
uint32_t idt_page_generator (const idt_page_t *page);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_PAGE_H */
