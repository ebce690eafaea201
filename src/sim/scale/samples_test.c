/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* samples_test.c - percentiles equal the percentiles that counting finds */
#include <stdlib.h>

#include "test/tap.h"
#include "sim/scale/samples.h"

static uint64_t chance (uint64_t *random, uint64_t n)
{
    *random = *random * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (*random >> 33) % n;
}

static size_t at_or_below (const uint64_t *v, size_t n, uint64_t x)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += v[i] <= x;
    return count;
}

static size_t below (const uint64_t *v, size_t n, uint64_t x)
{
    return x > 0 ? at_or_below (v, n, x - 1) : 0;
}

static void test_definition (size_t n, uint64_t values)
{
    static const double percents[] = { 0.1, 1, 25, 50, 75, 90, 99, 99.9, 100 };
    struct samples s = { 0 };
    uint64_t *v = malloc (n * sizeof (v[0])), random = n;
    bool good = v != NULL;

    for (size_t i = 0; good && i < n; i++)
        samples_add (&s, v[i] = chance (&random, values));
    for (size_t i = 0; good && i < sizeof (percents) / sizeof (percents[0]); i++) {
        uint64_t x = samples_percentile (&s, percents[i]);

        good = (double)at_or_below (v, n, x) >= percents[i] / 100 * (double)n
               && (double)below (v, n, x) < percents[i] / 100 * (double)n && at_or_below (v, n, x) > below (v, n, x);
    }
    ok (good, "percentiles of %d samples of %d values agree with their definition", (int)n, (int)values);
    samples_fini (&s);
    free (v);
}

/* Add each value once, in order: the kept samples must be distributed evenly over all values. */
static void test_many (void)
{
    struct samples s = { 0 };
    uint64_t n = 5 * (uint64_t)SAMPLES_MAX / 2;

    for (uint64_t i = 0; i < n; i++)
        samples_add (&s, i);
    uint64_t median = samples_percentile (&s, 50);
    ok (s.count == n && s.max_ns == n - 1 && s.kept < SAMPLES_MAX,
        "samples beyond the limit of kept ones are thinned out, and all are counted");
    ok (median > n / 2 - 16 && median < n / 2 + 16, "the median is the same after samples were thinned out");
    samples_fini (&s);
}

int main (void)
{
    struct samples none = { 0 };

    ok (samples_percentile (&none, 50) == 0 && samples_mean (&none) == 0, "without samples percentiles and mean are 0");
    for (size_t n = 1; n <= 8; n++)
        test_definition (n, 5);
    test_definition (1000, 1000000000);
    test_definition (12345, 100);
    test_many ();
    return done_testing ();
}
