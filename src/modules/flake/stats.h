/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.h - what a node tells of itself: flake.stats-get, flake.metrics */
#ifndef FLAKE_STATS_H
#define FLAKE_STATS_H

#include <stdbool.h>

#include <jansson.h>

#include "libmetrics/metrics.h"
#include "modules/flake/node.h"
#include "modules/flake/options.h"

json_t *stats_new (struct flake *f, const struct options *options); /* NULL: no memory */
void stats_report (void *flake, bool states, struct metrics *m);    /* libmodule/report.h */

#endif /* FLAKE_STATS_H */
