/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sender.h - determines the sender of a request in Flux
 *
 * Flux has no role for the modules of brokers. But each hop adds a route, and the sender cannot prevent this. A request
 * that reaches a module of broker B has these routes, oldest first:
 *
 *     module B                  from a module of this broker
 *     client connector B        from a client of this broker
 *     module child B            from a module of a child broker
 *     client connector child B  from a client of a child; all others have more, too
 *
 * A client may put routes into its message, so it can add routes, but never remove one. So a request with three routes
 * is from a module of a child if its second route is that child's UUID. A local request with two routes is from a
 * module of this broker.
 */
#ifndef FLUX_SENDER_H
#define FLUX_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/msg.h>
#include <jansson.h>

/* --- children -------
 *
 * Flux reports the tree of ranks, but not which rank the UUID in a route belongs to. This object stores the UUIDs of
 * children. It does not check them: the caller (hello.c) must verify a UUID before adding it.
 */

struct flux_children;

/* 'topology' is this rank's answer to overlay.topology: {"rank":R, "children":[{...}, ...]}. Returns NULL with errno
 * EPROTO (malformed, or a rank is not below 'size') or ENOMEM, and a sentence in 'errp'.
 */
struct flux_children *flux_children_create (const json_t *topology, uint32_t size, idt_error_t *errp);
void flux_children_destroy (struct flux_children *c); /* 'c' may be NULL */

/* Whether 'rank' is a child of this broker. */
bool flux_children_has (const struct flux_children *c, uint32_t rank);

/* The broker of the child 'rank' has the UUID 'uuid' from now on, instead of an earlier one. Returns 0, or -1 with
 * errno ENOMEM.
 */
int flux_children_add (struct flux_children *c, uint32_t rank, const char *uuid);

/* Whether 'uuid' (may be NULL) belongs to a child's broker. If so, sets '*rank' to the child's rank. */
bool flux_children_find (const struct flux_children *c, const char *uuid, uint32_t *rank);

/* Whether 'rank' is the child whose UUID is 'uuid' (may be NULL), or is below that child. */
bool flux_children_covers (const struct flux_children *c, const char *uuid, uint32_t rank);

/* --- senders ----------------------------------------------------------------------------------------- */

/* Change a request to what idtree's broker would pass to a module. It gets IDT_ROLE_BROKER if and only if a broker's
 * module sent it as the instance owner. Roles that idtree does not know are removed. Its newest route, which is this
 * broker, is replaced by the client, module or child that passed the request to this broker. Returns 0, or -1 with
 * errno ENOMEM.
 */
int sender_mark (idt_msg_t *request, const struct flux_children *below);

/* Whether a marked request may be from a module of a child broker. If so, sets '*uuid' (borrowed) to the UUID of that
 * broker.
 */
bool sender_may_be_child (const idt_msg_t *request, const char **uuid);

/* Whether the sender of this marked request may speak for 'rank' (idt_overlay_covers ()). */
bool sender_covers (const idt_msg_t *request, const struct flux_children *below, uint32_t own, uint32_t rank);

#endif /* FLUX_SENDER_H */
