/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* samples.c - times, and their percentiles */
#include <math.h>
#include <stdlib.h>

#include "sim/sim_check.h"
#include "sim/scale/samples.h"

static void thin_out (struct samples *s)
{
    for (size_t i = 0; 2 * i < s->kept; i++)
        s->ns[i] = s->ns[2 * i];
    s->kept = (s->kept + 1) / 2;
    s->every *= 2;
}

static void keep (struct samples *s, uint64_t ns)
{
    if (s->kept == s->size) {
        s->size = s->size ? 2 * s->size : 64;
        s->ns = must (realloc (s->ns, s->size * sizeof (s->ns[0])));
    }
    s->ns[s->kept++] = ns;
    s->sorted = false;
}

/* Add a sample. samples_percentile () sorts the kept samples. If every second sample is removed after that, the
 * percentiles stay the same.
 */
void samples_add (struct samples *s, uint64_t ns)
{
    if (s->every == 0)
        s->every = 1;
    if (s->count++ % s->every == 0)
        keep (s, ns);
    if (s->kept == SAMPLES_MAX)
        thin_out (s);
    s->sum_ns += (double)ns;
    if (s->max_ns < ns)
        s->max_ns = ns;
}

static int compare (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint64_t samples_percentile (struct samples *s, double percent)
{
    if (s->kept == 0)
        return 0;
    if (!s->sorted)
        qsort (s->ns, s->kept, sizeof (s->ns[0]), compare);
    s->sorted = true;
    size_t n = (size_t)ceil (percent / 100 * (double)s->kept);

    return s->ns[n > 0 ? (n < s->kept ? n : s->kept) - 1 : 0];
}

double samples_mean (const struct samples *s)
{
    return s->count > 0 ? s->sum_ns / (double)s->count : 0;
}

void samples_fini (struct samples *s)
{
    free (s->ns);
    *s = (struct samples){ 0 };
}
