/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.h - the meaning of the names in a report, and reports as text that Prometheus reads */
#ifndef LIBMETRICS_TEXT_H
#define LIBMETRICS_TEXT_H

#include <stdio.h>

#include <jansson.h>

#include "libmetrics/metrics.h"

enum metrics_format {
    METRICS_OPENMETRICS, /* OpenMetrics 1.0: application/openmetrics-text; version=1.0.0; charset=utf-8 */
    METRICS_PROMETHEUS,  /* the text format of Prometheus: text/plain; version=0.0.4; charset=utf-8 */
};

struct metrics_source {
    const json_t *report;
    long rank; /* shown as a label; below 0: the report is of several ranks */
};

/* Print 'n' reports: each family once, with the values of all reports. Names that are not in the catalog come last,
 * without a type. Sets of ranks whose names are not in the catalog are not printed, because a client could choose their
 * values.
 */
void metrics_print (FILE *f, enum metrics_format format, const struct metrics_source *sources, size_t n);

/* --- the catalog: the table of metrics -------------------------------------------------------------------
 *
 * Names that are not in the table are also summed up, and shown without a type.
 */

enum metrics_type { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM };

struct metrics_row {
    const char *name;         /* in reports */
    enum metrics_merge merge; /* the section of the name; for METRICS_RANKS the number of ranks is shown */
    enum metrics_type type;
    const char *family;        /* shown after "idtree_"; rows of a family are adjacent */
    const char *label, *value; /* distinguish the members of a family, or NULL; METRICS_RANKS shows the set's value */
    const char *unit;          /* the last part of the family's name, or NULL */
    const char *help;          /* text of the family; NULL if an earlier row of the family has it */
};

/* The rows, in the order in which they are shown. A histogram has the buckets of bounds.h; the sum of its times has the
 * name NAME_sum.
 */
extern const struct metrics_row metrics_catalog[];
extern const size_t metrics_catalog_size;

/* Find a row; NULL if the table has no such row. */
const struct metrics_row *metrics_row (enum metrics_merge merge, const char *name);

#endif /* LIBMETRICS_TEXT_H */
