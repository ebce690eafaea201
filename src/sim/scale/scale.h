/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale.h - a simulation of the id service at size: how much work it does, and how long the work takes
 *
 * Each rank has its real node, and rank 0 its real authority. Processors, links, clients and failures are a model with
 * the constants of struct costs (doc/design/scale.md). The configuration, which contains a seed, determines the run.
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

/* --- costs --------
 *
 * The times of steps. scripts/scale-measure measures them. Its file is a JSON object with all members of struct costs
 * and, optionally, a string "about".
 */

/* A time that grows with the number of brokers on a host, because no cache holds all memory that they use. It was
 * measured with two numbers of brokers, 'few' and 'many'.
 */
struct cost_grows {
    double few, many;
};

struct costs {
    /* processor time of a broker, in microseconds */
    double request_us;   /* a request of a local client: read and answered */
    double send_us;      /* a request for ids, or an answer to one: sent over a link */
    double receive_us;   /* a request for ids, or an answer to one: received over a link */
    double heartbeat_us; /* a heartbeat, at each end of a link */
    double lease_us;     /* a lease message, sent or received */
    double want_us;      /* added to lease_us for each want or grant in the message */
    double report_us;    /* a report of positions, sent or received */
    double hello_us;     /* a child's hello, received */
    double tick_us;      /* a call of a timer */
    double wake_us;      /* the first step after a rest, with cold caches */

    /* processor time of a broker in a process of many, for links inside the process */
    double inside_us;                      /* a request for ids, or an answer to one: sent or received */
    struct cost_grows brokers;             /* the two numbers of brokers with which the following times were measured */
    struct cost_grows inside_heartbeat_us; /* a heartbeat, at each end of a link */
    struct cost_grows inside_report_us;    /* a report of positions, sent or received */
    struct cost_grows inside_local_us;     /* way between a client and its broker, in one direction */
    struct cost_grows cold_us;             /* added to a request if its broker has rested, but its process has not */
    struct cost_grows inside_client_us;    /* client_us of a client with a connection to each broker */
    double start_us;                       /* making a broker */
    double boot_ms;                        /* from the start of a process until it makes its first broker */

    /* processor time of other threads, in microseconds; used only with --one-host */
    double io_us;     /* ZeroMQ's thread: each message, at each end */
    double client_us; /* a client: each request with its answer */

    /* times on the way, in microseconds */
    double local_us;     /* way between a client and its broker, in one direction */
    double latency_us;   /* way over a link, with the work of ZeroMQ's threads */
    double jitter_us;    /* mean of a time that is added to each way; exponentially distributed */
    double bytes_per_us; /* bandwidth of a link */

    double store_ms; /* storing the horizon */
    double lost_ms;  /* how long after the end of a process the children notice the loss */
};

/* Read a file of times. Returns 0, or -1 with 'errp' filled: the file, and what is wrong in it. */
int costs_read (struct costs *c, const char *path, idt_error_t *errp);

/* Return the time for 'brokers' brokers on the host. From 'few' to 'many', and beyond, it changes by the same amount
 * with each doubling. Below 'few' it is the time for 'few'.
 */
double costs_with (const struct costs *c, struct cost_grows g, double brokers);

/* --- a simulation ---------------------------------------------------------------------------------- */

enum scale_askers { ASKERS_ALL, ASKERS_IDLE, ASKERS_OWNERS };

struct scale_load {
    double rate;    /* requests a second of each rank, at random times (Poisson); 0: none */
    uint32_t count; /* number of ids of a request */
    enum scale_askers askers;
    uint32_t burst;     /* requests of each rank in each burst; 0: no bursts */
    uint64_t period_ms; /* time between two bursts */
    uint64_t spread_ms; /* the ranks of a burst send their requests within this time */
};

struct scale_fault {
    bool kill;
    uint32_t rank;
    uint64_t restart_ms; /* time from the kill to the restart; UINT64_MAX: no restart */
};

struct scale_config {
    uint64_t seed;
    uint32_t size;
    const char *topology;
    uint32_t max_generators;
    uint64_t lease_ms, backlog_ms, timeout_ms;
    uint32_t max_waiting;
    uint32_t share; /* NODE_SHARE_OFF, NODE_SHARE_AUTO, or a number of sequence numbers (node.h) */
    struct costs costs;
    struct scale_load load;
    struct scale_fault fault; /* happens after a quarter of the measurement */
    uint64_t warm_up_ms;      /* time of load that is not counted */
    uint64_t measure_ms;
    uint64_t start_spread_ms; /* the brokers of a cold start are started within this time */
    uint32_t drift_ppm;       /* largest drift of the brokers' clocks */
    bool one_host;            /* brokers, and one process for all clients, share 'cores'; else each has its own core */
    uint32_t cores;
    uint32_t processes; /* processes on this host (broker/base/plan.h); 0: one for each broker */
    bool check;         /* check that no id is made twice, and that its maker may make it; needs memory for each id */
};

struct scale_result {
    char violation[256]; /* empty: no violation */
    uint64_t asked, answered, failed;
    uint64_t dropped; /* requests whose broker was killed */
    uint64_t ids, events;
    uint64_t seen_ids;       /* ids that were checked */
    uint32_t most_under_way; /* largest number of pending forwards of one rank */
    uint64_t root_asked;     /* forwards that rank 0 received during the measurement */
    uint64_t root_leases;    /* lease messages that rank 0 received during the cold start */
    uint64_t beats;          /* heartbeats of children during the measurement */
    uint64_t forwards;       /* requests to parents during the measurement */
    uint64_t sharing;        /* ranks that hold a part at the end of the measurement */
    uint64_t inside;         /* messages inside processes during the measurement */
    uint64_t outside;        /* messages between processes during the measurement */
    uint64_t joined_ns;      /* when all ranks had joined; 0: never */
    double busy_cores;       /* cores that the brokers kept busy during the measurement */
    uint64_t p50_ns;
    bool started; /* all owner ranks have been active */
};

struct scale;

/* 'config' is copied. Returns NULL with 'errp' filled. */
struct scale *scale_create (const struct scale_config *config, idt_error_t *errp);
void scale_destroy (struct scale *s);

/* Simulate the run. May be called once. */
void scale_run (struct scale *s, struct scale_result *result);

/* Print the results, a JSON object a line. */
void scale_report (struct scale *s, FILE *out);

#endif /* SIM_SCALE_SCALE_H */
