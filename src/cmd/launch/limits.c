/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits.c - the number of brokers that this host can run */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cmd/launch/limits.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

#define AMOUNT_MAX 32
#define KIB_OF_GIB (1024. * 1024)

/* Read the number behind 'key' in the first line that begins with 'key'.  Returns false if there is no such line, or if
 * no number follows ("max").
 */
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

/* Return the number of threads of user 'uid'.  The number of links of a task folder is 2 plus its number of subfolders,
 * one for each thread.
 */
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

/* The limits found so far, and the needs of brokers. */
struct found {
    struct limit *limits;
    int count;
    struct limit threads, memory; /* the needs of a process and of a broker; no limit is set in these */
    const struct limits_for *what;
};

static void add (struct found *f, struct limit l)
{
    assert (f->count < LIMITS_MAX);
    f->limits[f->count++] = l;
}

/* Add a limit of the resource that 'needs' describes. */
static void add_limit (struct found *f, struct limit needs, const char *name, uint64_t limit, uint64_t used)
{
    needs.name = name;
    needs.limit = limit;
    needs.used = used;
    add (f, needs);
}

/* Return what else lets more brokers run.  The message already names the limit that could be raised. */
static const char *find_remedy (const struct limits_for *what)
{
    if (what->link_files > 0)
        return "more processes, or tbon.transport=memory, let more run";
    return what->sockets > 0 ? "more processes, or fewer local.sockets, let more run" : NULL;
}

static struct limit process_files (const struct limits_for *what, uint64_t limit)
{
    return (struct limit){ .what = "open files of a process",
                           .name = "ulimit -n",
                           .limit = limit,
                           .used = LIMITS_PROCESS_FILES,
                           .each = true,
                           .together = what->link_files,
                           .per_some = LIMITS_SOCKET_FILES,
                           .of_some = what->sockets,
                           .remedy = find_remedy (what) };
}

