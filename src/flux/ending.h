/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ending.h - the end of the module: it ends when the broker of Flux is about to exit, and leaves its handover in a file
 *
 * Flux unloads the modules that its script rc3 names, and reports an error if another module is still loaded when the
 * broker exits. So the module ends itself when rc3 begins (the state "finalize"). Later there is no time left to write
 * to a disk.
 *
 * The handover to the next load of the module is a file in rundir, because Flux's broker keeps nothing for a module.
 * The file is removed when it is read. If a still later load found the file, it would continue with times at which
 * other ranks have made ids since.
 */
#ifndef FLUX_ENDING_H
#define FLUX_ENDING_H

#include <stddef.h>

#include <idtree/handle.h>

struct ending;

/* Call 'over' from the reactor when the broker reaches the state "finalize" or a later one. If the broker does not
 * report its state, 'over' is never called. Returns NULL with errno set.
 */
struct ending *ending_create (idt_t *h, void (*over) (void *arg), void *arg);
void ending_destroy (struct ending *e); /* 'e' may be NULL */

/* Write 'size' bytes to a file that only the owner may read. Returns 0, or -1 with errno set; then there is no file. */
int flux_handover_write (const char *path, const void *data, size_t size);

/* Read the file and remove it. Returns the bytes, which the caller frees, and their number in '*size'. Returns NULL if
 * there is no file, or if the file has more than 'max' bytes.
 */
void *flux_handover_take (const char *path, size_t max, size_t *size);

#endif /* FLUX_ENDING_H */
