/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* checker.h - checks the histories of all clients
 *
 * 1. No id was issued twice.
 * 2. Each request ended exactly once. If it was answered with ids, their number is the requested one.
 * 3. The ids of one client strictly increase: the ids of an answer are above the id that the request named, even if the
 *    broker was killed and started again in between.
 * 4. Say an id was requested after another one had been received, and later than that by more than the skew bounds of
 *    both makers. Then the id is larger than the other one. Exception: a new root may be ahead of brokers that hold
 *    leases of the old root and do not know of the new one, for a lease after its start. The maker of an id is the
 *    generator's rank, or a rank with a part of the generator: the largest bound of all possible makers counts.
 * 5. A request that was sent after a watermark was reported gets no id below this watermark.
 */
#ifndef CHAOS_CHECKER_H
#define CHAOS_CHECKER_H

#include <stddef.h>
#include <stdint.h>

#include "history.h"

#define CHECKER_EXAMPLES 8 /* number of violations that are printed in full */

struct verdict {
    uint64_t ids, runs;
    uint64_t requests, answered, refused, lost; /* refused: ended with an error; lost: the connection ended */
    uint64_t judged;                            /* answers with known bounds, whose order was checked */
    uint64_t excused;                           /* answers that break rule 4 during the first lease of a new root */
    uint64_t watermarks;                        /* how often a watermark was reported */

    uint64_t duplicates; /* ids that were issued twice */
    uint64_t unanswered; /* requests that did not end, or ended more than once */
    uint64_t malformed;  /* answers that cannot be read, or have another number of ids */
    uint64_t disorder;   /* answers that break rule 3 */
    uint64_t misordered; /* answers that break rule 4 */
    uint64_t below;      /* answers that break rule 5 */

    char example[CHECKER_EXAMPLES][256];
    size_t nexamples;
};

/* A time in which a condition held for some ranks. */
struct window {
    uint64_t from_us;
    uint64_t to_us;
    uint64_t ranks; /* bit r: rank r */
};

struct gap {
    uint64_t us;
    uint64_t at_us; /* when it began */
    uint32_t rank;
};

/* Check all histories. 'roots' are the first leases of roots. Ends the program if memory is short. */
void checker_judge (const struct history *const *h, size_t n, const struct window *roots, size_t nroots,
                    struct verdict *v);
uint64_t checker_violations (const struct verdict *v);

/* Find the longest time between two answers with ids from from_us to to_us: '*all' counts answers to any client; '*one'
 * counts answers to the clients of one rank, outside of the rank's outages.
 */
void checker_gaps (const struct history *const *h, size_t n, const struct window *outages, size_t noutages,
                   uint64_t from_us, uint64_t to_us, struct gap *all, struct gap *one);

#endif /* CHAOS_CHECKER_H */
