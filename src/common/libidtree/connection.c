/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.c - a client's connection to a broker over a UNIX socket; after a loss, the search for another connection
 *
 * reconnect.h decides which broker is tried and when; connector.h makes one attempt. This file drives both. It has no
 * thread: either a blocking call drives the attempts, or the reactor drives them while a request or handler needs the
 * connection.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libidtree/connection.h"
#include "libmsg/message.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"

#define OPEN_TIMEOUT_MS 30000.
#define HELD_MAX (1U << 20) /* limit of messages that are kept for the next connection */
#define MAX_WAIT_MS 1e12    /* some decades, which any time_t can hold */

/* How long an interruptible call sleeps before it calls the interrupt callback again. It cannot sleep longer, because
 * an event that changes the callback's result may not wake it: another thread may cause the event, or a signal between
 * the callback and the sleep.
 */
#define ASK_MS 50.

struct connection {
    const struct connection_ops *ops;
    void *arg;

    int fd; /* the connection's descriptor; -1: not connected */
    struct msg_stream *stream;

    int flags; /* enum idt_open_flag */
    struct uris uris;
    size_t at;                             /* index of the URI in use, or of the last one */
    char instance[CONNECTOR_INSTANCE_MAX]; /* UUID of the instance; "": not known yet */
    idt_error_t error;                     /* why the last attempt failed */

    bool sought;
    struct reconnect reconnect;
    struct connector *attempt; /* the attempt in progress; NULL: none */
    double end_ms;             /* when that attempt times out */
    struct fifo held;          /* messages that are kept for the next connection */
    size_t held_bytes;

    idt_reactor_t *reactor; /* drives the attempts; NULL: only connection_wait () does */
    idt_watcher_t *timer, *io;
};

/* --- sleeping ------------------------------------------------------------------------------- */

static double now_ms (void)
{
    return clock_s (CLOCK_MONOTONIC) * 1e3;
}

int connection_poll (struct pollfd *pfd, double deadline_ms)
{
    struct timespec ts;
    struct timespec *timeout = NULL;

    if (deadline_ms >= 0) {
        double left_ms = deadline_ms - now_ms ();
        left_ms = left_ms < 0 ? 0 : left_ms > MAX_WAIT_MS ? MAX_WAIT_MS : left_ms;
        ts.tv_sec = (time_t)(left_ms * 1e-3);
        ts.tv_nsec = (long)((left_ms - ts.tv_sec * 1e3) * 1e6);
        timeout = &ts;
    }
    int n = ppoll (pfd, 1, timeout, NULL);
    if (n == 0)
        errno = ETIMEDOUT;
    if (n <= 0)
        pfd->revents = 0;
    return n > 0 || (n < 0 && errno == EINTR) ? 0 : -1; /* after a signal the caller looks and waits again */
}

double connection_sleep_until (bool asks, double deadline_ms)
{
    double ask_ms = asks ? now_ms () + ASK_MS : -1;

    return asks && (deadline_ms < 0 || ask_ms < deadline_ms) ? ask_ms : deadline_ms;
}

/* --- the transport -------------------------------------------------------------------------- */

static int transport_send (void *impl, const idt_msg_t *msg)
{
    struct connection *c = impl;

    return msg_stream_put (c->stream, msg);
}

static const idt_msg_t *transport_recv (void *impl)
{
    struct connection *c = impl;

    return msg_stream_next (c->stream, NULL);
}

static int transport_fill (void *impl)
{
    struct connection *c = impl;
    bool eof = false;
    ssize_t n = msg_stream_fill (c->stream, &eof);

    if (eof)
        errno = ECONNRESET;
    return n > 0 ? 0 : -1;
}

static int transport_pollfd (void *impl)
{
    struct connection *c = impl;

    return c->fd;
}

static bool transport_pending (void *impl)
{
    struct connection *c = impl;

    return msg_stream_queued (c->stream) > 0;
}

static int transport_flush (void *impl)
{
    struct connection *c = impl;

    return msg_stream_flush (c->stream);
}

