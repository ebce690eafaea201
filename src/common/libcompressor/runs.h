/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* runs.h - sets of numbers in runs: the generation counts that a session handed out as local ids, final ids to tell
 *
 * Ascending, disjoint runs that never touch: a count that follows the last run makes it longer.
 */
#ifndef COMPRESSOR_RUNS_H
#define COMPRESSOR_RUNS_H

#include <idtree/idcomp.h>

struct idruns {
    struct idcomp_run *v;
    size_t n;
    size_t room;
};

void idruns_fini (struct idruns *runs);

/* Make room for 'n' runs in all.  Returns 0, or -1 with errno ENOMEM. */
int idruns_reserve (struct idruns *runs, size_t n);

/* Add 'count' numbers from 'first', which lies above all others.  Returns 0, or -1 with
 * errno ENOMEM and the runs as they were.
 */
int idruns_append (struct idruns *runs, int64_t first, int64_t count);

/* True if 'gen' is in a run. */
bool idruns_contain (const struct idruns *runs, int64_t gen);

/* The part of the runs within first ... last, as a new array in '*cut' (NULL if empty, to be freed
 * by the caller) with its length in '*n'.  Returns 0, or -1 with errno ENOMEM.
 */
int idruns_cut (const struct idruns *runs, int64_t first, int64_t last, struct idcomp_run **cut, size_t *n);

/* True if both hold the same counts. */
bool idruns_equal (const struct idruns *a, const struct idruns *b);

#endif /* COMPRESSOR_RUNS_H */
