/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.h - the instance's time, kept by a broker that is told CLOCK_BOOTTIME
 *
 * Two time scales, both in microseconds: 'boot' is CLOCK_BOOTTIME of this host, which goes on while a process
 * is stopped or the host is suspended; 'instance' is the time since the epoch of the instance, which the ids
 * hold in milliseconds.  A clock never reads a time itself.
 *
 * What clock_read () returns never decreases (fluid.md, "Time").  The root's clock is the instance's
 * time; the others follow their parent's.
 */
#ifndef FLUID_CLOCK_H
#define FLUID_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/module.h>

#define CLOCK_SLEW_PPM 500  /* at most this much faster or slower than CLOCK_BOOTTIME */
#define CLOCK_DRIFT_PPM 100 /* two hosts' CLOCK_BOOTTIME differ by at most this much */
#define CLOCK_GRAIN_US 1000 /* an id tells the millisecond only */

struct clock {
    bool known;
    bool leads;        /* it is the instance's time: follows nobody's */
    uint64_t boot_us;  /* when the rest was last set */
    uint64_t inst_us;  /* what was read then */
    int64_t slew_us;   /* best estimate then - inst_us: what is yet to be slewed away */
    uint64_t bound_us; /* how far that estimate may have been off */
    uint64_t steps;    /* steps forward, for statistics */
};

/* Start the root's clock, which leads, at 'boot_us' with the instance's time 'inst_us'. */
void clock_start (struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* It stands still from 'boot_us' to 'until_us'. */
void clock_hold (struct clock *c, uint64_t boot_us, uint64_t until_us);

/* The root's wall clock says that the instance's time should be 'wall_us' (may be negative: before the
 * epoch).  The clock is slewed toward it.
 */
void clock_discipline (struct clock *c, uint64_t boot_us, int64_t wall_us);

/* Not the root: the parent's clock was read.  The first sample sets the clock; a later one moves it forward at once
 * where it is behind what the parent's showed when it answered.  What is left to the best estimate (half of the delay
 * later) is slewed, forward or back.  The estimate of a sample that says less than what is known already (its bound
 * is the larger one) is ignored, unless it contradicts that: then there is another root.  So is a sample that
 * contradicts itself.
 */
void clock_sample (struct clock *c, const struct idt_clock_sample *s);

/* 'boot_us' has turned out to be 'off_us' too small (above 0) or too large: the bound is as much larger, and the line
 * goes on from where it was, also where 'boot_us' is before the last one.
 */
void clock_lost_time (struct clock *c, uint64_t boot_us, int64_t off_us);

/* Move forward at once to 'inst_us', if behind (an id of that time was seen).  Nothing while unknown, and nothing where
 * it leads.
 */
void clock_forward (struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* The same by decision of the clock's owner: where it leads, too. */
void clock_step (struct clock *c, uint64_t boot_us, uint64_t inst_us);

/* The time to stamp ids with.  Must be known.  A 'boot_us' before the last one that set the clock counts as that. */
uint64_t clock_read (const struct clock *c, uint64_t boot_us);

/* The same in milliseconds; 0 while it is unknown. */
uint64_t clock_read_ms (const struct clock *c, uint64_t boot_us);

/* The best estimate of the root's time: what clock_read () is on its way to.  It is this that children are told,
 * so that a step forward of one broker is not passed on as the truth.  May decrease.  Must be known.
 */
uint64_t clock_estimate (const struct clock *c, uint64_t boot_us);

/* How far the estimate, and how far the reading may differ from the root's reading. */
uint64_t clock_estimate_bound (const struct clock *c, uint64_t boot_us);
uint64_t clock_bound (const struct clock *c, uint64_t boot_us);

/* The first 'boot' time at which clock_read () is 'inst_us' or later, at most 0.05 % late.  Must be known. */
uint64_t clock_when (const struct clock *c, uint64_t boot_us, uint64_t inst_us);

#endif /* FLUID_CLOCK_H */
