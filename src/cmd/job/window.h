/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.h - many submissions, of which some are under way at a time: which is sent next, when, and when to stop
 *
 * 1. Submissions have the numbers 0, 1, ...  They are sent in that order, and taken in that order when their fates are
 *    known.
 * 2. One that found the broker full is sent again before new ones are: after a pause that grows from WINDOW_PAUSE_MS to
 *    WINDOW_PAUSE_MAX_MS as long as none is stored, with half as many under way each time.  When as many as may be
 * under
 *    way were stored, one more may be.
 * 3. When none was stored for 'patience_ms', being full is a failure.
 * 4. After a failure nothing is sent any more; what is under way is waited for.
 */
#ifndef CMD_JOB_WINDOW_H
#define CMD_JOB_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_PAUSE_MS 10
#define WINDOW_PAUSE_MAX_MS 1000

struct job_window;

enum window_fate {
    WINDOW_STORED = 1,
    WINDOW_FULL, /* it is not there, and may be sent again */
    WINDOW_FAILED,
};

/* 'total' submissions, at most 'room' (> 0) of them sent and not taken.  NULL with errno ENOMEM. */
struct job_window *window_create (uint64_t total, uint32_t room, uint64_t patience_ms);
void window_destroy (struct job_window *w); /* NULL is fine */

/* Whether one is to be sent now, and which. */
bool window_next (struct job_window *w, uint64_t now_ms, uint64_t *number);

/* When window_next () has one again without an answer before; UINT64_MAX: never. */
uint64_t window_due (const struct job_window *w);

/* The answer to one that is under way.  Returns its fate: WINDOW_FULL becomes WINDOW_FAILED when patience is over. */
enum window_fate window_answered (struct job_window *w, uint64_t now_ms, uint64_t number, enum window_fate fate);

/* Take the next one whose fate is known.  Those that are not sent again after a failure are left out. */
bool window_take (struct job_window *w, uint64_t *number, enum window_fate *fate);

/* Whether all is over: nothing is under way, nor will be. */
bool window_ended (const struct job_window *w);

/* How many were stored / failed so far. */
uint64_t window_stored (const struct job_window *w);
uint64_t window_failed (const struct job_window *w);

#endif /* CMD_JOB_WINDOW_H */
