/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* naming.c - chooses the node in a rank's uids; rank 0's registry of fingerprints, an array sorted by fingerprint */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/uid.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/flake/naming.h"

#define RETRY_US 10000 /* pause before a claim is repeated; doubles */
#define RETRY_MAX_US 1000000
#define PATIENCE_US 1000000 /* how long a uid waits for rank 0 before it is made or forwarded without a grant */

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

/* The drift is requested when the module starts, so that it is known if rank 0 fails later. */
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
    assert (!n->asking);
    n->asking = true;
    n->wanted = false;
}

static void hold (struct naming *n, const struct span *range)
{
    /* Ranges arrive in order of time. If the new range begins neither inside nor at the end of the old one, it replaces
     * the old one.
     */
    if (range->lo_ms > n->held.hi_ms || range->lo_ms < n->held.lo_ms)
        n->held = *range;
    else if (range->hi_ms > n->held.hi_ms)
        n->held.hi_ms = range->hi_ms;
    n->len_ms = range->hi_ms - range->lo_ms;
}

/* The drift is fixed for the life of the module. While rank 0 grants another drift, only the rank's own number is used.
 */
void naming_granted (struct naming *n, uint64_t now_us, const struct naming_grant *grant)
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

/* --- rank 0's registry ------------------------------------------------------------------------- */

struct registry_entry {
    uint32_t fingerprint;
    uint32_t rank;
    uint64_t lo_ms; /* end of all ranges granted to other ranks */
    uint64_t hi_ms; /* end of all ranges granted */
    char *node;
};

void registry_fini (struct registry *r)
{
    for (size_t i = 0; i < r->count; i++)
        free (r->entries[i].node);
    free (r->entries);
}

/* The index of the fingerprint, or where to insert it. */
static size_t find (const struct registry *r, uint32_t fingerprint)
{
    size_t lo = 0, hi = r->count;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (r->entries[mid].fingerprint < fingerprint)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Drop entries whose ranges are over. 'floor_ms' keeps their time from being granted again. */
static void forget_expired (struct registry *r, uint64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->count; i++) {
        if (r->entries[i].hi_ms > now_ms) {
            r->entries[kept++] = r->entries[i];
            continue;
        }
        r->floor_ms = max_u64 (r->floor_ms, r->entries[i].hi_ms);
        free (r->entries[i].node);
    }
    r->count = kept;
}

static int make_room (struct registry *r)
{
    size_t size = r->size ? 2 * r->size : 64;
    struct registry_entry *entries;

    if (r->count < r->size)
        return 0;
    if (!(entries = realloc (r->entries, size * sizeof (entries[0]))))
        return -1;
    r->entries = entries;
    r->size = size;
    assert (r->count < r->size);
    return 0;
}

/* Insert an entry without a node. Returns NULL with errno ENOSPC or ENOMEM. */
static struct registry_entry *insert (struct registry *r, uint64_t now_ms, uint32_t fingerprint)
{
    if (r->count == REGISTRY_MAX)
        forget_expired (r, now_ms);
    if (r->count == REGISTRY_MAX)
        return errset_null (ENOSPC);
    if (make_room (r) < 0)
        return NULL;
    size_t i = find (r, fingerprint);
    struct registry_entry *e = &r->entries[i];
    memmove (e + 1, e, (r->count - i) * sizeof (*e));
    r->count++;
    *e = (struct registry_entry){ .fingerprint = fingerprint, .hi_ms = r->floor_ms };
    return e;
}

static int refuse (const struct registry_entry *e, const struct claim *claim, idt_error_t *errp)
{
    return errsetf (errp, EEXIST,
                    "fingerprint 0x%08x of node %s (rank %u) belongs to node %s (rank %u): give one of them another "
                    "with uid.fingerprint or uid.node",
                    claim->fingerprint, claim->node, claim->rank, e->node, e->rank);
}

/* Give the entry to the rank of the claim. A rank that had the entry before may be granted the same time again, because
 * its ids are also limited to its own lease. Another rank is granted only later time.
 */
static int take_over (struct registry_entry *e, const struct claim *claim)
{
    char *node = strdup (claim->node);

    if (!node)
        return -1;
    if (!e->node || e->rank != claim->rank)
        e->lo_ms = e->hi_ms;
    free (e->node);
    e->node = node;
    e->rank = claim->rank;
    return 0;
}

int registry_claim (struct registry *r, uint64_t now_ms, const struct span *held, const struct claim *claim,
                    struct span *range, idt_error_t *errp)
{
    assert (span_contains (held, now_ms));
    if (strlen (claim->node) > CLAIM_NAME_MAX)
        return errsetf (errp, EINVAL, "the name of a node may have at most %d bytes", CLAIM_NAME_MAX);
    size_t i = find (r, claim->fingerprint);
    struct registry_entry *e = i < r->count && r->entries[i].fingerprint == claim->fingerprint ? &r->entries[i] : NULL;

    if (e && e->node && e->rank != claim->rank && e->hi_ms > now_ms)
        return refuse (e, claim, errp);
    if (!e && !(e = insert (r, now_ms, claim->fingerprint)))
        return errprintf (errp, "%s: at most %u fingerprints are in use at a time",
                          errno == ENOSPC ? "the registry is full" : strerror (errno), REGISTRY_MAX);
    if (take_over (e, claim) < 0)
        return errprintf (errp, "%s", strerror (errno));
    *range = (struct span){ max_u64 (e->lo_ms, held->lo_ms), held->hi_ms };
    e->hi_ms = max_u64 (e->hi_ms, held->hi_ms);
    r->end_ms = max_u64 (r->end_ms, held->hi_ms);
    assert (range->lo_ms >= held->lo_ms && range->hi_ms <= r->end_ms);
    return 0;
}
