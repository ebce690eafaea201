/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loan.h - the time that the module has borrowed, and the clock that runs in it
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'inst' is the instance's time (in ms or us), 'unix' counts from 1970.
 */
#ifndef FLAKE_TERM_H
#define FLAKE_TERM_H

#include <stdbool.h>
#include <stdint.h>

/* What fluid.lend answers: instance time lo_ms <= t < hi_ms; it was inst_us at boot_us. */
struct term_loan {
    uint64_t lo_ms, hi_ms;
    uint64_t boot_us, inst_us;
    int64_t epoch_ms; /* in Unix milliseconds */
};

struct span { /* lo_ms <= t < hi_ms, instance time */
    uint64_t lo_ms, hi_ms;
};

enum term_state {
    TERM_UNKNOWN, /* not told yet, or not since the last loan ended: ask */
    TERM_HELD,    /* the range contains now */
    TERM_FENCED,  /* nothing was lent; asked again as time goes on */
    TERM_NEVER,   /* this rank can't borrow */
};

struct term {
    struct span held;      /* loans that touch are one; empty: nothing */
    uint64_t last_lo_ms;   /* where the last loan began */
    uint64_t last_len_ms;
    uint64_t boot_us, inst_us;
    int64_t epoch_ms;
    uint64_t newest_us; /* newest instance time that was told */
    enum term_state refused; /* TERM_FENCED or TERM_NEVER: of the last answer; else TERM_UNKNOWN */
    bool told;
    bool asking;
    uint64_t ask_us; /* not before */
};

/* The instance's time, which never goes back.  0 before the first loan. */
uint64_t term_now_us (struct term *t, uint64_t now_us);

enum term_state term_state (struct term *t, uint64_t now_us);

/* Whether to ask for (more) time now: nothing that is of use is held, or only the last quarter of a loan. */
bool term_is_due (struct term *t, uint64_t now_us);
uint64_t term_due (const struct term *t); /* not before; UINT64_MAX: an answer is on its way */

void term_asked (struct term *t);
void term_lent (struct term *t, uint64_t now_us, const struct term_loan *loan);
void term_refused (struct term *t, uint64_t now_us, enum term_state why);

/* The end: nothing will be used from '*end_ms' on, nor was it; 'floor_ms': nor below that given away.  Returns whether
 * there is something to give back.
 */
bool term_close (struct term *t, uint64_t floor_ms, uint64_t *end_ms);

#endif /* FLAKE_TERM_H */
