/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lend.c - subleases of time to other modules of the broker
 *
 * Two invariants, like those in lease/lease.c:
 * 1. Subleases of time are disjoint, because each begins at or after the end of all before it. Each lies in the range
 *    that contains now, which no other rank was or will be granted.
 * 2. This holds across restarts, because a node counts what it granted as used when it returns the rest of its lease
 *    (node_lease_stop ()). A node that crashes returns nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

int node_lend (struct node *n, uint64_t now_us, const char *borrower, struct loan *loan)
{
    uint64_t now_ms;

    errno = n->owner ? EAGAIN : ENOTSUP;
    if (!n->owner || n->stopped || !n->epoch.known || !node_may_generate (n, now_us, &now_ms))
        return -1;
    struct range range = { max_u64 (n->cur.range.lo_ms, n->lent.range.hi_ms),
                           min_u64 (n->cur.range.hi_ms, now_ms + n->root_lease_ms / 4) };
    if (range.lo_ms >= range.hi_ms)
        return -1;
    bool in_a_row = range.lo_ms == n->lent.range.hi_ms && strcmp (n->lent.borrower, borrower) == 0;
    n->lent.range = (struct range){ in_a_row ? n->lent.range.lo_ms : range.lo_ms, range.hi_ms };
    snprintf (n->lent.borrower, sizeof (n->lent.borrower), "%s", borrower);
    *loan = (struct loan){
        .lo_ms = range.lo_ms, .hi_ms = range.hi_ms, .clock_us = clock_read (n->clock, now_us), .epoch_ms = n->epoch.ms
    };
    return 0;
}

void node_lend_back (struct node *n, const char *borrower, uint64_t end_ms)
{
    struct range *r = &n->lent.range;

    if (strcmp (n->lent.borrower, borrower) == 0 && end_ms < r->hi_ms)
        r->hi_ms = max_u64 (end_ms, r->lo_ms);
}
