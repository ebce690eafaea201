/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.c - folders that only their owner can write to, and two things in such folders: locks, listening sockets
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

/* Like lstat (2) for 'path' without slashes at its end. With such a slash lstat () would follow a link. */
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

int write_all (int fd, const void *data, size_t size)
{
    for (const char *s = data; size > 0;) {
        ssize_t n = write (fd, s, size);

        if (n < 0 && errno != EINTR)
            return -1;
        s += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* --- locks ------------------------------------------------------------------------------------------- */

#define LOOK_AGAIN_MS 5

static int path_of_lock (const char *dir, const char *name, char path[PATH_MAX], idt_error_t *errp)
{
    if (snprintf (path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX)
        return 0;
    return errsetf (errp, ENAMETOOLONG, "%s/%s: %s", dir, name, strerror (ENAMETOOLONG));
}

/* Whether only this user, or root, can open the lock file. Root trusts the lock file of any user, because it may work
 * on a folder of that user.
 */
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

/* Try to take a lock. Fails with EAGAIN if another process holds the lock, or has just removed it. */
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

    if (path_of_lock (dir, name, path, errp) < 0)
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

    if (path_of_lock (dir, name, path, NULL) == 0 && is_at (fd, path))
        unlink (path); /* the lock is still held, so that no other process has its own file at the path yet */
    close (fd);
    errno = saved_errno;
}

/* --- listening sockets ------------------------------------------------------------------------------- */

#define MAX_PATH sizeof (((struct sockaddr_un *)0)->sun_path)
#define LOCK_SUFFIX ".lock"

int listener_note (struct listener_place *place, const char *path)
{
    struct stat st;

    if (lstat (path, &st) < 0)
        return -1;
    *place = (struct listener_place){ st.st_dev, st.st_ino };
    return 0;
}

void listener_remove (const struct listener_place *place, const char *path)
{
    struct listener_place there;

    if (place->ino != 0 && listener_note (&there, path) == 0 && there.dev == place->dev && there.ino == place->ino)
        unlink (path);
}

struct socket_lock {
    int fd;
    char dir[MAX_PATH + 2], name[MAX_PATH + sizeof (LOCK_SUFFIX)];
};

static int lock_socket (struct socket_lock *lock, const char *path, idt_error_t *errp)
{
    const char *slash = strrchr (path, '/');
    int len = slash && slash > path ? (int)(slash - path) : 1;

    snprintf (lock->dir, sizeof (lock->dir), "%.*s", len, slash ? path : ".");
    snprintf (lock->name, sizeof (lock->name), "%s" LOCK_SUFFIX, slash ? slash + 1 : path);
    lock->fd = private_lock (lock->dir, lock->name, LISTENER_WAIT_MS, errp);
    return lock->fd < 0 ? -1 : 0;
}

/* Whether a process listens at the address. The socket is non-blocking, because a stopped process accepts no
 * connection, and connect () would block if its backlog is full.
 */
static bool is_served (const struct sockaddr_un *addr, int type)
{
    int fd = socket (AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool served = fd >= 0
                  && (connect (fd, (const struct sockaddr *)addr, sizeof (*addr)) == 0
                      || (errno != ECONNREFUSED && errno != ENOENT));

    if (fd >= 0)
        close (fd);
    return served;
}

static int set_address (struct sockaddr_un *addr, const char *path)
{
    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (!*path || strlen (path) >= MAX_PATH)
        return -1;
    memcpy (addr->sun_path, path, strlen (path));
    return 0;
}

bool listener_is_served (const char *path, int type)
{
    struct sockaddr_un addr;

    return set_address (&addr, path) == 0 && is_served (&addr, type);
}

/* Remove a socket file that no process listens at. The caller holds the lock, so no process is about to listen at a
 * socket that refuses connections.
 */
static int remove_left (const struct sockaddr_un *addr, int type, idt_error_t *errp)
{
    const char *path = addr->sun_path;
    struct stat st;

    if (lstat (path, &st) < 0)
        return errno == ENOENT ? 0 : errprintf (errp, "%s: %s", path, strerror (errno));
    if (!S_ISSOCK (st.st_mode))
        return errsetf (errp, EEXIST, "%s: this file is not a socket: remove it, or choose another path", path);
    if (is_served (addr, type))
        return errsetf (errp, EADDRINUSE,
                        "%s: another process serves this socket, or is stopped: choose another "
                        "path",
                        path);
    return unlink (path) < 0 ? errprintf (errp, "%s: %s", path, strerror (errno)) : 0;
}

static int bind_it (struct listener *l, const struct sockaddr_un *addr, int type, int backlog, idt_error_t *errp)
{
    if ((l->fd = socket (AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) < 0 || fchmod (l->fd, 0600) < 0
        || bind (l->fd, (const struct sockaddr *)addr, sizeof (*addr)) < 0
        || listener_note (&l->place, addr->sun_path) < 0 || listen (l->fd, backlog) < 0)
        return errprintf (errp, "%s: %s", addr->sun_path, strerror (errno));
    return (l->path = strdup (addr->sun_path)) ? 0 : errprintf (errp, "%s: out of memory", addr->sun_path);
}

/* Close the listener, if the caller holds the lock or could not get it. */
static void close_it (struct listener *l, const char *path)
{
    int saved_errno = errno;

    listener_remove (&l->place, path); /* before close (), so that a client that is refused finds no socket */
    if (l->fd >= 0)
        close (l->fd);
    free (l->path);
    *l = (struct listener){ .fd = -1 };
    errno = saved_errno;
}

int listener_open (struct listener *l, const char *path, int type, int backlog, idt_error_t *errp)
{
    struct sockaddr_un addr;
    struct socket_lock lock;

    *l = (struct listener){ .fd = -1 };
    if (set_address (&addr, path) < 0)
        return errsetf (errp, ENAMETOOLONG,
                        "%s: the path of a socket must have 1 to %zu characters: choose another "
                        "one",
                        path, MAX_PATH - 1);
    if (lock_socket (&lock, path, errp) < 0)
        return -1;
    int rc = remove_left (&addr, type, errp) < 0 ? -1 : bind_it (l, &addr, type, backlog, errp);
    if (rc < 0)
        close_it (l, path);
    private_unlock (lock.fd, lock.dir, lock.name);
    return rc;
}

/* Close the listener under the lock, because another process may be about to bind its own socket to the path. */
void listener_close (struct listener *l)
{
    int saved_errno = errno;
    struct socket_lock lock;

    if (l->fd < 0)
        return;
    bool locked = lock_socket (&lock, l->path, NULL) == 0;
    close_it (l, l->path);
    if (locked)
        private_unlock (lock.fd, lock.dir, lock.name);
    errno = saved_errno;
}
