/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.h - many submissions, of which some are in flight at a time: which is sent next, when, and when to stop
 *
 * 1. Submissions have the numbers 0, 1, ...  They are sent in that order, and taken in that order when their fates are
 *    known.
 * 2. A submission that found the broker full is sent again before new ones: after a pause that grows from
 *    WINDOW_PAUSE_MS to WINDOW_PAUSE_MAX_MS while no submission is stored, with half the limit of submissions in flight
 *    each time.  After as many as the limit were stored, the limit grows by one.
 * 3. If none was stored for 'patience_ms', a full broker becomes a failure.
 * 4. After a failure nothing more is sent; submissions in flight are waited for.
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
    WINDOW_FULL, /* not stored, may be sent again */
    WINDOW_FAILED,
};

/* 'total' submissions, at most 'room' (> 0) of them sent and not taken.  Returns NULL with errno ENOMEM. */
struct job_window *window_create (uint64_t total, uint32_t room, uint64_t patience_ms);
void window_destroy (struct job_window *w); /* NULL is fine */

/* Whether a submission is to be sent now; sets '*number'. */
bool window_next (struct job_window *w, uint64_t now_ms, uint64_t *number);

/* The time when window_next () returns one again if no answer arrives before; UINT64_MAX: never. */
uint64_t window_due (const struct job_window *w);

/* Take the answer to a submission in flight.  Returns its fate: WINDOW_FULL becomes WINDOW_FAILED after 'patience_ms'.
 */
enum window_fate window_answered (struct job_window *w, uint64_t now_ms, uint64_t number, enum window_fate fate);

/* Take the next submission whose fate is known.  Submissions that are not sent again because of a failure are left out.
 */
bool window_take (struct job_window *w, uint64_t *number, enum window_fate *fate);

/* Whether nothing is in flight, and nothing will be sent. */
bool window_ended (const struct job_window *w);

/* The number of submissions stored, or failed, so far. */
uint64_t window_stored (const struct job_window *w);
uint64_t window_failed (const struct job_window *w);

#endif /* CMD_JOB_WINDOW_H */
