/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* costs.h - the times of steps: processors and links of a simulation, as measured by scripts/scale-measure
 *
 * Their file is a JSON object with all members of struct costs and, optionally, a string "about".
 */
#ifndef SIM_SCALE_COSTS_H
#define SIM_SCALE_COSTS_H

#include <idtree/error.h>

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

#endif /* SIM_SCALE_COSTS_H */
