/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* catalog.h - the meaning of the names in a report: the table of metrics
 *
 * Names that are not in the table are summed up, too, and shown without a type.
 */
#ifndef LIBMETRICS_CATALOG_H
#define LIBMETRICS_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "libmetrics/metrics.h"

enum metrics_type { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM };

struct metrics_row {
    const char *name;         /* in reports */
    enum metrics_merge merge; /* its section; for METRICS_RANKS the number of ranks is shown */
    enum metrics_type type;
    const char *family;        /* shown after "idtree_"; rows of a family are adjacent */
    const char *label, *value; /* tell the members of a family apart; or NULL. METRICS_RANKS: the set's value */
    const char *unit;          /* or NULL; the family ends with it */
    const char *help;          /* the family has the help of its first row */
};

/* In the order in which they are shown. A histogram has the buckets of bounds.h; the sum of its times has the name
 * NAME_sum.
 */
extern const struct metrics_row metrics_catalog[];
extern const size_t metrics_catalog_size;

/* Find a row; NULL if the table has no such row. */
const struct metrics_row *metrics_row (enum metrics_merge merge, const char *name);

#endif /* LIBMETRICS_CATALOG_H */
