/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock.c - local clients: a UNIX socket server (protocol.md section 2)
 *
 * Clients that have something are served by turns; their output is collected and written once before the reactor sleeps.
 * A client is destroyed only in reap (), never while its messages are being handed out: whoever finds it broken marks it.
 */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/route/usock_private.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define REQUEST_BACKLOG 128
#define MIN_SIZE 4096 /* of what is set in bytes */
#define MAX_SIZE (1U << 31)
#define TURN_US 100    /* time in which clients are served before others get theirs */
#define TICK_S 0.025   /* between two looks at clients that are not read */
#define KEPT_FILES 256 /* descriptors that clients leave to the rest of the broker */

/* --- turns ------------------------------------------------------------------------------------- */

/* The next to be served: who comes anew does not wait for those who have been here (as in fq_codel). */
static struct client *next_turn (struct usock *l)
{
    struct client *c = TAILQ_FIRST (&l->newcomers);

    if (c)
        TAILQ_REMOVE (&l->newcomers, c, turn);
    else if ((c = TAILQ_FIRST (&l->turns)))
        TAILQ_REMOVE (&l->turns, c, turn);
    return c;
}

/* A newcomer stays in the round when it has no more, if there is one: who comes and goes has no more of it than who
 * stays.  Where nobody waits it would only cost a turn.
 */
static void serve (struct usock *l, struct client *c)
{
    bool was_new = c->turn_in == TURN_NEW;

    c->turn_in = TURN_NONE;
    if ((client_serve (c) || (was_new && !TAILQ_EMPTY (&l->turns))) && c->turn_in == TURN_NONE) {
        TAILQ_INSERT_TAIL (&l->turns, c, turn);
        c->turn_in = TURN_ROUND;
    }
}

void usock_turn (struct usock *l)
{
    struct client *c, *last = TAILQ_LAST (&l->turns, client_list);
    uint64_t since_us = 0;

    while ((c = next_turn (l))) {
        serve (l, c);
        if (c == last || (!last && TAILQ_EMPTY (&l->newcomers)) || clock_is_over (&since_us, TURN_US))
            break;
    }
}

bool usock_pending (const struct usock *l)
{
    return !TAILQ_EMPTY (&l->newcomers) || !TAILQ_EMPTY (&l->turns);
}

static void tick_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct usock *l = arg;
    struct client *c = zlistx_first (l->clients);
    uint64_t now_us = usock_now_us ();
    bool again = false;

    for (; c; c = zlistx_next (l->clients))
        again = client_tick (c, now_us) || again;
    if (!again)
        idt_watcher_stop (w);
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
static int authenticate (struct usock *l, int fd, struct idt_cred *cred)
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

/* Keep descriptors for clients, whatever else takes them all. */
static void fill_reserve (struct usock *l)
{
    while (l->reserved < LOCAL_RESERVE) {
        int fd = l->reserved > 0 ? fcntl (l->reserve[0], F_DUPFD_CLOEXEC, 0) : open ("/dev/null", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            return;
        l->reserve[l->reserved++] = fd;
    }
}

/* Accept, with a descriptor of the reserve where there is no other.  The last one is for refusing: left alone a client would
 * wait, and its connection wake us for ever.
 */
static int accept_client (struct usock *l)
{
    int fd = accept4 (l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || l->reserved == 0)
        return fd;
    close (l->reserve[--l->reserved]);
    fd = accept4 (l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || l->reserved > 0)
        return fd;
    greet (fd, EMFILE);
    close (fd);
    log_refusal (l->log, LOG_REFUSED_CLIENT, "a client is refused: too many open files in this process");
    fill_reserve (l);
    return -1;
}

static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct usock *l = arg;
    int fd = accept_client (l);
    struct idt_cred cred = { IDT_USERID_UNKNOWN, IDT_ROLE_NONE };
    struct client *c;
    int errnum;

    if (fd < 0)
        return;
    if ((errnum = authenticate (l, fd, &cred)) != 0 || !(c = client_create (l, fd, cred))) {
        greet (fd, errnum ? errnum : ENOMEM);
        close (fd);
        log_refusal (l->log, LOG_REFUSED_CLIENT, "a client is refused: %s",
                     errnum == EMFILE ? "too many are connected (local.max-clients)"
                                      : strerror (errnum ? errnum : ENOMEM));
        return;
    }
    greet (fd, 0);
    zlistx_add_end (l->clients, c);
    idt_watcher_start (c->w);
}

/* --- flushing and ending ----------------------------------------------------------------------- */

