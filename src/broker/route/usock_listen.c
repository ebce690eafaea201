/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_listen.c - sockets for local clients: which users may connect, and for which rank (protocol.md section 2)
 *
 * The permissions of the socket exclude most users who may not connect.  For other users the kernel reports the user
 * and the groups of the connecting process.
 *
 * The sockets, and the loop that accepts connections, belong to the process.  So a stopped rank does not keep clients
 * from other ranks.  The first rank's socket stays open after the first rank has ended, for ranks that have no socket.
 *
 * While the process has had only one rank, a connection is immediately a client of that rank.  Otherwise a connection
 * is a caller first, which belongs to no rank yet.  The first message of a caller may name a rank.  The caller's
 * descriptor is then passed to that rank, or else to the rank of the socket that it connected to.
 *
 * A socket has at most as many callers as its rank may have clients (local.max-clients).  All sockets together have
 * callers for at most half of the connections that the process allows.  So silent connections do not keep clients out.
 * At a limit one caller is closed for each new one: a guest before the instance owner, then a caller that has sent
 * nothing before one that has, then the oldest.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/route/usock_private.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"
#include "libutil/text.h"

#define GROUP_SIZE 65536 /* bytes of an entry of the group database, including the group's members */
#define REQUEST_BACKLOG 128
#define NAME_LOCK "local.lock"
#define NAME_WAIT_MS 2000 /* a running broker holds the lock for less time; a stopped broker may hold it forever */

/* A listening socket for clients. */
struct door {
    struct usocks *all;
    uint32_t rank; /* the socket's rank, which may have ended */
    struct listener sock;
    char *name; /* path of the link RUNDIR/local if the link leads to this socket, else NULL */
    idt_watcher_t *w;
};

/* A connection that has named no rank yet. */
struct caller {
    struct usocks *all;
    uint32_t rank; /* rank of the socket that the caller connected to */
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    bool heard; /* part of a message has arrived */
    TAILQ_ENTRY (caller) link;
};

/* --- which users may connect ----------------------------------------------------------------------- */

/* Find the group 's', a name or a number; "" means no group. */
static int get_group (struct authz *a, struct attrs *attrs, const char *s, idt_error_t *errp)
{
    struct group entry, *found = NULL;
    char buf[GROUP_SIZE];
    uint64_t number;

    a->has_group = *s != '\0';
    if (!a->has_group)
        return 0;
    if (parse_number (s, 0, UINT32_MAX - 1, &number) == 0)
        a->group = (gid_t)number;
    else if (getgrnam_r (s, &entry, buf, sizeof (buf), &found) == 0 && found)
        a->group = found->gr_gid;
    else
        return attr_fault (attrs, "access.group", errp,
                           "there is no such group on this host: make it, or name another");
    return 0;
}

int authz_init (struct authz *a, struct attrs *attrs, idt_error_t *errp)
{
    const char *group = attr_default (attrs, "access.group", "", errp);

    *a = (struct authz){ .owner = geteuid () };
    if (!group || get_group (a, attrs, group, errp) < 0
        || attr_switch (attrs, "access.allow-guest-user", "false", &a->guests, errp) < 0
        || attr_switch (attrs, "access.allow-root-owner", "false", &a->root, errp) < 0)
        return -1;
    return 0;
}

static bool is_member (const struct authz *a, const gid_t *gid, size_t ngids)
{
    for (size_t i = 0; a->has_group && i < ngids; i++)
        if (gid[i] == a->group)
            return true;
    return false;
}

int authz_user (const struct authz *a, uid_t uid, const gid_t *gid, size_t ngids, struct idt_cred *cred)
{
    uint32_t roles = IDT_ROLE_LOCAL;

    if (uid == a->owner || (uid == 0 && a->root))
        roles |= IDT_ROLE_OWNER;
    else if (is_member (a, gid, ngids))
        roles |= IDT_ROLE_USER | IDT_ROLE_GROUP;
    else if (a->guests)
        roles |= IDT_ROLE_USER;
    else
        return errset (EPERM);
    *cred = (struct idt_cred){ uid, roles };
    return 0;
}

mode_t authz_socket_mode (const struct authz *a)
{
    return a->guests ? 0666 : a->has_group ? 0660 : 0600;
}

mode_t authz_folder_mode (const struct authz *a)
{
    return a->guests || a->has_group ? 0711 : 0700;
}

/* --- the process ------------------------------------------------------------------------------------ */

/* Returns NULL with errno EHOSTUNREACH if the process has no such rank. */
static struct usock *usocks_find (struct usocks *all, uint32_t rank)
{
    struct usock *l;

    TAILQ_FOREACH (l, &all->list, link)
        if (l->rank == rank)
            return l;
    return errset_null (EHOSTUNREACH);
}

