/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sender.h - determines the sender of a request in Flux
 *
 * Flux has no role for the modules of brokers. But each hop adds a route that the sender cannot leave out. A request
 * that reaches a module of broker B has these routes, oldest first:
 *
 *     module B                  from a module of this broker
 *     client connector B        from a client of this broker
 *     module child B            from a module of a child broker
 *     client connector child B  from a client of a child; all others have more, too
 *
 * A client may put routes into its message, so it can add routes but never remove one. So a request with three routes,
 * the second of which is a child's (flux_children.h), is from that child's module, and a local request with two routes
 * is from a module of this broker.
 */
#ifndef FLUX_SENDER_H
#define FLUX_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/msg.h>

#include "flux/flux_children.h"

/* Change a request to what idtree's broker would pass to a module. It gets IDT_ROLE_BROKER if and only if a broker's
 * module sent it as the instance owner; roles unknown to idtree are removed. Its newest route becomes the client or
 * child at which it came in, instead of this broker. Returns 0, or -1 with errno ENOMEM.
 */
int sender_mark (idt_msg_t *request, const struct flux_children *below);

/* Whether a marked request can be from the module of a child broker; sets '*uuid' (borrowed) to that broker. */
bool sender_may_be_child (const idt_msg_t *request, const char **uuid);

/* Whether the sender of this marked request may name 'rank' (idt_overlay_covers ()). */
bool sender_covers (const idt_msg_t *request, const struct flux_children *below, uint32_t own, uint32_t rank);

#endif /* FLUX_SENDER_H */
