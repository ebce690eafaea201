/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loan.c - the subleased time of the module, and its clock
 *
 * The clock is the reading that came with the last sublease, plus what CLOCK_BOOTTIME has advanced since then. A later
 * reading may be a little behind the clock. Then the clock stands still until the reading reaches it, because
 * generators must not see time go back.
 */
#include <assert.h>

#include "libutil/minmax.h"
#include "modules/flake/loan.h"

#define PAUSE_US 50000 /* pause before the next request after a refusal */

uint64_t loan_now_us (struct time_loan *t, uint64_t now_us)
{
    uint64_t us = t->inst_us;

    if (now_us > t->boot_us)
        us += now_us - t->boot_us;
    if (!t->told || us < t->newest_us)
        return t->newest_us;
    t->newest_us = us;
    return us;
}

enum loan_state loan_state (struct time_loan *t, uint64_t now_us)
{
    if (t->told && span_contains (&t->held, loan_now_us (t, now_us) / 1000))
        return LOAN_HELD;
    return t->refused;
}

bool loan_is_due (struct time_loan *t, uint64_t now_us)
{
    uint64_t ms = loan_now_us (t, now_us) / 1000;

    if (t->asking || now_us < t->ask_us)
        return false;
    return !t->told || !span_contains (&t->held, ms) || t->held.hi_ms - ms <= t->last_len_ms / 4;
}

uint64_t loan_due (const struct time_loan *t)
{
    return t->asking ? UINT64_MAX : t->ask_us;
}

void loan_asked (struct time_loan *t)
{
    assert (!t->asking);
    t->asking = true;
    if (t->refused == LOAN_FENCED) /* requests wait: our own broker answers immediately */
        t->refused = LOAN_UNKNOWN;
}

void loan_lent (struct time_loan *t, uint64_t now_us, const struct loan_answer *loan)
{
    assert (loan->lo_ms <= loan->hi_ms);
    t->asking = false;
    t->told = true;
    t->refused = LOAN_UNKNOWN;
    t->boot_us = loan->boot_us;
    t->inst_us = loan->inst_us;
    t->epoch_ms = loan->epoch_ms;
    t->last_len_ms = loan->hi_ms - loan->lo_ms;
    if (loan->lo_ms == t->held.hi_ms)
        t->held.hi_ms = loan->hi_ms;
    else
        t->held = (struct span){ loan->lo_ms, loan->hi_ms };
    /* A sublease may begin later, or end soon. This pause keeps such subleases from causing requests in a loop. */
    t->ask_us = now_us + PAUSE_US / 10;
}

void loan_refused (struct time_loan *t, uint64_t now_us, enum loan_state why)
{
    assert (why == LOAN_FENCED || why == LOAN_NEVER);
    t->asking = false;
    t->refused = why;
    t->ask_us = now_us + (why == LOAN_NEVER ? 20 * PAUSE_US : PAUSE_US);
}

bool loan_close (struct time_loan *t, uint64_t floor_ms, uint64_t *end_ms)
{
    uint64_t end = max_u64 (t->newest_us / 1000 + 1, floor_ms);

    if (end >= t->held.hi_ms)
        return false;
    t->held = (struct span){ 0, 0 };
    *end_ms = end;
    return true;
}
