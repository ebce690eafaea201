/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* claim.h - rank 0's registry: which rank may make uids under which fingerprint
 *
 * Ranges of one fingerprint that were granted to different ranks are disjoint, because another rank gets only time
 * after all granted ranges. The registry is kept in memory only: all that it grants is inside the time that this life
 * of rank 0 has subleased, which no other life has (doc/design/flake.md).
 */
#ifndef FLAKE_CLAIM_H
#define FLAKE_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "modules/flake/loan.h"

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

#endif /* FLAKE_CLAIM_H */
