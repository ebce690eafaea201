/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* handle.c - a connection to a broker: when messages are read, and in which order they are dispatched
 *
 * handle.h lists the rules. A turn handles the messages in the inbox first, then messages that were already read from
 * the connection. Then it reads once if the connection is readable. After BATCH messages other watchers run. Messages
 * that callbacks send during a turn are written at the end of the turn, with one system call.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/handle.h"
#include "libidtree/reactor.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define BATCH 64 /* maximum number of messages in one turn */
#define LOST_EVENT "{\"stream\":\"\",\"from\":0,\"to\":0,\"reconnected\":true}"

/* --- connection ----------------------------------------------------------------------------- */

static bool has_output (idt_t *h)
{
    return h->transport->pending && h->transport->pending (h->impl);
}

/* Write as much as the connection accepts now. If output remains, watch for the connection to become writable. */
static int flush_some (idt_t *h)
{
    if (has_output (h) && h->transport->flush (h->impl) < 0)
        return -1;
    int events = IDT_POLLIN | (has_output (h) ? IDT_POLLOUT : 0);
    if (h->io && h->io_events != events) {
        h->io_events = events;
        idt_fd_watcher_set_events (h->io, events);
    }
    return 0;
}

/* Fail the futures of earlier connections: those with a callback if 'with_cb' is set, otherwise those without one. */
static void fail_futures (idt_t *h, bool with_cb, int errnum)
{
    size_t cursor = 0;
    idt_future_t *f;

    while ((f = matchtag_table_next (&h->tags, &cursor))) {
        if (!f->lost && (f->cb != NULL) == with_cb && f->connection != h->connections) {
            f->lost = true;
            future_fail (f, errnum);
        }
    }
}

/* End a connection that is lost, or a search that found no other connection. Requests that wait for the connection fail
 * with 'errnum'. Futures with callbacks fail only when the inbox is empty, since the inbox may contain their responses.
 */
static void end_connection (idt_t *h, int errnum)
{
    assert (errnum != 0);
    h->lost = h->untold = errnum;
    h->connections++;
    idt_watcher_destroy (h->io);
    h->io = NULL;
    if (handle_may_follow (h))
        h->ops->lost (h);
    fail_futures (h, false, errnum);
    handle_wake (h);
}

bool handle_seek (idt_t *h)
{
    if (!handle_may_follow (h))
        return false;
    connection_seek (h->connection);
    return true;
}

static void lose (idt_t *h, int errnum)
{
    end_connection (h, errnum);
    if (handle_follows (h))
        (void)handle_seek (h);
}

/* The next message that was already read from the connection; NULL: no message is left, or the connection is lost. */
static const idt_msg_t *take_message (idt_t *h)
{
    if (h->lost || handle_is_inline (h))
        return NULL;
    const idt_msg_t *msg = h->transport->recv (h->impl);
    if (!msg && errno != EAGAIN)
        lose (h, errno);
    return msg;
}

/* Read once from the connection into its buffer. */
static void read_some (idt_t *h)
{
    if (!h->lost && h->transport->fill && h->transport->fill (h->impl) < 0 && errno != EAGAIN)
        lose (h, errno);
}

/* Keep a message for the reactor. Returns 0, or -1 with errno ENOBUFS or ENOMEM; in this case the caller still owns the
 * message.
 */
static int keep (idt_t *h, const idt_msg_t *msg)
{
    return h->inbox.count < HANDLE_MAX_INBOX ? fifo_push (&h->inbox, msg) : errset (ENOBUFS);
}

/* --- dispatch ------------------------------------------------------------------------------- */

static void dispatch (idt_t *h, const idt_msg_t *msg)
{
    idt_future_t *f;

    switch (idt_msg_type (msg)) {
    case IDT_MSGTYPE_RESPONSE:
        if ((f = future_find (h, msg)))
            future_deliver (f, msg);
        break;
    case IDT_MSGTYPE_EVENT:
        h->ops->dispatch (h, msg);
        break;
    case IDT_MSGTYPE_REQUEST:
        h->ops->dispatch (h, msg);
        if (h->transport->served)
            h->transport->served (h->impl);
        break;
    default:
        break;
    }
    future_run_ready (h);
}

