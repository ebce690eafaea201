/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* queue.h - what will happen in a simulation, in order of time; of one time in the order in which it was pushed
 *
 * A heap with four children each: half as deep as one with two, and those four lie side by side in memory.
 */
#ifndef SIM_SCALE_QUEUE_H
#define SIM_SCALE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scale_event {
    uint64_t t_ns;
    uint64_t order; /* given by queue_push () */
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
    uint64_t order; /* the last one given */
};

/* A queue that is all 0 is empty.  Where there is no memory the program ends. */
void queue_push (struct queue *q, struct scale_event e);

/* Take the next event into '*e'.  Returns false where there is none. */
bool queue_pop (struct queue *q, struct scale_event *e);

void queue_fini (struct queue *q);

#endif /* SIM_SCALE_QUEUE_H */
