/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_listen.c - sockets for local clients: accept, and which rank of the process a client means (protocol.md section 2)
 *
 * Who says nothing means the rank whose socket it is.  A client that names another rank with its first message goes over to that
 * one's clients, descriptor and all: it had nothing under way.
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
#include "libutil/ranges.h"

#define REQUEST_BACKLOG 128

/* --- accepting ------------------------------------------------------------------------------- */

/* The one byte of welcome, or the errno of the refusal. */
static void greet (int fd, int errnum)
{
    unsigned char byte = errnum;

    if (send (fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

/* Returns 0 and the credentials, or the errno to refuse with. */
static int authenticate (const struct usock *l, int fd, struct idt_cred *cred)
{
    struct ucred uc;
    socklen_t len = sizeof (uc);

    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &uc, &len) < 0)
        return errno;
    if (uc.uid != l->owner)
        return EPERM;
    *cred = (struct idt_cred){ uc.uid, IDT_ROLE_OWNER | IDT_ROLE_LOCAL };
    return 0;
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

/* Accept, with a descriptor of the reserve where there is no other.  The last one is for refusing: left alone a client would
 * wait, and its connection wake us for ever.
 */
static int accept_client (struct usock *l)
{
    struct usocks *all = l->all;
    int fd = accept4 (l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || all->reserved == 0)
        return fd;
    close (all->reserve[--all->reserved]);
    fd = accept4 (l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || all->reserved > 0)
        return fd;
    greet (fd, EMFILE);
    close (fd);
    log_refusal (l->log, LOG_REFUSED_CLIENT, "a client is refused: too many open files in this process");
    usocks_fill_reserve (all);
    return -1;
}

/* A client of this rank: 'fd' is its, where there is room for it.  NULL with errno set. */
static struct client *usock_admit (struct usock *l, int fd, struct idt_cred cred)
{
    struct client *c;

    if (zlistx_size (l->clients) >= l->max_clients || l->all->clients >= l->all->most)
        return errset_null (EMFILE);
    if (!(c = client_create (l, fd, cred)))
        return NULL;
    l->all->clients++;
    zlistx_add_end (l->clients, c);
    idt_watcher_start (c->w);
    return c;
}

static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct usock *l = arg;
    int fd = accept_client (l);
    struct idt_cred cred = { IDT_USERID_UNKNOWN, IDT_ROLE_NONE };
    int errnum;

    if (fd < 0)
        return;
    if ((errnum = authenticate (l, fd, &cred)) == 0 && !usock_admit (l, fd, cred))
        errnum = errno;
    greet (fd, errnum);
    if (errnum == 0)
        return;
    close (fd);
    log_refusal (l->log, LOG_REFUSED_CLIENT, "a client is refused: %s",
                 errnum == EMFILE ? "too many are connected (local.max-clients)" : strerror (errnum));
}

/* --- which rank is meant ------------------------------------------------------------------------ */

static struct usock *find_rank (struct usocks *all, uint32_t rank)
{
    struct usock *l;

    TAILQ_FOREACH (l, &all->list, link)
        if (l->rank == rank)
            return l;
    return errset_null (EHOSTUNREACH);
}

/* The answer is written at once: nobody may have woken that broker. */
static void answer (struct client *c, int errnum)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (msg) {
        idt_msg_set_control (msg, MSG_CONTROL_RANK, (uint32_t)errnum);
        c->peer.send (c, msg);
    }
    idt_msg_unref (msg);
    client_flush (c);
}

/* Hand a connection over.  The client that it was here is gone then. */
static int move (struct client *c, struct usock *to)
{
    struct client *there = to ? usock_admit (to, c->fd, c->cred) : NULL;

    if (!there)
        return -1;
    idt_watcher_stop (c->w);
    c->fd = -1;
    client_break (c, ESHUTDOWN, NULL);
    there->heard = true;
    answer (there, 0);
    return 0;
}

void usock_choose (struct client *c, uint32_t rank)
{
    struct usock *l = c->local;

    if (rank == l->rank)
        answer (c, 0);
    else if (move (c, find_rank (l->all, rank)) < 0) {
        answer (c, errno);
        client_break (c, ECONNREFUSED, NULL);
    }
}

