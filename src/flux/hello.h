/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hello.h - hellos: the fluid service of a child broker says which rank it is, and gets the clock of its parent
 *
 * Flux's overlay does not report to a module whether the parent's service answers, nor what the parent's clock shows.
 * So each rank regularly sends a hello to its parent:
 *
 *     fluid.hello   {"rank":R} -> {"clock_us":[received, sent], "bound_us":n}, or {}: the parent does not know the time
 *
 * A hello names a rank, and its route has the UUID of a broker. The parent's greeter requests the UUID of the broker of
 * that rank; Flux routes this request to the rank. If both UUIDs are equal, the route in the hello belongs to this
 * child from now on.
 */
#ifndef FLUX_HELLO_H
#define FLUX_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/module.h>

#include "flux/sender.h"

/* --- the parent --------------------------------------------------------------------------------- */

/* If a broker has no module for a service, Flux passes requests for this service on to the parent, also while the
 * module is reloaded. If the parent then gave ids, these could be out of order with the ids that the rank below gave
 * out. So requests for ids that passed a rank which has sent a hello are refused, as idtree's own broker would refuse
 * them. For GREETER_HOLD_US after the start, requests that passed any rank are refused, because children may not have
 * sent their hellos yet.
 */
#define GREETER_HOLD_US UINT64_C (3000000)

struct greeter;

/* 'below' is borrowed; the greeter adds the UUIDs of children to it. Returns NULL with errno ENOMEM. */
struct greeter *greeter_create (idt_t *h, struct flux_children *below);
void greeter_destroy (struct greeter *g); /* 'g' may be NULL */

/* Whether this marked request (sender.h) must be refused because it passed a rank whose module may be missing. 'now_us'
 * is the time of CLOCK_BOOTTIME.
 */
bool greeter_holds_off (const struct greeter *g, const idt_msg_t *request, uint64_t now_us);

/* Set the functions that read the clock ('ops' is borrowed; NULL: the time is not known). */
void greeter_set_clock (struct greeter *g, const struct idt_overlay_ops *ops, void *arg);

/* --- the child --------------------------------------------------------------------------------- */

struct flux_parent;

/* Send hellos from now on, as 'rank'. The reactor calls the functions in 'ops' (borrowed) with the results. Returns
 * NULL with errno set.
 */
struct flux_parent *flux_parent_create (idt_t *h, uint32_t rank, const struct idt_overlay_ops *ops, void *arg);
void flux_parent_destroy (struct flux_parent *p); /* 'p' may be NULL */

#endif /* FLUX_HELLO_H */
