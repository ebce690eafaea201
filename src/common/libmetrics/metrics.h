/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.h - reports of ranks, summed up; no I/O
 *
 * A report contains values with names. The section of a name determines how two values of this name are combined, so a
 * broker can sum up names that it does not know. A report as JSON:
 *
 *     {"sum":     {NAME: number, ...},            added
 *      "min":     {NAME: number, ...},            the lowest is kept
 *      "max":     {NAME: number, ...},            the highest is kept
 *      "buckets": {NAME: [integer, ...], ...},    a histogram: added bucket by bucket
 *      "ranks":   {NAME: {VALUE: RANKS, ...}}}    the ranks that have this value (libutil/text.h)
 *
 * Each section may be missing. Unknown sections are ignored. The meaning, type and unit of a name are in text.h.
 */
#ifndef LIBMETRICS_METRICS_H
#define LIBMETRICS_METRICS_H

#include <stdint.h>

#include <jansson.h>

#include "libmetrics/bounds.h"

enum metrics_merge { METRICS_SUM, METRICS_MIN, METRICS_MAX, METRICS_BUCKETS, METRICS_RANKS, METRICS_MERGES };

extern const char *const metrics_sections[METRICS_MERGES]; /* names of the sections: "sum", ... */

/* Limits of a report that is merged. */
#define METRICS_MAX_NAMES 1024   /* names in a section */
#define METRICS_MAX_NAME 64      /* characters of a name or a value */
#define METRICS_MAX_BUCKETS 128  /* buckets of a histogram */
#define METRICS_MAX_VALUES 20000 /* VALUEs of all NAMEs together: there may be one for each generator */
#define METRICS_MAX_STATES 16    /* sets that a rank may be in, on average */

struct metrics;

/* Make an empty report for ranks below 'size'. NULL with errno ENOMEM. */
struct metrics *metrics_create (uint32_t size);
void metrics_destroy (struct metrics *m); /* NULL is fine */

/* Add a number, or for METRICS_BUCKETS an array of integers. 'value' is stolen. If 'value' is NULL because it could not
 * be allocated, metrics_report_new () fails.
 */
void metrics_put_new (struct metrics *m, enum metrics_merge merge, const char *name, json_t *value);

/* metrics_put_count () adds a counter. metrics_put_ms () adds a level in seconds; the argument is in milliseconds. */
void metrics_put_count (struct metrics *m, const char *name, uint64_t count);
void metrics_put_ms (struct metrics *m, enum metrics_merge merge, const char *name, double ms);

/* Add a histogram in seconds under 'name', the sum of its times under NAME_sum, and the longest time under the name
 * 'longest'.
 */
void metrics_put_times (struct metrics *m, const char *name, const char *longest, const struct metrics_times *t);

/* Add 'rank' to the set of ranks that have this value. */
void metrics_put_rank (struct metrics *m, const char *name, const char *value, uint32_t rank);

/* Add a report. Returns 0, or -1 with errno set and nothing added:
 *   EPROTO    the report is malformed
 *   EMSGSIZE  the sum would exceed a limit above
 */
int metrics_merge (struct metrics *m, const json_t *report);

/* Remove sums and histograms that are 0. Merging the report gives the same result without them. */
void metrics_leave_out_zeros (struct metrics *m);

/* Return everything as a report, a new reference. NULL with errno ENOMEM, also if an earlier addition ran out of
 * memory.
 */
json_t *metrics_report_new (struct metrics *m);

#endif /* LIBMETRICS_METRICS_H */
