/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* checker.h - judges what all clients saw
 *
 * 1. No id was given twice.
 * 2. Each request ended exactly once; with ids, they are as many as were asked for.
 * 3. The ids of one client strictly increase: those of an answer above all that it named when it asked, even where
 *    its broker was killed and run again in between.
 * 4. Of two ids, the second asked for when the first had been there for longer than the bounds on skew of both
 *    their makers, the second is larger; but not while a new root may be ahead of brokers that hold leases of
 *    the old one and have not heard of it: that ends a lease after its start.  The maker is the generator's rank, or
 *    one that was lent a share of it: of all that come into question the largest bound counts.
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
    uint64_t excused;    /* answers out of this order in the first lease of a new root */
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

/* A time in which something held for some ranks. */
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

/* Judge.  'roots' are the first leases of roots.  Ends the program where there is no memory. */
void checker_judge (const struct history *const *h, size_t n, const struct window *roots, size_t nroots,
                    struct verdict *v);
uint64_t checker_violations (const struct verdict *v);

/* The longest time between two answers with ids between from_us and to_us: to any client ('all'), and to the clients
 * of one rank outside of its outages ('one').
 */
void checker_gaps (const struct history *const *h, size_t n, const struct window *outages, size_t noutages,
                   uint64_t from_us, uint64_t to_us, struct gap *all, struct gap *one);

#endif /* CHAOS_CHECKER_H */
