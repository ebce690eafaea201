/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* claim.h - which rank may make uids under which fingerprint: rank 0's registry
 *
 * Of one fingerprint, ranges that were granted to different ranks are disjoint, because another rank gets only what
 * follows all that was granted before.  The registry lives in memory: what it grants lies inside of time that its rank
 * 0 alone has borrowed (doc/design/flake.md).
 */
#ifndef FLAKE_CLAIM_H
#define FLAKE_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "modules/flake/loan.h"

#define CLAIM_NAME_MAX 255  /* bytes of a node's name */
#define REGISTRY_MAX 65536U /* fingerprints */

struct claim {
    uint32_t fingerprint;
    uint32_t rank;
    const char *node; /* its name, or what else says whose it is; borrowed */
};

/* Zeroed at the beginning. */
struct registry {
    struct registry_entry *entries;
    size_t count, size;
    uint64_t floor_ms; /* end of all that was granted of fingerprints that were forgotten */
    uint64_t end_ms;   /* nothing was granted from there on */
};

void registry_fini (struct registry *r);

/* Grant a claim at instance time 'now_ms' inside of 'held', which contains it.  Returns 0 with the range in '*range',
 * or -1 with errno set and the reason in 'errp':
 *   EEXIST  another rank holds the fingerprint now
 *   EINVAL  the name is too long
 *   ENOSPC  REGISTRY_MAX fingerprints are held now
 *   ENOMEM
 */
int registry_claim (struct registry *r, uint64_t now_ms, const struct span *held, const struct claim *claim,
                    struct span *range, idt_error_t *errp);

#endif /* FLAKE_CLAIM_H */
