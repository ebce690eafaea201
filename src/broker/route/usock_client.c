/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_client.c - one local client: its input, its output, and when the broker does not read from it
 *
 * While a client has too many unanswered requests or too much unread output, the broker does not read from it, and its
 * further requests wait in the socket.  Each such pause ends, by progress or after some time (libutil/queue/budget.h).
 * A client that reads its responses is never disconnected: a response that does not fit into the client's queue is
 * replaced by an error, and the queue has extra room for errors.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "broker/base/uuid_key.h"
#include "broker/route/usock_private.h"
#include "libutil/errprintf.h"

#define QUANTUM 16                     /* messages of a client that are handled in one turn */
#define MAX_ASKED ((uint64_t)1 << 20)  /* bytes of unanswered requests above which a client is not read */
#define SOFT_QUEUE ((uint64_t)1 << 20) /* bytes of unread output above which a client is not read */
#define ERROR_ROOM ((size_t)1 << 20)   /* bytes beyond the limit of a queue, for errors only */
#define MIN_SPEED 65536                /* lowest bytes per second of a long message */

static void client_dirty (struct client *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->local->dirty;
    c->local->dirty = c;
}

void client_break (struct client *c, int errnum, const char *why)
{
    if (c->broken)
        return;
    c->broken = errnum;
    client_dirty (c);
    if (why)
        log_refusal (c->local->log, LOG_REFUSED_CLIENT, "client %.8s (user %u) is disconnected: %s", c->peer.uuid,
                     c->cred.userid, why);
}

/* --- when it is read --------------------------------------------------------------------------- */

static bool may_read (const struct client *c)
{
    return !c->broken && !c->asks.waits && !c->out.waits && !c->held && !c->stalled;
}

static void watch (struct client *c)
{
    int events = (may_read (c) ? IDT_POLLIN : 0) | (c->want_write ? IDT_POLLOUT : 0);

    if (c->events != events)
        idt_fd_watcher_set_events (c->w, events);
    c->events = events;
}

static void give_turn (struct client *c, bool anew)
{
    struct usock *l = c->local;

    if (c->turn_in != TURN_NONE)
        return;
    TAILQ_INSERT_TAIL (anew ? &l->newcomers : &l->turns, c, turn);
    c->turn_in = anew ? TURN_NEW : TURN_ROUND;
}

/* Something changed that decides whether the broker reads from the client: start or stop reading. */
static void check (struct client *c)
{
    bool unready = c->out.waits && !c->broken;

    if (unready != c->unready && c->local->ops->ready)
        c->local->ops->ready (c->local->arg, &c->peer, !unready);
    c->unready = unready;
    watch (c);
    if (may_read (c))
        give_turn (c, false); /* the client's input buffer may contain messages */
    else if (!c->broken)
        idt_watcher_start (c->local->tick);
}

/* --- output ------------------------------------------------------------------------------------ */

/* The part of a shared pool that clients like 'c' may use: the instance owner's clients all of it, all guests together
 * half of it.
 */
static uint64_t share_of (const struct client *c, uint64_t pool)
{
    return c->cred.rolemask & IDT_ROLE_OWNER ? pool : pool / 2;
}

/* Whether 'size' more bytes of output exceed the client's own limit (local.max-queue) or its share of the output pool.
 * In the pool, each connection of the owner, and each guest with all connections together, may hold at most as many
 * bytes as are free.  SOFT_QUEUE bytes are always allowed.
 */
static bool over_limit (const struct client *c, size_t size)
{
    const struct usock *l = c->local;
    uint64_t queued = msg_stream_queued (c->stream), pool = share_of (c, l->output_pool);
    uint64_t held = c->user ? c->user->output : queued;

    if (queued + size > l->max_queue)
        return true;
    return held > SOFT_QUEUE && (l->all->output >= pool || held >= pool - l->all->output);
}

static void count_output (struct client *c, uint64_t more, uint64_t less)
{
    assert (c->local->all->output + more >= less);
    c->local->all->output += more - less;
    if (c->user)
        c->user->output += more - less;
}

