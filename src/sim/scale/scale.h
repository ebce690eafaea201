/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale.h - a simulation of the id service at size: how much work it does, and how long it takes
 *
 * Every rank has its real node, rank 0 its real authority. Processors, links, clients and failures are a model with the
 * constants of struct costs (doc/design/scale.md). A configuration and a seed determine the run.
 *
 * A run has four parts: a cold start, until all owner ranks have been active; load that is not counted; the
 * measurement; and the time until all requests are answered.
 */
#ifndef SIM_SCALE_SCALE_H
#define SIM_SCALE_SCALE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <idtree/error.h>

#define SCALE_MAX_SIZE 4000000
#define SCALE_MAX_CORES 64

/* --- costs ----------------------------------------------------------------------------------------
 *
 * The times of steps, as measured by scripts/scale-measure. Their file is a JSON object with all members of struct
 * costs and, optionally, a string "about".
 */

/* A time that grows with the number of brokers on a host, because no cache holds all memory that they use. It was
 * measured with two numbers of brokers, 'few' and 'many'.
 */
struct cost_grows {
    double few, many;
};

struct costs {
    /* processor time of a broker, in microseconds */
    double request_us;   /* a local client's request, read and answered */
    double send_us;      /* a request for ids or an answer, sent over a link */
    double receive_us;   /* a request for ids or an answer, received */
    double heartbeat_us; /* at each end of a link */
    double lease_us;     /* a lease message, sent or received */
    double want_us;      /* in addition, for each want or grant in it */
    double report_us;    /* a report of positions, sent or received */
    double hello_us;     /* a child's hello, received */
    double tick_us;      /* a call of the timer */
    double wake_us;      /* the first step after a rest, with cold caches */

    /* ... in a process of many brokers, over a link inside it */
    double inside_us;                      /* a request for ids or an answer, sent or received */
    struct cost_grows brokers;             /* the numbers of brokers with which those below were measured */
    struct cost_grows inside_heartbeat_us; /* at each end */
    struct cost_grows inside_report_us;    /* a report of positions, sent or received */
    struct cost_grows inside_local_us;     /* between a client and its broker, one way */
    struct cost_grows cold_us;             /* added to a request if its broker rested, and the process did not */
    struct cost_grows inside_client_us;    /* as client_us, for a client with a connection to each broker */
    double start_us;                       /* to make a broker */
    double boot_ms;                        /* from the start of a process until it makes its first broker */

    /* processor time of other threads */
    double io_us;     /* ZeroMQ's thread, with --one-host: for each message, at each end */
    double client_us; /* a client, with --one-host: for each request and its answer */

    /* times on the way */
    double local_us;     /* between a client and its broker, one way */
    double latency_us;   /* over a link, including ZeroMQ's threads */
    double jitter_us;    /* mean of an additional, exponentially distributed time */
    double bytes_per_us; /* bandwidth of a link */

    double store_ms; /* until the horizon is stored */
    double lost_ms;  /* until a child notices that its parent's process has ended */
};

/* Read a file. Returns 0, or -1 with 'errp' filled: the file, and what is wrong with it. */
int costs_read (struct costs *c, const char *path, idt_error_t *errp);

/* Return the time with 'brokers' on the host. From 'few' to 'many', and beyond, it changes by the same amount with each
 * doubling. Below 'few' it is the time for 'few'.
 */
double costs_with (const struct costs *c, struct cost_grows g, double brokers);

/* --- a simulation ---------------------------------------------------------------------------------- */

enum scale_askers { ASKERS_ALL, ASKERS_IDLE, ASKERS_OWNERS };

struct scale_load {
    double rate;    /* requests a second of each rank, at random (Poisson); 0: none */
    uint32_t count; /* ids of a request */
    enum scale_askers askers;
    uint32_t burst;     /* requests of each rank in each burst; 0: no bursts */
    uint64_t period_ms; /* of bursts */
    uint64_t spread_ms; /* in which the ranks of a burst send */
};

struct scale_fault {
    bool kill;
    uint32_t rank;
    uint64_t restart_ms; /* after the kill; UINT64_MAX: never */
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
    struct scale_fault fault; /* after a quarter of the measurement */
    uint64_t warm_up_ms;      /* of load that is not counted */
    uint64_t measure_ms;
    uint64_t start_spread_ms; /* in which the brokers of a cold start are started */
    uint32_t drift_ppm;       /* largest drift of brokers' clocks */
    bool one_host;            /* brokers, and one client process for all, share 'cores'; else each has its own */
    uint32_t cores;
    uint32_t processes; /* on that host (broker/base/plan.h); 0: one for each broker */
    bool check;         /* no id is made twice, and each is in a range that its maker holds; needs memory for each id */
};

struct scale_result {
    char violation[256]; /* empty: no violation */
    uint64_t asked, answered, failed;
    uint64_t dropped; /* requests whose broker was killed */
    uint64_t ids, events;
    uint64_t seen_ids;       /* checked, with 'check' */
    uint32_t most_under_way; /* most forwards of one rank at a time */
    uint64_t root_asked;     /* forwards that rank 0 received during the measurement */
    uint64_t root_leases;    /* lease messages that rank 0 received during the cold start */
    uint64_t beats;          /* heartbeats of children during the measurement */
    uint64_t forwards;       /* requests to parents, likewise */
    uint64_t borrowing;      /* ranks that hold a sublease at its end */
    uint64_t inside;         /* messages inside a process, likewise */
    uint64_t outside;        /* ... and between processes */
    uint64_t joined_ns;      /* when all ranks had joined; 0: never */
    double busy_cores;       /* of brokers, during the measurement */
    uint64_t p50_ns;
    bool started; /* all owner ranks were active */
};

struct scale;

/* 'config' is copied.  NULL with 'errp' filled. */
struct scale *scale_create (const struct scale_config *config, idt_error_t *errp);
void scale_destroy (struct scale *s);

/* Simulate the run, once. */
void scale_run (struct scale *s, struct scale_result *result);

/* Print the results, a JSON object a line. */
void scale_report (struct scale *s, FILE *out);

#endif /* SIM_SCALE_SCALE_H */
