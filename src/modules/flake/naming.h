/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* naming.h - the node in a rank's uids: the rank's own number, or a configured name while rank 0 grants it
 *
 * A rank's own number (uid_node_numbered ()) belongs to that rank only. It needs no grant, only the drift bits, which
 * rank 0 reports once. A configured name is a wish: if rank 0 refuses it or does not answer, the rank uses its own
 * number.
 *
 * Rank 0's registry is the other side: which rank may make uids under which fingerprint. Ranges of one fingerprint that
 * were granted to different ranks are disjoint, because another rank gets only time after all granted ranges. The
 * registry is kept in memory only: all that it grants is inside the time that this life of rank 0 has subleased, which
 * no other life has (doc/design/flake.md).
 */
#ifndef FLAKE_NAMING_H
#define FLAKE_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

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

/* --- rank 0's registry ------------------------------------------------------------------------- */

#define CLAIM_NAME_MAX 255  /* the most bytes of a node's name */
#define REGISTRY_MAX 65536U /* the most fingerprints */

struct claim {
    uint32_t fingerprint;
    uint32_t rank;
    const char *node; /* the node's name, shown in messages; borrowed */
};

/* Zero-initialize it. */
struct registry {
    struct registry_entry *entries;
    size_t count, size;
    uint64_t floor_ms; /* end of all ranges of fingerprints that were dropped */
    uint64_t end_ms;   /* end of all granted ranges */
};

void registry_fini (struct registry *r);

/* Grant a claim at instance time 'now_ms' inside of 'held', which contains 'now_ms'. Returns 0 with the range in
 * '*range', or -1 with errno set and the reason in 'errp':
 *   EEXIST  another rank holds the fingerprint now
 *   EINVAL  the name is too long
 *   ENOSPC  REGISTRY_MAX fingerprints are held now
 *   ENOMEM  out of memory
 */
int registry_claim (struct registry *r, uint64_t now_ms, const struct span *held, const struct claim *claim,
                    struct span *range, idt_error_t *errp);

#endif /* FLAKE_NAMING_H */
