/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock.h - a clock of the host, read */
#ifndef LIBUTIL_CLOCK_H
#define LIBUTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_REALTIME counts from 1970, CLOCK_MONOTONIC and CLOCK_BOOTTIME from the start of the host. */
static inline uint64_t clock_ns (clockid_t id)
{
    struct timespec ts;

    clock_gettime (id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_us (clockid_t id)
{
    return clock_ns (id) / 1000;
}

static inline uint64_t clock_ms (clockid_t id)
{
    return clock_ns (id) / 1000000;
}

static inline double clock_s (clockid_t id)
{
    return (double)clock_ns (id) * 1e-9;
}

#endif /* LIBUTIL_CLOCK_H */
