/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* local.c - local clients: a UNIX socket server (protocol.md section 2)
 *
 * Output is collected per client and written once before the reactor sleeps.  A client is destroyed only in
 * reap (), never while its messages are being handed out: whoever finds it broken marks it.
 */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/local.h"
#include "libmsg/stream.h"
#include "libutil/errprintf.h"

#define READ_BUDGET 256 /* messages of one client before others get their turn */
#define REQUEST_BACKLOG 128

struct client {
    struct peer peer;
    struct local *local;
    struct client *next_dirty;
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    bool dirty;      /* in the list to flush */
    bool want_write; /* the socket is full: wait for POLLOUT */
    bool paused;     /* messages may be left in the input buffer */
    int broken;      /* errno that ends it; 0: fine */
};

struct local {
    idt_reactor_t *reactor;
    struct router *router;
    struct log *log;
    const struct local_ops *ops;
    void *arg;
    char *path;
    int fd;
    int spare; /* given up to refuse a client when no descriptor is left */
    idt_watcher_t *w;
    idt_watcher_t *resume; /* idle watcher: runs while a client is paused */
    zlistx_t *clients;
    struct client *dirty;
    uint32_t owner;
    uint32_t max_clients;
    uint64_t max_message;
    uint64_t max_queue;
};

/* --- one client ------------------------------------------------------------------------------ */

static void client_dirty (struct client *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->local->dirty;
    c->local->dirty = c;
}

static void client_break (struct client *c, int errnum, const char *why)
{
    if (c->broken)
        return;
    c->broken = errnum;
    client_dirty (c);
    if (why)
        log_printf (c->local->log, LOG_ERR, "local", "client %.8s (user %u) is disconnected: %s", c->peer.uuid,
                    c->cred.userid, why);
}

/* A message for the client; the router's way to it. */
static int client_send (void *arg, const idt_msg_t *msg)
{
    struct client *c = arg;

    if (c->broken) {
        errno = EPIPE;
        return -1;
    }
    if (msg_stream_put (c->stream, msg) < 0) {
        client_break (c, errno, errno == ENOBUFS ? "it does not read its answers (local.max-queue)"
                                                 : "out of memory");
        return -1;
    }
    client_dirty (c);
    return 0;
}

/* Who the client is, on each message: the owner may speak for another, where he says so (RFC 3), but not for a broker. */
static void stamp (struct client *c, idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);

    cred.rolemask &= ~(uint32_t)IDT_ROLE_BROKER;
    if (!(c->cred.rolemask & IDT_ROLE_OWNER))
        cred = c->cred;
    else {
        if (cred.userid == IDT_USERID_UNKNOWN)
            cred.userid = c->cred.userid;
        if (cred.rolemask == IDT_ROLE_NONE)
            cred.rolemask = c->cred.rolemask;
    }
    idt_msg_set_cred (msg, cred);
}

static void client_message (struct client *c, idt_msg_t *msg)
{
    struct local *l = c->local;

    if (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL) {
        idt_msg_unref (msg);
        client_break (c, EPROTO, "it sent a control message, which clients may not");
        return;
    }
    stamp (c, msg);
    l->ops->message (l->arg, &c->peer, msg);
}

/* Hand out what is in the buffer.  Returns whether the budget ran out before the buffer did. */
static bool client_drain (struct client *c)
{
    idt_error_t err;
    idt_msg_t *msg;

    for (int n = 0; n < READ_BUDGET; n++) {
        if (c->broken)
            return false;
        if (!(msg = msg_stream_next (c->stream, &err))) {
            if (errno != EAGAIN)
                client_break (c, errno, err.text);
            return false;
        }
        client_message (c, msg);
    }
    return true;
}

static void client_pause (struct client *c, bool paused)
{
    c->paused = paused;
    idt_fd_watcher_set_events (c->w, (paused ? 0 : IDT_POLLIN) | (c->want_write ? IDT_POLLOUT : 0));
    if (paused)
        idt_watcher_start (c->local->resume);
}

static void client_read (struct client *c)
{
    bool eof = false;

    if (msg_stream_fill (c->stream, &eof) < 0 && errno != EAGAIN && errno != EINTR) {
        client_break (c, errno, NULL);
        return;
    }
    if (client_drain (c))
        client_pause (c, true);
    else if (eof)
        client_break (c, ECONNRESET, NULL);
}

