/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_debt.c - how far crashes may put rank 0 ahead of the wall clock
 *
 * The lead over the wall clock alone would not do: if that clock was wrong once, the instance is ahead of it for good,
 * and must continue all the same.
 */
#include "libutil/minmax.h"
#include "modules/fluid/lease/clock_debt.h"

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
    if (a->debt_ms > AHEAD_MAX_MS (lease_ms))
        wait_ms = at_most (a->debt_ms - AHEAD_MAX_MS (lease_ms), (int64_t)LEAST_REACH_MS (lease_ms)); /* rule A_WAIT */
    a->debt_ms -= wait_ms;
    return wait_ms;
}

uint64_t clock_debt_reach (const struct ahead *a, uint64_t now_us)
{
    uint64_t max_ms = AHEAD_MAX_MS (a->lease_ms), reach_ms = LEAST_REACH_MS (a->lease_ms);
    uint64_t up_ms = now_us > a->start_us ? (now_us - a->start_us) / 8000 : 0;

    if (a->debt_ms < max_ms && reach_ms < (max_ms - a->debt_ms) / 4) /* rule A_REACH */
        reach_ms = (max_ms - a->debt_ms) / 4;
    return min_u64 (max_u64 (reach_ms, up_ms), 2 * a->lease_ms);
}

uint64_t clock_debt_stored (struct ahead *a, uint64_t now_ms, uint64_t horizon_ms, int64_t wall_ms)
{
    a->debt_ms = at_most (a->debt_ms, wall_ms);
    return a->debt_ms + (horizon_ms > now_ms ? horizon_ms - now_ms : 0);
}
