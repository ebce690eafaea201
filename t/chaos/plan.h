/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.h - the faults of a run: a function of the seed alone
 *
 * A plan is an endless list of steps. A step begins gap_ms after the previous one began, and is undone hold_ms later,
 * independent of other events: steps overlap. Each plan_bag () steps contain each fault of the plan at least once.
 */
#ifndef CHAOS_PLAN_H
#define CHAOS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rng.h"

enum fault {
    FAULT_KILL,    /* kill -9; run again */
    FAULT_TERM,    /* SIGTERM, not of the root; run again */
    FAULT_TUNE,    /* kill -9; run again with another lease and other limits */
    FAULT_STOP,    /* SIGSTOP; SIGCONT */
    FAULT_STARVE,  /* SIGSTOP and SIGCONT in turn, some hundred times a second */
    FAULT_PAUSE,   /* SIGSTOP; SIGCONT under a CLOCK_BOOTTIME that missed the time between */
    FAULT_CUT,     /* no bytes to or from ancestors, in one or both ways; then they arrive */
    FAULT_RESET,   /* connections to ancestors end, new ones are refused; then accepted */
    FAULT_CORRUPT, /* bytes between these ranks and their ancestors change */
    FAULT_SLOW,    /* these links pass a few KB at a time, and wait in between */
    FAULT_CLOCK,   /* the wall clock steps by amount_ms; it is not undone */
    FAULT_BOOT,    /* CLOCK_BOOTTIME jumps ahead by amount_ms, as after a suspend; it is not undone */
    FAULT_FILES,   /* new files cannot be opened: EMFILE */
    FAULT_MEMORY,  /* the address space has an end: ENOMEM */
    FAULT_RELOAD,  /* modules are removed and loaded again, one after the other */
    FAULT_LIAR,    /* a client sends requests that clients must not send */
    FAULT_GREEDY,  /* a client has a hundred pending requests for 65,536 ids */
    FAULT_DEAF,    /* a client sends requests, and never reads */
    FAULT_FLOOD,   /* a client publishes events as fast as it can */
    FAULT_TWIN,    /* a second broker for a rank, which may be cut off meanwhile */
    FAULT_FULL,    /* rank 0's state disk is full */
    FAULT_BROKEN,  /* ... fails */
    FAULT_FROZEN,  /* ... hangs */
    FAULT_CRASH,   /* kill -9 of all processes; a new instance on the same state */
    FAULT_RESTART, /* a clean stop; a new instance on the same state */
};
#define FAULT_COUNT 25
#define PLAN_TUNES 6 /* sets of options */
#define FAULTS_ALL ((UINT32_C (1) << FAULT_COUNT) - 1)

struct step {
    uint32_t gap_ms;
    enum fault fault;
    uint64_t ranks; /* bit r: rank r */
    uint32_t hold_ms;
    /* CLOCK, BOOT: ms; SLOW: bytes at a time; TUNE: number of the options; CUT: 1 up, 2 down, 3 both; CORRUPT: one
     * buffer in 'amount'; TWIN: 1 the rank is cut off; FULL, BROKEN, FROZEN: 1 the root is killed at the end
     */
    int32_t amount;
};

struct plan {
    struct rng rng;
    uint32_t size;
    uint32_t fanout;
    uint32_t lease_ms;
    uint32_t faults; /* bit f: fault f may occur */
    uint8_t bag[64]; /* remaining faults, shuffled */
    size_t left;
};

/* size: 1 ... 64 ranks in a tree kary:fanout; faults: at least one. */
void plan_init (struct plan *p, uint64_t seed, uint32_t size, uint32_t fanout, uint32_t lease_ms, uint32_t faults);

/* The number of steps that contain each of these faults. */
size_t plan_bag (uint32_t faults);
void plan_next (struct plan *p, struct step *step);

/* A rank and all below it, as bits. */
uint64_t plan_subtree (const struct plan *p, uint32_t top);

const char *fault_name (enum fault fault);

/* The faults of a list as "kill,cut", or "all". Returns 0 if one is unknown. */
uint32_t faults_parse (const char *list);

/* Format a step for people: "kill 1,3,4 for 520 ms". */
void step_print (const struct step *step, char *buf, size_t size);

#endif /* CHAOS_PLAN_H */
