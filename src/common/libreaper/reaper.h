/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reaper.h - end all processes of an instance and remove its directory when its launcher has ended
 *
 * The launcher runs in a child process in a process group of its own; the original process stays as its reaper. Each
 * watches the other: 1. The reaper forwards signals that end programs (SIGINT, SIGTERM, SIGHUP, SIGQUIT) to the
 * launcher. 2. When the reaper has ended for any reason, the launcher gets SIGTERM and stops the instance. 3. When the
 * launcher has ended for any reason, the reaper ends all processes below it and removes the directory. Both adopt the
 * orphans among their descendants (PR_SET_CHILD_SUBREAPER), so that "below" includes all of them. The directory remains
 * only if both are killed at the same moment; the brokers end even then.
 */
#ifndef LIBKEEPER_REAPER_H
#define LIBKEEPER_REAPER_H

#include <signal.h>
#include <stdbool.h>

/* The signals that end a launcher, and SIGCHLD; without SIGHUP if it is ignored (nohup). */
void reaper_signals (sigset_t *set);

/* Fork the launcher. Returns 0 in the child, which becomes the launcher: reaper_signals () are blocked in it. In the
 * parent it returns only if the fork fails: -1 with errno set. Otherwise the parent is the reaper: it cleans 'dir' when
 * the child has ended (see reaper_sweep ()) and exits with the status of the child, 128 + N if signal N ended it.
 */
int reaper_split (const char *dir, bool keep_dir);

/* End all processes below this one: send SIGTERM, and SIGKILL to the remaining ones after a second. Then remove the
 * content of 'dir', and 'dir' itself unless 'keep_dir' is set. SIGCHLD must be blocked.
 */
void reaper_sweep (const char *dir, bool keep_dir);

#endif /* LIBKEEPER_REAPER_H */
