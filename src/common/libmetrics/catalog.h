/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* catalog.h - what the names in a report mean: the one table of metrics
 *
 * A name that is not there is summed up all the same, and shown without a type.
 */
#ifndef LIBMETRICS_CATALOG_H
#define LIBMETRICS_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "libmetrics/metrics.h"

enum metrics_type { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM };

struct metrics_row {
    const char *name;         /* in reports */
    enum metrics_merge merge; /* the section that it is in; of METRICS_RANKS it is shown how many there are */
    enum metrics_type type;
    const char *family;        /* as it is shown, behind "idtree_"; rows of a family stand together */
    const char *label, *value; /* that tell it from others of its family; NULL: none.  METRICS_RANKS: the set's value */
    const char *unit;          /* NULL: none; else the family ends with it */
    const char *help;          /* of the family's first row */
};

/* In the order in which they are shown.  A histogram has the buckets of bounds.h; the sum of what it counts is the sum
 * NAME_sum.
 */
extern const struct metrics_row metrics_catalog[];
extern const size_t metrics_catalog_size;

/* NULL: it is not there. */
const struct metrics_row *metrics_row (enum metrics_merge merge, const char *name);

#endif /* LIBMETRICS_CATALOG_H */
