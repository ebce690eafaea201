/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* now.c - what a node makes of the time: whether an id may be made now, and above which
 *
 * What the other parts of the node stand on; it knows of none of them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/witness.h"
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
    if (!n->clock->known || n->doubt)
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

bool node_may_generate (struct node *n, uint64_t now_us, uint64_t *now_ms)
{
    if (!n->owner || !n->clock->known || n->doubt) /* T_DOUBT */
        return false;
    uint64_t ms = clock_read (n->clock, now_us) / 1000;

    if (ms < n->cur.lo_ms || ms >= n->cur.hi_ms || now_us >= n->lessee.until_us) { /* CHECK_END, CHECK_BEGIN */
        if (!lessee_range (&n->lessee, now_us, ms, &n->cur))
            n->cur = (struct range){ 0, 0 };
        fluid_gen_set_range (&n->gen, n->cur.lo_ms, n->cur.hi_ms);
        if (n->cur.hi_ms == 0)
            return false;
    }
    *now_ms = ms;
    return true;
}

/* --- order ----------------------------------------------------------------------------------- */

/* The first millisecond in which all ids of our generator, if we own one, are above 'id'. */
static uint64_t above_ms (const struct node *n, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    return f.timestamp_ms + (n->owner && f.generator >= n->gen.generator);
}

/* Ids made here are above 'last_id' anyhow. */
uint64_t node_floor_ms (const struct node *n, fluid_t after)
{
    return after > n->last_id ? above_ms (n, after) : 0;
}

void node_step_to (struct node *n, uint64_t now_us, fluid_t id)
{
    clock_forward (n->clock, now_us, fluid_split (id).timestamp_ms * 1000);
}

void node_follow (struct node *n, uint64_t now_us, fluid_t last)
{
    uint64_t ms = above_ms (n, last);

    n->last_id = max_u64 (n->last_id, last); /* an answer may overtake another */
    fluid_gen_advance (&n->gen, ms);
    n->cursor_ms = max_u64 (n->cursor_ms, ms);
    node_step_to (n, now_us, last);
}

void node_close_past (struct node *n, uint64_t now_us)
{
    uint64_t ms = node_now_ms (n, now_us);

    fluid_gen_advance (&n->gen, ms);
    n->cursor_ms = max_u64 (n->cursor_ms, ms);
}

uint64_t node_position_ms (const struct node *n, uint64_t now_us)
{
    return waiting_oldest_ms (&n->waiting, max_u64 (node_now_ms (n, now_us), n->cursor_ms), n->cursor_ms);
}

/* --- the parent's time ------------------------------------------------------------------------ */

/* What the parent's clock shows that ours can not, by its own account: a pause that no clock of this host has counted, or a
 * root that went ahead.
 */
static uint64_t behind_us (const struct node *n, const struct idt_clock_sample *s)
{
    if (!n->clock->known || s->received_us < s->sent_us)
        return 0;
    uint64_t most_us = clock_read (n->clock, s->received_us) + clock_bound (n->clock, s->received_us);
    uint64_t least_us = s->peer_sent_us > s->peer_bound_us ? s->peer_sent_us - s->peer_bound_us : 0;

    return least_us > most_us + WITNESS_GRAIN_US ? least_us - most_us : 0;
}

void node_time (struct node *n, uint64_t now_us, const struct idt_clock_sample *s)
{
    uint64_t us = behind_us (n, s);

    if (n->doubt_us > 0 && s->sent_us < n->doubt_us) /* its way took longer than our clock says */
        return;
    clock_sample (n->clock, s);
    if (us == 0 && !n->doubt)
        return;
    node_close_past (n, now_us);
    if (us > 0 && !n->doubt)
        node_log (n, LOG_WARNING,
                  "the time here was %.3f s behind the parent's: a pause that this host's clocks missed, or "
                  "rank 0 went ahead; stepped forward",
                  (double)us / 1e6);
    n->doubt = false;
}
