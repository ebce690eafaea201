/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.h - many submissions, of which some are in flight at a time: which is sent next, when, and when to stop
 *
 * 1. Submissions have the numbers 0, 1, ...  They are first sent in this order.  When their fates are known, they are
 *    taken in this order, too.
 * 2. If the broker was full, a submission is sent again before new ones, after a pause.  The pause grows from
 *    WINDOW_PAUSE_MS to WINDOW_PAUSE_MAX_MS while no submission is stored, and each pause halves the limit of
 *    submissions in flight.  After as many submissions as the limit were stored, the limit grows by one.
 * 3. If the broker has been full for 'patience_ms' and no submission was stored in this time, the next answer that the
 *    broker is full counts as a failure.
 * 4. After a failure no submission is sent.  The answers to those in flight are waited for.
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
    WINDOW_FULL, /* the submission was not stored, and may be sent again */
    WINDOW_FAILED,
};

/* Make a window for 'total' submissions.  At most 'room' (> 0) of them are sent and not taken at a time.  Returns NULL
 * with errno ENOMEM.
 */
struct job_window *window_create (uint64_t total, uint32_t room, uint64_t patience_ms);
void window_destroy (struct job_window *w); /* 'w' may be NULL */

/* Whether a submission must be sent now.  Sets '*number' to its number. */
bool window_next (struct job_window *w, uint64_t now_ms, uint64_t *number);

/* The time when window_next () returns true again, if no answer arrives before.  UINT64_MAX: never. */
uint64_t window_due (const struct job_window *w);

/* Take the answer to a submission in flight.  Returns the submission's fate, which is WINDOW_FAILED instead of
 * WINDOW_FULL after 'patience_ms'.
 */
enum window_fate window_answered (struct job_window *w, uint64_t now_ms, uint64_t number, enum window_fate fate);

/* Take the next submission, if its fate is known.  Submissions that will not be sent again because of a failure are
 * skipped.
 */
bool window_take (struct job_window *w, uint64_t *number, enum window_fate *fate);

/* Whether no submission is in flight, and none will be sent. */
bool window_ended (const struct job_window *w);

/* The number of submissions that were stored, or have failed, so far. */
uint64_t window_stored (const struct job_window *w);
uint64_t window_failed (const struct job_window *w);

#endif /* CMD_JOB_WINDOW_H */
