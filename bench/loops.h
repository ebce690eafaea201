/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loops.h - measure work of nanoseconds in windows that are so short that some of them are not interrupted */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include "line.h"

struct loop {
    const char *name;
    size_t (*work) (void *bed); /* returns the number of items done; if that is not 'count', the program ends */
    /* prepares the data of 'work' before each turn, outside of the measured time; may be NULL */
    void (*prepare) (void *bed, int arg);
    int arg;
    size_t count;           /* number of items; the figure is nanoseconds for one item */
    int rounds;             /* rounds of a turn */
    struct figures figures; /* must begin as 0 */
};

/* Run 'turns' turns of each loop, in the order of the list. Before that, a tenth of a turn warms up caches and clocks.
 */
void loops_run (struct loop *loops, size_t n, void *bed, int turns);

#endif /* BENCH_LOOPS_H */
