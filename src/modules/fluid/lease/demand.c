/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* demand.c - how many sequence numbers of each millisecond a rank needs
 *
 * A burst is all that is requested within four milliseconds of its first request. A real burst that lasts longer counts
 * as two, at worst as two halves. The first size has room for four times what was seen, because requests that go to the
 * parent come only as fast as its answers.
 */
#include "libutil/minmax.h"
#include "modules/fluid/lease/box.h"
#include "modules/fluid/lease/demand.h"

#define BURST_MS (DEMAND_BURST_US / 1000)
#define SECOND_MS (DEMAND_WINDOWS * DEMAND_WINDOW_US / 1000)
#define FIRST_FACTOR 4
#define SETTLING_WINDOWS 2 /* a larger size comes into force within that time, and is judged then */

/* The sum of some windows. 'busy' is the number of windows with a request that lacked numbers. */
struct sum {
    uint64_t ids, burst;
    uint32_t requests, lacked, busy;
};

static struct sum last_windows (const struct demand *d, uint32_t n)
{
    struct sum s = { 0 };

    for (uint32_t i = 0; i < n; i++) {
        const struct demand_window *w = &d->window[(d->current + DEMAND_WINDOWS - i) % DEMAND_WINDOWS];

        s.ids += w->ids;
        s.requests += w->requests;
        s.lacked += w->lacked;
        s.busy += w->lacked > 0;
        s.burst = max_u64 (s.burst, w->burst);
    }
    return s;
}

/* Twice the mean, in ids for each millisecond. */
static uint64_t twice_mean (const struct sum *s)
{
    return (2 * s->ids + SECOND_MS - 1) / SECOND_MS;
}

static void change (struct demand *d, uint32_t size)
{
    if (size > d->size)
        d->idle = 0;
    d->size = size;
    d->calm = d->useless = 0;
    d->settling = SETTLING_WINDOWS;
}

static void judge_begin (struct demand *d, const struct sum *s)
{
    d->too_much = d->too_much && twice_mean (s) > BOX_MAX_PART / 4;
    if (!d->too_much && s->lacked >= DEMAND_BEGIN && s->busy >= DEMAND_BEGIN_BUSY)
        change (d, box_size_for (FIRST_FACTOR * max_u64 (twice_mean (s), s->burst / BURST_MS)));
}

static void judge_size (struct demand *d, const struct sum *s, const struct demand_window *w)
{
    d->idle = s->requests < DEMAND_IDLE ? d->idle + 1 : 0;
    d->calm = w->burst * 2 <= (uint64_t)d->size * BURST_MS ? d->calm + 1 : 0;
    d->useless = w->from_above > w->ids / 2 ? d->useless + 1 : 0;
    d->too_much = d->useless >= DEMAND_USELESS_WINDOWS;
    if (d->settling > 0)
        d->settling--;
    if (d->idle >= DEMAND_IDLE_WINDOWS || d->too_much)
        change (d, 0);
    else if (d->settling == 0 && w->short_ms >= DEMAND_SHORT_MS && d->size < BOX_MAX_PART)
        change (d, box_size_for (d->size * 2));
    else if (d->calm >= DEMAND_CALM_WINDOWS && d->size > BOX_MIN_SIZE)
        change (d, box_size_for (d->size / 2));
}

static void end_window (struct demand *d)
{
    const struct sum s = last_windows (d, DEMAND_WINDOWS);

    if (d->size == 0)
        judge_begin (d, &s);
    else
        judge_size (d, &s, &d->window[d->current]);
    d->window_us += DEMAND_WINDOW_US;
    d->current = (d->current + 1) % DEMAND_WINDOWS;
    d->window[d->current] = (struct demand_window){ 0 };
}

/* After a long time without requests, only as many windows are evaluated as influence a decision. */
static void advance (struct demand *d, uint64_t now_us)
{
    const uint64_t most = 2 * DEMAND_WINDOWS + DEMAND_IDLE_WINDOWS;

    if (d->size == 0 && now_us >= d->window_us + 2 * DEMAND_WINDOWS * (uint64_t)DEMAND_WINDOW_US)
        *d = (struct demand){ .window_us = now_us }; /* all that was seen is too old */
    for (uint64_t n = 0; now_us >= d->window_us + DEMAND_WINDOW_US; n++) {
        if (n == most)
            d->window_us = now_us - DEMAND_WINDOW_US;
        end_window (d);
    }
}

static void note_lack (struct demand *d, struct demand_window *w, uint64_t now_us)
{
    w->lacked++;
    w->short_ms += w->lacked == 1 || now_us / 1000 != d->short_us / 1000;
    d->short_us = now_us;
}

void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool lacked)
{
    advance (d, now_us);
    struct demand_window *w = &d->window[d->current];

    if (now_us >= d->burst_us + DEMAND_BURST_US) {
        d->burst_us = now_us;
        d->burst_ids = 0;
    }
    d->burst_ids += ids;
    w->burst = max_u64 (w->burst, d->burst_ids);
    w->ids += ids;
    w->requests++;
    if (lacked)
        note_lack (d, w, now_us);
}

void demand_note_from_above (struct demand *d, uint64_t now_us, uint32_t ids)
{
    advance (d, now_us);
    d->window[d->current].from_above += ids;
}

uint32_t demand_size (struct demand *d, uint64_t now_us)
{
    advance (d, now_us);
    return d->size;
}

uint64_t demand_due (const struct demand *d)
{
    return d->size > 0 || last_windows (d, DEMAND_WINDOWS).requests > 0 ? d->window_us + DEMAND_WINDOW_US : UINT64_MAX;
}

uint32_t demand_now (struct demand *d, uint64_t now_us)
{
    advance (d, now_us);
    const struct sum s = last_windows (d, DEMAND_NOW_WINDOWS);

    return s.lacked > 0 ? d->size : (uint32_t)min_u64 (d->size, 2 * s.burst / BURST_MS);
}

uint32_t demand_lacking (struct demand *d, uint64_t now_us)
{
    advance (d, now_us);
    return last_windows (d, DEMAND_NOW_WINDOWS).lacked > 0 ? d->size : 0;
}
