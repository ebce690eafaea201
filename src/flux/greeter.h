/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* greeter.h - who answers the hellos of the brokers below (parent.h), once it is known that they are who they say
 *
 * A hello comes over a route with the UUID of a broker, and names a rank.  The broker of that rank is asked for its UUID, over
 * Flux's own way to that rank: where that is the same, the route is the child's from now on.
 */
#ifndef FLUX_GREETER_H
#define FLUX_GREETER_H

#include <idtree/module.h>

#include "flux/children.h"

struct greeter;

/* 'below' is borrowed; children are added there.  NULL with errno ENOMEM. */
struct greeter *greeter_create (idt_t *h, struct children *below);
void greeter_destroy (struct greeter *g); /* NULL is fine */

/* Who knows the time ('ops' is borrowed; NULL: nobody yet). */
void greeter_set_clock (struct greeter *g, const struct idt_overlay_ops *ops, void *arg);

#endif /* FLUX_GREETER_H */
