/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bounds.h - histograms of times. All have the same buckets, so they can be added. Needs only libc. */
#ifndef LIBMETRICS_BOUNDS_H
#define LIBMETRICS_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

/* The upper ends of the buckets, in microseconds. One more bucket counts all longer times. */
#define METRICS_BOUNDS 12
static const uint32_t metrics_bounds_us[METRICS_BOUNDS] = { 100,   200,   500,    1000,   2000,    5000,
                                                            10000, 50000, 100000, 500000, 1000000, 5000000 };

static inline size_t metrics_bucket (uint64_t us)
{
    size_t i = 0;

    while (i < METRICS_BOUNDS && us > metrics_bounds_us[i])
        i++;
    return i;
}

/* Times of one kind of event. Must be zero initially. */
struct metrics_times {
    uint64_t count[METRICS_BOUNDS + 1];
    uint64_t sum_us;
    uint64_t longest_us;
};

static inline void metrics_time (struct metrics_times *t, uint64_t us)
{
    t->count[metrics_bucket (us)]++;
    t->sum_us += us;
    if (us > t->longest_us)
        t->longest_us = us;
}

#endif /* LIBMETRICS_BOUNDS_H */
