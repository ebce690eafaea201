/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* timing.h - functions that all measuring programs share */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <time.h>

/* Return CLOCK_MONOTONIC in nanoseconds. */
static inline double now_ns (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static inline double now_s (void)
{
    return now_ns () / 1e9;
}

#endif /* BENCH_TIMING_H */