static void hang_up (struct connection *c)
{
    msg_stream_destroy (c->stream);
    if (c->fd >= 0)
        close (c->fd);
    c->fd = -1;
    c->stream = NULL;
}

/* --- one attempt ---------------------------------------------------------------------------- */

/* Continue the attempt in progress, but not after 'end_ms'. Returns and fails as connector_go_on (), or with ETIMEDOUT.
 */
static int go_on (struct connection *c)
{
    int rc = connector_go_on (c->attempt, &c->error);

    if (rc < 0 && errno == EAGAIN && now_ms () >= c->end_ms)
        return errsetf (&c->error, ETIMEDOUT, "the broker at %s does not answer: is it stopped, or overloaded?",
                        c->uris.uri[c->at].text);
    return rc;
}

/* Sleep until the attempt can continue, at most until 'deadline_ms' (negative: until the attempt's end). */
static int wait_attempt (const struct connection *c, double deadline_ms)
{
    struct pollfd pfd = { .fd = -1, .events = POLLIN };
    double at_ms = c->attempt ? c->end_ms : reconnect_at (&c->reconnect);

    if (c->attempt && (pfd.fd = connector_fd (c->attempt)) < 0)
        at_ms = now_ms () + CONNECTOR_RETRY_MS;
    else if (c->attempt && connector_wants_write (c->attempt))
        pfd.events |= POLLOUT;
    bool ends_first = deadline_ms >= 0 && deadline_ms <= at_ms;
    int rc = connection_poll (&pfd, ends_first ? deadline_ms : at_ms);
    return rc < 0 && errno == ETIMEDOUT && !ends_first ? 0 : rc;
}

static void take_over (struct connection *c)
{
    hang_up (c);
    connector_take (c->attempt, &c->fd, &c->stream);
    if (*connector_instance (c->attempt))
        snprintf (c->instance, sizeof (c->instance), "%s", connector_instance (c->attempt));
    reconnect_succeeded (&c->reconnect, now_ms ());
    c->error.text[0] = '\0';
}

/* --- messages that wait for the next connection ---------------------------------------------- */

int connection_hold (struct connection *c, const idt_msg_t *msg)
{
    size_t size = idt_msg_encode_size (msg);

    if (size > MSG_STREAM_MAX_QUEUE - c->held_bytes || c->held.count >= HELD_MAX)
        return errset (ENOBUFS);
    if (fifo_push (&c->held, msg) < 0)
        return -1;
    idt_msg_ref (msg);
    c->held_bytes += size;
    return 0;
}

/* Send the held messages if 'send' is set, otherwise drop them. Returns 0, or -1 with errno set. */
static int release (struct connection *c, bool send)
{
    const idt_msg_t *msg;
    int rc = 0;

    while ((msg = fifo_pop (&c->held))) {
        if (send && rc == 0 && !c->ops->is_over (msg, c->arg))
            rc = msg_stream_put (c->stream, msg);
        idt_msg_unref (msg);
    }
    c->held_bytes = 0;
    return rc;
}

/* --- the search for the next connection ------------------------------------------------------ */

static void end_attempt (struct connection *c)
{
    idt_watcher_destroy (c->io);
    connector_destroy (c->attempt);
    c->io = NULL;
    c->attempt = NULL;
}

static void give_up (struct connection *c, int errnum)
{
    c->sought = false;
    end_attempt (c);
    (void)release (c, false);
    c->ops->failed (errnum == ENOENT ? ECONNREFUSED : errnum, c->arg);
}

static int start_attempt (struct connection *c)
{
    assert (!c->attempt && c->sought);
    c->at = c->reconnect.next;
    c->end_ms = reconnect_end (&c->reconnect, now_ms ());
    if ((c->attempt = connector_create (&c->uris.uri[c->at], c->instance)) && c->ops->begin (c->attempt, c->arg) == 0)
        return 0;
    return errprintf (&c->error, "%s: %s", c->uris.uri[c->at].text, strerror (errno));
}

