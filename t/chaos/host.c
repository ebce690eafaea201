/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.c - preloaded into brokers: replaces their clock, links and disk as described in host.h
 *
 * Each function calls the next definition of its name, and changes only one aspect of it. A function may be called
 * before the process knows its rank: by constructors of other libraries, or in the zygote (broker/boot/zygote.h). There
 * is no page then, and nothing is changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

static struct host_page *page;
static bool looked;
static int rank;
static const char *links, *state;
static struct stat pmi; /* file of the socket to the launcher */
static int kept_fd = -1;

static void keep_pmi (void)
{
    const char *dir = getenv (HOST_ENV_PMI), *fd = getenv ("PMI_FD");
    char path[256];

    if (!dir || !fd || fstat (atoi (fd), &pmi) < 0)
        return;
    snprintf (path, sizeof (path), "%s/%d", dir, rank);
    kept_fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Map the page. This is called once and while there is only one thread, because a broker reads clocks before it starts
 * other threads.
 */
static void look (void)
{
    const char *path = getenv (HOST_ENV_PAGE), *text = getenv (HOST_ENV_RANK);

    if (!text)
        text = getenv ("PMI_RANK");
    if (!text || !*text)
        return;
    looked = true;
    links = getenv (HOST_ENV_LINKS);
    state = getenv (HOST_ENV_STATE);
    if (!path || !state || (rank = atoi (text)) < 0 || rank >= HOST_RANKS_MAX)
        return;
    int fd = open (path, O_RDWR | O_CLOEXEC);
    void *p = mmap (NULL, sizeof (*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED)
        page = p;
    close (fd);
    keep_pmi ();
}

static struct host_page *host (void)
{
    if (!looked && environ)
        look ();
    return page;
}

/* The next definition of a function, as a pointer of its type. */
#define NEXT(name) ((__typeof__ (&name))dlsym (RTLD_NEXT, #name))

/* --- clock ------------------------------------------------------------------------------------ */

/* Return how far this clock must be off in this process. */
static int64_t off_us (clockid_t id)
{
    if (!host ())
        return 0;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        return atomic_load (&page->wall_us[rank]);
    return id == CLOCK_BOOTTIME ? atomic_load (&page->boot_us[rank]) : 0;
}

int clock_gettime (clockid_t id, struct timespec *ts)
{
    static __typeof__ (&clock_gettime) next;

    if (!next)
        next = NEXT (clock_gettime);
    int rc = next ? next (id, ts) : (int)syscall (SYS_clock_gettime, id, ts);
    int64_t off = rc == 0 ? off_us (id) : 0;
    if (off != 0) {
        int64_t us = ts->tv_sec * INT64_C (1000000) + ts->tv_nsec / 1000 + off;

        ts->tv_nsec = us % 1000000 * 1000 + ts->tv_nsec % 1000;
        ts->tv_sec = us / 1000000;
    }
    return rc;
}

int gettimeofday (struct timeval *restrict tv, void *restrict tz)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ ts.tv_sec, ts.tv_nsec / 1000 };
    return 0;
}

time_t time (time_t *t)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    if (t)
        *t = ts.tv_sec;
    return ts.tv_sec;
}

/* --- links ------------------------------------------------------------------------------------ */

/* Find the address to which a connection is redirected. Returns false if the connection is not one to a broker. */
static bool lead (const struct sockaddr *addr, socklen_t len, struct sockaddr_un *to)
{
    const struct sockaddr_un *un = (const void *)addr;
    char path[sizeof (un->sun_path) + 1] = "";
    const char *name;
    unsigned peer;
    char rest;

    if (!host () || !links || len <= offsetof (struct sockaddr_un, sun_path) || addr->sa_family != AF_UNIX)
        return false;
    memcpy (path, un->sun_path, len - offsetof (struct sockaddr_un, sun_path));
    if (!(name = strrchr (path, '/')) || sscanf (name, "/tbon-%u%c", &peer, &rest) != 1)
        return false;
    *to = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf (to->sun_path, sizeof (to->sun_path), "%s/%d-%u", links, rank, peer);
    return true;
}

int connect (int fd, const struct sockaddr *addr, socklen_t len)
{
    struct sockaddr_un to;

    if (lead (addr, len, &to))
        return NEXT (connect) (fd, (struct sockaddr *)&to, sizeof (to));
    return NEXT (connect) (fd, addr, len);
}

/* --- launcher --------------------------------------------------------------------------------- */

/* Whether 'fd' is the socket to the launcher. The files are compared, because the broker may have duplicated PMI_FD. */
static bool is_pmi (int fd)
{
    struct stat st;

    return host () && kept_fd >= 0 && fstat (fd, &st) == 0 && st.st_ino == pmi.st_ino && st.st_dev == pmi.st_dev;
}

ssize_t read (int fd, void *buf, size_t size)
{
    ssize_t n = NEXT (read) (fd, buf, size);

    if (n > 0 && is_pmi (fd))
        (void)!syscall (SYS_write, kept_fd, buf, n);
    return n;
}

/* --- disk ------------------------------------------------------------------------------------- */

static bool is_state (int fd)
{
    char name[64], path[4096];
    size_t len = strlen (state);

    snprintf (name, sizeof (name), "/proc/self/fd/%d", fd);
    ssize_t n = readlink (name, path, sizeof (path) - 1);
    if (n < 0)
        return false;
    path[n] = '\0';
    return !strncmp (path, state, len) && path[len] == '/';
}

/* Return the errno with which a write (or a sync) must fail; 0: it must not fail. Blocks while the disk is frozen. */
static int disk_errno (int fd, bool is_write)
{
    uint32_t disk;

    if (!host () || atomic_load (&page->disk) == HOST_DISK_GOOD || !is_state (fd))
        return 0;
    /* If a process changes the page by writing the file, it wakes no waiter. So check again after a while. */
    while ((disk = atomic_load (&page->disk)) == HOST_DISK_FROZEN)
        syscall (SYS_futex, &page->disk, FUTEX_WAIT, disk, &(struct timespec){ .tv_nsec = 20000000 }, NULL, 0);
    if (disk == HOST_DISK_FULL && is_write)
        return ENOSPC;
    return disk == HOST_DISK_BROKEN ? EIO : 0;
}

#define REFUSE(fd, is_write)                        \
    do {                                            \
        int errnum = disk_errno ((fd), (is_write)); \
        if (errnum != 0) {                          \
            errno = errnum;                         \
            return -1;                              \
        }                                           \
    } while (0)

ssize_t write (int fd, const void *data, size_t size)
{
    REFUSE (fd, true);
    return NEXT (write) (fd, data, size);
}

ssize_t pwrite (int fd, const void *data, size_t size, off_t offset)
{
    REFUSE (fd, true);
    return NEXT (pwrite) (fd, data, size, offset);
}

ssize_t pwrite64 (int fd, const void *data, size_t size, off64_t offset)
{
    REFUSE (fd, true);
    return NEXT (pwrite64) (fd, data, size, offset);
}

int fdatasync (int fd)
{
    REFUSE (fd, false);
    return NEXT (fdatasync) (fd);
}

int fsync (int fd)
{
    REFUSE (fd, false);
    return NEXT (fsync) (fd);
}
