/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.c - the instance's time: steps forward, is slewed back, never decreases
 *
 * The clock is a line through (boot_us, inst_us) of slope 1, bent by at most CLOCK_SLEW_PPM until 'slew_us' is used up.
 * Each change first moves the point (boot_us, inst_us) along the line, so the reading jumps only for requested steps
 * forward. 'slew_us' and the bound contain all uncertainty of the reading.
 */
#include <assert.h>
#include <stdio.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/clock.h"

/* The part of the remaining slew that CLOCK_SLEW_PPM allows in 'us'. */
static int64_t slewed (const struct clock *c, uint64_t us)
{
    int64_t limit = (int64_t)(us / (1000000 / CLOCK_SLEW_PPM));

    if (c->slew_us > limit)
        return limit;
    if (c->slew_us < -limit)
        return -limit;
    return c->slew_us;
}

static uint64_t since (const struct clock *c, uint64_t boot_us)
{
    return boot_us > c->boot_us ? boot_us - c->boot_us : 0;
}

uint64_t clock_read (const struct clock *c, uint64_t boot_us)
{
    assert (c->known);
    uint64_t us = since (c, boot_us);
    return c->inst_us + us + slewed (c, us);
}

uint64_t clock_read_ms (const struct clock *c, uint64_t boot_us)
{
    return c->known ? clock_read (c, boot_us) / 1000 : 0;
}

uint64_t clock_estimate (const struct clock *c, uint64_t boot_us)
{
    if (c->leads) /* the root's reading is the instance's time, whether or not its wall clock agrees */
        return clock_read (c, boot_us);
    assert (c->known);
    return c->inst_us + c->slew_us + since (c, boot_us);
}

/* How far this clock may have drifted from the root's clock since the parent's reading. The root's clock may be slewed,
 * too.
 */
static uint64_t drift (uint64_t us)
{
    return us * (CLOCK_DRIFT_PPM + CLOCK_SLEW_PPM) / 1000000;
}

uint64_t clock_estimate_bound (const struct clock *c, uint64_t boot_us)
{
    return c->leads ? CLOCK_GRAIN_US : c->bound_us + drift (since (c, boot_us));
}

uint64_t clock_bound (const struct clock *c, uint64_t boot_us)
{
    int64_t left = c->slew_us - slewed (c, since (c, boot_us));

    if (c->leads)
        return CLOCK_GRAIN_US;
    return clock_estimate_bound (c, boot_us) + (uint64_t)(left < 0 ? -left : left);
}

/* Move the reference point along the line. */
static void rebase (struct clock *c, uint64_t boot_us)
{
    uint64_t us = since (c, boot_us);
    int64_t bent_us = slewed (c, us);

    c->inst_us += us + bent_us;
    c->slew_us -= bent_us;
    c->bound_us += drift (us);
    c->boot_us += us;
}

void clock_start (struct clock *c, uint64_t boot_us, uint64_t inst_us)
{
    *c = (struct clock){ .known = true, .leads = true, .boot_us = boot_us, .inst_us = inst_us };
}

void clock_hold (struct clock *c, uint64_t boot_us, uint64_t until_us)
{
    rebase (c, boot_us);
    c->boot_us = until_us;
}

void clock_discipline (struct clock *c, uint64_t boot_us, int64_t wall_us)
{
    assert (c->leads);
    rebase (c, boot_us);
    c->slew_us = wall_us - (int64_t)c->inst_us;
}

static void step (struct clock *c, uint64_t inst_us)
{
    if (inst_us <= c->inst_us)
        return;
    c->slew_us -= (int64_t)(inst_us - c->inst_us);
    c->inst_us = inst_us;
    c->steps++;
}

/* Whether a reading improves the estimate, because its bound is smaller, or because it contradicts the estimate. A
 * reading that contradicts the estimate comes from another root. That root may be ahead of the last one. It may also be
 * behind the last root, if that could not store its horizon before it crashed.
 */
static bool tells_more (const struct clock *c, uint64_t est_us, uint64_t bound_us)
{
    int64_t apart_us = (int64_t)(est_us - c->inst_us) - c->slew_us;

    return bound_us <= c->bound_us || (uint64_t)(apart_us < 0 ? -apart_us : apart_us) > c->bound_us + bound_us;
}

/* The parent's time is at least 'low_us', because that was read before the answer arrived. The best guess is that half
 * of the delay has passed since then. So the clock steps to 'low_us' and is slewed by the rest. One late answer must
 * not move the clock ahead, because the clock could come back only slowly.
 */