static void read_files (struct found *f)
{
    struct rlimit r;

    if (getrlimit (RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    if (setrlimit (RLIMIT_NOFILE, &r) < 0 && getrlimit (RLIMIT_NOFILE, &r) < 0)
        return;
    if (r.rlim_cur != RLIM_INFINITY)
        add (f, (struct limit){ .what = "open files",
                                .name = "ulimit -n",
                                .limit = r.rlim_cur,
                                .used = LIMITS_LAUNCHER_FILES,
                                .per_process = 1 });
    if (r.rlim_cur != RLIM_INFINITY && f->what->shared)
        add (f, process_files (f->what, r.rlim_cur));
}

/* Read the limit of the user's threads.  RLIMIT_NPROC does not apply to the superuser. */
static void read_user_threads (struct found *f)
{
    struct limit needs = f->threads;
    struct rlimit r;

    needs.what = "threads of one user";
    if (geteuid () != 0 && getrlimit (RLIMIT_NPROC, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
        add_limit (f, needs, "ulimit -u", r.rlim_cur, user_threads (getuid ()));
}

static void read_threads (struct found *f)
{
    struct sysinfo info;
    uint64_t n, used = sysinfo (&info) == 0 ? info.procs : 0;

    if (read_number ("/proc/sys/kernel/pid_max", "", &n))
        add_limit (f, f->threads, "kernel.pid_max", n, used);
    if (read_number ("/proc/sys/kernel/threads-max", "", &n))
        add_limit (f, f->threads, "kernel.threads-max", n, used);
}

/* Write the folder of this process's control group (v2) into 'path'. */
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

/* Add the limit of the control group for 'kind'.  Its values are divided by 'unit'. */
static void read_cgroup_limit (struct found *f, struct limit needs, const char *kind, const char *name, uint64_t unit)
{
    char group[300], path[330];
    uint64_t limit, used;

    if (!read_cgroup (group, sizeof (group)))
        return;
    snprintf (path, sizeof (path), "%s/%s.max", group, kind);
    if (!read_number (path, "", &limit))
        return;
    snprintf (path, sizeof (path), "%s/%s.current", group, kind);
    if (read_number (path, "", &used))
        add_limit (f, needs, name, limit / unit, used / unit);
}

static void read_memory (struct found *f)
{
    static const char meminfo[] = "/proc/meminfo";
    uint64_t total, available;

    if (read_number (meminfo, "MemTotal:", &total) && read_number (meminfo, "MemAvailable:", &available))
        add_limit (f, f->memory, "memory", total, total - available);
}

int limits_read (struct limit limits[LIMITS_MAX], const struct limits_for *what)
{
    bool shared = what->shared;
    struct found f = {
        .limits = limits,
        .threads = { .what = "threads", .per_process = shared ? LIMITS_PROCESS_THREADS : LIMITS_BROKER_THREADS },
        .memory = { .what = "GiB of memory",
                    .kib = true,
                    .per_process = shared ? LIMITS_PROCESS_MEMORY_KIB : LIMITS_BROKER_MEMORY_KIB,
                    .per_broker = shared ? LIMITS_SHARED_MEMORY_KIB : 0 },
        .what = what,
    };

    read_files (&f);
    read_user_threads (&f);
    read_threads (&f);
    read_cgroup_limit (&f, f.threads, "pids", "the control group's pids.max", 1);
    read_cgroup_limit (&f, f.memory, "memory", "the control group's memory.max", 1024);
    read_memory (&f);
    return f.count;
}

static uint64_t divide_up (uint64_t n, uint64_t by)
{
    return n / by + (n % by > 0);
}

/* Return what 'n' of the 'size' requested brokers need, if they are evenly distributed.  For a limit of each process,
 * return what the process with the most brokers needs.
 */
static uint64_t need (const struct limit *l, uint64_t n, uint64_t size, uint64_t processes)
{
    uint64_t parts = l->each ? processes : 1, brokers = divide_up (n, parts);

    assert (n <= size && size > 0 && processes > 0);
    return (l->each ? 1 : processes) * l->per_process + brokers * l->per_broker
           + divide_up (l->together * n, size * parts) + min_u64 (l->of_some, brokers) * l->per_some;
}

/* Return the largest number of brokers, up to 'size', that fit into 'processes' processes. */
static uint64_t most (const struct limit *l, uint64_t size, uint64_t processes)
{
    uint64_t room = l->limit > l->used ? l->limit - l->used : 0, low = 0, high = size;

    while (low < high) {
        uint64_t n = low + (high - low + 1) / 2;

        if (need (l, n, size, l->each ? processes : divide_up (n * processes, size)) <= room)
            low = n;
        else
            high = n - 1;
    }
    return low;
}

/* Format a number for a message.  Memory is counted in KiB and printed in GiB. */
static const char *amount (const struct limit *l, uint64_t n, char buf[AMOUNT_MAX])
{
    if (l->kib)
        snprintf (buf, AMOUNT_MAX, "%.1f", (double)n / KIB_OF_GIB);
    else
        snprintf (buf, AMOUNT_MAX, "%" PRIu64, n);
    return buf;
}

static int refuse (const struct limit *l, uint64_t size, uint64_t processes, idt_error_t *errp)
{
    char needed[AMOUNT_MAX], limit[AMOUNT_MAX], used[AMOUNT_MAX];
    uint64_t need_all = need (l, size, size, processes);

    return errsetf (errp, EAGAIN,
                    "%" PRIu64 " brokers are too many for this host: they need %s %s, and of %s (%s) %s are in use; "
                    "at most %" PRIu64 " can run here%s%s",
                    size, amount (l, need_all, needed), l->what, amount (l, l->limit, limit), l->name,
                    amount (l, l->used, used), most (l, size, processes), l->remedy ? ": " : "",
                    l->remedy ? l->remedy : "");
}

int limits_check (const struct limit *limits, int count, uint64_t size, uint64_t processes, idt_error_t *errp)
{
    const struct limit *tight = NULL;

    for (int i = 0; i < count; i++)
        if (!tight || most (&limits[i], size, processes) < most (tight, size, processes))
            tight = &limits[i];
    if (!tight || size <= most (tight, size, processes))
        return 0;
    return refuse (tight, size, processes, errp);
}
