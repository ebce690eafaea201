/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-instructions.c - small deterministic work for callgrind: generators, text forms, the compressor, and the path
 * of a request through a broker
 *
 * The work uses no clock, no random numbers, no threads and no sockets. scripts/check-instructions runs this program.
 * The first line of the output says how it was compiled; each other line is the name of a work. callgrind collects only
 * inside of counted (), and dumps its counts when a call of it ends. So the dumps are in the order of the names.
 */
#include <stdio.h>
#include <stdlib.h>

#include "counts.h"

void counted (const struct count *count, void *bed);

__attribute__ ((noinline, noclone)) void counted (const struct count *count, void *bed)
{
    for (int i = 0; i < COUNTS_TIMES; i++)
        count->work (bed, i);
}

void counts_must (int good, const char *what)
{
    if (!good) {
        fprintf (stderr, "bench-instructions: %s did not work\n", what);
        exit (EXIT_FAILURE);
    }
}

/* Each work runs twice, because the first run binds library functions and fills caches. */
void counts_run (const struct count *counts, int n, void *bed)
{
    for (int k = 0; k < n; k++) {
        for (int again = 0; again < 2; again++) {
            if (counts[k].prepare)
                counts[k].prepare (bed, counts[k].arg);
            if (again)
                counted (&counts[k], bed);
            else
                for (int i = 0; i < COUNTS_TIMES; i++)
                    counts[k].work (bed, i);
        }
        puts (counts[k].name);
    }
}

#ifdef __OPTIMIZE__
#define OPTIMIZED "optimized"
#else
#define OPTIMIZED "not optimized"
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED ", sanitized"
#else
#define SANITIZED ""
#endif

int main (void)
{
    printf ("compiler %s, %s%s, times %d\n", __VERSION__, OPTIMIZED, SANITIZED, COUNTS_TIMES);
    count_generators ();
    count_codecs ();
    count_compressor ();
    count_path ();
    return EXIT_SUCCESS;
}
