/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.c - a client's connection to a broker over a UNIX socket, and the next one after a loss
 *
 * reconnect.h decides which broker is tried and when; connector.h makes one attempt. This file connects both with the
 * handle, its reactor and its blocking calls. It has no thread: a blocking call drives the attempt, or the reactor does
 * while something waits for the connection.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libidtree/connect/reconnect.h"
#include "libidtree/local.h"
#include "libidtree/private.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define OPEN_TIMEOUT_MS 30000.
#define LOST_EVENT "{\"stream\":\"\",\"from\":0,\"to\":0,\"reconnected\":true}"

struct connection {
    int flags; /* enum idt_open_flag */
    struct uris uris;
    size_t at;                             /* index of the URI in use, or of the last one */
    char instance[CONNECTOR_INSTANCE_MAX]; /* UUID of the instance; "": not known yet */
    idt_future_t *learn;                   /* the request for 'instance'; NULL: not made over this connection */
    idt_error_t error;                     /* why the last attempt failed */

    bool sought;
    struct reconnect redial;
    struct connector *dial; /* the attempt in progress; NULL: none */
    double end_ms;          /* when that attempt times out */
    struct fifo held;       /* messages to send over the next connection */
    size_t held_bytes;

    idt_watcher_t *timer, *io; /* NULL: the reactor does not drive the attempt */
};

/* --- one attempt ---------------------------------------------------------------------------- */

static double now_ms (void)
{
    return clock_s (CLOCK_MONOTONIC) * 1e3;
}

/* Continue the attempt in progress, until 'end_ms'. Returns and fails as connector_go_on (). */
static int go_on (struct connection *c)
{
    int rc = connector_go_on (c->dial, &c->error);

    if (rc < 0 && errno == EAGAIN && now_ms () >= c->end_ms)
        return errsetf (&c->error, ETIMEDOUT, "the broker at %s does not answer: is it stopped, or overloaded?",
                        c->uris.uri[c->at].text);
    return rc;
}

/* Sleep until the attempt can continue, at most until 'deadline_ms' (negative: until the attempt's end). */
static int wait_dial (const struct connection *c, double deadline_ms)
{
    struct pollfd pfd = { .fd = -1, .events = POLLIN };
    double at_ms = c->dial ? c->end_ms : reconnect_at (&c->redial);

    if (c->dial && (pfd.fd = connector_fd (c->dial)) < 0)
        at_ms = now_ms () + CONNECTOR_RETRY_MS;
    else if (c->dial && connector_wants_write (c->dial))
        pfd.events |= POLLOUT;
    bool ends_first = deadline_ms >= 0 && deadline_ms <= at_ms;
    int rc = handle_poll (&pfd, ends_first ? deadline_ms : at_ms);
    return rc < 0 && errno == ETIMEDOUT && !ends_first ? 0 : rc;
}

static void take_over (struct connection *c, struct local *local)
{
    local_hang_up (local);
    connector_take (c->dial, &local->fd, &local->stream);
    if (*connector_instance (c->dial))
        snprintf (c->instance, sizeof (c->instance), "%s", connector_instance (c->dial));
    reconnect_succeeded (&c->redial, now_ms ());
    c->error.text[0] = '\0';
}

/* --- the UUID of the instance --------------------------------------------------------------- */

void connection_learn (idt_t *h)
{
    struct connection *c = h->connection;

    if (connection_may_follow (h) && *c->instance == '\0' && !c->learn)
        c->learn = idt_rpc (h, "attr.get", "{\"name\":\"instance.uuid\"}", IDT_NODEID_ANY, 0);
}

/* Take the response, if it has arrived, when the connection ends. */
static void learned (struct connection *c)
{
    const char *value;

    if (c->learn && c->learn->response && idt_rpc_get_unpack (c->learn, "{s:s}", "value", &value) == 0)
        snprintf (c->instance, sizeof (c->instance), "%s", value);
    idt_future_destroy (c->learn);
    c->learn = NULL;
}

void connection_forget (idt_t *h)
{
    if (h->connection)
        learned (h->connection);
}

/* --- what waits for the next connection ----------------------------------------------------- */

int connection_hold (idt_t *h, const idt_msg_t *msg)
{
    struct connection *c = h->connection;
    size_t size = idt_msg_encode_size (msg);

    if (size > MSG_STREAM_MAX_QUEUE - c->held_bytes || c->held.count >= MATCHTAG_TABLE_MAX)
        return errset (ENOBUFS);
    if (fifo_push (&c->held, msg) < 0)
        return -1;
    idt_msg_ref (msg);
    c->held_bytes += size;
    return 0;
}

/* Whether the future of a request no longer exists: then the request must not be sent. */
static bool is_over (const idt_t *h, const idt_msg_t *msg)
{
    uint32_t tag = idt_msg_type (msg) == IDT_MSGTYPE_REQUEST ? idt_msg_matchtag (msg) : 0;

    return tag != 0 && !matchtag_table_find (&h->tags, tag);
}

