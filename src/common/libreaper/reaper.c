/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reaper.c - whatever happens to a launcher, nothing of its instance stays behind */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libreaper/reaper.h"
#include "libutil/clock.h"
#include "libutil/inherited.h"

#define TERM_GRACE_MS 1000 /* for those that are asked to end */
#define KILL_GRACE_MS 5000 /* for the kernel to end those that are killed */
#define OPEN_DIRS 16

void reaper_signals (sigset_t *set)
{
    sigemptyset (set);
    sigaddset (set, SIGINT);
    sigaddset (set, SIGTERM);
    if (!inherited_nohup ()) /* one that is ignored stays so only where it is not blocked */
        sigaddset (set, SIGHUP);
    sigaddset (set, SIGQUIT);
    sigaddset (set, SIGCHLD);
}

/* --- processes ------------------------------------------------------------------------------- */

/* The parent of a process; -1: there is no such process.  The name in /proc/PID/stat may hold
 * anything, so its end is looked for from the right.
 */
static pid_t parent_of (const char *pid)
{
    char path[300], stat[512] = "";
    int ppid = -1;

    snprintf (path, sizeof (path), "/proc/%s/stat", pid);
    FILE *f = fopen (path, "re");
    if (!f)
        return -1;
    size_t n = fread (stat, 1, sizeof (stat) - 1, f);
    fclose (f);
    stat[n] = '\0';
    const char *p = strrchr (stat, ')');
    return p && sscanf (p, ") %*c %d", &ppid) == 1 ? ppid : -1;
}

static void signal_children (int sig)
{
    pid_t self = getpid ();
    struct dirent *entry;
    DIR *dir = opendir ("/proc");

    while (dir && (entry = readdir (dir))) {
        if (isdigit ((unsigned char)entry->d_name[0]) && parent_of (entry->d_name) == self) {
            pid_t pid = atoi (entry->d_name);

            kill (pid, sig);
            kill (pid, SIGCONT);
        }
    }
    if (dir)
        closedir (dir);
}

/* Reap what has ended.  Returns false when no child is left: what a child leaves behind is ours
 * before it can be reaped, so then there is nobody below either.
 */
static bool children_left (void)
{
    pid_t pid;

    while ((pid = waitpid (-1, NULL, WNOHANG)) > 0)
        ;
    return pid == 0;
}

/* Send 'sig' to all children until there are none or 'grace_ms' is over.  Returns true when there
 * are none.
 */
static bool end_children (int sig, int grace_ms)
{
    int64_t deadline_ms = (int64_t)clock_ms (CLOCK_MONOTONIC) + grace_ms, left_ms;
    sigset_t set;

    sigemptyset (&set);
    sigaddset (&set, SIGCHLD);
    while (children_left ()) {
        signal_children (sig);
        if ((left_ms = deadline_ms - (int64_t)clock_ms (CLOCK_MONOTONIC)) <= 0)
            return false;
        struct timespec ts = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };
        sigtimedwait (&set, NULL, &ts);
    }
    return true;
}

/* --- directory ------------------------------------------------------------------------------ */

static int remove_cb (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    if (ftw->level > 0)
        remove (path);
    return 0;
}

static void remove_dir (const char *dir, bool keep_dir)
{
    nftw (dir, remove_cb, OPEN_DIRS, FTW_DEPTH | FTW_PHYS);
    if (!keep_dir)
        rmdir (dir);
}

void reaper_sweep (const char *dir, bool keep_dir)
{
    if (!end_children (SIGTERM, TERM_GRACE_MS))
        end_children (SIGKILL, KILL_GRACE_MS);
    remove_dir (dir, keep_dir);
}

/* --- keeper ----------------------------------------------------------------------------------- */

/* Pass signals on until the launcher has ended.  Returns its wait status. */
static int keep (pid_t launcher, const sigset_t *set)
{
    for (;;) {
        int status, sig = sigwaitinfo (set, NULL);
        pid_t pid;

        if (sig > 0 && sig != SIGCHLD)
            kill (launcher, sig);
        while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
            if (pid == launcher)
                return status;
    }
}

static void be_launcher (pid_t keeper)
{
    setpgid (0, 0);
    prctl (PR_SET_PDEATHSIG, SIGTERM);
    if (getppid () != keeper)
        raise (SIGTERM); /* it is gone already: stop as soon as we can */
}

int reaper_split (const char *dir, bool keep_dir)
{
    pid_t self = getpid ();
    sigset_t set;

    reaper_signals (&set);
    sigprocmask (SIG_BLOCK, &set, NULL);
    prctl (PR_SET_CHILD_SUBREAPER, 1);
    fflush (NULL);
    pid_t launcher = fork ();
    if (launcher < 0)
        return -1;
    if (launcher == 0) {
        prctl (PR_SET_CHILD_SUBREAPER, 1);
        be_launcher (self);
        return 0;
    }
    int status = keep (launcher, &set);
    reaper_sweep (dir, keep_dir);
    exit (WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status));
}
