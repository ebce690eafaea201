/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reaper.c - end all processes of an instance and remove its directory when its launcher has ended */
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

#define TERM_GRACE_MS 1000 /* time for processes to end after SIGTERM */
#define KILL_GRACE_MS 5000 /* time for the kernel to end killed processes */
#define OPEN_DIRS 16

void reaper_signals (sigset_t *set)
{
    sigemptyset (set);
    sigaddset (set, SIGINT);
    sigaddset (set, SIGTERM);
    if (!inherited_nohup ()) /* if SIGHUP were blocked, it would be queued although it is ignored */
        sigaddset (set, SIGHUP);
    sigaddset (set, SIGQUIT);
    sigaddset (set, SIGCHLD);
}

/* --- processes ------------------------------------------------------------------------------- */

/* The parent of a process; -1 if the process does not exist. The process's name in /proc/PID/stat may contain any
 * character, so its end, the last ')', is searched from the right.
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

/* Reap ended children. Returns false if no child is left. Then no descendant is left either: when a child ends, its own
 * children become children of this process before the child can be reaped.
 */
static bool children_left (void)
{
    pid_t pid;

    while ((pid = waitpid (-1, NULL, WNOHANG)) > 0)
        ;
    return pid == 0;
}

/* Send 'sig' to all children, again each time a child ends, until no child is left or 'grace_ms' have passed. Returns
 * true if no child is left.
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

/* --- reaper ----------------------------------------------------------------------------------- */

/* Forward signals until the launcher has ended. Returns its wait status. */
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
        raise (SIGTERM); /* the parent has already ended, so it sends no signal: stop soon */
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
