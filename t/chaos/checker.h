/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* checker.h - judges what all clients saw
 *
 * 1. No id was given twice.
 * 2. Each request ended exactly once; with ids, they are as many as were asked for.
 * 3. The ids of one client strictly increase: those of an answer above all that it had when it asked, even where
 *    its broker was killed and run again in between.
 * 4. Of two ids, the second asked for when the first had been there for longer than the bounds on skew of both
 *    their generators, the second is larger.
 * 5. A request sent after a watermark was told brings no id below it.
 */
#ifndef CHAOS_CHECKER_H
#define CHAOS_CHECKER_H

#include <stddef.h>
#include <stdint.h>

#include "history.h"

#define CHECKER_EXAMPLES 8 /* violations that are told in words */

struct verdict {
    uint64_t ids, runs;
    uint64_t requests, answered, refused, lost; /* refused: with an error; lost: the connection ended */
    uint64_t judged;     /* answers whose order against others was judged: the bounds are known */
    uint64_t watermarks; /* told */

    uint64_t duplicates; /* ids */
    uint64_t unanswered; /* requests that never ended, or more than once */
    uint64_t malformed;  /* answers */
    uint64_t disorder;   /* answers: rule 3 */
    uint64_t misordered; /* answers: rule 4 */
    uint64_t below;      /* answers: rule 5 */

    char example[CHECKER_EXAMPLES][256];
    size_t nexamples;
};

/* A time when a rank, or all of them, could not be served for a reason of their own. */
struct outage {
    uint64_t from_us;
    uint64_t to_us;
    uint64_t ranks;
};

struct gap {
    uint64_t us;
    uint64_t at_us; /* when it began */
    uint32_t rank;
};

/* Judge.  Ends the program where there is no memory. */
void checker_judge (const struct history *const *h, size_t n, struct verdict *v);
uint64_t checker_violations (const struct verdict *v);

/* The longest time between two answers with ids between from_us and to_us: to any client ('all'), and to the clients
 * of one rank outside of its outages ('one').
 */
void checker_gaps (const struct history *const *h, size_t n, const struct outage *outages, size_t noutages,
                   uint64_t from_us, uint64_t to_us, struct gap *all, struct gap *one);

#endif /* CHAOS_CHECKER_H */
