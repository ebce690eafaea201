/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_debt.h - how far crashes may put rank 0 ahead of the wall clock
 *
 * A root that crashed continues at its stored horizon, ahead of its time. The sum of what crashes added is the clock
 * debt. It is stored with the horizon, and decreases as the clock is slewed toward the wall clock. A root stores its
 * horizon no further ahead (its reach) than a quarter of what remains to AHEAD_MAX_MS (), so any number of successive
 * crashes approaches that limit and does not exceed it. The reach is at least an eighth of the time that the root has
 * been up. Thus:
 *
 *     debt <= AHEAD_MAX_MS () + an eighth of the time that roots were up since it was 0
 *
 * 'ms' are instance milliseconds, 'us' CLOCK_BOOTTIME microseconds.
 */
#ifndef FLUID_CLOCK_DEBT_H
#define FLUID_CLOCK_DEBT_H

#include <stdint.h>

#define AHEAD_MAX_MS(lease_ms) (8 * (lease_ms))

struct ahead {
    uint64_t lease_ms;
    uint64_t start_us;
    uint64_t debt_ms;
};

/* A root starts. 'stored_ms' is the result of clock_debt_stored () for the record from which it starts, 'wall_ms' how
 * far ahead of the wall clock it begins; its debt is the smaller one. Returns how many milliseconds it must wait before
 * it does anything, because its debt is above the limit. That is at most the least reach, so a start adds at most its
 * wait.
 */
uint64_t clock_debt_start (struct ahead *a, uint64_t lease_ms, uint64_t now_us, uint64_t stored_ms, int64_t wall_ms);

/* How far ahead of now the horizon is stored: from a twelfth of a lease to two leases. */
uint64_t clock_debt_reach (const struct ahead *a, uint64_t now_us);

/* The debt if the root crashes after 'horizon_ms' is stored. It must be stored with it. */
uint64_t clock_debt_stored (struct ahead *a, uint64_t now_ms, uint64_t horizon_ms, int64_t wall_ms);

#endif /* FLUID_CLOCK_DEBT_H */
