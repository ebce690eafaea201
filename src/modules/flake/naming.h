/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* naming.h - the node that a rank's uids name: the rank's own number, or a given one while rank 0 grants it
 *
 * A rank's own number (uid_node_numbered ()) is nobody else's, so that it needs no grant, only the drift bits that rank
 * 0 tells once.  A given name is a wish: where rank 0 refuses or cannot be asked, the rank goes on under its own
 * number.
 */
#ifndef FLAKE_NAMING_H
#define FLAKE_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/flake/loan.h"

/* What rank 0 answers to a claim. */
struct grant {
    uint32_t fingerprint; /* what was claimed, or the rank's own */
    struct span range;    /* in which the rank may use it */
    int drift;            /* bits of all uids of the instance */
};

struct naming {
    uint32_t own, given; /* fingerprints; equal: none is given */
    int drift;           /* 0: not told yet */
    struct span held;    /* of 'given' */
    uint64_t len_ms;     /* of what was granted last */
    bool refused;        /* another rank has what is given */
    bool wanted;         /* since it was asked for last */
    bool asking;
    uint64_t ask_us; /* not before */
    uint64_t backoff_us;
    uint64_t vain_us; /* since when something was wanted that was not granted; 0: is not */
};

enum naming_way {
    NAMING_WAIT,    /* rank 0 will answer soon; naming_patience () says until when that is hoped for */
    NAMING_FORWARD, /* the drift is not known */
    NAMING_OWN,
    NAMING_GIVEN, /* in 'held' */
};

/* 'drift': rank 0 knows it, others say 0. */
void naming_init (struct naming *n, uint32_t rank, uint32_t given, int drift);

/* Under which name a uid can be made now. */
enum naming_way naming_way (struct naming *n, uint64_t now_us, uint64_t now_ms);
uint64_t naming_patience (const struct naming *n);

/* Whether to claim now, and if not, when to look again (UINT64_MAX: an answer is on its way, or nothing is wanted). */
bool naming_is_due (const struct naming *n, uint64_t now_us, uint64_t now_ms);
uint64_t naming_due (const struct naming *n);

void naming_asked (struct naming *n);
void naming_granted (struct naming *n, uint64_t now_us, const struct grant *grant);
void naming_failed (struct naming *n, uint64_t now_us);

/* The fingerprint that is a rank's alone, and whether one is that of some rank. */
uint32_t naming_own (uint32_t rank);
bool naming_is_own (uint32_t fingerprint);

#endif /* FLAKE_NAMING_H */
