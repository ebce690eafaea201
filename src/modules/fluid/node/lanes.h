/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lanes.h - several generators of one rank, used as one: rank + size, rank + 2 size, ...
 *
 * If an instance has fewer ranks than generators, a rank may use several generators besides the one of its number; its
 * lease covers all of them. A generator belongs to the rank that equals it modulo the size of the instance. So no two
 * ranks own the same generator, even if the ranks have different numbers of lanes.
 *
 * In each millisecond the lanes are used in the order of their numbers, each to its end, so ids increase.
 */
#ifndef FLUID_LANES_H
#define FLUID_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

struct lanes {
    struct fluid_gen gen; /* of the lane in use */
    uint64_t last_ms;     /* newest millisecond: no id is made of an earlier one */
    uint32_t first;       /* generator of lane 0 */
    uint32_t step;
    uint32_t count; /* number of lanes; 0: makes nothing */
    uint32_t lane;  /* in use at 'last_ms'; lower ones are used up or skipped */
    uint32_t used;  /* ids of 'last_ms' that were made, of all lanes */
};

/* Set up 'count' (1 or more) lanes without a range of time. The generator of the last one must be valid; 'step' may be
 * 0 if there is one lane. A struct of all zeros is valid, too: it has no lane and makes nothing.
 */
void lanes_init (struct lanes *l, uint32_t first, uint32_t step, uint32_t count);

/* Like fluid_gen_set_range (). */
int lanes_set_range (struct lanes *l, uint64_t lo_ms, uint64_t hi_ms);

/* Like fluid_gen_reserve (). The run is of one lane, so call the function again for more ids of the same millisecond.
 * It also fails with ERANGE if there is no lane.
 */
int lanes_reserve (struct lanes *l, uint64_t now_ms, uint32_t want, fluid_t *first);

/* Like fluid_gen_advance (). */
void lanes_advance (struct lanes *l, uint64_t ms);

/* Make all later ids greater than 'id', which may be of any generator. */
void lanes_follow (struct lanes *l, fluid_t id);

/* lanes_per_ms () is the number of ids of a millisecond. lanes_left () is the number of ids of 'ms' that are left; 'ms'
 * must not be below the last millisecond used.
 */
uint32_t lanes_per_ms (const struct lanes *l);
uint32_t lanes_left (const struct lanes *l, uint64_t ms);

uint32_t lanes_generator (const struct lanes *l, uint32_t lane);
bool lanes_own (const struct lanes *l, uint32_t generator);

#endif /* FLUID_LANES_H */
