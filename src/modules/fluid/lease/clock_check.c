/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_check.c - detects by the host's other clocks that CLOCK_BOOTTIME missed time or jumped
 *
 * It missed time if the raw clock or the counter advanced further. The wall clock alone is no evidence, because a
 * person may set it; but if it advanced further together with one of the others, the amount is sure. CLOCK_BOOTTIME
 * jumped if all others agree that it went too far; after a suspend the raw clock stood still, but the wall clock
 * agrees.
 */
#include <stdio.h>

#include "modules/fluid/lease/clock_check.h"

#define LEARN_US 1000000 /* least time to measure the rate of ticks */

static int64_t limit_us (int64_t boot_us)
{
    return CLOCK_CHECK_GRAIN_US + boot_us / 500;
}

/* How far time advanced by the counter; 'boot_us' if the counter cannot be used. */
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

    if (most_us - boot_us > limit_us (boot_us)) { /* rule T_LOST */
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
