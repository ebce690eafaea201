/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.h - a program that works in an instance under faults until its standard input ends, then checks its results
 *
 * If its exit status is 0, it has found no violation. Its output goes to the output of this program.
 */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Start argv[0], a path. Ends the program on failure. */
struct worker *worker_start (const char *const *argv);

/* Tell the program to end. If it has not ended 'limit_us' from now, it is killed. */
void worker_finish (struct worker *w, uint64_t limit_us);

/* Whether the program has ended. */
bool worker_ended (struct worker *w);

/* Whether the program has ended with exit status 0. */
bool worker_good (const struct worker *w);

/* Free the object. The program must have ended. 'w' may be NULL. */
void worker_destroy (struct worker *w);

#endif /* CHAOS_WORKER_H */
