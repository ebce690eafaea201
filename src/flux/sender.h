/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sender.h - whom a request in Flux is of
 *
 * Flux has no role for brokers' modules.  But each hop pushes a route that the sender cannot leave out.  When a request
 * comes to a module of broker B its routes are, oldest first:
 *
 *     module B                  of a module beside us
 *     client connector B        of a client of this broker
 *     module child B            of a module of a broker directly below
 *     client connector child B  of a client there; all others have more, too
 *
 * A client's own message may have routes already, which makes them more, never fewer.  So of a child's module is what
 * has three, the second of which is a child's (flux_children.h), and of a module beside us what has two.
 */
#ifndef FLUX_SENDER_H
#define FLUX_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/msg.h>

#include "flux/flux_children.h"

/* Make of a request what idtree's broker hands to a module: IDT_ROLE_BROKER where a broker's module sent it as the
 * instance owner, and else not, whatever it says; no role that idtree does not know; as its newest route the place
 * where it came in, a client or a child, instead of this broker.  Returns 0, or -1 with errno ENOMEM.
 */
int sender_mark (idt_msg_t *request, const struct flux_children *below);

/* Whether it can be of the module of a broker directly below, and then in '*uuid' (borrowed) of which; of a marked
 * request.
 */
bool sender_may_be_child (const idt_msg_t *request, const char **uuid);

/* Whether who sent this marked request may speak for 'rank' (idt_overlay_covers ()). */
bool sender_covers (const idt_msg_t *request, const struct flux_children *below, uint32_t own, uint32_t rank);

#endif /* FLUX_SENDER_H */