void clock_sample (struct clock *c, const struct idt_clock_sample *s)
{
    if (c->leads || s->received_us < s->sent_us || s->peer_sent_us < s->peer_received_us)
        return;
    uint64_t trip = s->received_us - s->sent_us;
    uint64_t wait = s->peer_sent_us - s->peer_received_us;
    if (wait > trip + drift (trip) + CLOCK_GRAIN_US) /* the parent's clock was set meanwhile, so the wait is unknown */
        wait = 0;
    uint64_t delay = trip > wait ? trip - wait : 0; /* microseconds of two hosts: may be slightly negative */
    uint64_t low_us = s->peer_sent_us;
    uint64_t est_us = low_us + delay / 2;
    uint64_t bound_us = s->peer_bound_us + delay / 2 + drift (trip) + CLOCK_GRAIN_US;

    if (!c->known)
        *c = (struct clock){ .known = true, .boot_us = s->received_us, .inst_us = low_us, .bound_us = UINT64_MAX / 4 };
    rebase (c, s->received_us);
    if (tells_more (c, est_us, bound_us)) {
        c->slew_us = (int64_t)(est_us - c->inst_us);
        c->bound_us = bound_us;
    }
    step (c, low_us);
}

void clock_lost_time (struct clock *c, uint64_t boot_us, int64_t off_us)
{
    if (off_us < 0) /* do not count the jump */
        c->boot_us += (uint64_t)-off_us;
    else if (c->boot_us > boot_us)
        c->boot_us = boot_us;
    c->bound_us += (uint64_t)(off_us < 0 ? -off_us : off_us); /* so that the next reading is accepted */
}

void clock_step (struct clock *c, uint64_t boot_us, uint64_t inst_us)
{
    if (!c->known)
        return;
    rebase (c, boot_us);
    step (c, inst_us);
}

void clock_forward (struct clock *c, uint64_t boot_us, uint64_t inst_us)
{
    if (!c->leads)
        clock_step (c, boot_us, inst_us);
}

uint64_t clock_when (const struct clock *c, uint64_t boot_us, uint64_t inst_us)
{
    uint64_t now = clock_read (c, boot_us);
    uint64_t from = boot_us > c->boot_us ? boot_us : c->boot_us;

    if (inst_us <= now)
        return boot_us;
    uint64_t us = inst_us - now;
    if (c->slew_us < 0)
        us += us / (1000000 / CLOCK_SLEW_PPM - 1) + 1;
    return from + us;
}

/* --- detects by the host's other clocks that CLOCK_BOOTTIME missed time or jumped ---------------- */

/* CLOCK_BOOTTIME missed time if the raw clock or the counter advanced further. The wall clock alone is no evidence,
 * because a person may set it. But if the wall clock and one of the other two advanced further, the amount is sure.
 * CLOCK_BOOTTIME jumped if all other clocks agree that it went too far. After a suspend, when the raw clock stood
 * still, the wall clock agrees with CLOCK_BOOTTIME.
 */

#define LEARN_US 1000000 /* least time to measure the rate of ticks */

static int64_t limit_us (int64_t boot_us)
{
    return CLOCK_CHECK_GRAIN_US + boot_us / 500;
}

/* How far time advanced by the counter. If the counter cannot be used, the result is 'boot_us'. */
static int64_t ticks_us (const struct clock_check *w, const struct clock_check_reading *now, int64_t boot_us)
{
    if (w->ticks_per_us <= 0 || now->ticks == 0 || now->ticks < w->last.ticks)
        return boot_us;
    return (int64_t)((double)(now->ticks - w->last.ticks) / w->ticks_per_us);
}

static void learn (struct clock_check *w, const struct clock_check_reading *now)
{
    uint64_t us = now->boot_us - w->base.boot_us;

    if (now->ticks == 0 || us < LEARN_US)
        return;
    w->ticks_per_us = now->ticks > w->base.ticks ? (double)(now->ticks - w->base.ticks) / (double)us : 0;
    w->base = *now;
}

/* The median. */
static int64_t middle (int64_t a, int64_t b, int64_t c)
{
    int64_t low = a < b ? a : b, high = a < b ? b : a;

    return c < low ? low : c > high ? high : c;
}

