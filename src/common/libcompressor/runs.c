/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* runs.c - sets of generation counts as runs in a sorted array */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "search.h"

static int64_t run_end (const struct idcomp_run *run)
{
    return run->first + run->count;
}

_Static_assert(sizeof (struct idcomp_run) == IDSEARCH_RECORD, "idsearch () must be able to search runs");

/* The number of runs that begin at or below 'gen'. */
static size_t count_up_to (const struct idruns *runs, int64_t gen)
{
    if (runs->n == 0 || gen < runs->v[0].first)
        return 0;
    return idsearch (runs->v, runs->n, gen) + 1;
}

void idruns_fini (struct idruns *runs)
{
    free (runs->v);
    *runs = (struct idruns){ 0 };
}

int idruns_reserve (struct idruns *runs, size_t n)
{
    if (n <= runs->room)
        return 0;
    size_t room = runs->room + runs->room / 4 + 4;
    if (room < n)
        room = n;
    struct idcomp_run *v = realloc (runs->v, room * sizeof (*v));
    if (!v)
        return -1;
    runs->v = v;
    runs->room = room;
    return 0;
}

int idruns_append (struct idruns *runs, int64_t first, int64_t count)
{
    if (runs->n > 0 && run_end (&runs->v[runs->n - 1]) == first) {
        runs->v[runs->n - 1].count += count;
        return 0;
    }
    if (idruns_reserve (runs, runs->n + 1) < 0)
        return -1;
    runs->v[runs->n++] = (struct idcomp_run){ first, count };
    return 0;
}

bool idruns_contain (const struct idruns *runs, int64_t gen)
{
    size_t i = count_up_to (runs, gen);

    return i > 0 && gen < run_end (&runs->v[i - 1]);
}

/* The part of a run within first ... last; its count is below 1 if they do not overlap. */
static struct idcomp_run clip (struct idcomp_run run, int64_t first, int64_t last)
{
    int64_t end = run_end (&run) - 1 < last ? run_end (&run) : last + 1;
    int64_t start = run.first > first ? run.first : first;

    return (struct idcomp_run){ start, end - start };
}

int idruns_cut (const struct idruns *runs, int64_t first, int64_t last, struct idcomp_run **cut, size_t *n)
{
    size_t lo = count_up_to (runs, first);
    size_t hi = count_up_to (runs, last);
    struct idcomp_run *v = NULL;
    size_t used = 0;

    if (lo > 0)
        lo--; /* the run that begins below 'first' may extend into the range */
    if (hi > lo && !(v = malloc ((hi - lo) * sizeof (*v))))
        return -1;
    for (size_t i = lo; i < hi; i++) {
        v[used] = clip (runs->v[i], first, last);
        used += v[used].count > 0;
    }
    if (used == 0) {
        free (v);
        v = NULL;
    }
    *cut = v;
    *n = used;
    return 0;
}

bool idruns_equal (const struct idruns *a, const struct idruns *b)
{
    return a->n == b->n && (a->n == 0 || memcmp (a->v, b->v, a->n * sizeof (*a->v)) == 0);
}
