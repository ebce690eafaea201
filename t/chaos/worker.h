/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.h - a program that works in an instance under faults until its standard input ends, then checks its results
 *
 * Its exit status is the verdict: 0 means no violation. Its output goes to the output of this program.
 */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Start argv[0], a path. Ends the program on failure. */
struct worker *worker_start (const char *const *argv);

/* Ask it to end; it is killed 'limit_us' from now if it has not ended. */
void worker_finish (struct worker *w, uint64_t limit_us);

/* Whether it has ended. */
bool worker_ended (struct worker *w);

/* True if it ended with exit status 0. */
bool worker_good (const struct worker *w);

/* It must have ended. NULL is allowed. */
void worker_destroy (struct worker *w);

#endif /* CHAOS_WORKER_H */
