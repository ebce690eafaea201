/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control.c - the socket on which the launcher serves idtree startctl
 *
 * A client is in one of two states: the launcher reads its request, or executes its request.  The launcher drops the
 * client when it has sent the answer, or when the client closes its connection.  An answer is usually shorter than the
 * buffer of a socket, but a status of many ranks may be longer. So answers are written with the socket in blocking
 * mode, for at most WRITE_TIMEOUT_S seconds.  Only processes of the owner are served, even if the modes of the socket
 * and its directory allow others to connect.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/launch/control.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

#define WRITE_TIMEOUT_S 2 /* seconds, for a client that does not read its answer */

struct control_client {
    struct control *ctl;
    int fd; /* -1: free */
    idt_watcher_t *w;
    json_t *o; /* the request; NULL: it is still being read */
    struct control_request req;
    size_t len;
    char line[CONTROL_LINE_MAX];
};

struct control {
    idt_reactor_t *r;
    const struct control_ops *ops;
    void *arg;
    int fd;
    int spare; /* a spare descriptor; -1: none.  If all others are used, it is closed to accept and refuse a client */
    idt_watcher_t *w;
    struct control_client clients[CONTROL_CLIENTS_MAX];
};

static void drop (struct control_client *c)
{
    if (c->fd < 0)
        return;
    idt_watcher_destroy (c->w);
    close (c->fd);
    json_decref (c->o);
    c->w = NULL;
    c->o = NULL;
    c->fd = -1;
}

/* Send the answer 'o', which is stolen, and drop the client. */
static void answer_new (struct control_client *c, json_t *o)
{
    struct timeval tv = { .tv_sec = WRITE_TIMEOUT_S };
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;

    json_decref (o);
    if (s) {
        size_t len = strlen (s), done = 0;
        ssize_t n;

        s[len++] = '\n'; /* replaces the NUL */
        fcntl (c->fd, F_SETFL, 0);
        setsockopt (c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof (tv));
        while (done < len && (n = send (c->fd, s + done, len - done, MSG_NOSIGNAL)) > 0)
            done += n;
        free (s);
    }
    drop (c);
}

static void answer_error (struct control_client *c, const char *text)
{
    answer_new (c, json_pack ("{s:s}", "error", text));
}

static void check (struct control_client *c)
{
    idt_error_t error = { "" };

    switch (c->ctl->ops->check (c->ctl->arg, &c->req, &error)) {
    case CONTROL_DONE:
        answer_new (c, json_object ());
        break;
    case CONTROL_FAILED:
        answer_error (c, error.text);
        break;
    case CONTROL_WAIT:
        break;
    }
}

static void begin (struct control_client *c)
{
    struct control *ctl = c->ctl;
    idt_error_t error = { "" };

    if (!strcmp (c->req.verb, "status"))
        answer_new (c, ctl->ops->status (ctl->arg));
    else if (ctl->ops->begin (ctl->arg, &c->req, &error) == CONTROL_FAILED)
        answer_error (c, error.text);
    else
        check (c);
}

static void do_line (struct control_client *c)
{
    json_error_t error;

    c->o = json_loadb (c->line, c->len, 0, &error);
    c->req.rank = -1;
    c->req.signum = 0;
    if (!c->o
        || json_unpack_ex (c->o, &error, 0, "{s:s s?i s?i}", "verb", &c->req.verb, "rank", &c->req.rank, "signal",
                           &c->req.signum)
               < 0)
        answer_error (c, error.text);
    else
        begin (c);
}

static void client_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct control_client *c = arg;
    char *newline;
    ssize_t n = read (c->fd, c->line + c->len, sizeof (c->line) - c->len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || c->o) { /* the client has closed, or sends more before its answer */
        drop (c);
        return;
    }
    c->len += n;
    if ((newline = memchr (c->line, '\n', c->len))) {
        c->len = newline - c->line;
        do_line (c);
    }
    else if (c->len == sizeof (c->line))
        answer_error (c, "request too long");
}

