/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand.h - how many ids a rank needs, and the size of the sublease that it should request for that
 *
 * Requests are counted in windows of a second. This is policy, and has no influence on uniqueness. Thresholds to grow
 * and to shrink differ by a factor of four, and a change of size is followed by a pause of DEMAND_TERM_US, so a varying
 * need does not change the size all the time.
 */
#ifndef FLUID_DEMAND_H
#define FLUID_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/fluid/lease/area.h"

#define DEMAND_WINDOW_US 1000000
#define DEMAND_BURST_US 4000 /* ids that are requested within this time are one burst */
#define DEMAND_BEGIN 20      /* forwarded requests in a window: after two such windows the rank borrows */
#define DEMAND_BEGIN_WINDOWS 2
#define DEMAND_IDLE 2 /* a window with fewer requests counts as idle */
#define DEMAND_IDLE_WINDOWS 4
#define DEMAND_CALM_WINDOWS 30  /* so many windows without a burst that fills an eighth: the size is halved */
#define DEMAND_TERM_US 15000000 /* least time between changes of size */

struct demand_window {
    uint64_t ids;
    uint64_t requests;
    uint64_t went_up; /* requests that were not served here */
    uint64_t burst;   /* the most ids in DEMAND_BURST_US */
};

struct demand {
    uint64_t window_us;          /* begin of the current window */
    struct demand_window window; /* the current one */
    struct demand_window last;   /* the one before */
    uint64_t burst_us;           /* begin of the current burst */
    uint64_t burst_ids;          /* ids of the current burst */
    uint32_t size;               /* size to request now; 0: no sublease */
    bool too_much;               /* the need did not fit into a sublease */
    uint64_t changed_us;         /* last change of the size */
    uint32_t busy, idle, calm;   /* consecutive windows of that kind */
};

void demand_init (struct demand *d, uint64_t now_us);

/* Count a request for 'ids'; 'went_up': it is not served here. Requests of children count, too. */
void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool went_up);

/* The sequence numbers for each millisecond to borrow: 0, or a power of two from AREA_MIN_SIZE to AREA_MAX_SIZE. */
uint32_t demand_size (struct demand *d, uint64_t now_us);

/* When demand_size () may change without further requests; UINT64_MAX: never. */
uint64_t demand_due (const struct demand *d);

/* The most ids for each millisecond in a burst of this window or the last: the own need of a lender. */
uint32_t demand_peak (const struct demand *d);

#endif /* FLUID_DEMAND_H */
