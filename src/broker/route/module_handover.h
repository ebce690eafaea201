/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_handover.h - modules that left a handover and are not loaded now: the handover and the waiting requests
 *
 * A module that leaves a handover (idt_module_keep ()) guarantees something that no other broker can guarantee for it,
 * such as the order of ids.  So while the module is not loaded, requests of clients for its service are not forwarded
 * to another broker.  Such requests wait here, for at most MODULE_HANDOVER_WAIT_MS.  Requests that modules of other
 * brokers sent do not wait here (rule 5 of router.h).
 *
 * 1. A waiting request is answered exactly once: by the reloaded module, or with an error.
 * 2. Waiting requests are limited for each module and for each requester.  Requests above a limit fail with EAGAIN.
 * 3. When a client disconnects, its waiting requests are dropped.
 */
#ifndef BROKER_MODULE_HANDOVER_H
#define BROKER_MODULE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include <idtree/reactor.h>

#include "broker/route/router.h"

#define MODULE_HANDOVER_WAIT_MS 5000
#define MODULE_HANDOVER_MAX_REQUESTS 4096   /* waiting requests of one module */
#define MODULE_HANDOVER_MAX_EACH 1024       /* waiting requests of one requester for one module */
#define MODULE_HANDOVER_MAX_BYTES (4 << 20) /* bytes of the waiting requests of one module */
#define MODULE_HANDOVER_MAX 64              /* modules that left a handover and are not loaded */

struct module_handovers;

/* 'rank' is the rank of this broker, for the texts of errors.  Returns NULL with errno ENOMEM. */
struct module_handovers *module_handovers_create (idt_reactor_t *r, struct router *router, uint32_t rank);
void module_handovers_destroy (struct module_handovers *as);

/* Keep the requests for a module that was removed from the router.  'data' is the module's handover; its ownership
 * passes to this call.  Without memory, or with MODULE_HANDOVER_MAX modules already here, the handover is freed and
 * requests do not wait.
 */
void module_handovers_add_new (struct module_handovers *as, const char *name, void *data, size_t size);

/* Remove the service from the router, because the module is being loaded and will register its own.  Returns the
 * module's handover, or NULL if the module left none.  The handover is borrowed until module_handovers_end () or
 * module_handovers_resume ().
 */
const void *module_handovers_pause (struct module_handovers *as, const char *name, size_t *size);

/* module_handovers_end (): the module runs, and the waiting requests are routed to it.  module_handovers_resume (): the
 * module failed to start, and further requests for it wait again.
 */
void module_handovers_end (struct module_handovers *as, const char *name);
void module_handovers_resume (struct module_handovers *as, const char *name);

/* No module will be loaded from now on: fail all waiting and all further requests immediately. */
void module_handovers_stop (struct module_handovers *as);

#endif /* BROKER_MODULE_HANDOVER_H */
