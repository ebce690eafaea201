/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.h - what ranks tell of themselves, summed up; a thinking part
 *
 * Values have names, and how two of a name become one is told by the section that they are in, so that a broker can sum
 * up what it has never heard of.  As JSON, a report:
 *
 *     {"sum":     {NAME: number, ...},            added
 *      "min":     {NAME: number, ...},            the least counts
 *      "max":     {NAME: number, ...},            the greatest counts
 *      "buckets": {NAME: [integer, ...], ...},    a histogram: added one by one
 *      "ranks":   {NAME: {VALUE: RANKS, ...}}}    which ranks say so (libutil/ranges.h)
 *
 * Sections may be missing, and of those that are not known nothing is taken.  What a name means, and what type and unit
 * it has, is told by catalog.h.
 */
#ifndef LIBMETRICS_METRICS_H
#define LIBMETRICS_METRICS_H

#include <stdint.h>

#include <jansson.h>

#include "libmetrics/bounds.h"

enum metrics_merge { METRICS_SUM, METRICS_MIN, METRICS_MAX, METRICS_BUCKETS, METRICS_RANKS, METRICS_MERGES };

/* Of a report that is taken from others. */
#define METRICS_MAX_NAMES 1024   /* in a section */
#define METRICS_MAX_NAME 64      /* characters of a name, or a value */
#define METRICS_MAX_BUCKETS 128  /* of a histogram */
#define METRICS_MAX_VALUES 20000 /* VALUEs of all NAMEs: there may be one for each generator */
#define METRICS_MAX_STATES 16    /* that a rank has, on average */

struct metrics;

/* Of ranks below 'size'.  NULL with errno ENOMEM. */
struct metrics *metrics_create (uint32_t size);
void metrics_destroy (struct metrics *m); /* NULL is fine */

/* Add a number, which is stolen (NULL: it could not be made), or for METRICS_BUCKETS an array of integers. */
void metrics_put_new (struct metrics *m, enum metrics_merge merge, const char *name, json_t *value);

/* Add a counter. / Add a level of seconds, of which there are that many thousandths. */
void metrics_put_count (struct metrics *m, const char *name, uint64_t count);
void metrics_put_ms (struct metrics *m, enum metrics_merge merge, const char *name, double ms);

/* Add a histogram of seconds, with its sum (NAME_sum), and the longest as 'longest'. */
void metrics_put_times (struct metrics *m, const char *name, const char *longest, const struct metrics_times *t);

/* Add what one rank says. */
void metrics_put_rank (struct metrics *m, const char *name, const char *value, uint32_t rank);

/* Add a report.  Returns 0, or -1 with errno set and nothing added:
 *   EPROTO    it is none
 *   EMSGSIZE  there is more in it than above
 */
int metrics_merge (struct metrics *m, const json_t *report);

/* Leave out sums and histograms that are 0: who adds them to his own misses nothing. */
void metrics_leave_out_zeros (struct metrics *m);

/* All of it as a report, a new reference.  NULL with errno ENOMEM, also where there was none for what was added. */
json_t *metrics_report_new (struct metrics *m);

#endif /* LIBMETRICS_METRICS_H */
