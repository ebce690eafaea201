/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_check.h - detects by the host's other clocks that CLOCK_BOOTTIME missed time or jumped
 *
 * A node measures all time that it makes promises about with CLOCK_BOOTTIME. In a virtual machine that was paused or
 * migrated, that clock may not have counted the pause, and a faulty one may count time that did not pass. The check
 * regularly gets the readings of all clocks, taken together, and compares how far each advanced.
 *
 * A pause that no clock of the host counted cannot be detected here: the parent's readings show it, up to a heartbeat
 * later.
 */
#ifndef FLUID_CLOCK_CHECK_H
#define FLUID_CLOCK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_CHECK_GRAIN_US 5000 /* smaller differences are ignored, and those below 0.2 % of the interval */

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
 * 0) or went too far (below 0) since the last call; 0: no difference was detected. '*sure_us': how much of the missed
 * time two clocks agree on, from 0 to the result.
 */
int64_t clock_check_look (struct clock_check *w, const struct clock_check_reading *now, int64_t *sure_us);

#define CLOCK_CHECK_TEXT_MAX 128

/* Describe the result (not 0) as the begin of a sentence. Returns 'text'. */
const char *clock_check_describe (int64_t off_us, char text[CLOCK_CHECK_TEXT_MAX]);

#endif /* FLUID_CLOCK_CHECK_H */