static void client_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    if (revents & IDT_POLLOUT)
        client_dirty (c);
    if ((revents & IDT_POLLIN) && !c->broken)
        client_read (c);
}

static void resume_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct local *l = arg;
    struct client *c = zlistx_first (l->clients);

    idt_watcher_stop (w);
    for (; c; c = zlistx_next (l->clients))
        if (c->paused && !c->broken)
            client_pause (c, client_drain (c));
}

static void client_destroy (struct client *c)
{
    if (!c)
        return;
    idt_watcher_destroy (c->w);
    msg_stream_destroy (c->stream);
    if (c->fd >= 0)
        close (c->fd);
    free (c);
}

static struct client *client_create (struct local *l, int fd, struct idt_cred cred)
{
    struct client *c = calloc (1, sizeof (*c));
    zuuid_t *uuid = zuuid_new ();

    if (!c || !uuid)
        goto error;
    c->local = l;
    c->fd = -1;
    c->cred = cred;
    c->peer.kind = PEER_CLIENT;
    c->peer.send = client_send;
    c->peer.arg = c;
    snprintf (c->peer.uuid, sizeof (c->peer.uuid), "%s", zuuid_str_canonical (uuid));
    if (!(c->stream = msg_stream_create (fd, l->max_message, l->max_queue))
        || !(c->w = idt_fd_watcher_create (l->reactor, fd, IDT_POLLIN, client_cb, c))
        || router_peer_add (l->router, &c->peer) < 0)
        goto error;
    c->fd = fd;
    zuuid_destroy (&uuid);
    return c;
error:
    zuuid_destroy (&uuid);
    client_destroy (c);
    return NULL;
}

/* --- accepting ------------------------------------------------------------------------------- */

