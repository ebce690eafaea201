/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inherited.h - correct the signals, descriptors and limits that a process inherits from its parent process
 *
 * Besides arguments and environment a process inherits ignored and blocked signals, descriptors, limits, and the file
 * mode mask. A program that leaves them unchanged works only if a shell started it: if SIGCHLD is ignored, it cannot
 * wait for its children; if a file exceeds ulimit -f, a signal kills it; if stdout is closed, the next file that it
 * opens becomes stdout.
 */
#ifndef UTIL_INHERITED_H
#define UTIL_INHERITED_H

#include <stdbool.h>

#include <idtree/error.h>

/* Every program calls this first in main (). Afterwards - stdin, stdout and stderr are open. One that was closed still
 * fails: it is opened in the opposite direction; - no signal is blocked, except by inherited_set_but (). SIGCHLD
 * has its default action, and SIGXFSZ is ignored, so that
 *    a write fails with EFBIG;
 * - the owner can read and write files that the process makes (umask); - the stack may grow to the usual size, as far
 * as the hard limit allows, and new threads have stacks of the usual size. The soft limit of open files is not changed.
 * Returns 0, or -1 with errno set and 'errp' filled if the hard limit of the stack is too low.
 */
int inherited_set (idt_error_t *errp);

/* Like inherited_set () for a program that reads the signals in 'blocked' (a list that ends with 0) by signalfd ():
 * they are blocked after the call. If the process inherits them blocked, a signal that is already pending stays pending
 * until the program reads it, and does not end the program.
 */
int inherited_set_but (const int *blocked, idt_error_t *errp);

/* Whether SIGHUP is ignored, as under nohup. Then a hangup must not end the process. */
bool inherited_nohup (void);

/* For a child, before it executes another program: unblock all signals and reset all to their defaults, except an
 * ignored SIGHUP. Safe after fork () and vfork ().
 */
void inherited_pass_signals (void);

/* Like inherited_pass_signals (), but the signals in 'blocked' are blocked, for a program that reads them as above. */
void inherited_pass_signals_but (const int *blocked);

#endif /* UTIL_INHERITED_H */
