/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* own.h - the figures of a broker, and the figures that one broker reports for the whole process */
#ifndef BROKER_METRICS_OWN_H
#define BROKER_METRICS_OWN_H

#include "broker/metrics/serve.h"
#include "libmetrics/metrics.h"

void own_put (const struct metrics_service_conf *conf, struct metrics *m);

#endif /* BROKER_METRICS_OWN_H */
