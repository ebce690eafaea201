/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_handover.h - the handover to the next load of the module: a file in rundir, because Flux's broker keeps nothing
 * for a module
 *
 * The file is removed when it is read. A later load must not find it: it would continue where other ranks have been
 * since.
 */
#ifndef FLUX_FLUX_HANDOVER_H
#define FLUX_FLUX_HANDOVER_H

#include <stddef.h>

/* Write 'size' bytes to a file that only the owner may read. Returns 0, or -1 with errno set and no file left. */
int flux_handover_write (const char *path, const void *data, size_t size);

/* Read the file and remove it. Returns bytes that the caller frees, and their number in '*size'; or NULL if there is no
 * file, or if it has more than 'max' bytes.
 */
void *flux_handover_take (const char *path, size_t max, size_t *size);

#endif /* FLUX_FLUX_HANDOVER_H */
