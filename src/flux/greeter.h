/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* greeter.h - who answers the hellos of the brokers below (flux_parent.h), once it is known that they are who they say
 *
 * A hello comes over a route with the UUID of a broker, and names a rank.  The broker of that rank is asked for its
 * UUID, over Flux's own way to that rank: where that is the same, the route is the child's from now on.
 */
#ifndef FLUX_GREETER_H
#define FLUX_GREETER_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/module.h>

#include "flux/flux_children.h"

/* Where no module has a service, Flux passes requests for it on to the broker above: also while that of a rank below is
 * loaded anew.  They would be answered here without regard to what was answered there.  So those of ranks that have
 * said hello are refused, as our own broker refuses them; and of others for so long after our start, in which they have
 * said it.
 */
#define GREETER_HOLD_US UINT64_C (3000000)

struct greeter;

/* 'below' is borrowed; children are added there.  NULL with errno ENOMEM. */
struct greeter *greeter_create (idt_t *h, struct flux_children *below);
void greeter_destroy (struct greeter *g); /* NULL is fine */

/* Whether this marked request (sender.h) has passed by where a module may be missing; 'now_us': CLOCK_BOOTTIME. */
bool greeter_holds_off (const struct greeter *g, const idt_msg_t *request, uint64_t now_us);

/* Who knows the time ('ops' is borrowed; NULL: nobody yet). */
void greeter_set_clock (struct greeter *g, const struct idt_overlay_ops *ops, void *arg);

#endif /* FLUX_GREETER_H */