void idt_handle_dispatch (idt_t *h, const idt_msg_t *msg)
{
    h->depth++;
    dispatch (h, msg);
    h->depth--;
    if (h->ready_count > 0)
        handle_wake (h);
}

static void tell_lost (idt_t *h)
{
    int errnum = h->untold;

    h->untold = 0;
    fail_futures (h, true, errnum);
    future_run_ready (h);
    if (handle_follows (h) && (!h->lost || handle_is_sought (h)))
        return;
    if (h->lost_cb)
        h->lost_cb (h, errnum, h->lost_arg);
    else
        idt_reactor_stop_error (h->reactor, errnum);
}

/* Handle up to BATCH messages. Returns whether another turn must follow immediately. */
static bool turn_messages (idt_t *h, bool readable)
{
    for (int i = 0; i < BATCH; i++) {
        const idt_msg_t *msg = fifo_pop (&h->inbox);
        if (!msg)
            msg = take_message (h);
        if (!msg && readable) {
            readable = false;
            read_some (h);
            msg = take_message (h);
        }
        if (!msg)
            return h->ready_count > 0;
        dispatch (h, msg);
        idt_msg_unref (msg);
    }
    return true;
}

static void turn (idt_t *h, bool readable)
{
    assert (h->depth == 0);
    h->depth++;
    future_run_ready (h);
    bool more = turn_messages (h, readable);
    if (h->untold && h->inbox.count == 0)
        tell_lost (h);
    h->depth--;
    if (!h->lost)
        (void)flush_some (h); /* if this fails, a later read reports the loss */
    if (more || h->ready_count > 0)
        idt_watcher_start (h->wake);
    else
        idt_watcher_stop (h->wake);
}

static void io_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_t *h = arg;

    turn (h, revents & IDT_POLLIN);
}

static void wake_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_t *h = arg;

    if (h->transport->runs)
        h->transport->runs (h->impl);
    turn (h, false);
}

/* --- waiting without the reactor ------------------------------------------------------------ */

/* Deliver a response to its future if the future has no callback. Keep all other messages for the reactor. Unrefs 'msg'
 * unless it is kept.
 */
static void put_aside_new (idt_t *h, const idt_msg_t *msg)
{
    bool is_response = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE;
    idt_future_t *f = is_response ? future_find (h, msg) : NULL;

    if (!is_response || (f && f->cb)) {
        if (keep (h, msg) == 0)
            return;
        lose (h, ENOBUFS);
    }
    else if (f)
        future_deliver (f, msg);
    idt_msg_unref (msg);
}

/* Sleep until the connection is readable, or writable if output is queued; then read and write once. */
static int wait_io (idt_t *h, double deadline_ms)
{
    struct pollfd pfd = { .fd = h->transport->pollfd (h->impl), .events = POLLIN };

    if (has_output (h))
        pfd.events |= POLLOUT;
    if (connection_poll (&pfd, deadline_ms) < 0)
        return -1;
    if (pfd.revents & POLLOUT)
        (void)flush_some (h);
    if (pfd.revents & ~POLLOUT)
        read_some (h);
    return 0;
}

/* A write has failed. Read what the broker sent before the loss, since responses may be among it. Then declare the
 * connection lost.
 */
static void find_lost (idt_t *h, int errnum)
{
    const idt_msg_t *msg;

    do
        while ((msg = take_message (h)))
            put_aside_new (h, msg);
    while (!h->lost && h->transport->fill && h->transport->fill (h->impl) == 0);
    if (!h->lost)
        lose (h, errnum);
}

int handle_send (idt_t *h, const idt_msg_t *msg, bool typed)
{
    bool may_follow = typed ? handle_may_follow (h) : handle_follows (h);

    if (h->lost && (may_follow ? handle_seek (h) : handle_is_sought (h)))
        return connection_hold (h->connection, msg);
    if (h->transport->send (h->impl, msg) < 0)
        return -1;
    if (h->depth > 0 || flush_some (h) == 0)
        return 0;
    if (may_follow && !h->lost && errno != ENOMEM) {
        find_lost (h, errno == EPIPE ? ECONNRESET : errno);
        errno = ECONNRESET;
    }
    return -1;
}

