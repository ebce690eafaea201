/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hello.h - hellos: a child broker's fluid service says which rank it is, and gets its parent's clock
 *
 * Flux's overlay reports to modules neither whether the parent's service answers, nor its clock. So each rank regularly
 * sends a hello to its parent:
 *
 *     fluid.hello   {"rank":R} -> {"clock_us":[received, sent], "bound_us":n}, or {}: the parent does not know the time
 *
 * A hello names a rank, and its route has the UUID of a broker. The greeter of the parent asks the broker of that rank
 * for its UUID, by a request that Flux routes to the rank. If both UUIDs are the same, the route belongs to the child
 * from now on.
 */
#ifndef FLUX_HELLO_H
#define FLUX_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/module.h>

#include "flux/sender.h"

/* --- the parent --------------------------------------------------------------------------------- */

/* If a broker has no module for a service, Flux passes requests for it on to the parent; so it does while the module is
 * reloaded there. An answer from here could be out of order with the ids that the rank below gave out. So requests for
 * ids that passed a rank which has said hello are refused, as idtree's own broker refuses them. Requests that passed
 * any rank are refused for this time after our start, by when all children have said hello.
 */
#define GREETER_HOLD_US UINT64_C (3000000)

struct greeter;

/* 'below' is borrowed; the greeter adds children to it. NULL with errno ENOMEM. */
struct greeter *greeter_create (idt_t *h, struct flux_children *below);
void greeter_destroy (struct greeter *g); /* NULL is fine */

/* Whether to refuse this marked request (sender.h), because it passed a rank whose module may be missing. 'now_us':
 * CLOCK_BOOTTIME.
 */
bool greeter_holds_off (const struct greeter *g, const idt_msg_t *request, uint64_t now_us);

/* Set the functions that read the clock ('ops' is borrowed; NULL: the time is not known). */
void greeter_set_clock (struct greeter *g, const struct idt_overlay_ops *ops, void *arg);

/* --- the child --------------------------------------------------------------------------------- */

struct flux_parent;

/* Send hellos from now on, as 'rank'. 'ops' (borrowed) is called from the reactor with the results. NULL with errno
 * set.
 */
struct flux_parent *flux_parent_create (idt_t *h, uint32_t rank, const struct idt_overlay_ops *ops, void *arg);
void flux_parent_destroy (struct flux_parent *p); /* NULL is fine */

#endif /* FLUX_HELLO_H */
