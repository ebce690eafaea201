/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_listen.c - sockets for local clients, and which users may connect (protocol.md section 2)
 *
 * The sockets and the loop that accepts belong to the process: a stopped rank does not keep clients from other ranks.
 * The first rank's socket stays open after the first rank has ended, for ranks without a socket.  While the process has
 * had only one rank, a connection is immediately a client of that rank.  Otherwise it is a caller first
 * (usock_handshake.c).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/route/usock_private.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"
#include "libutil/text.h"

#define REQUEST_BACKLOG 128
#define NAME_LOCK "local.lock"
#define NAME_WAIT_MS 2000 /* other brokers need less; a stopped one may hold the lock forever */

/* --- accepting ------------------------------------------------------------------------------- */

/* Send the one byte that welcomes (0) or refuses (errno) a connection. */
static void greet (int fd, int errnum)
{
    unsigned char byte = errnum;

    if (send (fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

/* The groups of the connected process, the first of them 'first'.  The caller frees them.  NULL with errno set. */
static gid_t *peer_groups (int fd, gid_t first, size_t *n)
{
    socklen_t size = 0; /* the first call returns the size */
    gid_t *gid, none;

    if (getsockopt (fd, SOL_SOCKET, SO_PEERGROUPS, &none, &size) < 0 && errno != ERANGE)
        return NULL;
    if (!(gid = malloc (sizeof (gid_t) + size)) || getsockopt (fd, SOL_SOCKET, SO_PEERGROUPS, gid + 1, &size) < 0) {
        free (gid);
        return NULL;
    }
    gid[0] = first;
    *n = 1 + size / sizeof (gid_t);
    return gid;
}

/* Returns 0 with the credentials in '*cred', or the errno to refuse the connection with. */
static int authenticate (const struct authz *admit, int fd, struct idt_cred *cred)
{
    struct ucred uc;
    socklen_t len = sizeof (uc);
    size_t n = 0;
    gid_t *gid;
    int errnum;

    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &uc, &len) < 0 || !(gid = peer_groups (fd, uc.gid, &n)))
        return errno;
    errnum = authz_user (admit, uc.uid, gid, n, cred) < 0 ? errno : 0;
    cred->userid = uc.uid;
    free (gid);
    return errnum;
}

void usocks_fill_reserve (struct usocks *all)
{
    while (all->reserved < LOCAL_RESERVE) {
        int fd = all->reserved > 0 ? fcntl (all->reserve[0], F_DUPFD_CLOEXEC, 0)
                                   : open ("/dev/null", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            return;
        all->reserve[all->reserved++] = fd;
    }
}

/* Accept a connection.  If the process has no free descriptor, give up one of the reserve for it.  The last one is used
 * to refuse: otherwise the client would wait, and its pending connection would wake the loop all the time.
 */
static int accept_client (struct door *d)
{
    struct usocks *all = d->all;
    int fd = accept4 (d->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || all->reserved == 0)
        return fd;
    close (all->reserve[--all->reserved]);
    fd = accept4 (d->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || all->reserved > 0)
        return fd;
    greet (fd, EMFILE);
    close (fd);
    log_refusal (usocks_log (all, d->rank), LOG_REFUSED_CLIENT,
                 "a client is refused: too many open files in this process");
    usocks_fill_reserve (all);
    return -1;
}

/* Whether rank 'l' accepts another client of this user.  The instance owner always finds room: guests together have
 * half of the places, and one guest an eighth.
 */
static bool has_room (const struct usock *l, struct idt_cred cred)
{
    uint32_t others = 0, same = 0;

    if (zlistx_size (l->clients) >= l->max_clients)
        return false;
    if (cred.rolemask & IDT_ROLE_OWNER)
        return true;
    for (const struct client *c = zlistx_first (l->clients); c; c = zlistx_next (l->clients)) {
        others += !(c->cred.rolemask & IDT_ROLE_OWNER);
        same += c->cred.userid == cred.userid;
    }
    return others < (l->max_clients + 1) / 2 && same < (l->max_clients + 7) / 8;
}

struct client *usock_admit (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream)
{
    struct client *c;

    if (!has_room (l, cred))
        return errset_null (EMFILE);
    if (!(c = client_create (l, fd, cred, stream)))
        return NULL;
    l->all->clients++;
    zlistx_add_end (l->clients, c);
    idt_watcher_start (c->w);
    return c;
}

static int take_in (struct door *d, int fd, struct idt_cred cred)
{
    struct usocks *all = d->all;
    struct usock *l;

    if (all->clients >= all->most)
        return errset (EMFILE);
    if (all->several)
        return caller_create (all, d->rank, fd, cred);
    return (l = usocks_find (all, d->rank)) && usock_admit (l, fd, cred, NULL) ? 0 : -1;
}

static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct door *d = arg;
    int fd = accept_client (d);
    struct idt_cred cred = { IDT_USERID_UNKNOWN, IDT_ROLE_NONE };
    int errnum;

    if (fd < 0)
        return;
    if ((errnum = authenticate (&usocks_host (d->all, d->rank)->admit, fd, &cred)) == 0 && take_in (d, fd, cred) < 0)
        errnum = errno;
    greet (fd, errnum);
    if (errnum == 0)
        return;
    close (fd);
    log_refusal (usocks_log (d->all, d->rank), LOG_REFUSED_CLIENT, "a client of user %" PRIu32 " is refused: %s",
                 cred.userid,
                 errnum == EMFILE  ? "too many clients are connected (local.max-clients)"
                 : errnum == EPERM ? "this user may not connect (access.allow-guest-user, access.group)"
                                   : strerror (errnum));
}

/* --- sockets ----------------------------------------------------------------------------------- */

static int cannot_give (const char *path, gid_t group, idt_error_t *errp)
{
    int errnum = errno;

    if (errnum == EPERM && geteuid () != 0 && !group_member (group))
        return errsetf (errp, EINVAL,
                        "%s cannot be given to group %u (access.group): user %u is no member of it (under systemd: "
                        "SupplementaryGroups)",
                        path, (unsigned)group, (unsigned)geteuid ());
    return errsetf (errp, EINVAL, "%s cannot be given to group %u (access.group): chown: %s%s", path, (unsigned)group,
                    strerror (errnum), errnum == EPERM ? " (does SystemCallFilter of the unit refuse it?)" : "");
}

/* Let the group use the socket.  Until then only the instance owner can connect. */
static int open_to (const struct authz *admit, const char *path, idt_error_t *errp)
{
    if (admit->has_group && chown (path, (uid_t)-1, admit->group) < 0)
        return cannot_give (path, admit->group, errp);
    if (chmod (path, authz_socket_mode (admit)) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    return 0;
}

static int bind_at (struct door *d, const char *path, idt_error_t *errp)
{
    idt_error_t why;

    if (listener_open (&d->sock, path, SOCK_STREAM, REQUEST_BACKLOG, &why) == 0)
        return 0;
    if (errno == ENAMETOOLONG)
        return errprintf (errp, "a socket's path may have at most %zu characters, choose a shorter rundir: %s",
                          sizeof (((struct sockaddr_un *)0)->sun_path) - 1, path);
    if (errno == EADDRINUSE)
        return errprintf (errp, "%s: another broker is serving this socket, or stopped: choose another rundir", path);
    return errprintf (errp, "%s", why.text);
}

/* --- the name RUNDIR/local --------------------------------------------------------------------- */

/* Read the target of the link 'name'.  Returns whether there is one and a process serves that socket. */
static bool read_name (const char *name, char target[64])
{
    ssize_t n = readlink (name, target, 63);

    target[n < 0 ? 0 : n] = '\0';
    return n > 0 && listener_is_served (name, SOCK_STREAM);
}

/* Whether a lower rank that is served has the name.  A rank that is added later leaves it unchanged. */
static bool is_anothers (const char *name, uint32_t rank)
{
    char target[64];
    unsigned other;

    return read_name (name, target) && sscanf (target, "local-%u", &other) == 1 && other < rank;
}

/* Make the link RUNDIR/local unless a lower rank has it.  Returns whether the link is ours. */
static bool make_name (const struct door *d, const char *name, const char *target)
{
    char made[sizeof (((struct sockaddr_un *)0)->sun_path) + 16];

    if (is_anothers (name, d->rank))
        return false;
    snprintf (made, sizeof (made), "%s.%" PRIu32, name, d->rank);
    unlink (made);
    return symlink (target, made) == 0 && rename (made, name) == 0;
}

/* Take the name RUNDIR/local, under a lock against other brokers of the folder.  Without it clients must name the rank.
 */
static void take_name (struct door *d, struct log *log)
{
    size_t len = strlen (d->sock.path) - strlen (strrchr (d->sock.path, '/'));
    char name[sizeof (((struct sockaddr_un *)0)->sun_path)], folder[sizeof (name)];
    idt_error_t err;
    int fd;

    snprintf (folder, sizeof (folder), "%.*s", (int)len, d->sock.path);
    snprintf (name, sizeof (name), "%.*s/local", (int)len, d->sock.path);
    if ((fd = private_lock (folder, NAME_LOCK, NAME_WAIT_MS, &err)) < 0) {
        log_printf (log, LOG_WARNING, "broker", "clients must name this rank, %s is not made: %s", name, err.text);
        return;
    }
    if (make_name (d, name, d->sock.path + len + 1))
        d->name = strdup (name);
    private_unlock (fd, folder, NAME_LOCK);
}

static void leave_name (struct door *d)
{
    char target[64];
    ssize_t n = d->name ? readlink (d->name, target, sizeof (target) - 1) : -1;

    if (n < 0)
        return;
    target[n] = '\0';
    if (strcmp (target, strrchr (d->sock.path, '/') + 1) == 0)
        unlink (d->name);
}

static void door_close (struct door *d)
{
    int saved_errno = errno;

    if (!d)
        return;
    leave_name (d);
    idt_watcher_destroy (d->w);
    listener_close (&d->sock);
    free (d->name);
    free (d);
    errno = saved_errno;
}

static struct door *door_open (struct usocks *all, uint32_t rank, const char *path, const struct authz *admit,
                               idt_error_t *errp)
{
    struct door *d = calloc (1, sizeof (*d));

    if (!d) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    *d = (struct door){ .all = all, .rank = rank, .sock = { .fd = -1 } };
    if (bind_at (d, path, errp) < 0 || open_to (admit, path, errp) < 0) {
        door_close (d);
        return NULL;
    }
    if (!(d->w = idt_fd_watcher_create (all->reactor, d->sock.fd, IDT_POLLIN, accept_cb, d))) {
        errprintf (errp, "out of memory");
        door_close (d);
        return NULL;
    }
    idt_watcher_start (d->w);
    return d;
}

/* --- ranks and sockets -------------------------------------------------------------------------- */

struct usock *usocks_find (struct usocks *all, uint32_t rank)
{
    struct usock *l;

    TAILQ_FOREACH (l, &all->list, link)
        if (l->rank == rank)
            return l;
    return errset_null (EHOSTUNREACH);
}

struct usock *usocks_host (struct usocks *all, uint32_t rank)
{
    struct usock *l = usocks_find (all, rank);

    return l ? l : TAILQ_FIRST (&all->list);
}

struct log *usocks_log (struct usocks *all, uint32_t rank)
{
    return usocks_host (all, rank)->log;
}

static bool is_first (const struct usock *l)
{
    return l->rank == l->all->first;
}

void usock_uri (const struct usock *l, char *buf, size_t size)
{
    const struct door *own = is_first (l) ? l->all->main : l->door;

    if (own)
        snprintf (buf, size, "local://%s", own->sock.path);
    else
        snprintf (buf, size, "local://%s?rank=%" PRIu32, l->all->main->sock.path, l->rank);
}

static int set_path (struct usocks *all, const char *path)
{
    char *copy = strdup (path);

    if (!copy)
        return -1;
    free (all->path);
    all->path = copy;
    return 0;
}

/* Open the first rank's socket.  After all ranks have ended, the rank that opens it again may be another one. */
static int open_main (struct usock *l, const char *path, idt_error_t *errp)
{
    struct usocks *all = l->all;

    if (!all->path)
        all->first = l->rank;
    if (!is_first (l))
        all->several = true;
    else if (!all->main && set_path (all, path) < 0)
        return errprintf (errp, "out of memory");
    if (!all->main && (all->main = door_open (all, all->first, all->path, &l->admit, errp)))
        take_name (all->main, l->log);
    return all->main ? 0 : -1;
}

int usock_listen (struct usock *l, const char *path, struct attrs *attrs, idt_error_t *errp)
{
    const char *ranks = attr_default (attrs, "local.sockets", "", errp);
    int listed = ranks ? ranges_have (ranks, l->rank) : -1;

    if (ranks && listed < 0)
        return attr_fault (attrs, "local.sockets", errp, "must be ranks such as 0,8-15");
    if (listed < 0 || open_main (l, path, errp) < 0)
        return -1;
    if (listed && !is_first (l) && !(l->door = door_open (l->all, l->rank, path, &l->admit, errp)))
        return -1;
    return 0;
}

void usock_unlisten (struct usock *l)
{
    struct usocks *all = l->all;
    struct caller *g;

    door_close (l->door);
    if (!TAILQ_EMPTY (&all->list))
        return;
    while ((g = TAILQ_FIRST (&all->callers)))
        caller_destroy (g);
    door_close (all->main);
    all->main = NULL;
}
