/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ending.h - the broker of Flux is about to end, and nobody has unloaded the module
 *
 * Flux unloads what its rc3 names, and calls it an error where another module is there yet when the broker exits.  So
 * the module ends by itself when rc3 begins: when that is over there is no time left for a disk.
 */
#ifndef FLUX_ENDING_H
#define FLUX_ENDING_H

#include <idtree/handle.h>

struct ending;

/* Call 'over' then, from the reactor.  A broker that does not tell its state is not watched.  NULL with errno set. */
struct ending *ending_create (idt_t *h, void (*over) (void *arg), void *arg);
void ending_destroy (struct ending *e); /* NULL is fine */

#endif /* FLUX_ENDING_H */
