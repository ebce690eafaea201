/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.h - a thread for work that blocks: one piece at a time, its end told through a descriptor
 *
 * What the work uses belongs to the thread from worker_begin () until worker_result () tells the end, or
 * worker_destroy () returns.
 */
#ifndef UTIL_WORKER_H
#define UTIL_WORKER_H

#include <stdbool.h>

#include <idtree/error.h>

struct worker;

/* A piece of work, in the thread.  Returns 0, or -1 with errno set and 'errp' filled. */
typedef int (*worker_f) (void *arg, idt_error_t *errp);

/* Start the thread; it takes no signals.  NULL with errno set. */
struct worker *worker_create (worker_f work, void *arg);

/* End it, after what is under way; a piece that has not begun is left out.  NULL is fine; keeps errno. */
void worker_destroy (struct worker *w);

/* The same, but wait for 'ms' milliseconds at most.  Returns true; or false where what is under way takes longer: then
 * the thread goes on alone, calls 'over' with the work's 'arg' when it has ended, and what it runs in stays loaded.
 */
bool worker_leave (struct worker *w, unsigned ms, void (*over) (void *arg));

/* Have a piece of work done.  At most one may be under way. */
void worker_begin (struct worker *w);

/* Readable (level-triggered) when a piece has ended. */
int worker_fd (const struct worker *w);

/* How it ended: 1 well, -1 badly, with its errno and 'errp' (may be NULL); 0: none has ended. */
int worker_result (struct worker *w, idt_error_t *errp);

#endif /* UTIL_WORKER_H */
