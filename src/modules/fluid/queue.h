/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* queue.h - requests for ids that wait, in order of service, with the ids that they have so far
 *
 * Entries are recycled: a queue that has been as long as it gets allocates no more.
 */
#ifndef FLUID_QUEUE_H
#define FLUID_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/fluid.h>

/* The ids first, first + 1, ... first + n - 1: of one millisecond and one generator. */
struct run {
    fluid_t first;
    uint32_t n; /* 1 ... 1024 */
};

struct pending {
    struct pending *next, *prev;
    void *cookie; /* names the request to those who answer it; NULL: answered already */
    uint32_t count;
    uint32_t got;
    uint32_t asked; /* of those, under way upstream */
    bool from_broker;
    uint64_t after;
    uint64_t arrival_us;
    uint64_t arrival_ms;
    struct run *run; /* 'nruns' of them, 'got' ids together */
    size_t nruns;
    size_t size;
};

struct queue {
    struct pending *first, *last;
    struct pending *spare;
    size_t length;    /* entries */
    uint64_t missing; /* ids that entries lack, over all */
};

void queue_fini (struct queue *q);

/* Append an entry: zeroed but for 'count'.  NULL with errno ENOMEM. */
struct pending *queue_add (struct queue *q, uint32_t count);
void queue_remove (struct queue *q, struct pending *p);
void queue_to_front (struct queue *q, struct pending *p);

/* Add ids to an entry (n <= what it lacks); a run that continues its last one becomes part of that.  Returns 0,
 * or -1 with errno ENOMEM.
 */
int queue_add_run (struct queue *q, struct pending *p, fluid_t first, uint32_t n);

#endif /* FLUID_QUEUE_H */