/* The rank whose limits and log to use for 'rank': 'rank' itself, or the first rank in the list if 'rank' has ended. */
static struct usock *usocks_host (struct usocks *all, uint32_t rank)
{
    struct usock *l = usocks_find (all, rank);

    assert (!TAILQ_EMPTY (&all->list));
    return l ? l : TAILQ_FIRST (&all->list);
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

/* --- callers ---------------------------------------------------------------------------------------- */

static void caller_destroy (struct caller *g)
{
    struct usocks *all = g->all;

    TAILQ_REMOVE (&all->callers, g, link);
    assert (all->ncallers > 0 && all->clients > 0);
    all->ncallers--;
    idt_watcher_destroy (g->w);
    msg_stream_destroy (g->stream);
    if (g->fd >= 0)
        close (g->fd);
    free (g);
    all->clients--;
    usocks_fill_reserve (all);
}

static bool names_rank (const idt_msg_t *msg)
{
    return msg && idt_msg_type (msg) == IDT_MSGTYPE_CONTROL && idt_msg_control_type (msg) == MSG_CONTROL_RANK;
}

static void refuse (struct caller *g, const idt_msg_t *msg, int errnum)
{
    const char *why = strerror (errnum);
    idt_msg_t *refusal = NULL;

    if (names_rank (msg))
        refusal = usock_rank_answer (errnum);
    else if (msg && idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        refusal = idt_msg_respond (msg, errnum);
    if (refusal && msg_stream_put (g->stream, refusal) == 0)
        msg_stream_flush (g->stream);
    idt_msg_unref (refusal);
    if (errnum == EMFILE)
        why = "too many clients are connected (local.max-clients)";
    else if (errnum == EHOSTDOWN)
        why = "the rank of this socket has ended, and the client named no other";
    log_refusal (usocks_host (g->all, g->rank)->log, LOG_REFUSED_CLIENT, "a client is refused: %s", why);
}

/* Pass the caller to its rank.  'msg' (stolen) is the caller's first message; NULL: the first message is a long one and
 * is not complete yet.
 */
static void introduce (struct caller *g, idt_msg_t *msg)
{
    bool names = names_rank (msg);
    struct usock *l = usocks_find (g->all, names ? (uint32_t)idt_msg_control_status (msg) : g->rank);
    struct client *c = l ? usock_admit (l, g->fd, g->cred, g->stream) : NULL;

    if (!c) {
        refuse (g, msg, l || names ? errno : EHOSTDOWN);
        idt_msg_unref (msg);
        return;
    }
    g->fd = -1;
    g->stream = NULL;
    if (names) {
        idt_msg_unref (msg);
        msg = NULL;
        c->heard = true;
        client_answer (c, 0);
    }
    client_begin (c, msg);
}

/* Read the caller's first message.  Returns whether it stays a caller. */
static bool hear (struct caller *g)
{
    idt_msg_t *msg = NULL;
    idt_error_t err;
    bool eof = false;

    if (msg_stream_fill (g->stream, &eof) < 0)
        return errno == EAGAIN || errno == EINTR;
    g->heard = true;
    if ((msg = msg_stream_next (g->stream, &err)) || msg_stream_wants (g->stream) > 0)
        introduce (g, msg);
    else if (errno == EAGAIN)
        return !eof;
    else
        log_refusal (usocks_host (g->all, g->rank)->log, LOG_REFUSED_CLIENT, "a client is disconnected: %s", err.text);
    return false;
}

static void caller_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct caller *g = arg;

    if (!hear (g))
        caller_destroy (g);
}

static uint32_t count_at (const struct usocks *all, uint32_t rank)
{
    const struct caller *g;
    uint32_t n = 0;

    TAILQ_FOREACH (g, &all->callers, link)
        n += g->rank == rank;
    return n;
}

/* Callers with a lower value are closed first: guests before the owner, callers that have sent nothing before others.
 */
static int worth (const struct caller *g)
{
    return (g->cred.rolemask & IDT_ROLE_OWNER ? 2 : 0) + (g->heard ? 1 : 0);
}

/* The oldest caller of the lowest worth () at the socket of 'rank'; TOPO_NONE: at any socket. */
static struct caller *find_oldest (const struct usocks *all, uint32_t rank)
{
    struct caller *g, *oldest = NULL;

