/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand.c - how many ids a rank needs
 *
 * A burst is all that is requested within four milliseconds of its first request. A real burst that spans two such
 * intervals counts as two halves at worst. The sizes, powers of two above twice the mean, allow for that.
 */
#include "libutil/minmax.h"
#include "modules/fluid/lease/demand.h"

#define BURST_MS (DEMAND_BURST_US / 1000)
#define WINDOW_MS (DEMAND_WINDOW_US / 1000)

void demand_init (struct demand *d, uint64_t now_us)
{
    *d = (struct demand){ .window_us = now_us, .burst_us = now_us };
}

static uint32_t round_up (uint64_t ids_per_ms)
{
    uint32_t size = AREA_MIN_SIZE;

    while (size < AREA_MAX_SIZE && size < ids_per_ms)
        size *= 2;
    return size;
}

/* Twice the mean, in ids for each millisecond. */
static uint64_t twice_mean (const struct demand_window *w)
{
    return (2 * w->ids + WINDOW_MS - 1) / WINDOW_MS;
}

static uint32_t fit (const struct demand_window *w)
{
    return round_up (max_u64 (twice_mean (w), w->burst / BURST_MS));
}

static bool may_change (const struct demand *d, uint64_t now_us)
{
    return d->changed_us == 0 || now_us >= d->changed_us + DEMAND_TERM_US;
}

static void change (struct demand *d, uint64_t now_us, uint32_t size)
{
    d->size = size;
    d->changed_us = now_us;
    d->busy = d->calm = d->idle = 0;
}

/* Whether the need fits into a sublease. A rank that needed too much waits until it needs a quarter of the largest
 * size.
 */
static bool can_borrow (struct demand *d, const struct demand_window *w)
{
    uint64_t most = d->too_much ? AREA_MAX_SIZE / 4 : AREA_MAX_SIZE;

    d->too_much = twice_mean (w) > most;
    return !d->too_much;
}

static void judge_begin (struct demand *d, uint64_t now_us, const struct demand_window *w)
{
    bool can = can_borrow (d, w);

    d->busy = can && w->went_up >= DEMAND_BEGIN ? d->busy + 1 : 0;
    if (d->busy >= DEMAND_BEGIN_WINDOWS)
        change (d, now_us, fit (w));
}

static void judge_size (struct demand *d, uint64_t now_us, const struct demand_window *w)
{
    bool overflows = w->requests >= DEMAND_BEGIN && w->went_up * 8 >= w->requests;

    d->idle = w->requests < DEMAND_IDLE ? d->idle + 1 : 0;
    d->calm = w->burst * 8 < (uint64_t)d->size * BURST_MS ? d->calm + 1 : 0;
    if (d->idle >= DEMAND_IDLE_WINDOWS || !can_borrow (d, w))
        change (d, now_us, 0);
    else if (!may_change (d, now_us))
        return;
    else if (overflows && d->size < AREA_MAX_SIZE)
        change (d, now_us, d->size * 2);
    else if (d->calm >= DEMAND_CALM_WINDOWS && d->size > AREA_MIN_SIZE && twice_mean (w) <= d->size / 2)
        change (d, now_us, d->size / 2);
}

static void end_window (struct demand *d, uint64_t now_us)
{
    d->last = d->window;
    d->window = (struct demand_window){ 0 };
    d->window_us += DEMAND_WINDOW_US;
    if (d->size == 0)
        judge_begin (d, now_us, &d->last);
    else
        judge_size (d, now_us, &d->last);
}

/* After a long time without requests, only as many windows are evaluated as influence a decision. */
static void advance (struct demand *d, uint64_t now_us)
{
    const uint64_t most = DEMAND_CALM_WINDOWS + DEMAND_IDLE_WINDOWS;

    for (uint64_t n = 0; now_us >= d->window_us + DEMAND_WINDOW_US; n++) {
        if (n == most)
            d->window_us = now_us - DEMAND_WINDOW_US;
        end_window (d, now_us);
    }
}

void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool went_up)
{
    advance (d, now_us);
    if (now_us >= d->burst_us + DEMAND_BURST_US) {
        d->burst_us = now_us;
        d->burst_ids = 0;
    }
    d->burst_ids += ids;
    d->window.burst = max_u64 (d->window.burst, d->burst_ids);
    d->window.ids += ids;
    d->window.requests++;
    d->window.went_up += went_up;
}

uint32_t demand_size (struct demand *d, uint64_t now_us)
{
    advance (d, now_us);
    return d->size;
}

uint64_t demand_due (const struct demand *d)
{
    return d->size > 0 || d->window.requests > 0 ? d->window_us + DEMAND_WINDOW_US : UINT64_MAX;
}

uint32_t demand_peak (const struct demand *d)
{
    uint64_t burst = max_u64 (d->window.burst, d->last.burst);

    return (uint32_t)min_u64 ((burst + BURST_MS - 1) / BURST_MS, FLUID_PER_MS);
}
