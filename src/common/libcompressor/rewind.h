/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rewind.h - the final space as it was some ranges ago, and a digest of the final space */
#ifndef COMPRESSOR_REWIND_H
#define COMPRESSOR_REWIND_H

#include <idtree/idcomp.h>

/* A number that depends only on the final space: it is equal for all compressors that finalized the same ranges in the
 * same order. It does not depend on their own sessions, and is the same after a stored form was loaded.
 */
uint64_t compressor_digest (struct idcomp *c);

/* Session and first generation count of a range. */
struct rewind_step {
    char session[IDCOMP_UUID_TEXT_MAX];
    int64_t first;
};

typedef const struct rewind_step *(*rewind_step_f) (const void *arg, size_t i);

/* Make the stored form without local state as it was when idcomp_stats () were 'then', before 'n' ranges were
 * finalized: step (arg, 0) returns the first of them, and so on. The compressor must not make ids itself. Returns
 * '*size' bytes, which the caller frees. NULL with errno ENOMEM.
 */
void *compressor_save_then (const struct idcomp *c, const struct idcomp_stats *then, rewind_step_f step,
                            const void *arg, size_t n, size_t *size);

#endif /* COMPRESSOR_REWIND_H */
