/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.h - read a clock of the host, and sleep by it */
#ifndef LIBUTIL_CLOCK_H
#define LIBUTIL_CLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define CLOCK_SECOND_NS INT64_C (1000000000)

/* Read a clock in units that divide a second. CLOCK_REALTIME counts from 1970, CLOCK_MONOTONIC and CLOCK_BOOTTIME from
 * the start of the host.
 */
static inline uint64_t clock_units (clockid_t id, uint32_t unit_ns)
{
    struct timespec ts;

    clock_gettime (id, &ts);
    return (uint64_t)ts.tv_sec * (CLOCK_SECOND_NS / unit_ns) + (uint32_t)ts.tv_nsec / unit_ns;
}

static inline uint64_t clock_ns (clockid_t id)
{
    return clock_units (id, 1);
}

static inline uint64_t clock_us (clockid_t id)
{
    return clock_units (id, 1000);
}

static inline uint64_t clock_ms (clockid_t id)
{
    return clock_units (id, 1000000);
}

static inline double clock_s (clockid_t id)
{
    return (double)clock_ns (id) * 1e-9;
}

#define CLOCK_STAMP_SIZE 40

/* Write the current time as in a log line (RFC 5424): 2026-01-31T23:59:59.123456Z. Returns 'text'. */
static inline const char *clock_stamp (char text[CLOCK_STAMP_SIZE])
{
    struct timespec ts;
    struct tm tm;

    clock_gettime (CLOCK_REALTIME, &ts);
    size_t n = strftime (text, CLOCK_STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", gmtime_r (&ts.tv_sec, &tm));
    snprintf (text + n, CLOCK_STAMP_SIZE - n, ".%06ldZ", ts.tv_nsec / 1000);
    return text;
}

/* Whether a round of work has taken at least 'us' microseconds. The caller sets '*since_us' to 0 before the round, and
 * calls this function after each piece of work. The time counts from the first call, so a round of one piece reads the
 * clock only once.
 */
static inline bool clock_is_over (uint64_t *since_us, uint64_t us)
{
    uint64_t now_us = clock_us (CLOCK_MONOTONIC);

    if (*since_us == 0)
        *since_us = now_us;
    return now_us - *since_us >= us;
}

#define CLOCK_MOMENT_US 16384 /* the longest delay */
#define CLOCK_MOMENT_PART 64

/* Round up the time of a timer, so that thousands of timers share a few wake-ups. The result is never earlier than
 * 'at_us'. It is later by less than CLOCK_MOMENT_US, and by less than a 64th of the time from 'now_us' to 'at_us'. A
 * time that is 65 ms away or nearer is not changed.
 */
static inline uint64_t clock_moment (uint64_t now_us, uint64_t at_us)
{
    uint64_t step_us = CLOCK_MOMENT_US;

    if (at_us > UINT64_MAX - CLOCK_MOMENT_US)
        return at_us;
    while (step_us >= 1024 && at_us < now_us + step_us * CLOCK_MOMENT_PART)
        step_us /= 2;
    return step_us < 1024 ? at_us : (at_us + step_us - 1) / step_us * step_us;
}

/* Sleep for the whole time, even if signals interrupt the sleep. The end is computed once, before the sleep, so that
 * interruptions do not make the sleep longer.
 */
static inline void clock_sleep_ns (int64_t for_ns)
{
    struct timespec end;

    clock_gettime (CLOCK_MONOTONIC, &end);
    end.tv_sec += for_ns / CLOCK_SECOND_NS;
    end.tv_nsec += for_ns % CLOCK_SECOND_NS;
    if (end.tv_nsec >= CLOCK_SECOND_NS) {
        end.tv_sec++;
        end.tv_nsec -= CLOCK_SECOND_NS;
    }
    while (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        ;
}

#endif /* LIBUTIL_CLOCK_H */
