/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.h - a thread for blocking work, one piece at a time; a descriptor becomes readable when a piece has ended
 *
 * The data of a piece belongs to the thread from worker_begin () until worker_result () reports the end of the piece,
 * or until worker_destroy () returns.
 */
#ifndef UTIL_WORKER_H
#define UTIL_WORKER_H

#include <stdbool.h>

#include <idtree/error.h>

struct worker;

/* One piece of work; runs in the thread. Returns 0, or -1 with errno set and 'errp' filled. */
typedef int (*worker_f) (void *arg, idt_error_t *errp);

/* Start the thread, with all signals blocked. NULL with errno set. */
struct worker *worker_create (worker_f work, void *arg);

/* End the thread when the running piece has ended, and wait for that. A piece that has not begun is dropped. NULL is
 * allowed; keeps errno.
 */
void worker_destroy (struct worker *w);

/* Like worker_destroy (), but waits for at most 'ms' milliseconds. Returns true if the thread has ended. Returns false
 * if the running piece takes longer. Then the thread continues on its own, its code stays loaded, and it calls 'over'
 * with the 'arg' of the work when the piece has ended.
 */
bool worker_leave (struct worker *w, unsigned ms, void (*over) (void *arg));

/* Start a piece of work. At most one may be running. */
void worker_begin (struct worker *w);

/* Readable (level-triggered) when a piece has ended. */
int worker_fd (const struct worker *w);

/* The result of the piece: 1 for success, -1 for failure with the piece's errno and 'errp' (may be NULL), 0 if no piece
 * has ended.
 */
int worker_result (struct worker *w, idt_error_t *errp);

#endif /* UTIL_WORKER_H */
