/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* held_time.c - the time that the module holds, and its clock
 *
 * The clock is the reading that came with the last grant, plus what CLOCK_BOOTTIME has advanced since then. A later
 * reading may be a little behind the clock. Then the clock stands still until the reading reaches it, because
 * generators must not see time go back.
 */
#include <assert.h>

#include "libutil/minmax.h"
#include "modules/flake/held_time.h"

#define PAUSE_US 50000 /* pause before the next request after a refusal */

uint64_t held_time_now_us (struct held_time *t, uint64_t now_us)
{
    uint64_t us = t->inst_us;

    if (now_us > t->boot_us)
        us += now_us - t->boot_us;
    if (!t->told || us < t->newest_us)
        return t->newest_us;
    t->newest_us = us;
    return us;
}

enum held_time_state held_time_state (struct held_time *t, uint64_t now_us)
{
    if (t->told && span_contains (&t->held, held_time_now_us (t, now_us) / 1000))
        return HELD_TIME_HELD;
    return t->refused;
}

bool held_time_is_due (struct held_time *t, uint64_t now_us)
{
    uint64_t ms = held_time_now_us (t, now_us) / 1000;

    if (t->asking || now_us < t->ask_us)
        return false;
    return !t->told || !span_contains (&t->held, ms) || t->held.hi_ms - ms <= t->last_len_ms / 4;
}

uint64_t held_time_due (const struct held_time *t)
{
    return t->asking ? UINT64_MAX : t->ask_us;
}

void held_time_asked (struct held_time *t)
{
    assert (!t->asking);
    t->asking = true;
    if (t->refused == HELD_TIME_FENCED) /* requests wait: our own broker answers immediately */
        t->refused = HELD_TIME_UNKNOWN;
}

void held_time_granted (struct held_time *t, uint64_t now_us, const struct time_answer *time)
{
    assert (time->lo_ms <= time->hi_ms);
    t->asking = false;
    t->told = true;
    t->refused = HELD_TIME_UNKNOWN;
    t->boot_us = time->boot_us;
    t->inst_us = time->inst_us;
    t->epoch_ms = time->epoch_ms;
    t->last_len_ms = time->hi_ms - time->lo_ms;
    if (time->lo_ms == t->held.hi_ms)
        t->held.hi_ms = time->hi_ms;
    else
        t->held = (struct span){ time->lo_ms, time->hi_ms };
    /* A grant may begin later, or end soon. This pause keeps such grants from causing requests in a loop. */
    t->ask_us = now_us + PAUSE_US / 10;
}

void held_time_refused (struct held_time *t, uint64_t now_us, enum held_time_state why)
{
    assert (why == HELD_TIME_FENCED || why == HELD_TIME_NEVER);
    t->asking = false;
    t->refused = why;
    t->ask_us = now_us + (why == HELD_TIME_NEVER ? 20 * PAUSE_US : PAUSE_US);
}

bool held_time_close (struct held_time *t, uint64_t floor_ms, uint64_t *end_ms)
{
    uint64_t end = max_u64 (t->newest_us / 1000 + 1, floor_ms);

    if (end >= t->held.hi_ms)
        return false;
    t->held = (struct span){ 0, 0 };
    *end_ms = end;
    return true;
}
