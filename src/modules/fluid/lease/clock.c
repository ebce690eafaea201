/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.c - the instance's time: steps forward, is slewed back, never decreases
 *
 * The clock is a line through (boot_us, inst_us) of slope 1, bent by at most CLOCK_SLEW_PPM until 'slew_us' is used up.
 * Each change first moves that point along the line, so the reading jumps only for requested steps forward. 'slew_us'
 * and the bound contain all uncertainty of the reading.
 */
#include <assert.h>

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

/* How far this clock may have drifted from the root's since the parent's reading. The root's may be slewed, too. */
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
    int64_t step = slewed (c, us);

    c->inst_us += us + step;
    c->slew_us -= step;
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

/* Whether a reading improves the estimate: its bound is smaller, or it contradicts the estimate. Then it is of another
 * root, which is ahead of the last one; or behind it, if the last one could not store its horizon before it crashed.
 */
static bool tells_more (const struct clock *c, uint64_t est_us, uint64_t bound_us)
{
    int64_t apart_us = (int64_t)(est_us - c->inst_us) - c->slew_us;

    return bound_us <= c->bound_us || (uint64_t)(apart_us < 0 ? -apart_us : apart_us) > c->bound_us + bound_us;
}

/* The parent's time is at least 'low_us', as that was read before the answer arrived; the best guess is that half of
 * the delay has passed since. So the clock steps to 'low_us' and is slewed by the rest: one late answer must not move
 * it ahead, because it could come back only slowly.
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
    if (off_us < 0) /* the jump did not happen */
        c->boot_us += (uint64_t)-off_us;
    else if (c->boot_us > boot_us)
        c->boot_us = boot_us;
    c->bound_us += (uint64_t)(off_us < 0 ? -off_us : off_us); /* so the next reading is accepted */
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
