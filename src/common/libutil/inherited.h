/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inherited.h - correct the signals, descriptors and limits that a process inherits from its parent process
 *
 * Besides arguments and environment a process inherits ignored and blocked signals, descriptors, limits, and the file
 * mode mask. A program that leaves them unchanged fails if its parent has set them in unusual ways. If SIGCHLD is
 * ignored, the program cannot wait for its children. If a file exceeds ulimit -f, a signal kills the program. If stdout
 * is closed, the next file that the program opens becomes stdout.
 */
#ifndef UTIL_INHERITED_H
#define UTIL_INHERITED_H

#include <stdbool.h>

#include <idtree/error.h>

/* Every program calls this first in main (). Afterwards:
 * - stdin, stdout and stderr are open. A descriptor that was closed is /dev/null, opened in the wrong direction, so
 *   that reading stdin or writing stdout and stderr still fails;
 * - no signal is blocked, except by inherited_set_but (). SIGCHLD has its default action. SIGXFSZ is ignored, so that a
 *   write fails with EFBIG;
 * - the owner can read and write files that the process makes (umask);
 * - the stack may grow to 8 MiB, as far as the hard limit allows;
 * - new threads have stacks of 2 MiB if the limit would give them less than 1 MiB or more than 64 MiB.
 *
 * The soft limit of open files is not changed. Returns 0, or -1 with errno set and 'errp' filled if a closed descriptor
 * cannot be opened, or if the hard limit of the stack is below 256 KiB (ENOMEM).
 */
int inherited_set (idt_error_t *errp);

/* Like inherited_set () for a program that reads the signals in 'blocked' (a list that ends with 0) by signalfd ():
 * they are blocked after the call. If the parent has blocked one of them and it is already pending, it stays pending
 * until the program reads it. It does not end the program.
 */
int inherited_set_but (const int *blocked, idt_error_t *errp);

/* Whether SIGHUP is ignored, as under nohup. Then a hangup must not end the process. */
bool inherited_nohup (void);

/* For a child, before it executes another program: unblock all signals and reset all signals to their defaults, except
 * SIGHUP if it is ignored. Safe after fork () and vfork ().
 */
void inherited_pass_signals (void);

/* Like inherited_pass_signals (), but block the signals in 'blocked', for a program that reads them by signalfd (). */
void inherited_pass_signals_but (const int *blocked);

#endif /* UTIL_INHERITED_H */
