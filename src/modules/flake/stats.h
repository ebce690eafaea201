/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.h - the counters of a node: flake.stats-get, flake.metrics */
#ifndef FLAKE_STATS_H
#define FLAKE_STATS_H

#include <stdbool.h>

#include <jansson.h>

#include "libmetrics/metrics.h"
#include "modules/flake/node.h"
#include "modules/flake/flake_options.h"

json_t *stats_new (struct flake *f, const struct flake_options *options); /* NULL: out of memory */
void stats_report (void *flake, bool states, struct metrics *m);          /* as libmodule/module.h wants it */

#endif /* FLAKE_STATS_H */
