/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.h - reports as text that Prometheus reads */
#ifndef LIBMETRICS_TEXT_H
#define LIBMETRICS_TEXT_H

#include <stdio.h>

#include <jansson.h>

enum metrics_format {
    METRICS_OPENMETRICS, /* OpenMetrics 1.0: application/openmetrics-text; version=1.0.0; charset=utf-8 */
    METRICS_PROMETHEUS,  /* the text format of Prometheus: text/plain; version=0.0.4; charset=utf-8 */
};

struct metrics_source {
    const json_t *report;
    long rank; /* a label; below 0: the report is of several ranks */
};

/* Print 'n' reports: each family once, with the values of all reports. Names that are not in the catalog come last,
 * without a type. Sets of ranks that are not in the catalog are left out, because a client could choose their values.
 */
void metrics_print (FILE *f, enum metrics_format format, const struct metrics_source *sources, size_t n);

#endif /* LIBMETRICS_TEXT_H */
