/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* area.h - ids that one rank alone may make: of one generator, some of the sequence numbers of a range of time
 *
 * An owner's is its lease, with all sequence numbers; a borrower's is what it was lent of another's
 * (doc/design/shares.md).  Sequence numbers come in granules of 16: bit k of a set of them stands for 16 k ... 16 k +
 * 15 (fluid_gen_reserve_in ()).
 */
#ifndef FLUID_AREA_H
#define FLUID_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

#include "modules/fluid/lease/lease.h"

#define AREA_MIN_SIZE FLUID_GRANULE /* sequence numbers that are lent at once: a power of two */
#define AREA_MAX_SIZE (FLUID_PER_MS / 2)

struct area {
    uint32_t generator;
    uint64_t granules;
    struct range range;
    uint64_t until_us; /* not used from then on, by CLOCK_BOOTTIME of who holds it */
};

/* --- what brokers say to each other about shares (fluid.share) ----------------------------------- */

/* Of all that the broker 'incarnation' of 'rank' was lent for wants of lower numbers, by whomever, nothing from
 * 'end_ms' on was or will be used, and no answer to such a want will be taken.  It would like 'size' sequence numbers
 * for each millisecond from there (0: none).  Who wants none will, for 'left_ms' more, make ids below 'end_ms' of what
 * it was lent, it or those it lent to.
 */
struct share_want {
    uint32_t rank;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number; /* grows with each new want of an incarnation */
    uint32_t size;   /* a power of two, AREA_MIN_SIZE ... AREA_MAX_SIZE, or 0 */
    uint64_t end_ms;
    uint64_t left_ms;
};

/* The answer: all that is lent for that want, and not given back, of one set of granules. */
struct share {
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint32_t generator;
    uint64_t granules; /* one run, as long as it is aligned */
    struct range range;
    uint64_t use_ms; /* how long after it was first asked for it may be used */
};

/* The granules of 'size' sequence numbers from 'first' on; 0: no share looks like that. */
uint64_t area_granules (uint32_t first, uint32_t size);

/* The same backward.  Returns the size, or 0 where it is no such run. */
uint32_t area_run (uint64_t granules, uint32_t *first);

#endif /* FLUID_AREA_H */