static int put (struct client *c, const idt_msg_t *msg)
{
    size_t before = msg_stream_queued (c->stream), size;

    if (msg_stream_put (c->stream, msg) < 0) {
        client_break (c, errno, errno == ENOBUFS ? "it does not read its answers (local.max-queue)" : "out of memory");
        return -1;
    }
    size = msg_stream_queued (c->stream) - before;
    count_output (c, size, 0);
    if (budget_charge (&c->out, size, usock_now_us ()) == BUDGET_WAIT)
        check (c);
    client_dirty (c);
    return 0;
}

/* Queue an error in place of a response that does not fit.  An event has no such replacement, so the client is
 * disconnected.
 */
static int put_error (struct client *c, const idt_msg_t *msg)
{
    idt_msg_t *error;
    int rc;

    if (idt_msg_type (msg) != IDT_MSGTYPE_RESPONSE) {
        client_break (c, ENOBUFS, "it does not read its events (local.max-queue)");
        return -1;
    }
    if (!(error = idt_msg_copy (msg, false))) {
        client_break (c, ENOMEM, "out of memory");
        return -1;
    }
    idt_msg_set_errnum (error, ENOBUFS);
    idt_msg_set_string (error, "the answer does not fit: unread output is at its limit (local.max-queue, "
                               "local.output-pool)");
    rc = put (c, error);
    idt_msg_unref (error);
    return rc;
}

/* Count a final response: the client may then send another request. */
static void note_answer (struct client *c, const idt_msg_t *msg)
{
    if (c->asks.items == 0 || (idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING) && idt_msg_errnum (msg) == 0))
        return;
    if (budget_release (&c->asks, 1, c->asks.bytes / c->asks.items, usock_now_us ()))
        check (c);
}

/* The router calls this to send a message to a client. */
static int client_send (void *arg, const idt_msg_t *msg)
{
    struct client *c = arg;

    if (c->broken)
        return errset (EPIPE);
    if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        note_answer (c, msg);
    return over_limit (c, idt_msg_encode_size (msg)) ? put_error (c, msg) : put (c, msg);
}

static void client_hang_up (void *arg)
{
    client_break (arg, ENOMEM, "out of memory");
}

void client_flush (struct client *c)
{
    size_t before = msg_stream_queued (c->stream), taken;
    int rc = msg_stream_flush (c->stream);

    if (rc < 0) {
        client_break (c, errno, NULL);
        return;
    }
    taken = before - msg_stream_queued (c->stream);
    count_output (c, 0, taken);
    c->want_write = rc > 0;
    if (taken > 0 && budget_release (&c->out, 0, taken, usock_now_us ()))
        check (c);
    watch (c);
}

/* --- input ------------------------------------------------------------------------------------- */

/* Set the user and roles of a message to the user and roles of its connection.  In a message of the instance owner,
 * another user and other roles stay as given (RFC 3), but the role of a broker is removed.
 */
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

static bool is_ask (const idt_msg_t *msg)
{
    return idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && !idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE);
}

/* A client may send one control message, which names a rank, before any other message. */
static void client_control (struct client *c, idt_msg_t *msg)
{
    uint32_t type = idt_msg_control_type (msg), rank = idt_msg_control_status (msg);

    idt_msg_unref (msg);
    if (c->heard || type != MSG_CONTROL_RANK)
        client_break (c, EPROTO, "it sent a control message that clients may not send");
    c->heard = true;
    if (c->broken)
        return;
    client_answer (c, rank == c->local->rank ? 0 : EHOSTUNREACH);
    if (rank != c->local->rank)
        client_break (c, ECONNREFUSED, NULL);
}

static void client_message (struct client *c, idt_msg_t *msg)
{
    struct usock *l = c->local;

    if (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL) {
        client_control (c, msg);
        return;
    }
    c->heard = true;
    stamp (c, msg);
    if (is_ask (msg))
        budget_charge (&c->asks, idt_msg_encode_size (msg), usock_now_us ());
    l->ops->message (l->arg, &c->peer, msg);
    if (!may_read (c))
        check (c);
}

/* The router returns a request because the service has no room for it now.  Hold the request; it is sent again later.
 */
static void client_busy (void *arg, idt_msg_t *msg)
{
    struct client *c = arg;

    assert (!c->held);
    c->held = msg;
}

