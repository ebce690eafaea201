/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* series.h - makes the ids of one rank: sno under a partition, uid under a node, inside of a range of time */
#ifndef FLAKE_SERIES_H
#define FLAKE_SERIES_H

#include <stdint.h>

#include <idtree/sno.h>
#include <idtree/uid.h>

enum series_kind {
    SERIES_SNO,
    SERIES_UID,
    SERIES_FLAX, /* needs no series: made at any time on any rank */
    SERIES_KINDS,
};

/* The id 'first' and the n - 1 ids after it in sequence; of flax any n ids. */
struct flake_run {
    union {
        sno_t sno;
        struct uid uid; /* a global uid */
    } first;
    uint32_t n;
};

/* One generator, which belongs to the owner of the series; the other pointer is NULL. */
struct series {
    struct sno_gen *sno;
    struct uid_gen *uid;
};

/* Reserve up to 'want' (>= 1) ids at 'unix_us', in a step of time that is completely in [lo_us, hi_us). Returns their
 * number with the run in '*run', or -1 with errno set, and the call may be repeated after '*wait_us':
 *   EAGAIN     the step is used up
 *   ERANGE     the step is not in the range
 *   EOVERFLOW  the date is beyond the range of the scheme
 */
int series_reserve (const struct series *s, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                    struct flake_run *run, int64_t *wait_us);

#endif /* FLAKE_SERIES_H */
