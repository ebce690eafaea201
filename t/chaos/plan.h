/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.h - what the nemesis does: a function of the seed and of nothing else
 *
 * A plan is an endless list of steps.  A step begins gap_ms after the one before began, and is undone hold_ms
 * later, whatever happened meanwhile: steps overlap.  Each 34 steps hold each fault at least once.
 */
#ifndef CHAOS_PLAN_H
#define CHAOS_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "rng.h"

enum fault {
    FAULT_KILL,    /* kill -9; run again */
    FAULT_STOP,    /* SIGSTOP; SIGCONT */
    FAULT_CUT,     /* nothing passes to and from ancestors, one way or both ways; then what waited arrives */
    FAULT_RESET,   /* connections to ancestors end, new ones are refused; then accepted */
    FAULT_CORRUPT, /* bytes between these ranks and their ancestors change */
    FAULT_CLOCK,   /* the wall clock steps by amount_ms; it is not undone */
    FAULT_TWIN,    /* a second broker for a rank, which is cut off meanwhile, or not */
    FAULT_FULL,    /* rank 0's state disk is full */
    FAULT_BROKEN,  /* ... fails */
    FAULT_FROZEN,  /* ... hangs */
    FAULT_CRASH,   /* kill -9 of all at once; a new instance on the same state */
    FAULT_RESTART, /* a clean stop; a new instance on the same state */
};
#define FAULT_COUNT 12

struct step {
    uint32_t gap_ms;
    enum fault fault;
    uint64_t ranks; /* bit r: rank r */
    uint32_t hold_ms;
    int32_t amount; /* CLOCK: ms; CUT: 1 up, 2 down, 3 both; CORRUPT: one buffer in so many;
                       TWIN: 1 the rank is cut off; FULL, BROKEN, FROZEN: 1 the root is killed at the end */
};

struct plan {
    struct rng rng;
    uint32_t size;
    uint32_t fanout;
    uint32_t lease_ms;
    uint8_t bag[64]; /* faults yet to come, shuffled */
    size_t left;
};

/* size: 1 ... 64 ranks in a tree kary:fanout. */
void plan_init (struct plan *p, uint64_t seed, uint32_t size, uint32_t fanout, uint32_t lease_ms);
void plan_next (struct plan *p, struct step *step);

/* A rank and all below it, as bits. */
uint64_t plan_subtree (const struct plan *p, uint32_t top);

const char *fault_name (enum fault fault);

/* Write a step for a person: "kill 1,3,4 for 520 ms". */
void step_print (const struct step *step, char *buf, size_t size);

#endif /* CHAOS_PLAN_H */
