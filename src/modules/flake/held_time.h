/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* held_time.h - the time that the module holds, and its clock
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'inst' is the instance's time (in ms or us), 'unix' counts from 1970.
 */
#ifndef FLAKE_HELD_TIME_H
#define FLAKE_HELD_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* A grant as fluid.time answers it. It is the instance time lo_ms <= t < hi_ms. When CLOCK_BOOTTIME was boot_us, the
 * instance time was inst_us.
 */
struct time_answer {
    uint64_t lo_ms, hi_ms;
    uint64_t boot_us, inst_us;
    int64_t epoch_ms; /* in Unix milliseconds */
};

struct span { /* lo_ms <= t < hi_ms, instance time */
    uint64_t lo_ms, hi_ms;
};

static inline bool span_contains (const struct span *s, uint64_t ms)
{
    return ms >= s->lo_ms && ms < s->hi_ms;
}

enum held_time_state {
    HELD_TIME_UNKNOWN, /* no answer yet, or none since the last grant ended */
    HELD_TIME_HELD,    /* the granted range contains now */
    HELD_TIME_FENCED,  /* the last request was refused; time is requested again later */
    HELD_TIME_NEVER,   /* this rank cannot get time; time is requested again after a second */
};

struct held_time {
    struct span held; /* contiguous grants are merged, as in fluid (node_return_time ()); empty: no time is held */
    uint64_t last_len_ms;
    uint64_t boot_us, inst_us;
    int64_t epoch_ms;
    uint64_t newest_us; /* the newest instance time that was returned */
    enum held_time_state
        refused; /* the last answer, if it was HELD_TIME_FENCED or HELD_TIME_NEVER; else HELD_TIME_UNKNOWN */
    bool told;
    bool asking;
    uint64_t ask_us; /* no request before this time */
};

/* The instance's time, which never goes back. Returns 0 before the first grant. */
uint64_t held_time_now_us (struct held_time *t, uint64_t now_us);

enum held_time_state held_time_state (struct held_time *t, uint64_t now_us);

/* Whether to request time now, because no usable time is held, or only the last quarter of a grant is left. */
bool held_time_is_due (struct held_time *t, uint64_t now_us);
uint64_t held_time_due (const struct held_time *t); /* time of the next request; UINT64_MAX: a request is under way */

void held_time_asked (struct held_time *t);
void held_time_granted (struct held_time *t, uint64_t now_us, const struct time_answer *time);
void held_time_refused (struct held_time *t, uint64_t now_us, enum held_time_state why);

/* Stop using the time. No id was made at or above '*end_ms', and none will be. 'floor_ms' is the end of the time that
 * was granted to others. Returns whether time from '*end_ms' on can be returned to fluid.
 */
bool held_time_close (struct held_time *t, uint64_t floor_ms, uint64_t *end_ms);

#endif /* FLAKE_HELD_TIME_H */
