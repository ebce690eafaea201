/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* checker.h - checks the histories of all clients
 *
 * 1. No id was issued twice.
 * 2. Each request ended exactly once; with ids, their number is the requested one.
 * 3. The ids of one client strictly increase: the ids of an answer are above the id that the request named, even if the
 *    broker was killed and started again in between.
 * 4. If the second of two ids was requested when the first had been received for longer than the skew bounds of both
 *    makers, the second is larger. Exception: a new root may be ahead of brokers that hold leases of the old one and
 *    have not learned of it, until a lease after its start. The maker is the generator's rank, or a rank with a
 *    sublease of it: of all candidates the largest bound counts.
 * 5. A request that was sent after a watermark was reported gets no id below it.
 */
#ifndef CHAOS_CHECKER_H
#define CHAOS_CHECKER_H

#include <stddef.h>
#include <stdint.h>

#include "history.h"

#define CHECKER_EXAMPLES 8 /* violations that are described in words */

struct verdict {
    uint64_t ids, runs;
    uint64_t requests, answered, refused, lost; /* refused: with an error; lost: the connection ended */
    uint64_t judged;     /* answers whose order against others was checked: the bounds are known */
    uint64_t excused;    /* answers that break rule 4 in the first lease of a new root */
    uint64_t watermarks; /* reports of watermarks */

    uint64_t duplicates; /* ids */
    uint64_t unanswered; /* requests that never ended, or ended more than once */
    uint64_t malformed;  /* answers */
    uint64_t disorder;   /* answers: rule 3 */
    uint64_t misordered; /* answers: rule 4 */
    uint64_t below;      /* answers: rule 5 */

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

/* Check all histories. 'roots' are the first leases of roots. Ends the program if there is no memory. */
void checker_judge (const struct history *const *h, size_t n, const struct window *roots, size_t nroots,
                    struct verdict *v);
uint64_t checker_violations (const struct verdict *v);

/* The longest time between two answers with ids between from_us and to_us: to any client ('all'), and to the clients of
 * one rank outside of its outages ('one').
 */
void checker_gaps (const struct history *const *h, size_t n, const struct window *outages, size_t noutages,
                   uint64_t from_us, uint64_t to_us, struct gap *all, struct gap *one);

#endif /* CHAOS_CHECKER_H */