/* Compare the clocks with their last readings. */
static int64_t judge (const struct clock_check *w, const struct clock_check_reading *now, int64_t *sure_us)
{
    int64_t boot_us = (int64_t)(now->boot_us - w->last.boot_us);
    int64_t raw_us = (int64_t)(now->raw_us - w->last.raw_us);
    int64_t wall_us = (int64_t)(now->wall_us - w->last.wall_us);
    int64_t count_us = ticks_us (w, now, boot_us);
    int64_t most_us = raw_us > count_us ? raw_us : count_us;

    if (most_us - boot_us > limit_us (boot_us)) { /* rule LIMIT_LOST_TIME */
        int64_t us = middle (raw_us, count_us, wall_us) - boot_us;

        *sure_us = us < limit_us (boot_us) ? 0 : us < most_us - boot_us ? us : most_us - boot_us;
        return most_us - boot_us;
    }
    if (boot_us - raw_us > limit_us (raw_us) && boot_us - wall_us > limit_us (raw_us)
        && (now->ticks == 0 || w->ticks_per_us <= 0 || boot_us - count_us > limit_us (raw_us)))
        return (raw_us > wall_us ? raw_us : wall_us) - boot_us;
    return 0;
}

int64_t clock_check_look (struct clock_check *w, const struct clock_check_reading *now, int64_t *sure_us)
{
    *sure_us = 0;
    int64_t off_us = w->known ? judge (w, now, sure_us) : 0;

    if (!w->known || off_us != 0)
        w->base = *now;
    else
        learn (w, now);
    w->known = true;
    w->last = *now;
    return off_us;
}

const char *clock_check_describe (int64_t off_us, char text[CLOCK_CHECK_TEXT_MAX])
{
    if (off_us > 0)
        snprintf (text, CLOCK_CHECK_TEXT_MAX,
                  "CLOCK_BOOTTIME of this host missed %.3f s, as after a pause of a virtual machine",
                  (double)off_us / 1e6);
    else
        snprintf (text, CLOCK_CHECK_TEXT_MAX, "CLOCK_BOOTTIME of this host jumped %.3f s ahead of all other clocks",
                  (double)-off_us / 1e6);
    return text;
}

/* --- how far crashes may put rank 0 ahead of the wall clock -------------------------------------- */

/* The debt is stored, because the lead over the wall clock alone would not do. If the wall clock was wrong once, the
 * instance stays ahead of it for good, and must continue all the same.
 */

#define LEAST_REACH_MS(lease_ms) ((lease_ms) / 12)

/* The clock debt is at most the lead over the wall clock. */
static uint64_t at_most (uint64_t ms, int64_t wall_ms)
{
    return wall_ms > 0 ? min_u64 (ms, (uint64_t)wall_ms) : 0;
}

uint64_t clock_debt_start (struct ahead *a, uint64_t lease_ms, uint64_t now_us, uint64_t stored_ms, int64_t wall_ms)
{
    uint64_t wait_ms = 0;

    *a = (struct ahead){ .lease_ms = lease_ms, .start_us = now_us, .debt_ms = at_most (stored_ms, wall_ms) };
    if (a->debt_ms > AHEAD_MAX_MS (lease_ms)) /* rule WAIT_WITH_DEBT */
        wait_ms = at_most (a->debt_ms - AHEAD_MAX_MS (lease_ms), (int64_t)LEAST_REACH_MS (lease_ms));
    a->debt_ms -= wait_ms;
    return wait_ms;
}

uint64_t clock_debt_reach (const struct ahead *a, uint64_t now_us)
{
    uint64_t max_ms = AHEAD_MAX_MS (a->lease_ms), reach_ms = LEAST_REACH_MS (a->lease_ms);
    uint64_t up_ms = now_us > a->start_us ? (now_us - a->start_us) / 8000 : 0;

    if (a->debt_ms < max_ms && reach_ms < (max_ms - a->debt_ms) / 4) /* rule LIMIT_CLOCK_DEBT */
        reach_ms = (max_ms - a->debt_ms) / 4;
    return min_u64 (max_u64 (reach_ms, up_ms), 2 * a->lease_ms);
}

uint64_t clock_debt_stored (struct ahead *a, uint64_t now_ms, uint64_t horizon_ms, int64_t wall_ms)
{
    a->debt_ms = at_most (a->debt_ms, wall_ms);
    return a->debt_ms + (horizon_ms > now_ms ? horizon_ms - now_ms : 0);
}
