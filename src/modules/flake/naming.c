/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* naming.c - chooses the node in a rank's uids */
#include <idtree/uid.h>

#include "libutil/minmax.h"
#include "modules/flake/naming.h"

#define RETRY_US 10000 /* pause before a claim is repeated; doubles */
#define RETRY_MAX_US 1000000
#define PATIENCE_US 1000000 /* how long to wait for rank 0 before doing without it */

uint32_t naming_own (uint32_t rank)
{
    return uid_node_numbered (rank & UID_NUMBER_MAX).fingerprint;
}

bool naming_is_own (uint32_t fingerprint)
{
    return fingerprint >= naming_own (0) && fingerprint <= naming_own (UID_NUMBER_MAX);
}

void naming_init (struct naming *n, uint32_t rank, uint32_t given, int drift)
{
    *n = (struct naming){ .own = naming_own (rank), .given = given, .drift = drift };
}

static bool is_patient (struct naming *n, uint64_t now_us)
{
    if (n->vain_us == 0)
        n->vain_us = now_us;
    return now_us < naming_patience (n);
}

uint64_t naming_patience (const struct naming *n)
{
    return n->vain_us + PATIENCE_US;
}

enum naming_way naming_way (struct naming *n, uint64_t now_us, uint64_t now_ms)
{
    n->wanted = true;
    if (n->drift == 0)
        return is_patient (n, now_us) ? NAMING_WAIT : NAMING_FORWARD;
    if (n->given == n->own || n->refused)
        return NAMING_OWN;
    if (span_contains (&n->held, now_ms))
        return NAMING_GIVEN;
    return is_patient (n, now_us) ? NAMING_WAIT : NAMING_OWN;
}

/* The drift is requested at the start, so that it is known if rank 0 fails later. */
bool naming_is_due (const struct naming *n, uint64_t now_us, uint64_t now_ms)
{
    if (n->asking || now_us < n->ask_us)
        return false;
    if (n->drift == 0)
        return true;
    if (n->given == n->own || !n->wanted)
        return false;
    return !span_contains (&n->held, now_ms) || n->held.hi_ms - now_ms <= n->len_ms / 4;
}

uint64_t naming_due (const struct naming *n)
{
    if (n->asking || (n->drift != 0 && (n->given == n->own || !n->wanted)))
        return UINT64_MAX;
    return n->ask_us;
}

void naming_asked (struct naming *n)
{
    n->asking = true;
    n->wanted = false;
}

static void hold (struct naming *n, const struct span *range)
{
    /* Ranges arrive in order of time. If the new range does not touch the old one, the old one is dropped. */
    if (range->lo_ms > n->held.hi_ms || range->lo_ms < n->held.lo_ms)
        n->held = *range;
    else if (range->hi_ms > n->held.hi_ms)
        n->held.hi_ms = range->hi_ms;
    n->len_ms = range->hi_ms - range->lo_ms;
}

/* The drift is fixed for the life of the module: if a later grant has another drift, only the rank's own number is
 * used.
 */
void naming_granted (struct naming *n, uint64_t now_us, const struct grant *grant)
{
    n->asking = false;
    n->backoff_us = 0;
    n->vain_us = 0;
    if (n->drift == 0)
        n->drift = grant->drift;
    n->refused = grant->fingerprint != n->given || grant->drift != n->drift;
    if (n->refused)
        n->held = (struct span){ 0, 0 };
    else
        hold (n, &grant->range);
    n->ask_us = now_us + (n->refused ? RETRY_MAX_US : RETRY_US);
}

void naming_failed (struct naming *n, uint64_t now_us)
{
    n->asking = false;
    n->backoff_us = min_u64 (n->backoff_us ? 2 * n->backoff_us : RETRY_US, RETRY_MAX_US);
    n->ask_us = now_us + n->backoff_us;
}
