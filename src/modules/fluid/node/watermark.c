/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - a node's word in the watermark: positions reported up the tree, the root's conclusion
 *
 * Each node tells its parent, once a period, the lowest position of the lessees that it speaks for: itself and those
 * that its children spoke for last.  What a report says stays true for ever, so that late, lost and repeated ones
 * only make the watermark older.
 */
#include <string.h>

#include "modules/fluid/node/private.h"

#define MAX_PERIOD_US 1000000

/* A twelfth of a lease, but often enough for those who read along. */
static uint64_t period_us (const struct node *n)
{
    uint64_t us = n->config.lease_ms * 1000 / 12;

    return us < MAX_PERIOD_US ? us : MAX_PERIOD_US;
}

uint64_t node_report_keep_us (const struct node *n)
{
    return 4 * period_us (n);
}

/* All that this node can speak for now. */
static struct report make_report (struct node *n, uint64_t now_us)
{
    struct report all = { .low_ms = UINT64_MAX };

    memcpy (all.from, n->config.incarnation, sizeof (all.from));
    reports_join (n->reports, now_us, &all);
    if (n->owner && lessee_in_use (&n->lessee, now_us)) {
        uint64_t ms = node_position_ms (n, now_us);

        lessees_add (&all.lessees, n->lessee.generator, n->lessee.incarnation);
        if (all.low_ms > ms)
            all.low_ms = ms;
    }
    return all;
}

void node_watermark_work (struct node *n, uint64_t now_us)
{
    if (n->root || !n->parent_up)
        return;
    if (now_us >= n->report_us) {
        struct report all = make_report (n, now_us);

        if (all.lessees.count > 0 || n->reporting)
            n->ops->report_up (n->arg, &all);
        n->reporting = all.lessees.count > 0;
        n->report_us = now_us + period_us (n);
    }
    if (n->reporting || n->owner)
        node_wake (n, n->report_us);
}

void node_report (struct node *n, uint64_t now_us, const struct report *report)
{
    if (n->stopped || reports_take (n->reports, now_us, report) < 0)
        return; /* it is as if it had been lost */
    n->reporting = true;
    node_tick (n, now_us);
}

/* What is below will report elsewhere; we are closed. */
void node_watermark_stop (struct node *n)
{
    struct report none = { .low_ms = UINT64_MAX };

    memcpy (none.from, n->config.incarnation, sizeof (none.from));
    if (!n->root && n->parent_up && n->reporting)
        n->ops->report_up (n->arg, &none);
}

/* --- the root ----------------------------------------------------------------------------------- */

static uint64_t raise_watermark (struct node *n, uint64_t now_us)
{
    struct report all = make_report (n, now_us);
    uint64_t ms = watermark_raise (n->watermark, node_now_ms (n, now_us), lease_horizon (n->table), &all);

    lease_raise (n->table, ms); /* W_LO */
    return ms;
}

bool node_watermark (struct node *n, uint64_t now_us, uint64_t *ms)
{
    if (!n->root || n->stopped || lease_is_distrusted (n->table))
        return false;
    *ms = raise_watermark (n, now_us);
    return true;
}

void node_watermark_record (struct node *n, uint64_t now_us, struct lease_record *record)
{
    if (!lease_is_distrusted (n->table))
        raise_watermark (n, now_us);
    watermark_record (n->watermark, node_now_ms (n, now_us), record);
}

/* All that was made is below the horizon of a clean stop, and all that comes is above it, if nobody is left. */
void node_watermark_close (struct node *n, uint64_t now_us, struct lease_record *record)
{
    watermark_record (n->watermark, node_now_ms (n, now_us), record);
    if (!lease_is_distrusted (n->table) && !watermark_any_lessee (n->watermark, node_now_ms (n, now_us)))
        record->watermark_ms = record->horizon_ms;
}