static void adopt (struct connection *c)
{
    c->sought = false;
    take_over (c);
    int rc = c->ops->arrived (c->attempt, c->arg) < 0 || release (c, true) < 0 ? -1 : 0;
    int errnum = errno;
    end_attempt (c);
    if (rc < 0)
        give_up (c, errnum);
    else
        c->ops->connected (c->arg);
}

static void drive_cb (idt_watcher_t *w, int revents, void *arg);

/* The time at which the search continues if no descriptor becomes ready before. */
static double next_ms (const struct connection *c)
{
    if (!c->attempt)
        return reconnect_at (&c->reconnect);
    return connector_fd (c->attempt) < 0 ? now_ms () + CONNECTOR_RETRY_MS : c->end_ms;
}

static int watch_attempt (struct connection *c)
{
    int fd = c->attempt ? connector_fd (c->attempt) : -1;

    if (!c->timer && !(c->timer = idt_timer_watcher_create (c->reactor, 0, 0, drive_cb, c)))
        return -1;
    if (fd >= 0 && !c->io && !(c->io = idt_fd_watcher_create (c->reactor, fd, IDT_POLLIN, drive_cb, c)))
        return -1;
    double after_ms = next_ms (c) - now_ms ();
    idt_timer_watcher_reset (c->timer, after_ms > 0 ? after_ms : 0, 0);
    idt_watcher_start (c->timer);
    if (c->io) {
        idt_fd_watcher_set_events (c->io, IDT_POLLIN | (connector_wants_write (c->attempt) ? IDT_POLLOUT : 0));
        idt_watcher_start (c->io);
    }
    return 0;
}

/* If a connection is sought and there is a reactor, let the reactor continue the search. Otherwise remove the watchers.
 */
static void watch (struct connection *c)
{
    if (!c->reactor || !c->sought) {
        idt_watcher_destroy (c->timer);
        idt_watcher_destroy (c->io);
        c->timer = c->io = NULL;
    }
    else if (watch_attempt (c) < 0)
        give_up (c, errno);
}

/* Do all steps of the search that are possible without waiting. */
static void drive (struct connection *c)
{
    while (c->sought && (c->attempt || now_ms () >= reconnect_at (&c->reconnect))) {
        if ((c->attempt || start_attempt (c) == 0) && go_on (c) == 0) {
            adopt (c);
            break;
        }
        if (c->attempt && errno == EAGAIN)
            break;
        int errnum = errno;
        end_attempt (c);
        if (!reconnect_failed (&c->reconnect, now_ms (), errnum))
            give_up (c, errnum);
    }
    watch (c);
}

static void drive_cb (idt_watcher_t *w, int revents, void *arg)
{
    drive (arg);
}

void connection_watch (struct connection *c, idt_reactor_t *reactor)
{
    c->reactor = reactor;
    watch (c);
}

bool connection_is_sought (const struct connection *c)
{
    return c->sought;
}

void connection_seek (struct connection *c)
{
    assert (c->ops);
    if (c->sought && now_ms () - c->reconnect.begun_ms < RECONNECT_PATIENCE_MS)
        return;
    end_attempt (c); /* the attempt of a search that was abandoned and is too old */
    reconnect_begin (&c->reconnect, now_ms ());
    c->sought = true;
    watch (c);
}

void connection_restart (struct connection *c)
{
    end_attempt (c);
    watch (c);
}

int connection_wait (struct connection *c, double deadline_ms)
{
    drive (c);
    if (!c->sought)
        return 0;
    int rc = wait_attempt (c, deadline_ms);
    if (rc == 0)
        drive (c);
    return rc;
}

/* --- opening -------------------------------------------------------------------------------- */