/* Send the held messages, or drop them. Returns 0, or -1 with errno set. */
static int release (idt_t *h, bool send)
{
    struct connection *c = h->connection;
    const idt_msg_t *msg;
    int rc = 0;

    while ((msg = fifo_pop (&c->held))) {
        if (send && rc == 0 && !is_over (h, msg))
            rc = h->transport->send (h->impl, msg);
        idt_msg_unref (msg);
    }
    c->held_bytes = 0;
    return rc;
}

/* Put an event.lost in the inbox: events were missed while the handle was not connected, and it is unknown which. */
static int keep_lost_event (idt_t *h)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    if (msg && idt_msg_set_topic (msg, "event.lost") == 0 && idt_msg_set_string (msg, LOST_EVENT) == 0
        && handle_keep (h, msg) == 0)
        return 0;
    idt_msg_unref (msg);
    return -1;
}

static int keep_early (idt_t *h, struct connector *dial)
{
    int rc = bonds_subscribed (h) ? keep_lost_event (h) : 0;
    const idt_msg_t *msg;

    while (rc == 0 && (msg = connector_early (dial)))
        if ((rc = handle_keep (h, msg)) < 0)
            idt_msg_unref (msg);
    return rc;
}

/* --- the next connection -------------------------------------------------------------------- */

static void end_dial (struct connection *c)
{
    idt_watcher_destroy (c->io);
    connector_destroy (c->dial);
    c->io = NULL;
    c->dial = NULL;
}

static void give_up (idt_t *h, int errnum)
{
    struct connection *c = h->connection;

    c->sought = false;
    end_dial (c);
    (void)release (h, false);
    handle_lose (h, errnum == ENOENT ? ECONNREFUSED : errnum);
}

static int start_dial (idt_t *h)
{
    struct connection *c = h->connection;

    c->at = c->redial.next;
    c->end_ms = reconnect_end (&c->redial, now_ms ());
    if ((c->dial = connector_create (&c->uris.uri[c->at], c->instance)) && bonds_say_again (h, c->dial) == 0)
        return 0;
    return errprintf (&c->error, "%s: %s", c->uris.uri[c->at].text, strerror (errno));
}

static void adopt (idt_t *h)
{
    struct connection *c = h->connection;

    c->sought = false;
    take_over (c, h->impl);
    int rc = keep_early (h, c->dial) < 0 || release (h, true) < 0 ? -1 : 0;
    int errnum = errno;
    end_dial (c);
    if (rc < 0) {
        give_up (h, errnum);
        return;
    }
    handle_connected (h);
    bonds_say_late (h);
}

/* Do all steps that are possible without waiting. */
static void drive (idt_t *h)
{
    struct connection *c = h->connection;

    while (c->sought && (c->dial || now_ms () >= reconnect_at (&c->redial))) {
        if ((c->dial || start_dial (h) == 0) && go_on (c) == 0) {
            adopt (h);
            break;
        }
        if (c->dial && errno == EAGAIN)
            break;
        int errnum = errno;
        end_dial (c);
        if (!reconnect_failed (&c->redial, now_ms (), errnum))
            give_up (h, errnum);
    }
    connection_watch (h);
}

bool connection_may_follow (const idt_t *h)
{
    return h->connection && !(h->connection->flags & IDT_O_NORECONNECT);
}

bool connection_follows (const idt_t *h)
{
    return h->connection && (h->connection->flags & IDT_O_RECONNECT);
}

bool connection_may_attach (const idt_t *h)
{
    return h->connection && !(h->connection->flags & IDT_O_NOSHM);
}

bool connection_is_of (const idt_t *h, const char *instance)
{
    const char *ours = h->connection->instance;

    return *ours == '\0' || *instance == '\0' || strcmp (ours, instance) == 0;
}

bool connection_is_sought (const idt_t *h)
{
    return h->connection && h->connection->sought;
}

bool connection_seek (idt_t *h)
{
    struct connection *c = h->connection;

    if (!connection_may_follow (h))
        return false;
    if (c->sought && now_ms () - c->redial.begun_ms < RECONNECT_PATIENCE_MS)
        return true;
    learned (c);
    end_dial (c); /* an abandoned attempt that is too old to continue */
    reconnect_begin (&c->redial, now_ms ());
    c->sought = true;
    connection_watch (h);
    return true;
}

void connection_retell (idt_t *h)
{
    end_dial (h->connection);
    connection_watch (h);
}

int connection_wait (idt_t *h, double deadline_ms)
{
    drive (h);
    if (!h->connection->sought)
        return 0;
    int rc = wait_dial (h->connection, deadline_ms);
    if (rc == 0)
        drive (h);
    return rc;
}

/* --- reactor -------------------------------------------------------------------------------- */

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    drive (arg);
}

static void io_cb (idt_watcher_t *w, int revents, void *arg)
{
    drive (arg);
}

/* When to continue if nothing happens before. */
static double next_ms (const struct connection *c)
{
    if (!c->dial)
        return reconnect_at (&c->redial);
    return connector_fd (c->dial) < 0 ? now_ms () + CONNECTOR_RETRY_MS : c->end_ms;
}