/* The one byte of welcome, or the errno of the refusal. */
static void greet (int fd, int errnum)
{
    unsigned char byte = errnum;

    if (send (fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

/* Returns 0 and the credentials, or the errno to refuse with. */
static int authenticate (struct local *l, int fd, struct idt_cred *cred)
{
    struct ucred uc;
    socklen_t len = sizeof (uc);

    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &uc, &len) < 0)
        return errno;
    if (uc.uid != l->owner)
        return EPERM;
    *cred = (struct idt_cred){ uc.uid, IDT_ROLE_OWNER | IDT_ROLE_LOCAL };
    return zlistx_size (l->clients) >= l->max_clients ? EMFILE : 0;
}

/* Left alone the client would wait, and its connection wake us for ever. */
static void refuse_for_want_of_descriptors (struct local *l)
{
    int fd;

    close (l->spare);
    if ((fd = accept4 (l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        greet (fd, EMFILE);
        close (fd);
        log_printf (l->log, LOG_ERR, "local", "a client is refused: too many open files in this process");
    }
    l->spare = open ("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct local *l = arg;
    int fd = accept4 (l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct idt_cred cred = { IDT_USERID_UNKNOWN, IDT_ROLE_NONE };
    struct client *c;
    int errnum;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            refuse_for_want_of_descriptors (l);
        return;
    }
    if ((errnum = authenticate (l, fd, &cred)) != 0 || !(c = client_create (l, fd, cred))) {
        greet (fd, errnum ? errnum : ENOMEM);
        close (fd);
        log_printf (l->log, LOG_ERR, "local", "a client is refused: %s",
                    errnum == EMFILE ? "too many are connected (local.max-clients)"
                                     : strerror (errnum ? errnum : ENOMEM));
        return;
    }
    greet (fd, 0);
    zlistx_add_end (l->clients, c);
    idt_watcher_start (c->w);
}

/* --- flushing and ending ----------------------------------------------------------------------- */

static void reap (struct local *l, struct client *c)
{
    struct client *other = zlistx_first (l->clients);

    while (other && other != c)
        other = zlistx_next (l->clients);
    if (other)
        zlistx_delete (l->clients, zlistx_cursor (l->clients));
    l->ops->gone (l->arg, &c->peer);
    router_peer_remove (l->router, &c->peer);
    client_destroy (c);
}

static void client_flush (struct client *c)
{
    int rc = msg_stream_flush (c->stream);

    if (rc < 0)
        client_break (c, errno, NULL);
    else if ((rc > 0) != c->want_write) {
        c->want_write = rc > 0;
        client_pause (c, c->paused);
    }
}

/* The end of one client may mean output for others: go on until nobody has any. */
void local_flush (struct local *l)
{
    while (l->dirty) {
        struct client *c = l->dirty;

        l->dirty = c->next_dirty;
        c->dirty = false;
        if (!c->broken)
            client_flush (c);
        if (c->broken && !c->dirty)
            reap (l, c);
    }
}

/* --- life -------------------------------------------------------------------------------------- */

static int get_limits (struct local *l, struct attrs *attrs, idt_error_t *errp)
{
    l->max_message = MSG_STREAM_MAX_MESSAGE;
    l->max_queue = MSG_STREAM_MAX_QUEUE;
    l->max_clients = 4096;
    if (attr_define (attrs, "local.max-message", "64M", 0, errp) < 0
        || attr_get_size (attrs, "local.max-message", 4096, 1U << 31, &l->max_message, errp) < 0
        || attr_define (attrs, "local.max-queue", "64M", 0, errp) < 0
        || attr_get_size (attrs, "local.max-queue", 4096, 1U << 31, &l->max_queue, errp) < 0
        || attr_define (attrs, "local.max-clients", "4096", 0, errp) < 0
        || attr_get_u32 (attrs, "local.max-clients", 1, 1000000, &l->max_clients, errp) < 0)
        return -1;
    return 0;
}

/* Is somebody listening there? */
static bool is_served (const struct sockaddr_un *addr)
{
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool served = fd >= 0 && connect (fd, (const struct sockaddr *)addr, sizeof (*addr)) == 0;

    if (fd >= 0)
        close (fd);
    return served;
}

static int listen_at (struct local *l, const char *path, idt_error_t *errp)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    struct stat st;

    if (strlen (path) >= sizeof (addr.sun_path)) {
        errno = ENAMETOOLONG;
        return errprintf (errp, "a socket's path may have at most %zu characters, choose a shorter rundir: %s",
                          sizeof (addr.sun_path) - 1, path);
    }
    strcpy (addr.sun_path, path);
    if (lstat (path, &st) == 0 && S_ISSOCK (st.st_mode)) {
        if (is_served (&addr)) {
            errno = EADDRINUSE;
            return errprintf (errp, "%s: another broker is serving this socket: choose another rundir", path);
        }
        unlink (path);
    }
    if ((l->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) < 0
        || bind (l->fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || listen (l->fd, REQUEST_BACKLOG) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    l->path = strdup (path);
    return l->path ? 0 : -1;
}

struct local *local_create (idt_reactor_t *r, const char *path, struct attrs *attrs, struct router *router,
                            struct log *log, const struct local_ops *ops, void *arg, idt_error_t *errp)
{
    struct local *l = calloc (1, sizeof (*l));

    if (!l)
        return NULL;
    l->fd = -1;
    l->spare = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    l->reactor = r;
    l->router = router;
    l->log = log;
    l->ops = ops;
    l->arg = arg;
    l->owner = geteuid ();
    if (get_limits (l, attrs, errp) < 0 || listen_at (l, path, errp) < 0)
        goto error;
    if (!(l->clients = zlistx_new ()) || !(l->w = idt_fd_watcher_create (r, l->fd, IDT_POLLIN, accept_cb, l))
        || !(l->resume = idt_idle_watcher_create (r, resume_cb, l))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    idt_watcher_start (l->w);
    return l;
error:
    local_destroy (l);
    return NULL;
}

static void close_clients (struct local *l)
{
    struct client *c;

    while ((c = zlistx_first (l->clients))) {
        client_break (c, ESHUTDOWN, NULL);
        c->next_dirty = NULL;
        msg_stream_flush (c->stream); /* the last answers, as far as the socket takes them */
        reap (l, c);
    }
    l->dirty = NULL;
}

void local_destroy (struct local *l)
{
    int saved_errno = errno;

    if (!l)
        return;
    if (l->clients)
        close_clients (l);
    zlistx_destroy (&l->clients);
    idt_watcher_destroy (l->w);
    idt_watcher_destroy (l->resume);
    if (l->fd >= 0)
        close (l->fd);
    if (l->spare >= 0)
        close (l->spare);
    if (l->path)
        unlink (l->path);
    free (l->path);
    free (l);
    errno = saved_errno;
}

size_t local_count (const struct local *l)
{
    return zlistx_size (l->clients);
}
