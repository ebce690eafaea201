/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim_check.h - checks a simulated history: which life may make which ids, and which ids were made
 *
 * 'life' is the number of one incarnation of a broker. The first violation is kept as a sentence.
 */
#ifndef SIM_SIM_CHECK_H
#define SIM_SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/fluid.h>

#include "modules/fluid/lease/box.h"
#include "modules/fluid/node/waiting.h"

struct sim_check;

/* Check the result of an allocation. A simulation aborts if memory is exhausted. */
static inline void *must (void *p)
{
    if (!p)
        abort ();
    return p;
}

/* Copy 'n' items. Returns NULL if 'n' is 0. */
static inline void *sim_copy (const void *p, size_t n, size_t size)
{
    return n > 0 ? memcpy (must (malloc (n * size)), p, n * size) : NULL;
}

/* The next random number (SplitMix64). */
static inline uint64_t sim_random (uint64_t *state)
{
    uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct sim_check *sim_check_create (void);
void sim_check_destroy (struct sim_check *c);

/* A life holds a range of a generator. No other life may ever hold a part of this range. */
void sim_check_hold (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t lo_ms, uint64_t hi_ms);

/* A life has stopped. Of all ranges that it held, it has used nothing from 'end_ms' on, and never will. */
void sim_check_close (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t end_ms);

/* sim_check_part (): the life 'from' has granted 'life' a part of what it holds (doc/design/fluid.md). No other life
 * may hold any of its granules during its time, except lives to which 'life' grants parts of it. sim_check_return ():
 * the life uses nothing of all its parts from 'end_ms' on, except the granules in 'kept'.
 */
void sim_check_part (struct sim_check *c, uint32_t life, uint32_t from, const struct box *box);
void sim_check_return (struct sim_check *c, uint32_t life, uint64_t end_ms, uint64_t kept);

/* A client got ids. Each must be new, and must lie in a range or part that a life holds. */
void sim_check_issue (struct sim_check *c, const struct id_run *run);

/* Report a violation that the caller has found. */
void sim_check_fail (struct sim_check *c, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

const char *sim_check_violation (const struct sim_check *c); /* NULL: no violation */
uint64_t sim_check_ids (const struct sim_check *c);          /* number of ids that were checked */

#endif /* SIM_SIM_CHECK_H */