static int watch_dial (idt_t *h)
{
    struct connection *c = h->connection;
    int fd = c->dial ? connector_fd (c->dial) : -1;

    if (!c->timer && !(c->timer = idt_timer_watcher_create (h->reactor, 0, 0, timer_cb, h)))
        return -1;
    if (fd >= 0 && !c->io && !(c->io = idt_fd_watcher_create (h->reactor, fd, IDT_POLLIN, io_cb, h)))
        return -1;
    double after_ms = next_ms (c) - now_ms ();
    idt_timer_watcher_reset (c->timer, after_ms > 0 ? after_ms : 0, 0);
    idt_watcher_start (c->timer);
    if (c->io) {
        idt_fd_watcher_set_events (c->io, IDT_POLLIN | (connector_wants_write (c->dial) ? IDT_POLLOUT : 0));
        idt_watcher_start (c->io);
    }
    return 0;
}

void connection_unwatch (idt_t *h)
{
    struct connection *c = h->connection;

    if (!c)
        return;
    idt_watcher_destroy (c->timer);
    idt_watcher_destroy (c->io);
    c->timer = c->io = NULL;
}

void connection_watch (idt_t *h)
{
    struct connection *c = h->connection;

    if (!c || !h->reactor)
        return;
    if (!c->sought || h->interest == 0)
        connection_unwatch (h);
    else if (watch_dial (h) < 0)
        give_up (h, errno);
}

/* --- opening -------------------------------------------------------------------------------- */

/* Try one broker of the list, for at most 'share_ms'. Returns 0, or -1 with errno set and the reason in c->error. */
static int open_one (struct connection *c, size_t i, double share_ms, idt_interrupt_f cb, void *arg,
                     struct local *local)
{
    int rc = -1;

    c->at = i;
    c->end_ms = now_ms () + share_ms;
    if (!(c->dial = connector_create (&c->uris.uri[i], c->flags & IDT_O_NORECONNECT ? NULL : "")))
        return errprintf (&c->error, "%s: %s", c->uris.uri[i].text, strerror (errno));
    while ((rc = go_on (c)) < 0 && errno == EAGAIN
           && (wait_dial (c, handle_sleep_until (cb != NULL, -1)) == 0 || errno == ETIMEDOUT))
        if (cb && !cb (arg)) {
            errsetf (&c->error, EINTR, "%s: interrupted while waiting for the broker's answer", c->uris.uri[i].text);
            break;
        }
    if (rc == 0)
        take_over (c, local);
    end_dial (c);
    return rc;
}

static int open_any (struct connection *c, double timeout_ms, idt_interrupt_f cb, void *arg, struct local *local)
{
    double end_ms = timeout_ms >= 0 ? now_ms () + timeout_ms : INFINITY;
    int rc = -1;

    for (size_t i = 0; i < c->uris.count && rc < 0 && (i == 0 || errno != EINTR); i++) {
        double left_ms = end_ms - now_ms ();
        rc = open_one (c, i, reconnect_share (left_ms > 0 ? left_ms : 0, c->uris.count - 1 - i), cb, arg, local);
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

static void connection_free (struct connection *c)
{
    const idt_msg_t *msg;

    if (!c)
        return;
    end_dial (c);
    while ((msg = fifo_pop (&c->held)))
        idt_msg_unref (msg);
    fifo_fini (&c->held);
    uris_fini (&c->uris);
    free (c);
}

static struct connection *connection_create (const char *uris, int flags, idt_error_t *errp)
{
    struct connection *c = calloc (1, sizeof (*c));

    if (c && uris_parse (&c->uris, uris, errp) == 0) {
        c->flags = flags;
        reconnect_init (&c->redial, c->uris.count, (uint32_t)clock_ns (CLOCK_MONOTONIC) ^ (uint32_t)getpid ());
        return c;
    }
    if (!c)
        errprintf (errp, "%s", strerror (errno));
    free (c);
    return NULL;
}

idt_t *connection_open (const char *uris, const struct idt_open_options *options, idt_error_t *errp)
{
    struct connection *c = connection_create (uris, options->flags, errp);
    double timeout_ms = options->timeout_ms == 0 ? OPEN_TIMEOUT_MS : options->timeout_ms;
    struct local *local = c ? local_create () : NULL;
    idt_t *h = NULL;

    if (!c)
        return NULL;
    if (local && open_any (c, timeout_ms, options->interrupt, options->arg, local) < 0)
        tell (c, errp);
    else if (!local || !(h = idt_handle_create (&local_transport, local)))
        errprintf (errp, "%s", strerror (errno));
    if (h) {
        h->connection = c;
        return h;
    }
    int saved_errno = errno;
    if (local)
        local_transport.destroy (local);
    connection_free (c);
    errno = saved_errno;
    return NULL;
}

/* --- inspection, and destruction ------------------------------------------------------------ */

const char *idt_get_uri (const idt_t *h)
{
    return h->connection ? h->connection->uris.uri[h->connection->at].text : NULL;
}

const char *idt_lost_error (const idt_t *h)
{
    if (!h->lost)
        return NULL;
    return h->connection && *h->connection->error.text ? h->connection->error.text : strerror (h->lost);
}

void connection_destroy (idt_t *h)
{
    connection_free (h->connection);
    h->connection = NULL;
}
