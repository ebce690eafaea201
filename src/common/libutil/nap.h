/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nap.h - sleep for a time, also where signals come meanwhile */
#ifndef UTIL_NAP_H
#define UTIL_NAP_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

#define NAP_SECOND_NS INT64_C (1000000000)

/* The end is fixed before: what a signal cuts short is slept again, without the sum growing by the interruptions. */
static inline void nap_ns (int64_t for_ns)
{
    struct timespec end;

    clock_gettime (CLOCK_MONOTONIC, &end);
    end.tv_sec += for_ns / NAP_SECOND_NS;
    end.tv_nsec += for_ns % NAP_SECOND_NS;
    if (end.tv_nsec >= NAP_SECOND_NS) {
        end.tv_sec++;
        end.tv_nsec -= NAP_SECOND_NS;
    }
    while (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        ;
}

#endif /* UTIL_NAP_H */