static void reap (struct usock *l, struct client *c)
{
    zlistx_delete (l->clients, zlistx_find (l->clients, c));
    client_let_go (c);
    l->ops->gone (l->arg, &c->peer);
    router_peer_remove (l->router, &c->peer);
    client_destroy (c);
    if (l->reserved < LOCAL_RESERVE)
        fill_reserve (l);
}

/* The end of one client may mean output for others: go on until nobody has any. */
void usock_flush (struct usock *l)
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

static int get_limits (struct usock *l, struct attrs *attrs, idt_error_t *errp)
{
    double patience, frame_time;

    if (attr_size (attrs, "local.max-message", "64M", MIN_SIZE, MAX_SIZE, &l->max_message, errp) < 0
        || attr_size (attrs, "local.max-queue", "64M", MIN_SIZE, MAX_SIZE, &l->max_queue, errp) < 0
        || attr_size (attrs, "local.input-pool", "256M", MIN_SIZE, MAX_SIZE, &l->input_pool, errp) < 0
        || attr_size (attrs, "local.output-pool", "512M", MIN_SIZE, MAX_SIZE, &l->output_pool, errp) < 0
        || attr_u32 (attrs, "local.max-clients", "4096", 1, 1000000, &l->max_clients, errp) < 0
        || attr_u32 (attrs, "local.max-unanswered", "1024", 1, 1000000, &l->max_asks, errp) < 0
        || attr_seconds (attrs, "local.patience", "1s", 0.001, 3600, &patience, errp) < 0
        || attr_seconds (attrs, "local.frame-time", "10s", 0.001, 3600, &frame_time, errp) < 0)
        return -1;
    l->patience_us = patience * 1E6;
    l->frame_time_us = frame_time * 1E6;
    return 0;
}

/* Clients may not have all descriptors: over ipc ZeroMQ ends a process that has none left for a child's connection. */
static void keep_descriptors (struct usock *l)
{
    struct rlimit files;
    rlim_t most;

    if (getrlimit (RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
        return;
    most = files.rlim_cur > 2 * KEPT_FILES ? files.rlim_cur - KEPT_FILES : files.rlim_cur / 2;
    if (l->max_clients <= most)
        return;
    log_printf (l->log, LOG_NOTICE, "broker",
                "%u clients may connect, not %u (local.max-clients): a process may open %u files (ulimit -n)",
                (unsigned)most, l->max_clients, (unsigned)files.rlim_cur);
    l->max_clients = most;
}

/* Is somebody listening there?  One who is stopped accepts nobody, and blocks who waits for a place in his backlog. */
static bool is_served (const struct sockaddr_un *addr)
{
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool served = fd >= 0 && (connect (fd, (const struct sockaddr *)addr, sizeof (*addr)) == 0 || errno == EAGAIN);

    if (fd >= 0)
        close (fd);
    return served;
}

static int listen_at (struct usock *l, const char *path, idt_error_t *errp)
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

struct usock *usock_create (idt_reactor_t *r, const char *path, struct attrs *attrs, struct router *router,
                            struct log *log, const struct usock_ops *ops, void *arg, idt_error_t *errp)
{
    struct usock *l = calloc (1, sizeof (*l));

    if (!l)
        return NULL;
    l->fd = -1;
    TAILQ_INIT (&l->newcomers);
    TAILQ_INIT (&l->turns);
    fill_reserve (l);
    l->reactor = r;
    l->router = router;
    l->log = log;
    l->ops = ops;
    l->arg = arg;
    l->owner = geteuid ();
    if (get_limits (l, attrs, errp) < 0 || listen_at (l, path, errp) < 0)
        goto error;
    keep_descriptors (l);
    if (!(l->clients = zlistx_new ()) || !(l->w = idt_fd_watcher_create (r, l->fd, IDT_POLLIN, accept_cb, l))
        || !(l->tick = idt_timer_watcher_create (r, TICK_S, TICK_S, tick_cb, l))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    idt_watcher_start (l->w);
    return l;
error:
    usock_destroy (l);
    return NULL;
}

static void close_clients (struct usock *l)
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

void usock_destroy (struct usock *l)
{
    int saved_errno = errno;

    if (!l)
        return;
    if (l->clients)
        close_clients (l);
    zlistx_destroy (&l->clients);
    idt_watcher_destroy (l->w);
    idt_watcher_destroy (l->tick);
    if (l->fd >= 0)
        close (l->fd);
    while (l->reserved > 0)
        close (l->reserve[--l->reserved]);
    msg_spare_fini (&l->spare);
    if (l->path)
        unlink (l->path);
    free (l->path);
    free (l);
    errno = saved_errno;
}

size_t usock_count (const struct usock *l)
{
    return zlistx_size (l->clients);
}
