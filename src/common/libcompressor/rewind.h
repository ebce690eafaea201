/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rewind.h - what a compressor's final space was some ranges ago, and what tells it from another one */
#ifndef COMPRESSOR_REWIND_H
#define COMPRESSOR_REWIND_H

#include <idtree/idcomp.h>

/* A number that depends on nothing but the final space: equal for all that finalized the same ranges in the same order,
 * whatever their own sessions are, also after a stored form was loaded.
 */
uint64_t compressor_digest (struct idcomp *c);

/* Where a range went on with its session. */
struct rewind_step {
    char session[IDCOMP_UUID_TEXT_MAX];
    int64_t first;
};

typedef const struct rewind_step *(*rewind_step_f) (const void *arg, size_t i);

/* Make the stored form without local state as it was when idcomp_stats () were 'then', before 'n' ranges were
 * finalized: step (arg, 0) tells the first one, and so on.  The compressor makes no ids itself.  '*size' bytes for the
 * caller to free.  NULL with errno ENOMEM.
 */
void *compressor_save_then (const struct idcomp *c, const struct idcomp_stats *then, rewind_step_f step,
                            const void *arg, size_t n, size_t *size);

#endif /* COMPRESSOR_REWIND_H */