int idt_send (idt_t *h, const idt_msg_t *msg)
{
    return handle_send (h, msg, false);
}

void idt_set_interrupt (idt_t *h, idt_interrupt_f cb, void *arg)
{
    h->interrupt_cb = cb;
    h->interrupt_arg = arg;
}

/* Wait once for the connection, or, if it is lost, for the next connection. Returns 0, or -1 with errno set. */
static int wait_once (idt_t *h, double deadline_ms)
{
    if (h->lost && !handle_is_sought (h))
        return errset (h->lost);
    double until_ms = connection_sleep_until (h->interrupt_cb != NULL, deadline_ms);
    int rc = h->lost ? connection_wait (h->connection, until_ms) : wait_io (h, until_ms);
    if (rc < 0 && errno == ETIMEDOUT && until_ms != deadline_ms)
        rc = 0;
    if (rc == 0 && h->interrupt_cb && !h->interrupt_cb (h->interrupt_arg))
        return errset (EINTR);
    return rc;
}

int handle_wait (idt_t *h, const bool *done, double timeout_ms)
{
    double deadline_ms = timeout_ms < 0 ? -1 : timeout_ms > 0 ? clock_s (CLOCK_MONOTONIC) * 1e3 + timeout_ms : 0;
    int rc = 0;

    if (handle_is_inline (h))
        return errset (EDEADLK);
    if (h->depth > 0 && !h->lost)
        (void)flush_some (h);
    while (rc == 0 && !*done) {
        const idt_msg_t *msg = take_message (h);
        if (msg)
            put_aside_new (h, msg);
        else
            rc = wait_once (h, deadline_ms);
    }
    handle_wake (h);
    return rc;
}

int idt_flush (idt_t *h)
{
    while (!h->lost || handle_is_sought (h)) {
        if (!h->lost && flush_some (h) < 0)
            return -1;
        if (!h->lost && !has_output (h))
            return 0;
        if (wait_once (h, -1) < 0)
            return -1;
        /* Also read, because a broker that cannot write its responses may stop reading our requests. */
        const idt_msg_t *msg;
        while ((msg = take_message (h)))
            put_aside_new (h, msg);
        handle_wake (h);
    }
    return errset (h->lost);
}

/* --- reactor -------------------------------------------------------------------------------- */

void handle_wake (idt_t *h)
{
    if (h->wake)
        idt_watcher_start (h->wake);
}

void handle_interest (idt_t *h, int change)
{
    assert (change >= 0 || h->interest > 0);
    h->interest += change;
    if (h->io)
        watcher_set_background (h->io, h->interest == 0);
    if (h->connection)
        connection_watch (h->connection, h->interest > 0 ? h->reactor : NULL);
}

static int watch_io (idt_t *h)
{
    h->io_events = IDT_POLLIN;
    h->io = idt_fd_watcher_create (h->reactor, h->transport->pollfd (h->impl), h->io_events, io_cb, h);
    if (!h->io)
        return -1;
    watcher_set_first (h->io);
    idt_watcher_start (h->io);
    return 0;
}

static int watch (idt_t *h)
{
    if (!(h->wake = idt_idle_watcher_create (h->reactor, wake_cb, h)))
        return -1;
    watcher_set_first (h->wake);
    if (!handle_is_inline (h) && !h->lost) {
        if (watch_io (h) < 0)
            return -1;
        (void)flush_some (h);
    }
    handle_interest (h, 0);
    handle_wake (h); /* there may be work from the time before the handle had a reactor */
    return 0;
}

static void unwatch (idt_t *h)
{
    if (h->connection)
        connection_watch (h->connection, NULL);
    idt_watcher_destroy (h->io);
    idt_watcher_destroy (h->wake);
    h->io = h->wake = NULL;
    if (h->owns_reactor)
        idt_reactor_destroy (h->reactor);
    h->reactor = NULL;
}

int idt_set_reactor (idt_t *h, idt_reactor_t *r)
{
    if (h->reactor)
        return errset (EBUSY);
    h->reactor = r;
    h->owns_reactor = false;
    if (watch (h) == 0)
        return 0;
    unwatch (h);
    return -1;
}

