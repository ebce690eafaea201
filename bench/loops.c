/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include "loops.h"

#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

/* Return the nanoseconds for one item. */
static double time_once (const struct loop *loop, void *bed)
{
    double start_ns = now_ns ();
    size_t done = loop->work (bed);
    double ns = (now_ns () - start_ns) / loop->count;

    if (done != loop->count) {
        fprintf (stderr, "bench: %s: %zu of %zu were done\n", loop->name, done, loop->count);
        exit (EXIT_FAILURE);
    }
    return ns;
}

static void warm_up (struct loop *loop, void *bed)
{
    loop->figures.warmup = loop->rounds / 10 + 1;
    for (long i = 0; i < loop->figures.warmup; i++)
        time_once (loop, bed);
}

void loops_run (struct loop *loops, size_t n, void *bed, int turns)
{
    for (int turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < n; i++) {
            struct loop *loop = &loops[i];

            if (loop->prepare)
                loop->prepare (bed, loop->arg);
            if (turn == 0)
                warm_up (loop, bed);
            for (int round = 0; round < loop->rounds; round++)
                figures_add (&loop->figures, time_once (loop, bed));
            figures_end_turn (&loop->figures);
        }
}
