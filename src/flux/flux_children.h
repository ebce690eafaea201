/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_children.h - the subtree of this broker in Flux's tree, and the UUIDs of its children
 *
 * Flux reports the tree of ranks, but not which rank a UUID in a route belongs to. This object stores what greeter.c
 * verified: its caller must have checked a UUID before it is added.
 */
#ifndef FLUX_FLUX_CHILDREN_H
#define FLUX_FLUX_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>
#include <jansson.h>

struct flux_children;

/* 'topology' is this rank's answer to overlay.topology: {"rank":R, "children":[{...}, ...]}. Returns NULL with errno
 * EPROTO (malformed, or a rank is not below 'size') or ENOMEM, and a sentence in 'errp'.
 */
struct flux_children *flux_children_create (const json_t *topology, uint32_t size, idt_error_t *errp);
void flux_children_destroy (struct flux_children *c); /* NULL is fine */

/* Whether 'rank' is a child of this broker. */
bool flux_children_has (const struct flux_children *c, uint32_t rank);

/* From now on 'uuid' is the broker of the child 'rank', instead of an earlier UUID. Returns 0, or -1 with errno ENOMEM.
 */
int flux_children_add (struct flux_children *c, uint32_t rank, const char *uuid);

/* Whether 'uuid' (may be NULL) is the broker of a child; sets '*rank' to the child's rank. */
bool flux_children_find (const struct flux_children *c, const char *uuid, uint32_t *rank);

/* Whether 'rank' is the child with 'uuid' (may be NULL), or a descendant of that child. */
bool flux_children_covers (const struct flux_children *c, const char *uuid, uint32_t rank);

#endif /* FLUX_FLUX_CHILDREN_H */
