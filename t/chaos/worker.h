/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.h - a program that works in an instance under faults until its standard input ends, then judges what it saw
 *
 * Its exit status is the verdict: 0 means that nothing is wrong.  What it prints goes where we print.
 */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Start argv[0], a path.  Ends the program where that fails. */
struct worker *worker_start (const char *const *argv);

/* Have it come to an end, at most 'limit_us' from now: then it is killed. */
void worker_finish (struct worker *w, uint64_t limit_us);

/* Has it ended? */
bool worker_ended (struct worker *w);

/* True if it ended with exit status 0. */
bool worker_good (const struct worker *w);

/* Must have ended.  NULL is fine. */
void worker_destroy (struct worker *w);

#endif /* CHAOS_WORKER_H */
