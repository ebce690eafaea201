/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reaper.h - end all processes of an instance and remove its directory when its launcher has ended
 *
 * The launcher runs in a child process in a process group of its own; the original process stays as its reaper. Each of
 * the two watches the other:
 * 1. The reaper forwards signals that end programs (SIGINT, SIGTERM, SIGHUP, SIGQUIT) to the launcher.
 * 2. When the reaper has ended for any reason, the launcher gets SIGTERM and stops the instance.
 * 3. When the launcher has ended for any reason, the reaper ends all processes below it and removes the directory.
 *
 * Both adopt the orphans among their descendants (PR_SET_CHILD_SUBREAPER), so that "below" includes all descendants.
 * Only if both are killed at the same moment the directory remains; the brokers end even then.
 */
#ifndef LIBKEEPER_REAPER_H
#define LIBKEEPER_REAPER_H

#include <signal.h>
#include <stdbool.h>

/* The signals that end a launcher, and SIGCHLD. SIGHUP is not included if it is ignored (nohup). */
void reaper_signals (sigset_t *set);

/* Fork the launcher. In the child it returns 0: the child becomes the launcher, with the signals of reaper_signals ()
 * blocked. The parent becomes the reaper: when the child has ended, the parent calls reaper_sweep () and exits with the
 * status of the child, or with 128 + N if signal N ended the child. In the parent the function returns only if the fork
 * fails: -1 with errno set.
 */
int reaper_split (const char *dir, bool keep_dir);

/* End all processes below this one: send them SIGTERM, and after a second send SIGKILL to the remaining processes. Then
 * remove the content of 'dir', and 'dir' itself unless 'keep_dir' is set. SIGCHLD must be blocked.
 */
void reaper_sweep (const char *dir, bool keep_dir);

#endif /* LIBKEEPER_REAPER_H */
