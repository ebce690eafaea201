/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loops.h - measure work of nanoseconds in short windows, of which some run without interruption */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include "line.h"

struct loop {
    const char *name;
    size_t (*work) (void *bed); /* returns the number of items done: if not 'count', the program ends */
    void (*prepare) (void *bed,
                     int arg); /* prepares the data of 'work'; may be NULL; called before each turn, untimed */
    int arg;
    size_t count;           /* items; the figure is nanoseconds for one */
    int rounds;             /* of a turn */
    struct figures figures; /* begins as 0 */
};

/* Run 'turns' turns of each loop in the order of the list, after a tenth of a turn to warm up caches and clocks. */
void loops_run (struct loop *loops, size_t n, void *bed, int turns);

#endif /* BENCH_LOOPS_H */
