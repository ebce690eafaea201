/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_check_test.c - missed time and jumps of CLOCK_BOOTTIME are detected, without false alarms */
#include "test/tap.h"
#include "modules/fluid/lease/clock.h"

#define SECOND INT64_C (1000000)
#define GHZ 3000 /* ticks in a microsecond */

static struct clock_check w;
static struct clock_check_reading at;
static int64_t sure;

static int64_t go (int64_t boot, int64_t raw, int64_t wall, int64_t ticks)
{
    at.boot_us += (uint64_t)boot;
    at.raw_us += (uint64_t)raw;
    at.wall_us += (uint64_t)wall;
    at.ticks += (uint64_t)ticks * GHZ;
    return clock_check_look (&w, &at, &sure);
}

static void begin (uint64_t ticks)
{
    w = (struct clock_check){ 0 };
    at = (struct clock_check_reading){ 5000000, 4000000, 1700000000000000, ticks };
    clock_check_look (&w, &at, &sure);
    for (int i = 0; i < 5; i++)
        go (SECOND, SECOND, SECOND, ticks ? SECOND : 0);
}

int main (void)
{
    for (uint64_t ticks = 0; ticks < 2; ticks++) {
        int64_t counts = (int64_t)ticks, bad = 0;

        begin (ticks);
        for (int i = 0; i < 1000; i++)
            bad += go (SECOND, SECOND + 500, SECOND - 400, counts * (SECOND + 300)) != 0;
        ok (bad == 0, "small differences between the speeds of clocks are ignored");
        ok (go (100, 9 * SECOND, 100, 0) == 9 * SECOND - 100 && sure == 0,
            "time that only the raw clock counted was missed by CLOCK_BOOTTIME");
        ok (go (100, 9 * SECOND, 7 * SECOND, 0) == 9 * SECOND - 100 && sure == 7 * SECOND - 100,
            "the part of the missed time that the wall clock counted, too, is sure");
        ok (go (SECOND, SECOND, 3600 * SECOND, counts * SECOND) == 0
                && go (SECOND, SECOND, -60 * SECOND, counts * SECOND) == 0,
            "time that only the wall clock counted does not count as missed");
        ok (go (600 * SECOND, 10, 600 * SECOND, 0) == 0,
            "time in suspend, which CLOCK_BOOTTIME counts and the raw clock does not, does not count as missed");
        ok (go (600 * SECOND, SECOND, SECOND, counts * SECOND) == -599 * SECOND,
            "time that only CLOCK_BOOTTIME counted is a jump of that clock");
        ok (go (SECOND, SECOND + 5000, SECOND, counts * SECOND) == 0,
            "a difference between clocks below the grain is ignored");
    }
    begin (1);
    int64_t us = go (100, 100, 100, 7 * SECOND);
    ok (us > 6 * SECOND && us < 8 * SECOND, "time that only the cycle counter counted was missed: %lld us",
        (long long)us);
    us = go (100, 7 * SECOND, -3600 * SECOND, 7 * SECOND);
    ok (us > 6 * SECOND && sure > 6 * SECOND && sure <= us,
        "the part of the missed time that raw clock and cycle counter counted is sure, whatever the wall clock shows");
    ok (go (SECOND, SECOND, SECOND, SECOND) == 0 && sure == 0, "missed time is reported once");
    at.ticks = 5;
    ok (go (SECOND, SECOND, SECOND, 0) == 0 && go (SECOND, SECOND, SECOND, SECOND) == 0,
        "a cycle counter that went back is ignored");
    return done_testing ();
}