void usock_uri (const struct usock *l, char *buf, size_t size)
{
    const struct usock *other;

    if (l->path && !l->inherited) {
        snprintf (buf, size, "local://%s", l->path);
        return;
    }
    TAILQ_FOREACH (other, &l->all->list, link)
        if (other->path)
            break;
    snprintf (buf, size, "local://%s?rank=%" PRIu32, other ? other->path : "", l->rank);
}

/* --- sockets ----------------------------------------------------------------------------------- */

/* Is somebody listening there?  One who is stopped accepts nobody, and blocks who waits for a place in his backlog. */
static bool is_served (const struct sockaddr_un *addr)
{
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool served = fd >= 0 && (connect (fd, (const struct sockaddr *)addr, sizeof (*addr)) == 0 || errno == EAGAIN);

    if (fd >= 0)
        close (fd);
    return served;
}

static int bind_at (struct usock *l, const char *path, idt_error_t *errp)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    struct stat st;

    if (strlen (path) >= sizeof (addr.sun_path))
        return errsetf (errp, ENAMETOOLONG,
                        "a socket's path may have at most %zu characters, choose a shorter rundir: %s",
                        sizeof (addr.sun_path) - 1, path);
    strcpy (addr.sun_path, path);
    if (lstat (path, &st) == 0 && S_ISSOCK (st.st_mode)) {
        if (is_served (&addr))
            return errsetf (errp, EADDRINUSE,
                            "%s: another broker is serving this socket, or stopped: choose another rundir", path);
        unlink (path);
    }
    if ((l->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) < 0
        || bind (l->fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || listen (l->fd, REQUEST_BACKLOG) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    l->path = strdup (path);
    return l->path ? 0 : -1;
}

static int watch (struct usock *l, idt_error_t *errp)
{
    if (!(l->w = idt_fd_watcher_create (l->reactor, l->fd, IDT_POLLIN, accept_cb, l)))
        return errprintf (errp, "out of memory");
    idt_watcher_start (l->w);
    return 0;
}

/* Whether it has a socket of its own: 1 or 0, or -1 with errno set and 'errp' filled. */
static int has_own (const struct usock *l, struct attrs *attrs, idt_error_t *errp)
{
    const char *ranks = attr_default (attrs, "local.sockets", "", errp);
    int rc = ranks ? ranges_have (ranks, l->rank) : -1;

    if (ranks && rc < 0)
        return errsetf (errp, EINVAL, "attribute local.sockets=%s: must be ranks such as 0,8-15", ranks);
    return rc == 0 ? TAILQ_EMPTY (&l->all->list) : rc;
}

/* A rank that comes back takes its socket back.  Returns whether there was one. */
static bool take_back (struct usock *l, const char *path)
{
    struct usock *other;

    TAILQ_FOREACH (other, &l->all->list, link)
        if (other->inherited && strcmp (other->path, path) == 0)
            break;
    if (!other)
        return false;
    idt_watcher_destroy (other->w);
    l->path = other->path;
    l->fd = other->fd;
    other->w = NULL;
    other->path = NULL;
    other->fd = -1;
    other->inherited = false;
    return true;
}

int usock_listen (struct usock *l, const char *path, struct attrs *attrs, idt_error_t *errp)
{
    int own = has_own (l, attrs, errp);

    if (own >= 0 && take_back (l, path))
        return watch (l, errp);
    if (own <= 0)
        return own;
    return bind_at (l, path, errp) < 0 ? -1 : watch (l, errp);
}

/* The first that has no socket and may be asked for at this one. */
static struct usock *heir (const struct usock *l)
{
    struct usock *other;

    TAILQ_FOREACH (other, &l->all->list, link)
        if (!other->path)
            return other;
    return NULL;
}

void usock_unlisten (struct usock *l)
{
    struct usock *next = l->path ? heir (l) : NULL;

    idt_watcher_destroy (l->w);
    if (next) {
        next->inherited = true;
        next->fd = l->fd;
        next->path = l->path;
        if (watch (next, NULL) == 0)
            return;
    }
    if (l->fd >= 0)
        close (l->fd);
    if (l->path)
        unlink (l->path);
    free (l->path);
}
