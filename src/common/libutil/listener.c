/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listener.c - listening UNIX sockets at paths that several processes may want */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "libutil/listener.h"
#include "libutil/private_dir.h"

#define MAX_PATH sizeof (((struct sockaddr_un *)0)->sun_path)
#define LOCK_SUFFIX ".lock"

/* --- which file ------------------------------------------------------------------------------------- */

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

/* --- the lock --------------------------------------------------------------------------------------- */

struct lock {
    int fd;
    char dir[MAX_PATH + 2], name[MAX_PATH + sizeof (LOCK_SUFFIX)];
};

static int lock_path (struct lock *lock, const char *path, idt_error_t *errp)
{
    const char *slash = strrchr (path, '/');

    int len = slash && slash > path ? (int)(slash - path) : 1;

    snprintf (lock->dir, sizeof (lock->dir), "%.*s", len, slash ? path : ".");
    snprintf (lock->name, sizeof (lock->name), "%s" LOCK_SUFFIX, slash ? slash + 1 : path);
    lock->fd = private_lock (lock->dir, lock->name, LISTENER_WAIT_MS, errp);
    return lock->fd < 0 ? -1 : 0;
}

static void unlock_path (const struct lock *lock)
{
    private_unlock (lock->fd, lock->dir, lock->name);
}

/* --- listening -------------------------------------------------------------------------------------- */

/* Whether a process listens at the address. A stopped process accepts no connection, and connect () blocks if its
 * backlog is full.
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

/* The caller holds the lock, so a socket that refuses connections has no owner. */
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

/* The caller holds the lock, or could not get it. */
static void close_it (struct listener *l, const char *path)
{
    int saved_errno = errno;

    listener_remove (&l->place, path); /* before close (): a client that is refused then finds no socket */
    if (l->fd >= 0)
        close (l->fd);
    free (l->path);
    *l = (struct listener){ .fd = -1 };
    errno = saved_errno;
}

int listener_open (struct listener *l, const char *path, int type, int backlog, idt_error_t *errp)
{
    struct sockaddr_un addr;
    struct lock lock;

    *l = (struct listener){ .fd = -1 };
    if (set_address (&addr, path) < 0)
        return errsetf (errp, ENAMETOOLONG,
                        "%s: the path of a socket must have 1 to %zu characters: choose another "
                        "one",
                        path, MAX_PATH - 1);
    if (lock_path (&lock, path, errp) < 0)
        return -1;
    int rc = remove_left (&addr, type, errp) < 0 ? -1 : bind_it (l, &addr, type, backlog, errp);
    if (rc < 0)
        close_it (l, path);
    unlock_path (&lock);
    return rc;
}

/* Takes the lock, because another process may be about to bind its own socket to the path. */
void listener_close (struct listener *l)
{
    int saved_errno = errno;
    struct lock lock;

    if (l->fd < 0)
        return;
    bool locked = lock_path (&lock, l->path, NULL) == 0;
    close_it (l, l->path);
    if (locked)
        unlock_path (&lock);
    errno = saved_errno;
}
