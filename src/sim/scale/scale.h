/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale.h - the id service at size, simulated: what it costs, how long it takes
 *
 * Every rank has its real node, rank 0 its real authority; processors, links, clients and failures are a model with the
 * constants of costs.h (doc/design/scale.md).  One configuration and seed is one history.
 *
 * A run has four parts: a cold start, until all that own a generator may use it; some load that is not counted; the
 * time that is measured; and the time until all requests have their answer.
 */
#ifndef SIM_SCALE_SCALE_H
#define SIM_SCALE_SCALE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <idtree/error.h>

#include "sim/scale/costs.h"

#define SCALE_MAX_SIZE 4000000
#define SCALE_MAX_CORES 64

enum scale_askers { ASKERS_ALL, ASKERS_IDLE, ASKERS_OWNERS };

struct scale_load {
    double rate;    /* requests a second of each rank, at random (Poisson); 0: none */
    uint32_t count; /* ids of a request */
    enum scale_askers askers;
    uint32_t burst;     /* requests that each rank asks in each burst; 0: there are none */
    uint64_t period_ms; /* of bursts */
    uint64_t spread_ms; /* in which the ranks of a burst ask */
};

struct scale_fault {
    bool kill;
    uint32_t rank;
    uint64_t restart_ms; /* so long after; UINT64_MAX: never */
};

struct scale_config {
    uint64_t seed;
    uint32_t size;
    const char *topology;
    uint32_t max_generators;
    uint64_t lease_ms, backlog_ms, timeout_ms;
    uint32_t max_waiting;
    uint32_t share; /* as in node.h: NODE_SHARE_OFF, NODE_SHARE_AUTO, sequence numbers */
    struct costs costs;
    struct scale_load load;
    struct scale_fault fault; /* after a quarter of the time that is measured */
    uint64_t warm_up_ms;      /* of load that is not counted */
    uint64_t measure_ms;
    uint64_t start_spread_ms; /* in which the brokers of a cold start begin */
    uint32_t drift_ppm;       /* of brokers' clocks: at most */
    bool one_host;            /* brokers, and one client process for all, share 'cores'; else each has its own */
    uint32_t cores;
    uint32_t processes; /* that host them there (broker/base/plan.h); 0: each has one of its own */
    bool check;         /* no id twice; each in a range that its maker holds.  It takes memory for each id. */
};

struct scale_result {
    char violation[256]; /* empty: none */
    uint64_t asked, answered, failed;
    uint64_t dropped; /* their broker was killed */
    uint64_t ids, events;
    uint64_t seen_ids;       /* judged, with 'check' */
    uint32_t most_under_way; /* forwards of one rank at a time */
    uint64_t root_asked;     /* forwards that rank 0 got while it was measured */
    uint64_t root_leases;    /* messages for leases that rank 0 got until all were started */
    uint64_t beats;          /* that children sent while it was measured */
    uint64_t forwards;       /* requests that went up, then */
    uint64_t borrowing;      /* ranks that make ids of a share, at the end of that */
    uint64_t inside;         /* messages that did not leave their process, then */
    uint64_t outside;        /* ... and the others */
    uint64_t joined_ns;      /* when all were up first; 0: never */
    double busy_cores;       /* of brokers' processors, then */
    uint64_t p50_ns;
    bool started; /* all that own a generator came to use it */
};

struct scale;

/* 'config' is copied.  NULL with 'errp' filled. */
struct scale *scale_create (const struct scale_config *config, idt_error_t *errp);
void scale_destroy (struct scale *s);

/* Play it, once. */
void scale_run (struct scale *s, struct scale_result *result);

/* Print what was found, a JSON object a line. */
void scale_report (struct scale *s, FILE *out);

#endif /* SIM_SCALE_SCALE_H */
