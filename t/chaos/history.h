/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history.h - what one client saw
 *
 * Times are CLOCK_MONOTONIC in microseconds, one scale for all clients.  A client appends to its history in the
 * order in which things happened to it; the checker reads it when the client has ended.
 */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/fluid.h>

struct history_run {
    fluid_t first; /* first, first + 1, ... */
    uint32_t n;
};

/* How a request ended. */
struct history_answer {
    uint64_t sent_us;
    uint64_t got_us;
    fluid_t after;  /* the ids must be above; 0: none was named */
    uint32_t count; /* ids asked for */
    int errnum;     /* 0: ids; ETIMEDOUT: nobody answered; ECONNRESET: the connection ended */
    uint32_t nruns;
    size_t run; /* index of its first run */
};

/* A broker told its bound on skew. */
struct history_bound {
    uint64_t sent_us;
    uint64_t got_us;
    uint64_t bound_us;
    uint32_t rank;
    uint32_t life; /* number of the connection that it was told on: another broker, perhaps, than on the one before */
};

/* A broker told: no id below this timestamp will be generated any more. */
struct history_watermark {
    uint64_t got_us;
    uint64_t timestamp_ms;
};

struct history {
    uint32_t rank;   /* of the broker that the client talks to; UINT32_MAX: of second brokers, of this and that rank */
    uint32_t client; /* number of the client */
    uint64_t lent;   /* bit r: rank r may have made its ids with what it was lent of another's generator */
    uint64_t sent;   /* requests */
    uint64_t twice;  /* endings of requests that had ended */

    struct history_run *runs;
    struct history_answer *answers;
    struct history_bound *bounds;
    struct history_watermark *watermarks;
    size_t nruns, nanswers, nbounds, nwatermarks;
    size_t runs_size, answers_size, bounds_size, watermarks_size;
};

/* These end the program where there is no memory. */
void history_run (struct history *h, fluid_t first, uint32_t n);
void history_answer (struct history *h, const struct history_answer *answer);
void history_bound (struct history *h, const struct history_bound *bound);
void history_watermark (struct history *h, const struct history_watermark *watermark);

void history_fini (struct history *h);

#endif /* CHAOS_HISTORY_H */
