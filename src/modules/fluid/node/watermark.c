/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - a node's part in the watermark: it reports positions to its parent
 *
 * Once in each period, a node reports the lowest position of all lessees that it knows: its own, and the last ones that
 * its children reported. A report stays true for ever, so late, lost and repeated reports only make the watermark
 * older.
 */
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define MAX_PERIOD_US 1600000

/* A twelfth of a lease, but at most MAX_PERIOD_US, so that readers of the watermark see it soon. */
static uint64_t period_us (const struct node *n)
{
    return min_u64 (n->config.lease_ms * 1000 / 12, MAX_PERIOD_US);
}

uint64_t node_report_keep_us (const struct node *n)
{
    return 4 * period_us (n);
}

/* Whether this rank's position counts for a lender, even if the answer to its request is still under way or arrives too
 * late.
 */
static bool borrows (const struct node *n)
{
    return n->sharing.borrower.nareas > 0 || n->sharing.borrower.want.size > 0;
}

void node_positions (struct node *n, uint64_t now_us, struct report *all)
{
    uint64_t low_ms = node_position_ms (n, now_us);

    node_lessor_hear_jumps (n); /* rule T_LENT: before the authority joins positions */
    lender_forget (&n->sharing.lender, now_us, low_ms);
    n->sharing.free.until_ms = 0;
    low_ms = min_u64 (low_ms, lender_low_ms (&n->sharing.lender, now_us)); /* rule W_LOAN */
    reports_join (&n->reports.children, now_us, all);
    if (borrows (n))
        all->borrowed_low_ms = low_ms;
    if (n->owner && lessee_in_use (&n->lessee, now_us)) {
        lessees_add (&all->lessees, n->lessee.generator, n->lessee.incarnation);
        all->low_ms = min_u64 (all->low_ms, low_ms);
    }
}

static struct report make_report (const struct node *n)
{
    struct report r = { .rank = n->config.rank, .low_ms = UINT64_MAX };

    memcpy (r.from, n->config.incarnation, sizeof (r.from));
    return r;
}

void node_watermark_work (struct node *n, uint64_t now_us)
{
    if (!n->parent_up)
        return;
    if (now_us >= n->reports.due_us) {
        struct report all = make_report (n);

        node_positions (n, now_us, &all);
        if (all.lessees.count > 0 || borrows (n) || n->reports.news)
            n->ops->report_up (n->arg, &all);
        n->reports.news = all.lessees.count > 0;
        n->reports.due_us = now_us + period_us (n) * 3 / 5;
    }
    if (n->reports.news || n->owner || borrows (n))
        node_wake (n, n->reports.due_us + period_us (n) * 7 / 10); /* mostly another event calls node_tick () before */
}

/* Without memory the report counts as lost. */
void node_watermark_take (struct node *n, uint64_t now_us, const struct report *report)
{
    if (reports_take (&n->reports.children, now_us, report) == 0)
        n->reports.news = true;
    lender_position (&n->sharing.lender, report->rank, report->from, report->borrowed_low_ms);
}

/* The subtree will report to another parent, and this node is closed. */
void node_watermark_stop (struct node *n)
{
    struct report none = make_report (n);

    if (n->parent_up && n->reports.news)
        n->ops->report_up (n->arg, &none);
}
