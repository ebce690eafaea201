/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_debt.h - how far ahead of the wall clock crashes may carry rank 0
 *
 * A root that crashed goes on at the horizon that it had stored, ahead of its time.  What crashes have cost is a debt,
 * kept with the horizon, and paid back as the clock is slewed toward the wall clock.  The horizon of a root is stored
 * no further ahead (its reach) than a quarter of what is left to AHEAD_MAX_MS (): so crashes that follow each other,
 * however many, come near that and not above.  A root that stays up gains trust: its reach is an eighth of its life at
 * least.  Thus:
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

/* A root starts.  'stored_ms' is what clock_debt_stored () told for the record that it starts from, 'wall_ms' how far
 * ahead of the wall clock it begins: it owes no more than either.  Returns how many milliseconds it must wait before it
 * does anything, for it owes more than may be; at most the least reach, so that a start costs what it waits.
 */
uint64_t clock_debt_start (struct ahead *a, uint64_t lease_ms, uint64_t now_us, uint64_t stored_ms, int64_t wall_ms);

/* How far ahead of now the horizon is stored: a twelfth of a lease to two leases. */
uint64_t clock_debt_reach (const struct ahead *a, uint64_t now_us);

/* What is owed if the root crashes when 'horizon_ms' is stored; to be stored with it. */
uint64_t clock_debt_stored (struct ahead *a, uint64_t now_ms, uint64_t horizon_ms, int64_t wall_ms);

#endif /* FLUID_CLOCK_DEBT_H */
