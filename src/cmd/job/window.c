/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.c - many submissions, of which some are in flight at a time
 *
 * The state of submission number N is in state[N % room], from the first time that it is sent until it is taken.
 */
#include <assert.h>
#include <stdlib.h>

#include "cmd/job/window.h"
#include "libutil/minmax.h"

enum state {
    STATE_SENT,
    STATE_AGAIN, /* refused because the broker was full; to be sent again */
    STATE_STORED,
    STATE_FAILED,
};

struct job_window {
    uint64_t total;
    uint32_t room;
    uint64_t patience_ms;
    uint64_t taken; /* all submissions with lower numbers were taken */
    uint64_t fresh; /* lowest number that was never sent */
    uint32_t flying, again;
    uint64_t again_from; /* no submission with a lower number is to be sent again */
    uint32_t limit;      /* how many submissions may be in flight now */
    uint32_t grown;      /* number of submissions stored since 'limit' grew */
    uint64_t pause_ms, pause_until;
    bool full; /* a broker was full, and no submission was stored since */
    uint64_t full_since;
    bool stopped;
    uint64_t stored, failed;
    unsigned char state[];
};

struct job_window *window_create (uint64_t total, uint32_t room, uint64_t patience_ms)
{
    assert (room > 0);
    struct job_window *w = calloc (1, sizeof (*w) + room);

    if (!w)
        return NULL;
    w->total = total;
    w->room = w->limit = room;
    w->patience_ms = patience_ms;
    return w;
}

void window_destroy (struct job_window *w)
{
    free (w);
}

/* --- sending ---------------------------------------------------------------------------------- */

static bool may_send (const struct job_window *w)
{
    return !w->stopped && w->flying < w->limit
           && (w->again > 0 || (w->fresh < w->total && w->fresh - w->taken < w->room));
}

/* Return the lowest number that is to be sent again.  The caller knows that there is one. */
static uint64_t find_again (struct job_window *w)
{
    w->again_from = max_u64 (w->again_from, w->taken);
    while (w->state[w->again_from % w->room] != STATE_AGAIN)
        w->again_from++;
    return w->again_from;
}

bool window_next (struct job_window *w, uint64_t now_ms, uint64_t *number)
{
    if (!may_send (w) || now_ms < w->pause_until)
        return false;
    if (w->again > 0) {
        *number = find_again (w);
        w->again--;
    }
    else
        *number = w->fresh++;
    w->state[*number % w->room] = STATE_SENT;
    w->flying++;
    assert (*number >= w->taken && w->fresh <= w->total && w->fresh - w->taken <= w->room);
    return true;
}

uint64_t window_due (const struct job_window *w)
{
    return may_send (w) ? w->pause_until : UINT64_MAX;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Submissions that are in flight together find the same full broker, so their answers begin only one pause. */
static void begin_pause (struct job_window *w, uint64_t now_ms)
{
    if (now_ms < w->pause_until)
        return;
    w->pause_ms = w->pause_ms == 0 ? WINDOW_PAUSE_MS : min_u64 (2 * w->pause_ms, WINDOW_PAUSE_MAX_MS);
    w->pause_until = now_ms + w->pause_ms;
    w->limit = max_u64 (w->limit / 2, 1);
}

static bool is_over (struct job_window *w, uint64_t now_ms)
{
    if (!w->full) {
        w->full = true;
        w->full_since = now_ms;
    }
    return now_ms - w->full_since >= w->patience_ms;
}

/* A submission was stored.  After 'limit' of them were stored, 'limit' grows by one. */
static void be_stored (struct job_window *w)
{
    w->stored++;
    w->full = false;
    w->pause_ms = 0;
    if (w->limit < w->room && ++w->grown >= w->limit) {
        w->limit++;
        w->grown = 0;
    }
}

static void be_again (struct job_window *w, uint64_t now_ms, uint64_t number)
{
    w->again_from = w->again > 0 ? min_u64 (w->again_from, number) : number;
    w->again++;
    begin_pause (w, now_ms);
}

enum window_fate window_answered (struct job_window *w, uint64_t now_ms, uint64_t number, enum window_fate fate)
{
    static const unsigned char states[] = {
        [WINDOW_STORED] = STATE_STORED,
        [WINDOW_FULL] = STATE_AGAIN,
        [WINDOW_FAILED] = STATE_FAILED,
    };

    assert (number < w->fresh && w->state[number % w->room] == STATE_SENT);
    if (fate == WINDOW_FULL && is_over (w, now_ms))
        fate = WINDOW_FAILED;
    assert (w->flying > 0);
    w->flying--;
    w->state[number % w->room] = states[fate];
    if (fate == WINDOW_STORED)
        be_stored (w);
    else if (fate == WINDOW_FULL)
        be_again (w, now_ms, number);
    else {
        w->failed++;
        w->stopped = true;
    }
    return fate;
}

bool window_take (struct job_window *w, uint64_t *number, enum window_fate *fate)
{
    while (w->taken < w->fresh) {
        enum state state = w->state[w->taken % w->room];

        if (state == STATE_SENT || (state == STATE_AGAIN && !w->stopped))
            return false;
        *number = w->taken++;
        *fate = state == STATE_STORED ? WINDOW_STORED : WINDOW_FAILED;
        if (state != STATE_AGAIN)
            return true;
    }
    return false;
}

bool window_ended (const struct job_window *w)
{
    return w->flying == 0 && (w->stopped || (w->again == 0 && w->fresh == w->total));
}

uint64_t window_stored (const struct job_window *w)
{
    return w->stored;
}

uint64_t window_failed (const struct job_window *w)
{
    return w->failed;
}
