/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* runs.h - sets of numbers as runs: the generation counts that a session handed out as local ids, or final ids
 *
 * Runs are ascending, disjoint, and never adjacent: a number that follows the last run extends it.
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

/* Allocate memory for 'n' runs in all. Returns 0, or -1 with errno ENOMEM. */
int idruns_reserve (struct idruns *runs, size_t n);

/* Add 'count' numbers from 'first' on, which must be above all others. Returns 0, or -1 with errno ENOMEM and the runs
 * unchanged.
 */
int idruns_append (struct idruns *runs, int64_t first, int64_t count);

/* Whether 'gen' is in a run. */
bool idruns_contain (const struct idruns *runs, int64_t gen);

/* Copy the part of the runs within first ... last to a new array '*cut' (NULL if empty; the caller frees it) of length
 * '*n'. Returns 0, or -1 with errno ENOMEM.
 */
int idruns_cut (const struct idruns *runs, int64_t first, int64_t last, struct idcomp_run **cut, size_t *n);

/* Whether both have the same numbers. */
bool idruns_equal (const struct idruns *a, const struct idruns *b);

#endif /* COMPRESSOR_RUNS_H */
