/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loan.h - the subleased time of the module, and its clock
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'inst' is the instance's time (in ms or us), 'unix' counts from 1970.
 */
#ifndef FLAKE_LOAN_H
#define FLAKE_LOAN_H

#include <stdbool.h>
#include <stdint.h>

/* A sublease as fluid.lend answers it. It is the instance time lo_ms <= t < hi_ms. When CLOCK_BOOTTIME was boot_us, the
 * instance time was inst_us.
 */
struct loan_answer {
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

enum loan_state {
    LOAN_UNKNOWN, /* no answer yet, or none since the last sublease ended */
    LOAN_HELD,    /* the subleased range contains now */
    LOAN_FENCED,  /* the last request was refused; time is requested again later */
    LOAN_NEVER,   /* this rank cannot get a sublease; time is requested again after a second */
};

struct time_loan {
    struct span held; /* contiguous subleases are merged, as in fluid (node_lend_back ()); empty: no time is held */
    uint64_t last_len_ms;
    uint64_t boot_us, inst_us;
    int64_t epoch_ms;
    uint64_t newest_us;      /* the newest instance time that was returned */
    enum loan_state refused; /* the last answer, if it was LOAN_FENCED or LOAN_NEVER; else LOAN_UNKNOWN */
    bool told;
    bool asking;
    uint64_t ask_us; /* no request before this time */
};

/* The instance's time, which never goes back. Returns 0 before the first sublease. */
uint64_t loan_now_us (struct time_loan *t, uint64_t now_us);

enum loan_state loan_state (struct time_loan *t, uint64_t now_us);

/* Whether to request time now, because no usable time is held, or only the last quarter of a sublease is left. */
bool loan_is_due (struct time_loan *t, uint64_t now_us);
uint64_t loan_due (const struct time_loan *t); /* time of the next request; UINT64_MAX: a request is under way */

void loan_asked (struct time_loan *t);
void loan_lent (struct time_loan *t, uint64_t now_us, const struct loan_answer *loan);
void loan_refused (struct time_loan *t, uint64_t now_us, enum loan_state why);

/* Stop using the time. No id was made at or above '*end_ms', and none will be. 'floor_ms' is the end of the time that
 * was granted to others. Returns whether time from '*end_ms' on can be returned to fluid.
 */
bool loan_close (struct time_loan *t, uint64_t floor_ms, uint64_t *end_ms);

#endif /* FLAKE_LOAN_H */
