/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ending.h - ends the module when the broker of Flux is about to exit
 *
 * Flux unloads the modules that its rc3 names, and reports an error if another module is still loaded when the broker
 * exits. So the module ends itself when rc3 begins (the state "finalize"). Later there is no time left to write to a
 * disk.
 */
#ifndef FLUX_ENDING_H
#define FLUX_ENDING_H

#include <idtree/handle.h>

struct ending;

/* Call 'over' from the reactor when the broker reaches that state. If the broker does not report its state, 'over' is
 * never called. NULL with errno set.
 */
struct ending *ending_create (idt_t *h, void (*over) (void *arg), void *arg);
void ending_destroy (struct ending *e); /* NULL is fine */

#endif /* FLUX_ENDING_H */