idt_reactor_t *idt_get_reactor (idt_t *h)
{
    if (h->reactor)
        return h->reactor;
    idt_reactor_t *r = idt_reactor_create ();
    if (!r)
        return NULL;
    if (idt_set_reactor (h, r) < 0) {
        idt_reactor_destroy (r);
        return NULL;
    }
    h->owns_reactor = true;
    return r;
}

void idt_set_lost (idt_t *h, idt_lost_f cb, void *arg)
{
    h->lost_cb = cb;
    h->lost_arg = arg;
}

/* --- what the connection calls ------------------------------------------------------------- */

static int begin_cb (struct connector *attempt, void *arg)
{
    idt_t *h = arg;

    return h->ops->connecting (h, attempt);
}

/* Whether 'msg' is a request whose future no longer exists. */
static bool is_over_cb (const idt_msg_t *msg, void *arg)
{
    idt_t *h = arg;
    uint32_t tag = idt_msg_type (msg) == IDT_MSGTYPE_REQUEST ? idt_msg_matchtag (msg) : 0;

    return tag != 0 && !matchtag_table_find (&h->tags, tag);
}

/* Put an event.lost in the inbox, because the handle missed events while it was not connected, and cannot know which.
 */
static int keep_lost_event (idt_t *h)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    if (msg && idt_msg_set_topic (msg, "event.lost") == 0 && idt_msg_set_string (msg, LOST_EVENT) == 0
        && keep (h, msg) == 0)
        return 0;
    idt_msg_unref (msg);
    return -1;
}

static int arrived_cb (struct connector *attempt, void *arg)
{
    idt_t *h = arg;
    int rc = h->ops->misses_events (h) ? keep_lost_event (h) : 0;
    const idt_msg_t *msg;

    while (rc == 0 && (msg = connector_early (attempt)))
        if ((rc = keep (h, msg)) < 0)
            idt_msg_unref (msg);
    return rc;
}

static void connected_cb (void *arg)
{
    idt_t *h = arg;

    assert (h->lost && !h->io);
    h->lost = 0;
    if (h->reactor && watch_io (h) < 0)
        lose (h, errno);
    else {
        handle_interest (h, 0);
        if (h->depth == 0)
            (void)flush_some (h);
        handle_wake (h);
    }
    h->ops->connected (h);
}

static void failed_cb (int errnum, void *arg)
{
    end_connection (arg, errnum);
}

void handle_set_connection (idt_t *h, struct connection *c, int flags)
{
    static const struct connection_ops ops = {
        .begin = begin_cb,
        .is_over = is_over_cb,
        .arrived = arrived_cb,
        .connected = connected_cb,
        .failed = failed_cb,
    };

    h->connection = c;
    h->flags = flags;
    connection_set_ops (c, &ops, h);
}

const char *idt_get_uri (const idt_t *h)
{
    return h->connection ? connection_uri (h->connection) : NULL;
}

const char *idt_lost_error (const idt_t *h)
{
    if (!h->lost)
        return NULL;
    return h->connection && *connection_error (h->connection) ? connection_error (h->connection) : strerror (h->lost);
}

/* --- life ----------------------------------------------------------------------------------- */

void handle_destroy (idt_t *h)
{
    assert (h->depth == 0 && h->future_count == 0);
    unwatch (h);
    msg_fifo_fini (&h->inbox);
    matchtag_table_fini (&h->tags);
    h->transport->destroy (h->impl);
    freelist_fini (&h->futures);
    msg_pool_let_go (h->pool);
    free (h);
}

idt_t *handle_create (const struct idt_transport *transport, void *impl, const struct handle_ops *ops)
{
    idt_t *h = calloc (1, sizeof (*h));

    if (!h)
        return NULL;
    h->transport = transport;
    h->impl = impl;
    h->ops = ops;
    h->flags = IDT_O_NORECONNECT | IDT_O_NOSHM;
    h->connections = 1;
    h->pool = msg_pool_create (); /* if this fails, requests come from malloc () */
    freelist_init (&h->futures, sizeof (struct idt_future));
    TAILQ_INIT (&h->ready);
    return h;
}