static struct control_client *free_client (struct control *ctl)
{
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
        if (ctl->clients[i].fd < 0)
            return &ctl->clients[i];
    return NULL;
}

/* Return why the peer is refused, or NULL if it is not refused. */
static const char *why_refused (int fd)
{
    struct ucred cred;
    socklen_t len = sizeof (cred);

    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return "cannot determine the peer's user";
    return cred.uid == geteuid () ? NULL : CONTROL_OWNER_ONLY;
}

/* Write the error without blocking, and close the connection.  The peer's request is not read, and no state is kept. */
static void refuse (int fd, const char *why)
{
    char line[128];
    int n = snprintf (line, sizeof (line), "{\"error\":\"%s\"}\n", why);

    (void)!send (fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    close (fd);
}

static int take_spare (void)
{
    return open ("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int take_client (const struct control *ctl)
{
    return accept4 (ctl->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Refuse the next client in the queue.  If the client stayed there, the reactor would wake up again and again. */
static void refuse_next (struct control *ctl)
{
    if (ctl->spare >= 0)
        close (ctl->spare);
    int fd = take_client (ctl);
    if (fd >= 0)
        refuse (fd, "the launcher has no free file descriptor");
    ctl->spare = take_spare ();
}

static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct control *ctl = arg;
    struct control_client *c = free_client (ctl);
    int fd = take_client (ctl);
    const char *why;

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        refuse_next (ctl);
    if (fd < 0)
        return;
    if ((why = why_refused (fd)) || !c) {
        refuse (fd, why ? why : "too many clients ask the launcher at the same time");
        return;
    }
    c->fd = fd;
    c->len = 0;
    if ((c->w = idt_fd_watcher_create (ctl->r, fd, IDT_POLLIN, client_cb, c)))
        idt_watcher_start (c->w);
    else
        drop (c);
}

static int listen_in (const char *dir, idt_error_t *errp)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd;

    if (private_dir_check ("directory", dir, PRIVATE_DIR_STRICT, errp) < 0)
        return -1;
    fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/%s", dir, CONTROL_SOCKET) >= (int)sizeof (addr.sun_path))
        errno = ENAMETOOLONG;
    else if (fd >= 0 && bind (fd, (struct sockaddr *)&addr, sizeof (addr)) == 0 && chmod (addr.sun_path, 0600) == 0
             && listen (fd, 16) == 0)
        return fd; /* no client can connect before listen () */
    errprintf (errp, "%s/%s: %s", dir, CONTROL_SOCKET, strerror (errno));
    if (fd >= 0)
        close (fd);
    return -1;
}

void control_destroy (struct control *ctl)
{
    int saved_errno = errno;

    if (!ctl)
        return;
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
        drop (&ctl->clients[i]);
    idt_watcher_destroy (ctl->w);
    if (ctl->fd >= 0)
        close (ctl->fd);
    if (ctl->spare >= 0)
        close (ctl->spare);
    free (ctl);
    errno = saved_errno;
}

struct control *control_create (idt_reactor_t *r, const char *dir, const struct control_ops *ops, void *arg,
                                idt_error_t *errp)
{
    struct control *ctl = calloc (1, sizeof (*ctl));

    if (!ctl) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    ctl->r = r;
    ctl->ops = ops;
    ctl->arg = arg;
    ctl->spare = take_spare ();
    for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        ctl->clients[i].ctl = ctl;
        ctl->clients[i].fd = -1;
    }
    if ((ctl->fd = listen_in (dir, errp)) < 0)
        goto error;
    if (!(ctl->w = idt_fd_watcher_create (r, ctl->fd, IDT_POLLIN, accept_cb, ctl))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    idt_watcher_start (ctl->w);
    return ctl;
error:
    control_destroy (ctl);
    return NULL;
}

void control_notify (struct control *ctl)
{
    for (int i = 0; ctl && i < CONTROL_CLIENTS_MAX; i++)
        if (ctl->clients[i].fd >= 0 && ctl->clients[i].o)
            check (&ctl->clients[i]);
}
