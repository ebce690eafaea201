/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* serve.h - metrics.get: what a subtree tells, as one report (libmetrics/metrics.h)
 *
 * Request, of which all members may be missing:
 *
 *     {"rank": i,         of which subtree; this rank's
 *      "timeout_ms": i,   for the answer, 10000; who is not heard by then is "no answer" in it
 *      "services": [s],   modules that are asked, all; the broker itself always tells of itself
 *      "states": b,       sets of ranks only
 *      "alone": b,        the rank without those below it
     "brief": b}        without sums that are 0
 *
 * A module is asked NAME.metrics {"states": b, "brief": b}, and answers a report.  One that answers {}, or that is of a
 * version before and knows no such request, has nothing to tell: the first is not asked again as long as it lives.  One
 * that answers {"quiet": true} has nothing that is not 0, and is not asked for a brief report again before it is given
 * another message.  One that does not answer in time is told in the set "silent_modules".
 *
 * The answer has each rank of the subtree once in the set "status" (reduction.h).  Errors:
 *   EINVAL  there is no such rank
 *   EAGAIN  too many of these are under way: QUOTA_SURVEYS
 */
#ifndef BROKER_METRICS_SERVE_H
#define BROKER_METRICS_SERVE_H

#include "broker/module/module.h"
#include "broker/overlay/overlay.h"
#include "broker/route/event.h"
#include "broker/route/router.h"
#include "broker/route/usock.h"

struct surveys;

#define REDUCTION_MAX_SERVICES 64 /* that a request names */
#define REDUCTION_MAX_MS 600000

struct surveys_conf {
    idt_t *h; /* the broker's own */
    const struct topo *topo;
    uint32_t rank;
    bool for_process; /* it tells of the process that it is in, for all brokers there */
    struct overlay *overlay;
    struct modules *modules;
    struct router *router;
    struct event *event;
    struct usock *local;
};

/* Serve on the broker's own handle.  Copies 'conf'; what it points to is borrowed.  NULL with errno set. */
struct surveys *surveys_create (const struct surveys_conf *conf);

/* The broker ends: all that are under way fail with EHOSTUNREACH, and none is begun.  NULL is fine. */
void surveys_stop (struct surveys *all);
void surveys_destroy (struct surveys *all);

#endif /* BROKER_METRICS_SERVE_H */