/* Try one broker of the list, for at most 'share_ms'. Returns 0, or -1 with errno set and the reason in c->error. */
static int open_one (struct connection *c, size_t i, double share_ms, idt_interrupt_f cb, void *arg)
{
    int rc = -1;

    c->at = i;
    c->end_ms = now_ms () + share_ms;
    if (!(c->attempt = connector_create (&c->uris.uri[i], c->flags & IDT_O_NORECONNECT ? NULL : "")))
        return errprintf (&c->error, "%s: %s", c->uris.uri[i].text, strerror (errno));
    while ((rc = go_on (c)) < 0 && errno == EAGAIN
           && (wait_attempt (c, connection_sleep_until (cb != NULL, -1)) == 0 || errno == ETIMEDOUT))
        if (cb && !cb (arg)) {
            errsetf (&c->error, EINTR, "%s: interrupted while waiting for the broker's answer", c->uris.uri[i].text);
            break;
        }
    if (rc == 0)
        take_over (c);
    end_attempt (c);
    return rc;
}

static int open_any (struct connection *c, double timeout_ms, idt_interrupt_f cb, void *arg)
{
    double end_ms = timeout_ms >= 0 ? now_ms () + timeout_ms : INFINITY;
    int rc = -1;

    for (size_t i = 0; i < c->uris.count && rc < 0 && (i == 0 || errno != EINTR); i++) {
        double left_ms = end_ms - now_ms ();
        rc = open_one (c, i, reconnect_share (left_ms > 0 ? left_ms : 0, c->uris.count - 1 - i), cb, arg);
    }
    return rc;
}

static void tell (const struct connection *c, idt_error_t *errp)
{
    if (c->uris.count > 1)
        errprintf (errp, "none of %zu brokers can be reached; the last error is: %s", c->uris.count, c->error.text);
    else
        errprintf (errp, "%s", c->error.text);
}

void connection_destroy (struct connection *c)
{
    if (!c)
        return;
    int saved_errno = errno;
    assert (!c->timer); /* the handle called connection_watch (c, NULL) */
    end_attempt (c);
    hang_up (c);
    msg_fifo_fini (&c->held);
    uris_fini (&c->uris);
    free (c);
    errno = saved_errno;
}

static struct connection *connection_create (const char *uris, int flags, idt_error_t *errp)
{
    struct connection *c = calloc (1, sizeof (*c));

    if (c && uris_parse (&c->uris, uris, errp) == 0) {
        c->fd = -1;
        c->flags = flags;
        reconnect_init (&c->reconnect, c->uris.count, (uint32_t)clock_ns (CLOCK_MONOTONIC) ^ (uint32_t)getpid ());
        return c;
    }
    if (!c)
        errprintf (errp, "%s", strerror (errno));
    free (c);
    return NULL;
}

struct connection *connection_open (const char *uris, const struct idt_open_options *options, idt_error_t *errp)
{
    struct connection *c = connection_create (uris, options->flags, errp);
    double timeout_ms = options->timeout_ms == 0 ? OPEN_TIMEOUT_MS : options->timeout_ms;

    if (!c || open_any (c, timeout_ms, options->interrupt, options->arg) == 0)
        return c;
    tell (c, errp);
    connection_destroy (c);
    return NULL;
}

void connection_set_ops (struct connection *c, const struct connection_ops *ops, void *arg)
{
    c->ops = ops;
    c->arg = arg;
}

static void transport_destroy (void *impl)
{
    connection_destroy (impl);
}

const struct idt_transport connection_transport = {
    .send = transport_send,
    .recv = transport_recv,
    .fill = transport_fill,
    .pollfd = transport_pollfd,
    .pending = transport_pending,
    .flush = transport_flush,
    .destroy = transport_destroy,
};

/* --- inspection ----------------------------------------------------------------------------- */

const char *connection_uri (const struct connection *c)
{
    return c->uris.uri[c->at].text;
}

const char *connection_error (const struct connection *c)
{
    return c->error.text;
}

const char *connection_instance (const struct connection *c)
{
    return c->instance;
}

void connection_set_instance (struct connection *c, const char *instance)
{
    snprintf (c->instance, sizeof (c->instance), "%s", instance);
}

bool connection_is_of (const struct connection *c, const char *instance)
{
    return *c->instance == '\0' || *instance == '\0' || strcmp (c->instance, instance) == 0;
}
