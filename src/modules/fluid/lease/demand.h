/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand.h - how many sequence numbers of each millisecond a rank needs
 *
 * What counts is what was wanted, and not what was served: a request that had to wait, or that went to the parent,
 * shows that numbers are lacking, however few are served meanwhile. Requests are counted in windows of a tenth of a
 * second, and judged over the last second.
 *
 *   from nothing     20 requests in a second that were not served here, in two windows at least
 *   larger           numbers were lacking in a twentieth of the milliseconds of a window: twice the size
 *   smaller          five seconds without a burst that fills half of the size: half the size
 *   to nothing       four seconds with fewer than two requests in each, or four seconds in which most ids came from
 *                    the parent nevertheless, because requests were for more than a part has in a few milliseconds
 *
 * This is policy, and has no influence on uniqueness. A size stays for five seconds before it shrinks. So a need that
 * varies does not change it all the time.
 */
#ifndef FLUID_DEMAND_H
#define FLUID_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#define DEMAND_WINDOW_US 100000
#define DEMAND_WINDOWS 10 /* windows that are judged together */
#define DEMAND_NOW_WINDOWS 3
#define DEMAND_BURST_US 4000 /* ids that are requested within this time are one burst */
#define DEMAND_BEGIN 20      /* requests in the last second that were not served here, */
#define DEMAND_BEGIN_BUSY 2  /* in so many windows */
#define DEMAND_SHORT_MS 5    /* milliseconds of a window in which numbers were lacking */
#define DEMAND_IDLE 2        /* fewer requests in a second count as silence */
#define DEMAND_IDLE_WINDOWS 40
#define DEMAND_CALM_WINDOWS 50
#define DEMAND_USELESS_WINDOWS 40

struct demand_window {
    uint64_t ids;
    uint32_t requests;
    uint32_t lacked;     /* requests that were not served immediately */
    uint32_t short_ms;   /* milliseconds with such a request */
    uint64_t burst;      /* the most ids in DEMAND_BURST_US */
    uint64_t from_above; /* ids that the parent made */
};

/* All fields are zero at the beginning. */
struct demand {
    uint64_t window_us; /* begin of the current window */
    struct demand_window window[DEMAND_WINDOWS];
    uint32_t current;             /* index of the current window */
    uint64_t burst_us;            /* begin of the current burst */
    uint64_t burst_ids;           /* ids of the current burst */
    uint64_t short_us;            /* the last millisecond with a request that lacked numbers */
    uint32_t size;                /* size to request now; 0: none */
    bool too_much;                /* the last part was useless, because more is needed than a part can have */
    uint32_t idle, calm, useless; /* consecutive windows of that kind */
    uint32_t settling;            /* windows until a larger size may have come into force */
};

/* Count a request for 'ids'. 'lacked' says that it was not served immediately. */
void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool lacked);

/* Count ids that the parent made. */
void demand_note_from_above (struct demand *d, uint64_t now_us, uint32_t ids);

/* How many sequence numbers of each millisecond to request: 0, or from BOX_MIN_SIZE to BOX_MAX_PART. */
uint32_t demand_size (struct demand *d, uint64_t now_us);

/* How many are needed at this moment: the size or, if no numbers are lacking, twice the largest burst of the last
 * DEMAND_NOW_WINDOWS windows.
 */
uint32_t demand_now (struct demand *d, uint64_t now_us);

/* The size if numbers were lacking in these windows; otherwise 0. */
uint32_t demand_lacking (struct demand *d, uint64_t now_us);

/* When demand_size () may change without further requests; UINT64_MAX: never. */
uint64_t demand_due (const struct demand *d);

#endif /* FLUID_DEMAND_H */