static void repeat_held (struct client *c, uint64_t now_us)
{
    struct usock *l = c->local;
    idt_msg_t *msg = c->held;
    bool last = now_us - c->held_us >= 5 * l->patience_us;

    c->held = NULL;
    c->peer.busy = last ? NULL : client_busy; /* after 5 stall timeouts the router answers the request with EAGAIN */
    l->ops->message (l->arg, &c->peer, msg);
    c->peer.busy = client_busy;
    if (!c->held)
        c->held_us = 0;
    check (c);
}

/* Reserve space for a long message in the shared input pool, before the rest of the message is read. */
static bool reserve (struct client *c)
{
    struct usock *l = c->local;
    size_t size = msg_stream_wants (c->stream);
    uint64_t held = c->user ? c->user->input : 0; /* so a guest uses at most as many bytes as are free */

    if (size == 0 || c->reserved > 0)
        return true;
    if (l->all->input > 0 && held + l->all->input + size > share_of (c, l->input_pool)) {
        c->stalled = true;
        check (c);
        return false;
    }
    l->all->input += c->reserved = size;
    if (c->user)
        c->user->input += size;
    c->frame_us = usock_now_us ();
    c->frame_got = 0;
    idt_watcher_start (l->tick);
    return true;
}

static void release (struct client *c)
{
    assert (c->local->all->input >= c->reserved);
    c->local->all->input -= c->reserved;
    if (c->user)
        c->user->input -= c->reserved;
    c->reserved = 0;
}

static void client_fill (struct client *c)
{
    ssize_t n;

    if (!reserve (c))
        return;
    c->readable = false;
    if ((n = msg_stream_fill (c->stream, &c->eof)) > 0)
        c->frame_got += n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        client_break (c, errno, NULL);
}

static idt_msg_t *next_message (struct client *c, idt_error_t *errp)
{
    idt_msg_t *first = c->first;

    c->first = NULL;
    return first ? first : msg_stream_next (c->stream, errp);
}

bool client_serve (struct client *c)
{
    idt_error_t err = { "" };
    idt_msg_t *msg;

    for (int n = 0; n < QUANTUM;) {
        if (!may_read (c))
            return false;
        if ((msg = next_message (c, &err))) {
            if (c->reserved > 0)
                release (c);
            client_message (c, msg);
            n++;
        }
        else if (errno != EAGAIN)
            client_break (c, errno, err.text);
        else if (c->eof)
            client_break (c, ECONNRESET, NULL);
        else if (c->readable)
            client_fill (c);
        else {
            reserve (c); /* a message may have begun: reserve space for the rest of it */
            return false;
        }
    }
    return may_read (c);
}

static void client_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    if (revents & IDT_POLLOUT)
        client_dirty (c);
    if ((revents & IDT_POLLIN) && may_read (c)) {
        c->readable = true;
        give_turn (c, true);
    }
}

/* --- checks by time ---------------------------------------------------------------------------- */

/* Disconnect a client that sends a long message too slowly, because the message occupies space of the shared input
 * pool.
 */
static void check_speed (struct client *c, uint64_t now_us)
{
    uint64_t us = now_us - c->frame_us;
    idt_error_t err;

    if (c->reserved == 0 || us < c->local->frame_time_us)
        return;
    if (may_read (c) && c->frame_got < us * MIN_SPEED / 1000000) {
        errprintf (&err, "%zu bytes of a message of %zu in %.1f s are too slow (local.frame-time)", c->frame_got,
                   c->reserved, us * 1E-6);
        client_break (c, ETIMEDOUT, err.text);
    }
    c->frame_us = now_us;
    c->frame_got = 0;
}

/* After the stall timeout the client may send requests again, although its responses are still unread.  But if its
 * queue is nearly full, the client is disconnected.
 */
static void open_out (struct client *c, uint64_t now_us)
{
    if (now_us < budget_patience (&c->out))
        return;
    if (msg_stream_queued (c->stream) + SOFT_QUEUE / 2 > c->local->max_queue || over_limit (c, 0))
        client_break (c, ENOBUFS, "it does not read its answers (local.max-queue)");
    else if (budget_open (&c->out, now_us))
        check (c);
}

