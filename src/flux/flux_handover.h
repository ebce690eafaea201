/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_handover.h - what a module leaves for its next life in a broker that keeps nothing for it: a file in rundir
 *
 * It is read once: what a life has taken is not there for another, which would go on where others have been since.
 */
#ifndef FLUX_FLUX_HANDOVER_H
#define FLUX_FLUX_HANDOVER_H

#include <stddef.h>

/* Write 'size' bytes for the owner alone.  Returns 0, or -1 with errno set and no file left. */
int flux_handover_write (const char *path, const void *data, size_t size);

/* Take what is there, and the file away.  Returns bytes to be freed, and in '*size' how many, or NULL: nothing, or more
 * than 'max' of them.
 */
void *flux_handover_take (const char *path, size_t max, size_t *size);

#endif /* FLUX_FLUX_HANDOVER_H */
