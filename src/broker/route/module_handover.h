/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_handover.h - modules that left something for their next life on this broker: what it is, and who waits for
 * them
 *
 * A module that leaves something (idt_module_keep ()) has made a promise that nobody else can keep: so while it is not
 * loaded, what clients ask of its service waits here, for MODULE_HANDOVER_WAIT_MS at most, instead of being answered by
 * another broker.  What other brokers' modules ask passes on (rule 5 of router.h).
 *
 * 1. A request that waits is answered exactly once: by the module's next life, or with an error.
 * 2. What waits is bounded, in all and for each asker; beyond that requests fail with EAGAIN.
 * 3. A client that goes takes along what it asked.
 */
#ifndef BROKER_MODULE_HANDOVER_H
#define BROKER_MODULE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include <idtree/reactor.h>

#include "broker/route/router.h"

#define MODULE_HANDOVER_WAIT_MS 5000
#define MODULE_HANDOVER_MAX_REQUESTS 4096 /* that wait for one module */
#define MODULE_HANDOVER_MAX_EACH 1024     /* of one asker */
#define MODULE_HANDOVER_MAX_BYTES (4 << 20)
#define MODULE_HANDOVER_MAX 64 /* modules */

struct absents;

/* 'rank' is ours, for what is told.  NULL with errno ENOMEM. */
struct absents *absents_create (idt_reactor_t *r, struct router *router, uint32_t rank);
void absents_destroy (struct absents *as);

/* The module is gone from the router: it stands in for it from now on, and has what it left ('data' is stolen). */
void absents_add_new (struct absents *as, const char *name, void *data, size_t size);

/* The module is being loaded: its service is free for it.  What it left is borrowed, until absents_end () or
 * absents_resume (); NULL: nothing.
 */
const void *absents_pause (struct absents *as, const char *name, size_t *size);

/* It runs, and gets what waited. / It could not start: all is as before. */
void absents_end (struct absents *as, const char *name);
void absents_resume (struct absents *as, const char *name);

/* No module will be loaded any more: what waits, and what comes, fails at once. */
void absents_stop (struct absents *as);

#endif /* BROKER_MODULE_HANDOVER_H */
