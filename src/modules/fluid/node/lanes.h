/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lanes.h - generators of one rank, as one: rank + size, rank + 2 size, ...
 *
 * Where ranks are fewer than generators, a rank may use several beside that of its number, whose lease is that of all:
 * no other rank owns any of them, for a generator is owned by the rank that it is modulo the size, whatever the number
 * of lanes elsewhere.
 *
 * In each millisecond they are used in the order of their numbers, each to its end, which is the order of the ids.
 */
#ifndef FLUID_LANES_H
#define FLUID_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

struct lanes {
    struct fluid_gen gen; /* of the lane in use */
    uint64_t last_ms;     /* as the generators know it: no id is made of a time below */
    uint32_t first;       /* generator */
    uint32_t step;
    uint32_t count; /* lanes; 0: no generator */
    uint32_t lane;  /* in use at 'last_ms': those below are used up, or passed */
    uint32_t used;  /* ids of 'last_ms', over all lanes */
};

/* All zeros are no lanes: they make nothing.  'count' (1 and more) lanes, the last of which is a generator; 'step' of
 * one lane may be 0.  They hold no range of time.
 */
void lanes_init (struct lanes *l, uint32_t first, uint32_t step, uint32_t count);

/* As fluid_gen_set_range (). */
int lanes_set_range (struct lanes *l, uint64_t lo_ms, uint64_t hi_ms);

/* As fluid_gen_reserve (): one run, of one lane.  Ask again for more of this millisecond. */
int lanes_reserve (struct lanes *l, uint64_t now_ms, uint32_t want, fluid_t *first);

/* As fluid_gen_advance (). */
void lanes_advance (struct lanes *l, uint64_t ms);

/* Let all ids that are made afterwards be above 'id', whichever generator made it. */
void lanes_follow (struct lanes *l, fluid_t id);

/* Ids in a millisecond; how many of 'ms', which is not below the last one used, are left. */
uint32_t lanes_per_ms (const struct lanes *l);
uint32_t lanes_left (const struct lanes *l, uint64_t ms);

uint32_t lanes_generator (const struct lanes *l, uint32_t lane);
bool lanes_own (const struct lanes *l, uint32_t generator);

#endif /* FLUID_LANES_H */
