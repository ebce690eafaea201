/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loan.h - the time that the module has borrowed, and the clock that runs in it
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'inst' is the instance's time (in ms or us), 'unix' counts from 1970.
 */
#ifndef FLAKE_LOAN_H
#define FLAKE_LOAN_H

#include <stdbool.h>
#include <stdint.h>

/* What fluid.lend answers: instance time lo_ms <= t < hi_ms; it was inst_us at boot_us. */
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
    LOAN_UNKNOWN, /* not told yet, or not since the last loan ended: ask */
    LOAN_HELD,    /* the range contains now */
    LOAN_FENCED,  /* nothing was lent; asked again as time goes on */
    LOAN_NEVER,   /* this rank can't borrow */
};

struct loan {
    struct span held; /* loans that touch are one, also for who lends (node_lend_back ()); empty: nothing */
    uint64_t last_len_ms;
    uint64_t boot_us, inst_us;
    int64_t epoch_ms;
    uint64_t newest_us;      /* newest instance time that was told */
    enum loan_state refused; /* LOAN_FENCED or LOAN_NEVER: of the last answer; else LOAN_UNKNOWN */
    bool told;
    bool asking;
    uint64_t ask_us; /* not before */
};

/* The instance's time, which never goes back.  0 before the first loan. */
uint64_t loan_now_us (struct loan *t, uint64_t now_us);

enum loan_state loan_state (struct loan *t, uint64_t now_us);

/* Whether to ask for (more) time now: nothing that is of use is held, or only the last quarter of a loan. */
bool loan_is_due (struct loan *t, uint64_t now_us);
uint64_t loan_due (const struct loan *t); /* not before; UINT64_MAX: an answer is on its way */

void loan_asked (struct loan *t);
void loan_lent (struct loan *t, uint64_t now_us, const struct loan_answer *loan);
void loan_refused (struct loan *t, uint64_t now_us, enum loan_state why);

/* The end: nothing will be used from '*end_ms' on, nor was it; 'floor_ms': nor below that given away.  Returns whether
 * there is something to give back.
 */
bool loan_close (struct loan *t, uint64_t floor_ms, uint64_t *end_ms);

#endif /* FLAKE_LOAN_H */
