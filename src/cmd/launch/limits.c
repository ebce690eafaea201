/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits.c - how many brokers this host can carry */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cmd/launch/limits.h"
#include "libutil/errprintf.h"

/* The number behind 'key' in the first line that begins so; false where there is none ("max"). */
static bool read_number (const char *path, const char *key, uint64_t *n)
{
    char line[128];
    size_t len = strlen (key);
    bool found = false;
    FILE *f = fopen (path, "re");

    while (f && !found && fgets (line, sizeof (line), f))
        found = !strncmp (line, key, len) && sscanf (line + len, "%" SCNu64, n) == 1;
    if (f)
        fclose (f);
    return found;
}

/* Threads that user 'uid' has.  A folder has two links and one for each subfolder. */
static uint64_t user_threads (uid_t uid)
{
    uint64_t n = 0;
    struct dirent *entry;
    DIR *dir = opendir ("/proc");

    while (dir && (entry = readdir (dir))) {
        char path[300];
        struct stat st;

        if (!isdigit ((unsigned char)entry->d_name[0]))
            continue;
        snprintf (path, sizeof (path), "/proc/%s/task", entry->d_name);
        if (stat (path, &st) == 0 && st.st_uid == uid && st.st_nlink > 2)
            n += st.st_nlink - 2;
    }
    if (dir)
        closedir (dir);
    return n;
}

static void add (struct limit *limits, int *count, struct limit l)
{
    limits[(*count)++] = l;
}

static void read_files (struct limit *limits, int *count)
{
    struct rlimit r;

    if (getrlimit (RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    if (setrlimit (RLIMIT_NOFILE, &r) < 0 && getrlimit (RLIMIT_NOFILE, &r) < 0)
        return;
    if (r.rlim_cur != RLIM_INFINITY)
        add (limits, count,
             (struct limit){ "open files", "ulimit -n", r.rlim_cur, LIMITS_LAUNCHER_FILES, LIMITS_BROKER_FILES });
}

/* The superuser is not held to RLIMIT_NPROC. */
static void read_user_threads (struct limit *limits, int *count)
{
    struct rlimit r;

    if (geteuid () == 0 || getrlimit (RLIMIT_NPROC, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
        return;
    add (limits, count,
         (struct limit){ "threads of one user", "ulimit -u", r.rlim_cur, user_threads (getuid ()),
                         LIMITS_BROKER_THREADS });
}

static void read_threads (struct limit *limits, int *count)
{
    struct sysinfo info;
    uint64_t n, used = sysinfo (&info) == 0 ? info.procs : 0;

    if (read_number ("/proc/sys/kernel/pid_max", "", &n))
        add (limits, count, (struct limit){ "threads", "kernel.pid_max", n, used, LIMITS_BROKER_THREADS });
    if (read_number ("/proc/sys/kernel/threads-max", "", &n))
        add (limits, count, (struct limit){ "threads", "kernel.threads-max", n, used, LIMITS_BROKER_THREADS });
}

/* The control group (v2) that we are in. */
static bool read_cgroup (char *path, size_t size)
{
    char line[256] = "";
    FILE *f = fopen ("/proc/self/cgroup", "re");
    bool good = f && fgets (line, sizeof (line), f) && !strncmp (line, "0::", 3);

    if (f)
        fclose (f);
    line[strcspn (line, "\n")] = '\0';
    if (good)
        snprintf (path, size, "/sys/fs/cgroup%s", line + 3);
    return good;
}

/* What the control group has of 'kind', counted in units of 'unit'; 'l' lacks both numbers. */
static void read_cgroup_limit (struct limit *limits, int *count, const char *kind, uint64_t unit, struct limit l)
{
    char group[300], path[330];

    if (!read_cgroup (group, sizeof (group)))
        return;
    snprintf (path, sizeof (path), "%s/%s.max", group, kind);
    if (!read_number (path, "", &l.limit))
        return;
    snprintf (path, sizeof (path), "%s/%s.current", group, kind);
    if (!read_number (path, "", &l.used))
        return;
    l.limit /= unit;
    l.used /= unit;
    add (limits, count, l);
}

static void read_memory (struct limit *limits, int *count)
{
    static const char meminfo[] = "/proc/meminfo";
    uint64_t total, available;

    if (read_number (meminfo, "MemTotal:", &total) && read_number (meminfo, "MemAvailable:", &available))
        add (limits, count,
             (struct limit){ "KiB of memory", "memory", total, total - available, LIMITS_BROKER_MEMORY_KIB });
}

int limits_read (struct limit limits[LIMITS_MAX])
{
    int count = 0;

    read_files (limits, &count);
    read_user_threads (limits, &count);
    read_threads (limits, &count);
    read_cgroup_limit (limits, &count, "pids", 1,
                       (struct limit){ "threads", "the control group's pids.max", 0, 0, LIMITS_BROKER_THREADS });
    read_cgroup_limit (limits, &count, "memory", 1024,
                       (struct limit){ "KiB of memory", "the control group's memory.max", 0, 0,
                                       LIMITS_BROKER_MEMORY_KIB });
    read_memory (limits, &count);
    return count;
}

static uint64_t most (const struct limit *l)
{
    return l->limit > l->used ? (l->limit - l->used) / l->per_broker : 0;
}

int limits_check (const struct limit *limits, int count, uint64_t size, idt_error_t *errp)
{
    const struct limit *tight = NULL;

    for (int i = 0; i < count; i++)
        if (!tight || most (&limits[i]) < most (tight))
            tight = &limits[i];
    if (!tight || size <= most (tight))
        return 0;
    return errsetf (errp, EAGAIN,
                    "%" PRIu64 " brokers are too many for this host: they need %" PRIu64 " %s, and of %" PRIu64
                    " (%s) %" PRIu64 " are in use; at most %" PRIu64 " can run here",
                    size, size * tight->per_broker, tight->what, tight->limit, tight->name, tight->used, most (tight));
}
