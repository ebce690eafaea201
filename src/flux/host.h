/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.h - makes a broker of Flux look like the broker of an idtree module
 *
 * A module knows its broker only through its handle, and a handle knows its broker only through the functions of a
 * transport (libidtree/transport.h). This is a transport over the handle that Flux gives to its modules, so code that
 * uses libidtree runs in Flux unchanged, with its reactor and futures.
 */
#ifndef FLUX_HOST_H
#define FLUX_HOST_H

#include <flux/core.h>

#include <idtree/module.h>

#define HOST_SERVICE "fluid"

struct flux_host;

/* Take Flux's handle of a module (borrowed), and the module's arguments. Sends requests to the broker, and blocks until
 * they are answered. NULL with errno set and a sentence in 'errp'.
 */
struct flux_host *host_create (flux_t *flux, int argc, char **argv, idt_error_t *errp);
void host_destroy (struct flux_host *host); /* NULL is fine; closes its handle */

/* Return the handle for the module. */
idt_t *host_handle (const struct flux_host *host);

/* The module has started: check that it knows all settings, register its service, and report it to Flux as running.
 * Returns 0, or -1 with errno set and a sentence in 'errp'.
 */
int host_started (struct flux_host *host, idt_error_t *errp);

/* The module is about to end: stop the hellos to the parent and the answers to children. */
void host_ending (struct flux_host *host);

#endif /* FLUX_HOST_H */
