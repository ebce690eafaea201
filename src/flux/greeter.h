/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* greeter.h - answers the hellos of child brokers (flux_parent.h), after it has checked which rank sent them
 *
 * A hello names a rank, and its route has the UUID of a broker. The greeter asks the broker of that rank for its UUID,
 * by a request that Flux routes to the rank. If both UUIDs are the same, the route belongs to the child from now on.
 */
#ifndef FLUX_GREETER_H
#define FLUX_GREETER_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/module.h>

#include "flux/flux_children.h"

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

#endif /* FLUX_GREETER_H */
