/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* samples.h - times, and their exact percentiles
 *
 * When SAMPLES_MAX samples are kept, every second one is removed, and from then on only every second new sample is
 * kept, and so on. So the kept samples are distributed evenly over all samples. Percentiles are then computed from the
 * kept samples; the count, the mean and the largest sample from all samples.
 */
#ifndef SIM_SCALE_SAMPLES_H
#define SIM_SCALE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLES_MAX 4194304 /* must be even */

struct samples {
    uint64_t *ns;
    size_t kept, size;
    uint64_t every; /* one of this number of samples is kept; 0: no sample yet */
    uint64_t count;
    double sum_ns;
    uint64_t max_ns;
    bool sorted;
};

/* Add a sample. A struct that is all 0 is empty. The program aborts if memory is exhausted. */
void samples_add (struct samples *s, uint64_t ns);

/* Return the smallest sample such that at least 'percent' % (0 < percent <= 100) of the samples are not above it; 0 if
 * there are no samples.
 */
uint64_t samples_percentile (struct samples *s, double percent);

double samples_mean (const struct samples *s);
void samples_fini (struct samples *s);

#endif /* SIM_SCALE_SAMPLES_H */
