/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* samples.h - lengths of time, and their percentiles: exact ones, of all that were added
 *
 * Above SAMPLES_MAX every second one is let go, and of the next ones every second is kept, and so on: what is left is
 * spread evenly over all.  Then the percentiles are those of what is left; the count, the mean and the largest are of
 * all.
 */
#ifndef SIM_SCALE_SAMPLES_H
#define SIM_SCALE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLES_MAX 4194304 /* even */

struct samples {
    uint64_t *ns;
    size_t kept, size;
    uint64_t every; /* of how many one is kept; 0: none came yet */
    uint64_t count;
    double sum_ns;
    uint64_t max_ns;
    bool sorted;
};

/* All 0 is empty.  Where there is no memory the program ends. */
void samples_add (struct samples *s, uint64_t ns);

/* The smallest sample that at least 'percent' of 100 (0 < percent <= 100) are at or below; 0: there is none. */
uint64_t samples_percentile (struct samples *s, double percent);

double samples_mean (const struct samples *s);
void samples_fini (struct samples *s);

#endif /* SIM_SCALE_SAMPLES_H */
