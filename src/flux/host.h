/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.h - a broker of Flux as the broker of an idtree module
 *
 * To a module a broker is its handle, and a handle knows its broker through the functions of a transport alone
 * (libidtree/transport.h).  Those are here for the handle that Flux gives to its modules: so what uses libidtree runs
 * in Flux as it is, reactor and futures too.
 */
#ifndef FLUX_HOST_H
#define FLUX_HOST_H

#include <flux/core.h>

#include <idtree/module.h>

#define HOST_SERVICE "fluid"

struct flux_host;

/* Take Flux's handle (borrowed) of a module, and its arguments.  Asks the broker, and waits for answers.  NULL with
 * errno set and a sentence in 'errp'.
 */
struct flux_host *host_create (flux_t *flux, int argc, char **argv, idt_error_t *errp);
void host_destroy (struct flux_host *host); /* NULL is fine; closes its handle */

/* The handle for the module; the service is its own. */
idt_t *host_handle (const struct flux_host *host);

/* The module has started: its settings are known, requests come, Flux hears of it.  Returns as above. */
int host_started (struct flux_host *host, idt_error_t *errp);

/* The module is about to end: nobody above or below is heard any more. */
void host_ending (struct flux_host *host);

#endif /* FLUX_HOST_H */
