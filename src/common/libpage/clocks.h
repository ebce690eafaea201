/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clocks.h - whether two processes read the same clocks
 *
 * A page tells times by CLOCK_BOOTTIME and CLOCK_MONOTONIC.  Each time namespace (time_namespaces (7)) has its own,
 * which may be seconds or years away from those of another one.  CLOCK_REALTIME is the same in all of them, so what the
 * two are away from that is compared: it changes where the wall clock is set, and else not.
 */
#ifndef LIBPAGE_CLOCKS_H
#define LIBPAGE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCKS_TOGETHER_US 500 /* clocks that are read within that are read together */
#define CLOCKS_APART_US 1000   /* and those of two processes that are so far apart, or less, are the same */
#define CLOCKS_TRIES 20

/* CLOCK_REALTIME less each of the two. */
struct clocks {
    int64_t boot_us;
    int64_t monotonic_us;
};

static inline int64_t clocks_read (clockid_t which)
{
    struct timespec ts;

    clock_gettime (which, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Returns whether they could be read together: not where this thread was held up each time. */
static inline bool clocks_look (struct clocks *c)
{
    for (int i = 0; i < CLOCKS_TRIES; i++) {
        int64_t real_us = clocks_read (CLOCK_REALTIME), boot_us = clocks_read (CLOCK_BOOTTIME);
        int64_t monotonic_us = clocks_read (CLOCK_MONOTONIC), took_us = clocks_read (CLOCK_REALTIME) - real_us;

        *c = (struct clocks){ real_us - boot_us, real_us - monotonic_us };
        if (took_us >= 0 && took_us < CLOCKS_TOGETHER_US)
            return true;
    }
    return false;
}

static inline bool clocks_near (int64_t a_us, int64_t b_us)
{
    return (a_us > b_us ? a_us - b_us : b_us - a_us) <= CLOCKS_APART_US;
}

static inline bool clocks_same (const struct clocks *a, const struct clocks *b)
{
    return clocks_near (a->boot_us, b->boot_us) && clocks_near (a->monotonic_us, b->monotonic_us);
}

#endif /* LIBPAGE_CLOCKS_H */
