/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* costs.h - what a step costs: processors and links of a simulation, as scripts/scale-measure found them
 *
 * A file of costs is a JSON object with all names that are members here and, if one likes, "about": a string.
 */
#ifndef SIM_SCALE_COSTS_H
#define SIM_SCALE_COSTS_H

#include <idtree/error.h>

/* What grows with the number of brokers on a host, for none of its caches holds what they all touch: measured with two
 * numbers of them, 'few' and 'many'.
 */
struct cost_grows {
    double few, many;
};

struct costs {
    /* a broker's processor, in microseconds */
    double request_us;   /* a local client's request, read and answered */
    double send_us;      /* a request for ids or an answer, sent over a link */
    double receive_us;   /* the same, received */
    double heartbeat_us; /* at either end of a link */
    double lease_us;     /* a lease message, sent or received */
    double want_us;      /* and each want or grant in it */
    double report_us;    /* a report of positions, sent or received */
    double hello_us;     /* a child's, taken in */
    double tick_us;      /* a timer's call */
    double wake_us;      /* the first thing after a rest: caches are cold */

    /* ... of a process that hosts many, where the link does not leave it */
    double inside_us;                      /* a request for ids or an answer, sent or received */
    struct cost_grows brokers;             /* with so many the four below were measured */
    struct cost_grows inside_heartbeat_us; /* at either end */
    struct cost_grows inside_report_us;    /* a report of positions, sent or received */
    struct cost_grows inside_local_us;     /* from a client to its broker there, or back */
    struct cost_grows cold_us;             /* a request more, whose broker had a rest, and its process none */
    struct cost_grows inside_client_us;    /* as client_us, of a client that has a connection to each of them */
    double start_us;                       /* a broker is made */
    double boot_ms;                        /* a process begins, until it makes its first broker */

    /* what another processor does beside it */
    double io_us;     /* ZeroMQ's thread, on a host that is shared: each message, at each end */
    double client_us; /* a client, on a host that is shared: each request, with its answer */

    /* the ways */
    double local_us;     /* from a client to its broker, or back */
    double latency_us;   /* over a link, with the work of ZeroMQ's threads */
    double jitter_us;    /* mean of what comes on top, exponentially distributed */
    double bytes_per_us; /* bandwidth of a link */

    double store_ms; /* until the horizon is on the disk */
    double lost_ms;  /* until a child knows that its parent's process has ended */
};

/* Returns 0, or -1 with 'errp' filled: the file, and what is wrong with it. */
int costs_read (struct costs *c, const char *path, idt_error_t *errp);

/* What it costs with 'brokers' on the host: as much more with each doubling as from few to many; with less than few:
 * that.
 */
double costs_with (const struct costs *c, struct cost_grows g, double brokers);

#endif /* SIM_SCALE_COSTS_H */
