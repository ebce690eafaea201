/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loops.h - work of nanoseconds, measured in short windows that the scheduler leaves alone now and then */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include "line.h"

struct loop {
    const char *name;
    size_t (*work) (void *bed);           /* returns how much it has done: 'count', or the program ends */
    void (*prepare) (void *bed, int arg); /* what 'work' finds; may be NULL; called before each turn, untimed */
    int arg;
    size_t count;           /* of what the figure is for one, in nanoseconds */
    int rounds;             /* of a turn */
    struct figures figures; /* begins as 0 */
};

/* 'turns' turns of each in the order of the list, with a tenth of a turn before the first one for caches and clocks. */
void loops_run (struct loop *loops, size_t n, void *bed, int turns);

#endif /* BENCH_LOOPS_H */
