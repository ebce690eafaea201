/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* naming.h - the node in a rank's uids: the rank's own number, or a configured name while rank 0 grants it
 *
 * A rank's own number (uid_node_numbered ()) belongs to that rank only. It needs no grant, only the drift bits, which
 * rank 0 reports once. A configured name is a wish: if rank 0 refuses it or does not answer, the rank uses its own
 * number.
 */
#ifndef FLAKE_NAMING_H
#define FLAKE_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/flake/loan.h"

/* Rank 0's answer to a claim. */
struct grant {
    uint32_t fingerprint; /* the claimed one, or the rank's own */
    struct span range;    /* in which the rank may use it */
    int drift;            /* drift bits of all uids of the instance */
};

struct naming {
    uint32_t own, given; /* fingerprints; if equal, no name is configured */
    int drift;           /* 0: not known yet */
    struct span held;    /* the granted range of 'given' */
    uint64_t len_ms;     /* length of the last granted range */
    bool refused;        /* another rank holds 'given' */
    bool wanted;         /* a uid was wanted since the last claim */
    bool asking;
    uint64_t ask_us; /* no claim before this time */
    uint64_t backoff_us;
    uint64_t vain_us; /* when a uid first had to wait for rank 0; 0: none waits */
};

enum naming_way {
    NAMING_WAIT,    /* wait for rank 0, until naming_patience () */
    NAMING_FORWARD, /* the drift is unknown */
    NAMING_OWN,
    NAMING_GIVEN, /* inside of 'held' */
};

/* 'drift' is known at rank 0; other ranks pass 0. */
void naming_init (struct naming *n, uint32_t rank, uint32_t given, int drift);

/* The node under which a uid can be made now. */
enum naming_way naming_way (struct naming *n, uint64_t now_us, uint64_t now_ms);
uint64_t naming_patience (const struct naming *n);

/* Whether to claim now; and when to check again (UINT64_MAX: a claim is under way, or no uid is wanted). */
bool naming_is_due (const struct naming *n, uint64_t now_us, uint64_t now_ms);
uint64_t naming_due (const struct naming *n);

void naming_asked (struct naming *n);
void naming_granted (struct naming *n, uint64_t now_us, const struct grant *grant);
void naming_failed (struct naming *n, uint64_t now_us);

/* The fingerprint of a rank's number; whether a fingerprint belongs to the number of any rank. */
uint32_t naming_own (uint32_t rank);
bool naming_is_own (uint32_t fingerprint);

#endif /* FLAKE_NAMING_H */
