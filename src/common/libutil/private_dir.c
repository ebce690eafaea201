/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.c - check that a folder is writable only by its owner, and take locks in such folders */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

/* Like lstat (2), which would follow a link whose name ends with a slash. */
static int stat_itself (const char *path, struct stat *st)
{
    char name[PATH_MAX];
    size_t len = strlen (path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof (name))
        return errset (ENAMETOOLONG);
    snprintf (name, sizeof (name), "%.*s", (int)len, path);
    return lstat (name, st);
}

int private_dir_check (const char *what, const char *path, enum private_dir_flag flags, idt_error_t *errp)
{
    struct stat st;

    if (stat_itself (path, &st) < 0)
        return errprintf (errp, "%s %s: %s", what, path, strerror (errno));
    if (S_ISLNK (st.st_mode))
        return errsetf (errp, ELOOP, "%s %s: is a symbolic link: name the folder itself", what, path);
    if (!S_ISDIR (st.st_mode))
        return errsetf (errp, ENOTDIR, "%s %s: %s", what, path, strerror (ENOTDIR));
    bool kept = (flags & PRIVATE_DIR_STICKY) && (st.st_mode & S_ISVTX);
    if (st.st_uid != geteuid () || ((st.st_mode & (S_IWGRP | S_IWOTH)) && !kept))
        return errsetf (errp, EPERM, "%s %s: must belong to you and be writable by no other user", what, path);
    return 0;
}

/* --- locks ------------------------------------------------------------------------------------------- */

#define LOOK_AGAIN_MS 5

static int lock_path (const char *dir, const char *name, char path[PATH_MAX], idt_error_t *errp)
{
    if (snprintf (path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX)
        return 0;
    return errsetf (errp, ENAMETOOLONG, "%s/%s: %s", dir, name, strerror (ENAMETOOLONG));
}

/* Whether the lock file belongs to this user, or to a superuser who works on the folder of this user. */
static bool is_private (int fd)
{
    struct stat st;

    return fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && (st.st_mode & (S_IRWXG | S_IRWXO)) == 0
           && (st.st_uid == geteuid () || st.st_uid == 0 || geteuid () == 0);
}

static bool is_at (int fd, const char *path)
{
    struct stat st, there;

    return fstat (fd, &st) == 0 && lstat (path, &there) == 0 && st.st_dev == there.st_dev && st.st_ino == there.st_ino;
}

/* Fails with EAGAIN if another process holds the lock, or has just removed it. */
static int try_lock (const char *path)
{
    int fd = open (path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600), errnum = EAGAIN;

    if (fd < 0)
        return -1;
    if (!is_private (fd))
        errnum = EPERM;
    else if (flock (fd, LOCK_EX | LOCK_NB) == 0 && is_at (fd, path))
        return fd;
    close (fd);
    return errset (errnum);
}

int private_lock (const char *dir, const char *name, unsigned wait_ms, idt_error_t *errp)
{
    const struct timespec pause = { .tv_nsec = LOOK_AGAIN_MS * 1000000 };
    uint64_t until_ms = clock_ms (CLOCK_MONOTONIC) + wait_ms;
    char path[PATH_MAX];
    int fd;

    if (lock_path (dir, name, path, errp) < 0)
        return -1;
    while ((fd = try_lock (path)) < 0 && errno == EAGAIN && clock_ms (CLOCK_MONOTONIC) < until_ms)
        nanosleep (&pause, NULL);
    if (fd >= 0)
        return fd;
    if (errno == EAGAIN)
        return errsetf (errp, EBUSY, "%s: another process has held this lock for %u ms: end it", path, wait_ms);
    if (errno == EPERM)
        return errsetf (errp, EPERM, "%s: other users may open this lock, or another user made it: remove it", path);
    return errprintf (errp, "%s: %s", path, strerror (errno));
}

void private_unlock (int fd, const char *dir, const char *name)
{
    char path[PATH_MAX];
    int saved_errno = errno;

    if (lock_path (dir, name, path, NULL) == 0 && is_at (fd, path))
        unlink (path); /* while it is locked, so that no other process has its own file there yet */
    close (fd);
    errno = saved_errno;
}
