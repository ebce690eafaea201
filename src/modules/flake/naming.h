/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* naming.h - the node in a rank's uids: the rank's own number, or a configured name while rank 0 grants it
 *
 * A rank's own number (uid_node_numbered ()) belongs to that rank only. To use its own number a rank needs no grant,
 * only the drift bits, which rank 0 reports once. A configured name is only a wish: if rank 0 refuses the name or does
 * not answer, the rank uses its own number.
 *
 * Rank 0 has a registry, which says which rank may make uids under which fingerprint. Ranges of one fingerprint that
 * were granted to different ranks are disjoint, because another rank is granted only time after all ranges that were
 * granted before. The registry is kept in memory only. That is enough, because it grants only time that this life of
 * rank 0 holds, and no other life gets that time (doc/design/flake.md).
 */
#ifndef FLAKE_NAMING_H
#define FLAKE_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "modules/flake/held_time.h"

/* Rank 0's answer to a claim. */
struct naming_grant {
    uint32_t fingerprint; /* the claimed fingerprint, or the rank's own */
    struct span range;    /* the time in which the rank may use the fingerprint */
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
    uint64_t vain_us; /* when a uid first had to wait for rank 0 since the last grant; 0: none had to */
};

enum naming_way {
    NAMING_WAIT,    /* wait for rank 0, until naming_patience () */
    NAMING_FORWARD, /* forward, because the drift is unknown */
    NAMING_OWN,
    NAMING_GIVEN, /* use the configured name, inside of 'held' */
};

/* Rank 0 passes the drift of the instance; other ranks pass 0, because they do not know it yet. */
void naming_init (struct naming *n, uint32_t rank, uint32_t given, int drift);

/* The node under which a uid can be made now. If the result is NAMING_WAIT, the uid waits at most until naming_patience
 * ().
 */
enum naming_way naming_way (struct naming *n, uint64_t now_us, uint64_t now_ms);
uint64_t naming_patience (const struct naming *n);

/* naming_is_due () returns whether to claim now. naming_due () returns when to check again; UINT64_MAX means that a
 * claim is under way, or that no uid is wanted.
 */
bool naming_is_due (const struct naming *n, uint64_t now_us, uint64_t now_ms);
uint64_t naming_due (const struct naming *n);

void naming_asked (struct naming *n);
void naming_granted (struct naming *n, uint64_t now_us, const struct naming_grant *grant);
void naming_failed (struct naming *n, uint64_t now_us);

/* naming_own () is the fingerprint of a rank's number. naming_is_own () returns whether a fingerprint belongs to the
 * number of any rank.
 */
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

/* Rank 0's registry. Zero-initialize it. */
struct registry {
    struct registry_entry *entries;
    size_t count, size;
    uint64_t floor_ms; /* end of all ranges that were granted under fingerprints that were dropped */
    uint64_t end_ms;   /* end of all granted ranges */
};

void registry_fini (struct registry *r);

/* Grant a claim at instance time 'now_ms'. The granted range is inside of 'held', which must contain 'now_ms'. Returns
 * 0 with the range in '*range', or -1 with errno set and the reason in 'errp':
 *   EEXIST  another rank holds the fingerprint now
 *   EINVAL  the name is too long
 *   ENOSPC  REGISTRY_MAX fingerprints are held now
 *   ENOMEM  out of memory
 */
int registry_claim (struct registry *r, uint64_t now_ms, const struct span *held, const struct claim *claim,
                    struct span *range, idt_error_t *errp);

#endif /* FLAKE_NAMING_H */