bool client_tick (struct client *c, uint64_t now_us)
{
    if (c->broken)
        return false;
    if (c->held) {
        c->held_us = c->held_us ? c->held_us : now_us;
        repeat_held (c, now_us);
    }
    if (budget_open (&c->asks, now_us))
        check (c);
    open_out (c, now_us);
    if (c->stalled) {
        c->stalled = false;
        check (c);
    }
    check_speed (c, now_us);
    return !may_read (c) || c->reserved > 0;
}

/* --- life -------------------------------------------------------------------------------------- */

struct msg_stream *usock_stream (struct usock *l, int fd)
{
    struct msg_stream *s = msg_stream_create (fd, l->max_message, l->max_queue + ERROR_ROOM);

    if (s)
        msg_stream_share (s, &l->all->spare);
    return s;
}

void client_let_go (struct client *c)
{
    struct usock *l = c->local;

    if (c->turn_in != TURN_NONE)
        TAILQ_REMOVE (c->turn_in == TURN_NEW ? &l->newcomers : &l->turns, c, turn);
    c->turn_in = TURN_NONE;
    if (c->unready && l->ops->ready)
        l->ops->ready (l->arg, &c->peer, true);
    c->unready = false;
    count_output (c, 0, msg_stream_queued (c->stream));
    release (c);
}

static int join_user (struct client *c)
{
    struct usocks *all = c->local->all;
    struct local_user *u;

    if (c->cred.rolemask & IDT_ROLE_OWNER)
        return 0;
    LIST_FOREACH (u, &all->users, link)
        if (u->userid == c->cred.userid)
            break;
    if (!u) {
        if (!(u = calloc (1, sizeof (*u))))
            return -1;
        u->userid = c->cred.userid;
        LIST_INSERT_HEAD (&all->users, u, link);
    }
    u->clients++;
    c->user = u;
    return 0;
}

static void leave_user (struct client *c)
{
    struct local_user *u = c->user;

    c->user = NULL;
    if (!u || --u->clients > 0)
        return;
    LIST_REMOVE (u, link);
    free (u);
}

void client_destroy (struct client *c)
{
    if (!c)
        return;
    leave_user (c);
    idt_watcher_destroy (c->w);
    msg_stream_destroy (c->stream);
    idt_msg_unref (c->first);
    idt_msg_unref (c->held);
    if (c->fd >= 0)
        close (c->fd);
    free (c);
}

void client_begin (struct client *c, idt_msg_t *first)
{
    struct usock *l = c->local;

    c->first = first;
    c->readable = true;
    give_turn (c, true);
    if (l->ops->woke)
        l->ops->woke (l->arg);
}

idt_msg_t *usock_rank_answer (int errnum)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (msg)
        idt_msg_set_control (msg, MSG_CONTROL_RANK, (uint32_t)errnum);
    return msg;
}

void client_answer (struct client *c, int errnum)
{
    idt_msg_t *msg = usock_rank_answer (errnum);

    if (msg)
        client_send (c, msg);
    idt_msg_unref (msg);
    client_flush (c);
}

struct client *client_create (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream)
{
    struct client *c = calloc (1, sizeof (*c));

    if (!c)
        return NULL;
    c->local = l;
    c->fd = -1;
    c->cred = cred;
    c->peer.kind = PEER_CLIENT;
    c->peer.send = client_send;
    c->peer.hang_up = client_hang_up;
    c->peer.busy = client_busy;
    c->peer.arg = c;
    c->events = IDT_POLLIN;
    budget_init (&c->asks, NULL, l->max_asks, MAX_ASKED, l->patience_us);
    budget_init (&c->out, NULL, 0, SOFT_QUEUE, l->patience_us);
    c->stream = stream ? stream : usock_stream (l, fd);
    if (join_user (c) < 0 || uuid_make (c->peer.uuid) < 0 || !c->stream
        || !(c->w = idt_fd_watcher_create (l->reactor, fd, IDT_POLLIN, client_cb, c))
        || router_peer_add (l->router, &c->peer) < 0)
        goto error;
    c->fd = fd;
    return c;
error:
    if (stream)
        c->stream = NULL;
    client_destroy (c);
    return NULL;
}
