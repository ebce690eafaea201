/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_parent.h - whether the fluid service of the parent answers, and its clock
 *
 * Flux's overlay reports neither to modules. So each rank regularly sends a hello to its parent:
 *
 *     fluid.hello   {"rank":R} -> {"clock_us":[received, sent], "bound_us":n}, or {}: the parent does not know the time
 */
#ifndef FLUX_FLUX_PARENT_H
#define FLUX_FLUX_PARENT_H

#include <idtree/module.h>

#define FLUX_PARENT_HELLO "fluid.hello"

struct flux_parent;

/* Send hellos from now on, as 'rank'. 'ops' (borrowed) is called from the reactor with the results. NULL with errno
 * set.
 */
struct flux_parent *flux_parent_create (idt_t *h, uint32_t rank, const struct idt_overlay_ops *ops, void *arg);
void flux_parent_destroy (struct flux_parent *p); /* NULL is fine */

#endif /* FLUX_FLUX_PARENT_H */
