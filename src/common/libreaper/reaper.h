/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reaper.h - whatever happens to a launcher, nothing of its instance stays behind
 *
 * The launcher runs in a child process in a process group of its own; the process that was
 * started stays as its keeper.  Each watches the other:
 *  1. Signals that end things (SIGINT, SIGTERM, SIGHUP, SIGQUIT) to the keeper go on to the
 *     launcher.
 *  2. When the keeper is gone, however, the launcher gets SIGTERM and stops the instance.
 *  3. When the launcher is gone, however, the keeper ends all processes below it and removes
 *     the directory.
 * Both adopt what their descendants leave behind (PR_SET_CHILD_SUBREAPER), so that "below" misses
 * nobody.  Only if both are killed in the same moment does the directory stay; the brokers end
 * even then.
 */
#ifndef LIBKEEPER_REAPER_H
#define LIBKEEPER_REAPER_H

#include <signal.h>
#include <stdbool.h>

/* The signals that end a launcher, and SIGCHLD; without SIGHUP where nohup ignores that. */
void reaper_signals (sigset_t *set);

/* Split in two.  Returns 0 in the child, which is to be the launcher: reaper_signals () are
 * blocked in it.  In the parent never returns but with -1 and errno set, where there can be no
 * child: it keeps, cleans 'dir' (see reaper_sweep ()) and ends with the status of the child, 128
 * + N where a signal ended that.
 */
int reaper_split (const char *dir, bool keep_dir);

/* End all processes below this one: SIGTERM, then SIGKILL for what is left after a second; then
 * remove all that is in 'dir', and 'dir' itself but with 'keep_dir'.  SIGCHLD must be blocked.
 */
void reaper_sweep (const char *dir, bool keep_dir);

#endif /* LIBKEEPER_REAPER_H */
