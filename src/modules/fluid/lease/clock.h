/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.h - the instance's time at a broker, computed from CLOCK_BOOTTIME
 *
 * Two time scales, both in microseconds: 'boot' is CLOCK_BOOTTIME of this host, which continues while a process is
 * stopped or the host is suspended; 'instance' is the time since the epoch of the instance, which ids contain in
 * milliseconds. A clock object never reads a time itself.
 *
 * clock_read () never decreases (doc/design/fluid.md, "Time"). The root's clock is the instance's time. The clock of
 * every other broker follows the parent's clock.
 */
#ifndef FLUID_CLOCK_H
#define FLUID_CLOCK_H

#include <idtree/module.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SLEW_PPM 500  /* at most this much faster or slower than CLOCK_BOOTTIME */
#define CLOCK_DRIFT_PPM 100 /* two hosts' CLOCK_BOOTTIME differ by at most this much */
#define CLOCK_GRAIN_US 1000 /* an id contains only the millisecond */

struct clock {
    bool known;
    bool leads;        /* this is the instance's time: follows no other clock */
    uint64_t boot_us;  /* CLOCK_BOOTTIME of the last change */
    uint64_t inst_us;  /* the reading at that time */
    int64_t slew_us;   /* the best estimate at that time, minus inst_us: still to be slewed */
    uint64_t bound_us; /* error bound of that estimate */
    uint64_t steps;    /* steps forward, for statistics */
};

