/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand.h - how many ids a rank needs, and how many sequence numbers for each millisecond it should borrow for that
 *
 * Requests are counted in windows of a second.  Nothing here is a rule of safety.  Between a threshold upward and the
 * one that takes it back lies a factor of four, and one change of size is followed by a pause of DEMAND_TERM_US, so
 * that what swings does not swing the size with it.
 */
#ifndef FLUID_DEMAND_H
#define FLUID_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/fluid/lease/area.h"

#define DEMAND_WINDOW_US 1000000
#define DEMAND_BURST_US 4000 /* ids that are wanted in so short a time are one burst */
#define DEMAND_BEGIN 20      /* requests that went up in a window: two such windows, and it pays to borrow */
#define DEMAND_BEGIN_WINDOWS 2
#define DEMAND_IDLE 2 /* fewer requests than that are none */
#define DEMAND_IDLE_WINDOWS 4
#define DEMAND_CALM_WINDOWS 30  /* without a burst that fills an eighth: half of it will do */
#define DEMAND_TERM_US 15000000 /* between changes of size */

struct demand_window {
    uint64_t ids;
    uint64_t requests;
    uint64_t went_up; /* requests that were not served here */
    uint64_t burst;   /* the most ids in DEMAND_BURST_US */
};

struct demand {
    uint64_t window_us;          /* when this window began */
    struct demand_window window; /* this one, */
    struct demand_window last;   /* and the one before */
    uint64_t burst_us;           /* when this burst began, */
    uint64_t burst_ids;          /* and its ids */
    uint32_t size;               /* what is wanted now; 0: nothing */
    bool too_much;               /* more was needed than can be borrowed */
    uint64_t changed_us;         /* the size, last */
    uint32_t busy, idle, calm;   /* windows in a row */
};

void demand_init (struct demand *d, uint64_t now_us);

/* A request for 'ids' came; 'went_up': what it wants is not made here.  What is lent on counts, too. */
void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool went_up);

/* The sequence numbers for each millisecond that should be borrowed: 0, or a power of two of AREA_MIN_SIZE to
 * AREA_MAX_SIZE.
 */
uint32_t demand_size (struct demand *d, uint64_t now_us);

/* When demand_size () may be another without any request coming; UINT64_MAX: never. */
uint64_t demand_due (const struct demand *d);

/* The most ids for each millisecond that a burst of this window or the last took: what a lender needs itself. */
uint32_t demand_peak (const struct demand *d);

#endif /* FLUID_DEMAND_H */
