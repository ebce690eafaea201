/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_parent.h - the fluid service of the broker above: whether it is there, and what its clock says
 *
 * Flux's overlay tells modules neither.  So each rank says hello to the next one above, again and again:
 *
 *     fluid.hello   {"rank":R} -> {"clock_us":[received, sent], "bound_us":n}, or {}: there the time is not known yet
 */
#ifndef FLUX_FLUX_PARENT_H
#define FLUX_FLUX_PARENT_H

#include <idtree/module.h>

#define FLUX_PARENT_HELLO "fluid.hello"

struct flux_parent;

/* Say hello from now on, as 'rank'; 'ops' (borrowed) is told of the answers, from the reactor.  NULL with errno set. */
struct flux_parent *flux_parent_create (idt_t *h, uint32_t rank, const struct idt_overlay_ops *ops, void *arg);
void flux_parent_destroy (struct flux_parent *p); /* NULL is fine */

#endif /* FLUX_FLUX_PARENT_H */
