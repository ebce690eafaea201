/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.h - the faults of a run: a function of the seed alone
 *
 * A plan is an endless list of steps. A step begins gap_ms after the step before it began, and is undone hold_ms later.
 * So steps overlap, and do not depend on other events. Each plan_bag () consecutive steps contain each fault of the
 * plan at least once.
 */
#ifndef CHAOS_PLAN_H
#define CHAOS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rng.h"

enum fault {
    FAULT_KILL,    /* kill -9; then the broker is run again */
    FAULT_TERM,    /* SIGTERM, but not of the root; then the broker is run again */
    FAULT_TUNE,    /* kill -9; then the broker is run with another lease and other limits */
    FAULT_STOP,    /* SIGSTOP, later SIGCONT */
    FAULT_STARVE,  /* SIGSTOP and SIGCONT in turn, some hundred times a second */
    FAULT_PAUSE,   /* SIGSTOP, later SIGCONT; CLOCK_BOOTTIME misses the time between */
    FAULT_CUT,     /* bytes to or from ancestors are held, in one or both directions; they arrive later */
    FAULT_RESET,   /* connections to ancestors end, and new ones are refused until the end of the step */
    FAULT_CORRUPT, /* some bytes between these ranks and their ancestors are changed */
    FAULT_SLOW,    /* these links pass a few KB at a time, with pauses */
    FAULT_CLOCK,   /* the wall clock steps by amount_ms, which is not undone */
    FAULT_BOOT,    /* CLOCK_BOOTTIME jumps ahead by amount_ms, as after a suspend, which is not undone */
    FAULT_FILES,   /* new files cannot be opened: EMFILE */
    FAULT_MEMORY,  /* no further memory can be allocated: ENOMEM */
    FAULT_RELOAD,  /* modules are removed and loaded again, one after the other */
    FAULT_LIAR,    /* a client sends requests that clients must not send */
    FAULT_GREEDY,  /* a client has a hundred pending requests for 65,536 ids */
    FAULT_DEAF,    /* a client sends requests, and never reads answers */
    FAULT_FLOOD,   /* a client publishes events as fast as it can */
    FAULT_TWIN,    /* a rank gets a second broker, and may be cut off meanwhile */
    FAULT_FULL,    /* the disk with rank 0's state is full */
    FAULT_BROKEN,  /* the disk with rank 0's state fails */
    FAULT_FROZEN,  /* the disk with rank 0's state hangs */
    FAULT_CRASH,   /* kill -9 of all processes; then the instance starts again on the same state */
    FAULT_RESTART, /* a clean stop; then the instance starts again on the same state */
};
#define FAULT_COUNT 25
#define PLAN_TUNES 6 /* number of option sets */
#define FAULTS_ALL ((UINT32_C (1) << FAULT_COUNT) - 1)

struct step {
    uint32_t gap_ms;
    enum fault fault;
    uint64_t ranks; /* bit r: rank r */
    uint32_t hold_ms;
    /* CLOCK, BOOT: ms; SLOW: bytes at a time; TUNE: number of the option set; CUT: 1 bytes from the child wait, 2 bytes
     * to it, 3 both; CORRUPT: one of 'amount' buffers; TWIN: 1 the rank is cut off; FULL, BROKEN, FROZEN: 1 the root is
     * killed at the end
     */
    int32_t amount;
};

struct plan {
    struct rng rng;
    uint32_t size;
    uint32_t fanout;
    uint32_t lease_ms;
    uint32_t faults; /* bit f: fault f may occur */
    uint8_t bag[64]; /* the faults that are left, shuffled */
    size_t left;
};

/* Begin a plan for 1 ... 64 ranks in a tree kary:fanout. 'faults' must have at least one fault. */
void plan_init (struct plan *p, uint64_t seed, uint32_t size, uint32_t fanout, uint32_t lease_ms, uint32_t faults);

/* plan_bag (): return the number of consecutive steps that contain each of these faults. plan_next (): draw the next
 * step.
 */
size_t plan_bag (uint32_t faults);
void plan_next (struct plan *p, struct step *step);

/* Return a rank and all ranks below it, as bits. */
uint64_t plan_subtree (const struct plan *p, uint32_t top);

const char *fault_name (enum fault fault);

/* Return the faults in a list such as "kill,cut", or all faults for "all". Returns 0 if a fault is unknown. */
uint32_t faults_parse (const char *list);

/* Write a step as text: "kill 1,3,4 for 520 ms". */
void step_print (const struct step *step, char *buf, size_t size);

#endif /* CHAOS_PLAN_H */
