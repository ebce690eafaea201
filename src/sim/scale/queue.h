/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* queue.h - the events of a simulation, ordered by time; events of the same time in the order in which they were pushed
 *
 * It is a heap with four children for each node: half as deep as a binary heap, and the four are adjacent in memory.
 */
#ifndef SIM_SCALE_QUEUE_H
#define SIM_SCALE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scale_event {
    uint64_t t_ns;
    uint64_t order; /* set by queue_push () */
    uint32_t type;
    uint32_t rank;
    union {
        void *p;
        uint64_t n;
    } with;
};

struct queue {
    struct scale_event *event;
    size_t count, size;
    uint64_t order; /* of the last event */
};

/* A queue that is all 0 is empty. The program aborts when memory is exhausted. */
void queue_push (struct queue *q, struct scale_event e);

/* Take the next event into '*e'. Returns false if the queue is empty. */
bool queue_pop (struct queue *q, struct scale_event *e);

void queue_fini (struct queue *q);

#endif /* SIM_SCALE_QUEUE_H */