/* Start the root's clock, which leads, at 'boot_us' with the instance's time 'inst_us'. */
void clock_start (struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* Let the clock stand still from 'boot_us' to 'until_us'. */
void clock_hold (struct clock *c, uint64_t boot_us, uint64_t until_us);

/* By the root's wall clock, the instance's time should be 'wall_us' (negative: before the epoch). The clock is slewed
 * toward it.
 */
void clock_discipline (struct clock *c, uint64_t boot_us, int64_t wall_us);

/* Process a reading of the parent's clock; not for the root. The first reading sets the clock. If the clock is behind
 * what the parent's clock showed when it answered, a later reading moves the clock forward immediately to that time.
 * The best estimate is half of the delay later. The difference that remains to the estimate is slewed, forward or back.
 * A reading with a larger bound than the current one is not used for the estimate, unless it contradicts the estimate,
 * which means that there is another root. A reading that contradicts itself is ignored.
 */
void clock_sample (struct clock *c, const struct idt_clock_sample *s);

/* Report that 'boot_us' was 'off_us' too small (above 0) or too large (below 0). The bound grows by that amount. The
 * clock's reading continues from where it was, even if 'boot_us' is below the last one.
 */
void clock_lost_time (struct clock *c, uint64_t boot_us, int64_t off_us);

/* Step forward immediately to 'inst_us', the time of an id that was seen, if the clock is behind that. Does nothing
 * while the time is unknown, or if this clock leads.
 */
void clock_forward (struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* Like clock_forward (), but a clock that leads steps, too, because the clock's owner decides that. */
void clock_step (struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* The time for ids. The time must be known. A 'boot_us' below the last one that set the clock counts as that one. */
uint64_t clock_read (const struct clock *c, uint64_t boot_us);

/* clock_read () in milliseconds; 0 while the time is unknown. */
uint64_t clock_read_ms (const struct clock *c, uint64_t boot_us);

/* The best estimate of the root's time, toward which clock_read () is slewed. Children get this estimate, so that a
 * step forward of one broker is not passed on as the truth. It may decrease. The time must be known.
 */
uint64_t clock_estimate (const struct clock *c, uint64_t boot_us);

/* clock_estimate_bound () is how far the estimate may differ from the root's reading, clock_bound () how far clock_read
 * () may differ from it.
 */
uint64_t clock_estimate_bound (const struct clock *c, uint64_t boot_us);
uint64_t clock_bound (const struct clock *c, uint64_t boot_us);

/* The first 'boot' time at which clock_read () is 'inst_us' or later, at most 0.05 % late. The time must be known. */
uint64_t clock_when (const struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* --- detects by the host's other clocks that CLOCK_BOOTTIME missed time or jumped ---------------- */

/* A node makes promises about time, and measures that time with CLOCK_BOOTTIME. In a virtual machine that was paused or
 * migrated, CLOCK_BOOTTIME may not have counted the pause. If it is faulty, it may count time that did not pass. The
 * check regularly gets readings of all clocks of the host, taken together, and compares how far each clock advanced.
 *
 * A pause that no clock of the host counted cannot be detected here. The parent's readings show such a pause, up to a
 * heartbeat later.
 */

#define CLOCK_CHECK_GRAIN_US 5000 /* differences up to this plus 0.2 % of the interval are ignored */

struct clock_check_reading {
    uint64_t boot_us; /* CLOCK_BOOTTIME */
    uint64_t raw_us;  /* CLOCK_MONOTONIC_RAW: stands still while the host is suspended, unlike boot */
    uint64_t wall_us; /* CLOCK_REALTIME: may be set by a person or NTP */
    uint64_t ticks;   /* of the processor's invariant counter; 0: it has no such counter */
};

struct clock_check {
    bool known;
    struct clock_check_reading last;
    struct clock_check_reading base; /* begin of the measurement of the tick rate */
    double ticks_per_us;             /* 0: not known yet */
};

/* Process the clocks' readings, which were taken together. Returns how many microseconds CLOCK_BOOTTIME missed (above
 * 0) or went too far (below 0) since the last call; 0: no difference was detected. '*sure_us' gets the part of the
 * missed time on which two clocks agree, from 0 to the result.
 */
int64_t clock_check_look (struct clock_check *w, const struct clock_check_reading *now, int64_t *sure_us);

#define CLOCK_CHECK_TEXT_MAX 128

/* Describe the result (not 0) as the begin of a sentence. Returns 'text'. */
const char *clock_check_describe (int64_t off_us, char text[CLOCK_CHECK_TEXT_MAX]);

/* --- how far crashes may put rank 0 ahead of the wall clock -------------------------------------- */

/* A root that crashed continues at its stored horizon, ahead of its time. The sum of what crashes added is the clock
 * debt. It is stored with the horizon, and decreases as the clock is slewed toward the wall clock. The reach of a root
 * is how far ahead of now it stores its horizon. It is a quarter of what remains from the debt to AHEAD_MAX_MS (), so
 * any number of successive crashes approaches that limit and does not exceed it. The reach is at least an eighth of the
 * time that the root has been up, and at most two leases. Thus:
 *
 *     debt <= AHEAD_MAX_MS () + an eighth of the time that roots were up since it was 0
 *
 * 'ms' are instance milliseconds, 'us' CLOCK_BOOTTIME microseconds.
 */

#define AHEAD_MAX_MS(lease_ms) (8 * (lease_ms))

struct ahead {
    uint64_t lease_ms;
    uint64_t start_us;
    uint64_t debt_ms;
};

/* Begin with the debt of a root that starts. 'stored_ms' is the result of clock_debt_stored () for the record from
 * which the root starts. 'wall_ms' is how far ahead of the wall clock it begins. Its debt is the smaller one of both.
 * Returns how many milliseconds the root must wait before it does anything, because its debt is above the limit. The
 * wait is at most the least reach, so it makes up for what the last crash added above the limit.
 */
uint64_t clock_debt_start (struct ahead *a, uint64_t lease_ms, uint64_t now_us, uint64_t stored_ms, int64_t wall_ms);

/* How far ahead of now the horizon is stored: from a twelfth of a lease to two leases. */
uint64_t clock_debt_reach (const struct ahead *a, uint64_t now_us);

/* The debt if the root crashes after 'horizon_ms' is stored. The debt must be stored together with that horizon. */
uint64_t clock_debt_stored (struct ahead *a, uint64_t now_ms, uint64_t horizon_ms, int64_t wall_ms);

#endif
