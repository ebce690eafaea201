/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_children.h - which brokers are below this one in Flux's tree, and under which UUIDs they are known
 *
 * Flux tells the tree of ranks, but not which rank a route is of.  What was found out about that is kept here: whoever
 * adds a child has made sure.
 */
#ifndef FLUX_FLUX_CHILDREN_H
#define FLUX_FLUX_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>
#include <jansson.h>

struct flux_children;

/* 'topology' is what overlay.topology answers: {"rank":R, "children":[{...}, ...]}, of this rank.  Returns NULL with
 * errno EPROTO (no such thing, or ranks of 'size' and above in it) or ENOMEM, and a sentence in 'errp'.
 */
struct flux_children *flux_children_create (const json_t *topology, uint32_t size, idt_error_t *errp);
void flux_children_destroy (struct flux_children *c); /* NULL is fine */

/* Whether 'rank' is directly below. */
bool flux_children_has (const struct flux_children *c, uint32_t rank);

/* The broker of 'rank', which is directly below, is 'uuid' from now on, and no other is it any more.  Returns 0, or -1
 * with errno ENOMEM.
 */
int flux_children_add (struct flux_children *c, uint32_t rank, const char *uuid);

/* Whether 'uuid' (may be NULL) is a child's, and in '*rank' whose. */
bool flux_children_find (const struct flux_children *c, const char *uuid, uint32_t *rank);

/* Whether 'rank' is that of the child with 'uuid' (may be NULL), or below that. */
bool flux_children_covers (const struct flux_children *c, const char *uuid, uint32_t rank);

#endif /* FLUX_FLUX_CHILDREN_H */
