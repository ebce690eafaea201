/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* area.h - a set of ids that one rank alone may make: of one generator, some sequence numbers, in a range of time
 *
 * An owner's area is its lease, with all sequence numbers; a borrower's is its sublease (doc/design/shares.md).
 * Sequence numbers are grouped into granules of 16: bit k of a set of granules stands for 16 k ... 16 k + 15
 * (fluid_gen_reserve_in ()).
 */
#ifndef FLUID_AREA_H
#define FLUID_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

#include "modules/fluid/lease/lease.h"

#define AREA_MIN_SIZE FLUID_GRANULE /* size of a sublease in sequence numbers: a power of two */
#define AREA_MAX_SIZE (FLUID_PER_MS / 2)

struct area {
    uint32_t generator;
    uint64_t granules;
    struct range range;
    uint64_t until_us; /* the holder uses it until then, by its CLOCK_BOOTTIME */
};

/* --- messages between brokers about subleases (fluid.share) -------------------------------------- */

/* A request for a sublease, which is also a promise: of all subleases that the broker 'incarnation' of 'rank' got for
 * requests with lower numbers, from any lender, nothing from 'end_ms' on was or will be used, and no answer to those
 * requests will be accepted. The broker requests 'size' sequence numbers for each millisecond from there on. With size
 * 0 it requests none, and it and its own borrowers may make ids below 'end_ms' for 'left_ms' more.
 */
struct share_want {
    uint32_t rank;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number; /* grows with each new request of an incarnation */
    uint32_t size;   /* a power of two, AREA_MIN_SIZE ... AREA_MAX_SIZE, or 0 */
    uint64_t end_ms;
    uint64_t left_ms;
};

/* The answer: everything that was granted for that request and before with the same granules, and was not returned. */
struct share {
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint32_t generator;
    uint64_t granules; /* one run, aligned to its length */
    struct range range;
    uint64_t use_ms; /* may be used for so long after the request was first sent */
};

/* The granules of 'size' sequence numbers from 'first' on; 0: this cannot be a sublease. */
uint64_t area_granules (uint32_t first, uint32_t size);

/* The inverse: returns the size and sets '*first'. Returns 0 if the granules are not such a run. */
uint32_t area_run (uint64_t granules, uint32_t *first);

#endif /* FLUID_AREA_H */
