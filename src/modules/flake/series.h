/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* series.h - the ids of one rank: sno under a partition, uid under a node, inside of a range of time */
#ifndef FLAKE_SERIES_H
#define FLAKE_SERIES_H

#include <stdint.h>

#include <idtree/sno.h>
#include <idtree/uid.h>

enum series_kind {
    SERIES_SNO,
    SERIES_UID,
    SERIES_FLAX, /* has no series: any time and any rank will do */
    SERIES_KINDS,
};

/* The id 'first' and the n - 1 that follow it in sequence; of flax any n ids. */
struct flake_run {
    union {
        sno_t sno;
        struct uid uid; /* global */
    } first;
    uint32_t n;
};

/* One of them, which is its owner's; the other is NULL. */
struct series {
    struct sno_gen *sno;
    struct uid_gen *uid;
};

/* Reserve up to 'want' (>= 1) ids at 'unix_us', in a step of time that lies whole in [lo_us, hi_us).  Returns their
 * number with the run in '*run', or -1 with errno set; then it may be tried again after '*wait_us':
 *   EAGAIN     the step is used up
 *   ERANGE     the step does not lie in the range
 *   EOVERFLOW  the scheme does not reach that date
 */
int series_reserve (const struct series *s, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                    struct flake_run *run, int64_t *wait_us);

#endif /* FLAKE_SERIES_H */
