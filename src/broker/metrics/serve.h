/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* serve.h - metrics.get: the figures of a subtree, as one report (libmetrics/metrics.h)
 *
 * All members of the request are optional:
 *
 *     {"rank": i,         root of the subtree; default: this rank
 *      "timeout_ms": i,   time for the answer, default 10000; a rank that has not answered by then is "no answer"
 *      "services": [s],   modules that are asked, default all; figures of the broker itself are always included,
 *                         except with "states"
 *      "states": b,       only sets of ranks
 *      "alone": b,        only the rank, without its descendants
 *      "brief": b}        without sums that are 0
 *
 * A module gets the request NAME.metrics {"states": b, "brief": b} and answers with a report. A module that answers {},
 * or that is of an earlier version and does not know the request, has no figures. A module that has answered {} is not
 * asked again until it is unloaded. A module that answers {"quiet": true} has only zeros, and is not asked for a brief
 * report again before it gets another message. A module that does not answer in time is in the set "silent_modules".
 *
 * In the answer each rank of the subtree is once in the set "status" (reduction.h). Errors:
 *   EINVAL        no such rank
 *   EPROTO        malformed
 *   EAGAIN        too many requests are being served: QUOTA_SURVEYS
 *   EHOSTUNREACH  this broker is stopping
 */
#ifndef BROKER_METRICS_SERVE_H
#define BROKER_METRICS_SERVE_H

#include "broker/module/module.h"
#include "broker/overlay/overlay.h"
#include "broker/route/event.h"
#include "broker/route/router.h"
#include "broker/route/usock.h"

struct metrics_service;

#define REDUCTION_MAX_SERVICES 64 /* largest number of names in a request */
#define REDUCTION_MAX_MS 600000

struct metrics_service_conf {
    idt_t *h; /* the broker's own */
    const struct topo *topo;
    uint32_t rank;
    bool for_process; /* whether this rank reports the figures of the process, which may have several brokers */
    struct overlay *overlay;
    struct modules *modules;
    struct router *router;
    struct event *event;
    struct usock *local;
    const struct role_pg *role; /* of rank 0, if its state is in PostgreSQL; NULL: there is none */
};

/* Serve on the broker's own handle. Copies 'conf'; its pointers are borrowed. NULL with errno set. */
struct metrics_service *metrics_service_create (const struct metrics_service_conf *conf);

/* metrics_service_stop (): the broker ends. Pending requests fail with EHOSTUNREACH, and new ones are refused. NULL is
 * fine.
 */
void metrics_service_stop (struct metrics_service *all);
void metrics_service_destroy (struct metrics_service *all);

#endif /* BROKER_METRICS_SERVE_H */
