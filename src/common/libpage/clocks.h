/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clocks.h - whether two processes read the same clocks
 *
 * The times in a page are of CLOCK_BOOTTIME and CLOCK_MONOTONIC. Each time namespace (time_namespaces (7)) has its own,
 * which may differ by seconds or years between namespaces. CLOCK_REALTIME is the same in all namespaces, so the
 * differences to it are compared. They change only when the wall clock is set.
 */
#ifndef LIBPAGE_CLOCKS_H
#define LIBPAGE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCKS_TOGETHER_US 500 /* longest time for one valid reading of all three clocks */
#define CLOCKS_APART_US 1000   /* largest difference between readings of the same clocks */
#define CLOCKS_TRIES 20

/* CLOCK_REALTIME minus each of the two clocks. */
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

/* Returns false if each attempt to read the clocks was interrupted for too long. */
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
