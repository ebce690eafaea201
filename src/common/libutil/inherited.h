/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inherited.h - what a process has from the process that started it
 *
 * Besides arguments and environment that is: which signals are ignored or blocked, descriptors, limits, and the mask of
 * file modes.  A program that leaves them as they are works only where it was started by a shell: children cannot be
 * waited for where SIGCHLD is ignored, a file that grows above ulimit -f is the end, and what is opened next becomes
 * stdout where stdout is closed.
 */
#ifndef UTIL_INHERITED_H
#define UTIL_INHERITED_H

#include <stdbool.h>

#include <idtree/error.h>

/* Every program calls this first in main ().  After it
 *  - stdin, stdout and stderr are open: one that was closed fails as before, it is opened the wrong way round;
 *  - no signal is blocked but those of inherited_set_but (), SIGCHLD has its default, and SIGXFSZ is ignored, so that a
 *    write fails with EFBIG;
 *  - files that the process makes can be read and written by their owner (umask);
 *  - the stack may grow as is usual, as far as the hard limit allows, and new threads have stacks of a usual size.
 * The soft limit of open files is left to each program.  Returns 0, or -1 with errno set and 'errp' filled: the hard
 * limit of the stack is too low.
 */
int inherited_set (idt_error_t *errp);

/* The same for a program that reads 'blocked' by signalfd (), a list that ends with 0: they are blocked from here on.
 * Where the process before us blocked them, one that came meanwhile waits until it is read, and does not end the
 * program.
 */
int inherited_set_but (const int *blocked, idt_error_t *errp);

/* Whether SIGHUP is ignored, as nohup has it: a hangup must not end the process. */
bool inherited_nohup (void);

/* In a child, before it becomes another program: no signal is blocked, and all have their defaults but SIGHUP, where
 * that is ignored.  Safe after fork () and vfork ().
 */
void inherited_pass_signals (void);

/* The same, but those of 'blocked' are blocked, for a program that reads them, as above. */
void inherited_pass_signals_but (const int *blocked);

#endif /* UTIL_INHERITED_H */
