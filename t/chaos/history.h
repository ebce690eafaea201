/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history.h - the record of one client
 *
 * Times are CLOCK_MONOTONIC in microseconds, which is the same for all clients. A client appends events in the order in
 * which they happen. The checker reads the history after the client has ended.
 */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/fluid.h>

struct history_run {
    fluid_t first; /* the run is first, first + 1, ... */
    uint32_t n;
};

/* How a request ended. */
struct history_answer {
    uint64_t sent_us;
    uint64_t got_us;
    fluid_t after;  /* the request names this id; 0: none */
    uint32_t count; /* requested ids */
    int errnum;     /* 0: it ended with ids; ETIMEDOUT: no answer; ECONNRESET: the connection was lost */
    uint32_t nruns;
    size_t run; /* index of its first run */
};

/* A broker reported its skew bound. */
struct history_bound {
    uint64_t sent_us;
    uint64_t got_us;
    uint64_t bound_us;
    uint32_t rank;
    uint32_t life; /* number of the connection; another connection may be to another broker */
};

/* A broker reported a watermark: no id below this timestamp will be made. */
struct history_watermark {
    uint64_t got_us;
    uint64_t timestamp_ms;
};

struct history {
    uint32_t rank;   /* rank of the client's broker; UINT32_MAX: the client uses second brokers of various ranks */
    uint32_t client; /* number of the client */
    uint64_t makers; /* bit r: rank r may have made ids of a part for this client */
    uint32_t ranks;  /* generators g and g + ranks are of the same rank; 0: each rank has one at most */
    uint64_t sent;   /* number of requests */
    uint64_t twice;  /* how often a request ended that had ended before */

    struct history_run *runs;
    struct history_answer *answers;
    struct history_bound *bounds;
    struct history_watermark *watermarks;
    size_t nruns, nanswers, nbounds, nwatermarks;
    size_t runs_size, answers_size, bounds_size, watermarks_size;
};

/* These functions end the program if memory is short. */
void history_run (struct history *h, fluid_t first, uint32_t n);
void history_answer (struct history *h, const struct history_answer *answer);
void history_bound (struct history *h, const struct history_bound *bound);
void history_watermark (struct history *h, const struct history_watermark *watermark);

void history_fini (struct history *h);

#endif /* CHAOS_HISTORY_H */
