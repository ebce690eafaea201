/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* now.c - whether an id may be made now, and above which id
 *
 * The other files of the node use this one. It calls only page.c and, for reports, lease.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/node/private.h"

void node_log (struct node *n, int level, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    n->ops->log (n->arg, level, text);
}

uint64_t node_now_ms (const struct node *n, uint64_t now_us)
{
    return clock_read_ms (n->clock, now_us);
}

bool node_clock (const struct node *n, uint64_t now_us, uint64_t *inst_us, uint64_t *bound_us)
{
    if (!n->clock->known || n->doubt.now)
        return false;
    *inst_us = clock_estimate (n->clock, now_us);
    *bound_us = clock_estimate_bound (n->clock, now_us);
    return true;
}

void node_wake (struct node *n, uint64_t at_us)
{
    n->deadline_us = min_u64 (n->deadline_us, at_us);
}

void node_wake_ms (struct node *n, uint64_t now_us, uint64_t inst_ms)
{
    if (n->clock->known && inst_ms <= FLUID_TIMESTAMP_MAX + 1)
        node_wake (n, clock_when (n->clock, now_us, inst_ms * 1000));
}

/* --- the box in use ----------------------------------------------------------------------------- */

void node_look_anew (struct node *n)
{
    n->cur = (struct lease){ .box.generator = n->gen.generator };
    n->free.until_ms = 0;
}

void node_make_nothing (struct node *n)
{
    node_look_anew (n);
    page_gen_set_range (&n->gen, 0, 0);
    lanes_set_range (&n->lanes, 0, 0);
}

/* Use another box. Its ids begin above all ids that were answered here, from any source. */
static void use (struct node *n, const struct lease *lease)
{
    const struct box *b = &lease->box;

    node_look_anew (n);
    if (b->generator != n->gen.generator) {
        page_gen_init (&n->gen, b->generator);
        page_gen_advance (&n->gen, n->cursor_ms);
        page_gen_follow (&n->gen, n->last_id); /* rule CONTINUE_ABOVE_NEWEST */
    }
    n->cur = *lease;
    page_gen_set_range (&n->gen, b->range.lo_ms, b->range.hi_ms);
    lanes_set_range (&n->lanes, b->range.lo_ms, b->range.hi_ms); /* only an owner rank has lanes */
}

bool node_may_generate (struct node *n, uint64_t now_us, uint64_t *now_ms)
{
    struct lease lease;

    node_page_look (n, now_us);
    if (!n->clock->known || n->doubt.now) /* rule STOP_IN_DOUBT */
        return false;
    now_us = node_page_now (n, now_us); /* clients may have made ids at later times already */
    uint64_t ms = clock_read (n->clock, now_us) / 1000;
    const struct range *range = &n->cur.box.range;

    /* Rules MAKE_BELOW_END, MAKE_ABOVE_BEGIN. */
    if (ms < range->lo_ms || ms >= range->hi_ms || now_us >= n->cur.until_us) {
        if (!held_find (&n->held, now_us, ms, &lease)) {
            if (n->cur.box.range.hi_ms > 0)
                node_make_nothing (n);
            return false;
        }
        use (n, &lease);
    }
    *now_ms = ms;
    return true;
}

uint32_t node_per_ms (const struct node *n)
{
    return FLUID_PER_MS + lanes_per_ms (&n->lanes);
}

uint64_t node_granules (struct node *n, uint64_t ms)
{
    struct free_granules *f = &n->free;

    if (ms < f->from_ms || ms >= f->until_ms) {
        f->from_ms = ms;
        f->granules = grants_free (&n->parts, &n->cur.box, ms, &f->until_ms);
        f->granules &= node_page_granules (n, ms, &f->until_ms);
    }
    return f->granules;
}

/* --- order ----------------------------------------------------------------------------------- */

/* Whether all ids that may be made here in the millisecond of an id are above that id. This is so for an id that
 * a child made of a part, because granters keep the high sequence numbers.
 */
static bool is_below_ours (struct node *n, const struct fluid_fields *f)
{
    if (f->timestamp_ms < n->cur.box.range.lo_ms || f->timestamp_ms >= n->cur.box.range.hi_ms)
        return false;
    uint64_t granules = node_granules (n, f->timestamp_ms);

    if (granules == 0)
        return false;
    return (uint32_t)__builtin_ctzll (granules) * FLUID_GRANULE > f->sequence; /* rule COMPARE_WHOLE_IDS */
}

/* The first millisecond in which all ids made here are above 'id'. */
static uint64_t above_ms (struct node *n, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    if (!n->owner && n->cur.box.range.hi_ms == 0)
        return f.timestamp_ms;
    if (f.generator == n->gen.generator && is_below_ours (n, &f))
        return f.timestamp_ms;
    return f.timestamp_ms + (f.generator >= n->gen.generator);
}

/* All ids made here are above 'last_id' in any case, so a lower 'after' needs no check. */
uint64_t node_floor_ms (struct node *n, fluid_t after)
{
    return after > n->last_id ? above_ms (n, after) : 0;
}

void node_step_to (struct node *n, uint64_t now_us, fluid_t id)
{
    clock_forward (n->clock, now_us, fluid_split (id).timestamp_ms * 1000);
}

