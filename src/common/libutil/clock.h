/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.h - a clock of the host: read, and slept by */
#ifndef LIBUTIL_CLOCK_H
#define LIBUTIL_CLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define CLOCK_SECOND_NS INT64_C (1000000000)

/* In units that divide a second.  CLOCK_REALTIME counts from 1970, CLOCK_MONOTONIC and CLOCK_BOOTTIME from the start of
 * the host.
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

/* Now, as a line of a log tells it (RFC 5424): 2026-01-31T23:59:59.123456Z.  Returns 'text'. */
static inline const char *clock_stamp (char text[CLOCK_STAMP_SIZE])
{
    struct timespec ts;
    struct tm tm;

    clock_gettime (CLOCK_REALTIME, &ts);
    size_t n = strftime (text, CLOCK_STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", gmtime_r (&ts.tv_sec, &tm));
    snprintf (text + n, CLOCK_STAMP_SIZE - n, ".%06ldZ", ts.tv_nsec / 1000);
    return text;
}

/* Whether a round of work takes as long as 'us'.  Asked after each piece of it, with '*since_us' 0 at first: time
 * counts from the first asking, so that a round of one piece need not ask.
 */
static inline bool clock_is_over (uint64_t *since_us, uint64_t us)
{
    uint64_t now_us = clock_us (CLOCK_MONOTONIC);

    if (*since_us == 0)
        *since_us = now_us;
    return now_us - *since_us >= us;
}

#define CLOCK_MOMENT_US 16384 /* the most that a time is put off */
#define CLOCK_MOMENT_PART 64

/* A time as far off as 'at_us', but one of few: thousands that wait share a wake-up.  Never earlier, and later by less
 * than a 64th of the time until then and than CLOCK_MOMENT_US; what is 65 ms off or nearer stays as it is.
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

/* Sleep, also where signals come meanwhile.  The end is fixed before: what a signal cuts short is slept again, without
 * the sum growing by the interruptions.
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
