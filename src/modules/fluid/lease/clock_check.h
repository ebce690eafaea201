/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_check.h - whether CLOCK_BOOTTIME missed time, or jumped, by what the host's other clocks say
 *
 * All that a node promises about time it counts with CLOCK_BOOTTIME.  A virtual machine that was paused or migrated may
 * not have counted that time, and a faulty one may count what never was.  The witnesses are told all clocks together,
 * again and again, and compare how far each went since the last time.
 *
 * What no clock of the host has counted cannot be seen here: the parent's readings show it, up to a heartbeat later.
 */
#ifndef FLUID_CLOCK_CHECK_H
#define FLUID_CLOCK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_CHECK_GRAIN_US 5000 /* what is less is not judged, nor 0.2 % of the time between two readings */

struct clock_check_reading {
    uint64_t boot_us; /* CLOCK_BOOTTIME */
    uint64_t raw_us;  /* CLOCK_MONOTONIC_RAW: stands still while the host is suspended, as boot does not */
    uint64_t wall_us; /* CLOCK_REALTIME: whoever may set it */
    uint64_t ticks;   /* of the processor's invariant counter; 0: it has none */
};

struct clock_check {
    bool known;
    struct clock_check_reading last;
    struct clock_check_reading base; /* since when ticks are counted, to learn their rate */
    double ticks_per_us;             /* 0: not known yet */
};

/* Tell the clocks, which were read together.  Returns how many microseconds CLOCK_BOOTTIME missed (above 0) or went too
 * far (below 0) since the last call; 0: nothing to be seen.  '*sure_us': how much of what it missed two clocks agree
 * on, 0 to that.
 */
int64_t clock_check_look (struct clock_check *w, const struct clock_check_reading *now, int64_t *sure_us);

#define CLOCK_CHECK_TEXT_MAX 128

/* Say what it returned (not 0), the begin of a sentence.  Returns 'text'. */
const char *clock_check_describe (int64_t off_us, char text[CLOCK_CHECK_TEXT_MAX]);

#endif /* FLUID_CLOCK_CHECK_H */