void node_follow (struct node *n, uint64_t now_us, fluid_t last)
{
    n->last_id = max_u64 (n->last_id, last); /* answers may arrive out of order */
    page_gen_follow (&n->gen, last);
    lanes_follow (&n->lanes, last);
    n->cursor_ms = max_u64 (n->cursor_ms, fluid_split (last).timestamp_ms);
    node_step_to (n, now_us, last);
}

void node_close_past (struct node *n, uint64_t now_us)
{
    uint64_t ms = node_now_ms (n, now_us);

    page_gen_advance (&n->gen, ms);
    lanes_advance (&n->lanes, ms);
    n->cursor_ms = max_u64 (n->cursor_ms, ms);
}

uint64_t node_position_ms (struct node *n, uint64_t now_us)
{
    node_page_look (n, now_us);
    uint64_t ms = waiting_oldest_ms (&n->waiting, max_u64 (node_now_ms (n, now_us), n->cursor_ms), n->cursor_ms);

    if (n->gen.page)
        page_gen_advance (&n->gen, ms); /* rule PAST_FIRST: before it is reported */
    return ms;
}

/* --- the parent's time ------------------------------------------------------------------------ */

/* By how much the parent's clock is certainly ahead of this clock, given the error bounds of both. If it is ahead,
 * either this host paused and none of its clocks counted that, or the root stepped ahead.
 */
static uint64_t behind_us (const struct node *n, const struct idt_clock_sample *s)
{
    if (!n->clock->known || s->received_us < s->sent_us)
        return 0;
    uint64_t most_us = clock_read (n->clock, s->received_us) + clock_bound (n->clock, s->received_us);
    uint64_t least_us = s->peer_sent_us > s->peer_bound_us ? s->peer_sent_us - s->peer_bound_us : 0;

    return least_us > most_us + CLOCK_CHECK_GRAIN_US ? least_us - most_us : 0;
}

void node_time (struct node *n, uint64_t now_us, const struct idt_clock_sample *s)
{
    uint64_t us = behind_us (n, s);

    if (n->doubt.since_us > 0 && s->sent_us < n->doubt.since_us) /* rule TIME_ASKED_IN_DOUBT: its delay is not known */
        return;
    clock_sample (n->clock, s);
    if (us == 0 && !n->doubt.now)
        return;
    node_close_past (n, now_us);
    if (us > 0 && !n->doubt.now)
        node_log (n, LOG_WARNING,
                  "the time here was %.3f s behind the parent's, so it was stepped forward: either all clocks of "
                  "this host missed a pause, or rank 0 stepped ahead",
                  (double)us / 1e6);
    n->doubt.now = false;
}

/* --- a node's part in the watermark: it reports positions to its parent -------------------------- */

/* A node reports about once in each period: at the earliest after 0.6 periods, at the latest after 1.3. It reports the
 * lowest position of all holders that it knows: its own, and the last ones that its children reported. A report stays
 * true for ever, so late, lost and repeated reports only make the watermark older.
 */

#define MAX_PERIOD_US 1600000

/* A twelfth of a lease, but at most MAX_PERIOD_US, so that readers of the watermark get a recent one. */
static uint64_t period_us (const struct node *n)
{
    return min_u64 (n->config.lease_ms * 1000 / 12, MAX_PERIOD_US);
}

uint64_t node_report_keep_us (const struct node *n)
{
    return 4 * period_us (n);
}

/* Whether the granter of a part needs this rank's position. It needs it as soon as this rank has requested a part,
 * because the answer may be under way, or may arrive too late.
 */
static bool has_part (const struct node *n)
{
    return !n->owner && (n->held.count > 0 || n->held.want.size > 0);
}

void node_positions (struct node *n, uint64_t now_us, struct report *all)
{
    uint64_t low_ms = node_position_ms (n, now_us);

    node_source_hear_jumps (n); /* rule WAIT_AFTER_JUMP: before the authority joins positions */
    grants_forget (&n->parts, now_us, low_ms);
    n->free.until_ms = 0;
    low_ms = min_u64 (low_ms, grants_low_ms (&n->parts, now_us)); /* rule POSITION_COUNTS_GRANTED */
    reports_join (&n->reports.children, now_us, all);
    if (has_part (n))
        all->part_low_ms = low_ms;
    if (n->owner && held_is_counted (&n->held, now_us)) {
        holders_add (&all->holders, n->config.rank, n->config.incarnation);
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
        if (all.holders.count > 0 || has_part (n) || n->reports.news)
            n->ops->report_up (n->arg, &all);
        n->reports.news = all.holders.count > 0;
        n->reports.due_us = now_us + period_us (n) * 3 / 5;
    }
    if (n->reports.news || n->owner || has_part (n))
        node_wake (n, n->reports.due_us + period_us (n) * 7 / 10); /* mostly another event calls node_tick () before */
}

/* Process a report. If memory is short, the report counts as lost. */
void node_watermark_take (struct node *n, uint64_t now_us, const struct report *report)
{
    if (reports_take (&n->reports.children, now_us, report) == 0)
        n->reports.news = true;
    grants_position (&n->parts, report->rank, report->from, report->part_low_ms);
}

/* Report that this node knows no holder any longer, because the node is closed, and its subtree will report to another
 * parent.
 */
void node_watermark_stop (struct node *n)
{
    struct report none = make_report (n);

    if (n->parent_up && n->reports.news)
        n->ops->report_up (n->arg, &none);
}