    TAILQ_FOREACH (g, &all->callers, link)
        if ((rank == TOPO_NONE || g->rank == rank) && (!oldest || worth (g) < worth (oldest)))
            oldest = g;
    return oldest;
}

static void make_room (struct usocks *all, uint32_t rank)
{
    const struct usock *host = usocks_host (all, rank);
    bool many = all->ncallers >= host->max_clients && count_at (all, rank) >= host->max_clients;

    if (!many && all->ncallers < all->most / 2)
        return;
    struct caller *g = find_oldest (all, many ? rank : TOPO_NONE);
    if (hear (g)) /* the message that names a rank may just have arrived */
        log_refusal (host->log, LOG_REFUSED_CLIENT,
                     "a client is disconnected before it named a rank: %" PRIu32 " such clients are connected (%s)",
                     all->ncallers, many ? "local.max-clients" : "ulimit -n");
    caller_destroy (g);
}

/* Make a connection to the socket of 'rank' a caller, and read its first message.  At a limit another caller is closed
 * for it.  Returns 0, or -1 with errno set ('fd' then still belongs to the calling function).
 */
static int caller_create (struct usocks *all, uint32_t rank, int fd, struct idt_cred cred)
{
    struct caller *g = calloc (1, sizeof (*g));

    if (!g)
        return -1;
    *g = (struct caller){ .all = all, .rank = rank, .fd = fd, .cred = cred };
    if (!(g->stream = usock_stream (TAILQ_FIRST (&all->list), fd))
        || !(g->w = idt_fd_watcher_create (all->reactor, fd, IDT_POLLIN, caller_cb, g))) {
        msg_stream_destroy (g->stream);
        free (g);
        return errset (ENOMEM);
    }
    make_room (all, rank);
    TAILQ_INSERT_TAIL (&all->callers, g, link);
    all->ncallers++;
    all->clients++;
    idt_watcher_start (g->w);
    return 0;
}

/* --- accepting ------------------------------------------------------------------------------- */

/* Send the one byte that accepts (0) or refuses (errno) a connection. */
static void greet (int fd, int errnum)
{
    unsigned char byte = errnum;

    if (send (fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

/* The groups of the connected process: 'first', then its supplementary groups.  The caller frees them.  NULL with errno
 * set.
 */
static gid_t *peer_groups (int fd, gid_t first, size_t *n)
{
    socklen_t size = 0; /* the first call stores the size */
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

/* Returns 0 and stores the credentials in '*cred', or returns the errno with which to refuse the connection. */
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

/* Accept a connection.  If the process has no free descriptor, use one of the reserve.  The last descriptor of the
 * reserve is only used to refuse a connection.  Without that the client would wait, and its pending connection would
 * wake the loop all the time.
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
    log_refusal (usocks_host (all, d->rank)->log, LOG_REFUSED_CLIENT,
                 "a client is refused: too many open files in this process");
    usocks_fill_reserve (all);
    return -1;
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
    log_refusal (usocks_host (d->all, d->rank)->log, LOG_REFUSED_CLIENT, "a client of user %" PRIu32 " is refused: %s",
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

/* Let the group use the socket.  Before this call only the instance owner can connect. */
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

/* Whether the link 'name' leads to the socket of a lower rank, and that socket is served. */
static bool is_anothers (const char *name, uint32_t rank)
{
    char target[64] = "";
    unsigned other;

    return readlink (name, target, sizeof (target) - 1) > 0 && listener_is_served (name, SOCK_STREAM)
           && sscanf (target, "local-%u", &other) == 1 && other < rank;
}

/* Make the link RUNDIR/local, unless it already leads to the socket of a lower rank.  Returns whether the link leads to
 * our socket.
 */
static bool make_name (const struct door *d, const char *name, const char *target)
{
    char made[sizeof (((struct sockaddr_un *)0)->sun_path) + 16];

    if (is_anothers (name, d->rank))
        return false;
    snprintf (made, sizeof (made), "%s.%" PRIu32, name, d->rank);
    unlink (made);
    return symlink (target, made) == 0 && rename (made, name) == 0;
}

/* Make the link RUNDIR/local.  A lock excludes other brokers that use the same folder.  Without the link, clients must
 * name the rank.
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
    char target[64] = "";

    if (d->name && readlink (d->name, target, sizeof (target) - 1) >= 0
        && strcmp (target, strrchr (d->sock.path, '/') + 1) == 0)
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

    if (!d)
        goto nomem;
    *d = (struct door){ .all = all, .rank = rank, .sock = { .fd = -1 } };
    if (bind_at (d, path, errp) < 0 || open_to (admit, path, errp) < 0) {
        door_close (d);
        return NULL;
    }
    if (!(d->w = idt_fd_watcher_create (all->reactor, d->sock.fd, IDT_POLLIN, accept_cb, d)))
        goto nomem;
    idt_watcher_start (d->w);
    return d;
nomem:
    errprintf (errp, "out of memory");
    door_close (d);
    return NULL;
}

/* --- the sockets of a rank -------------------------------------------------------------------------- */

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

/* Open the first rank's socket.  If all ranks had ended, another rank may be the one that opens it again. */
static int open_main (struct usock *l, const char *path, idt_error_t *errp)
{
    struct usocks *all = l->all;

    if (!all->path)
        all->first = l->rank;
    if (!is_first (l))
        all->several = true;
    else if (!all->main) {
        char *copy = strdup (path);

        if (!copy)
            return errprintf (errp, "out of memory");
        free (all->path);
        all->path = copy;
    }
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
