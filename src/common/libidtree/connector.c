/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connector.c - one attempt to connect to a broker, without blocking
 *
 * Until the connection is ready only this file uses it, so matchtags count from 1. The request for the instance's UUID
 * has matchtag 1, and the other requests follow in their order. Responses arrive in the order of the requests.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libidtree/connector.h"
#include "libmsg/message.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"

#define INSTANCE_REQUEST "{\"name\":\"instance.uuid\"}"
#define EARLY_MAX (1U << 20) /* limit of messages that arrive before the connection is ready */

enum stage {
    STAGE_CONNECT,
    STAGE_WELCOME,
    STAGE_RANK,
    STAGE_INSTANCE,
    STAGE_ASKS,
    STAGE_READY,
};

struct connector {
    const struct uri *to;
    const char *wanted; /* the instance that the broker must belong to; NULL: do not request the broker's instance */
    char instance[CONNECTOR_INSTANCE_MAX];
    enum stage stage;
    int fd;
    struct msg_stream *stream; /* NULL: the broker has not accepted the connection yet */
    struct fifo asks;
    uint32_t unanswered;
    struct fifo early;
};

/* --- reasons of failure --------------------------------------------------------------------- */

static bool directory_is_gone (const struct uri *to)
{
    char path[sizeof (to->socket.sun_path)];
    struct stat st;

    snprintf (path, sizeof (path), "%s", to->socket.sun_path);
    char *slash = strrchr (path, '/');
    if (!slash || slash == path)
        return false;
    *slash = '\0';
    int saved_errno = errno;
    bool gone = stat (path, &st) < 0 && errno == ENOENT;
    errno = saved_errno;
    return gone;
}

static int tell_stranger (const struct uri *to, idt_error_t *errp)
{
    return errprintf (errp,
                      "%s: the broker there serves another user: run as that user, or let that user admit others "
                      "(access.allow-guest-user, access.group)",
                      to->text);
}

static int tell_unreachable (const struct uri *to, idt_error_t *errp)
{
    if (errno == ENOENT && directory_is_gone (to))
        return errprintf (errp, "%s: its instance has ended, or never existed: the directory does not exist", to->text);
    if (errno == ENOENT)
        return errprintf (errp, "%s: no broker is there: the socket does not exist", to->text);
    if (errno == ECONNREFUSED)
        return errprintf (errp, "%s: no broker listens there: it ended and left its socket, or is only starting",
                          to->text);
    if (errno == EACCES)
        return tell_stranger (to, errp);
    return errprintf (errp, "%s: %s", to->text, strerror (errno));
}

static int tell_refused (const struct uri *to, idt_error_t *errp)
{
    if (errno == EPERM)
        return tell_stranger (to, errp);
    if (errno == ECONNRESET)
        return errprintf (errp, "%s: the broker there closed the connection", to->text);
    return errprintf (errp, "%s: %s", to->text, strerror (errno));
}

/* --- messages ------------------------------------------------------------------------------- */

/* The next message. NULL with errno EAGAIN: none has arrived yet. */
static idt_msg_t *receive (struct connector *d)
{
    bool eof = false;
    idt_msg_t *msg;

    if (msg_stream_flush (d->stream) < 0)
        return NULL;
    while (!(msg = msg_stream_next (d->stream, NULL)) && errno == EAGAIN) {
        ssize_t n = msg_stream_fill (d->stream, &eof);
        if (eof)
            errno = ECONNRESET;
        if (n <= 0)
            return NULL;
    }
    return msg;
}

/* Keep a message that is not a response, for connector_early (). */
static int keep_early (struct connector *d, idt_msg_t *msg)
{
    if (d->early.count < EARLY_MAX && fifo_push (&d->early, msg) == 0)
        return 0;
    idt_msg_unref (msg);
    return errset (ENOBUFS);
}

/* The next response to a request of this attempt; other messages are kept for connector_early (). NULL with errno
 * EAGAIN: none has arrived yet.
 */
static idt_msg_t *receive_answer (struct connector *d)
{
    idt_msg_t *msg;

    while ((msg = receive (d)) && idt_msg_type (msg) != IDT_MSGTYPE_RESPONSE)
        if (keep_early (d, msg) < 0)
            return NULL;
    return msg;
}

/* The error number in a message of the broker, as an errno. 0, EAGAIN and values that are no errno become EPROTO. */
static int errnum_of (uint32_t said)
{
    return said > 0 && said <= INT32_MAX && said != EAGAIN ? (int)said : EPROTO;
}

/* Store the error of a response in errno and 'errp'. */
static int tell_answer (struct connector *d, const idt_msg_t *answer, idt_error_t *errp)
{
    const char *text = idt_msg_string (answer);

    errno = errnum_of (idt_msg_errnum (answer));
    return errprintf (errp, "%s: %s", d->to->text, text && *text ? text : strerror (errno));
}

/* --- stages --------------------------------------------------------------------------------- */

/* EAGAIN means that the listener's queue is full. No descriptor reports when the queue has space, so the caller must
 * try again later.
 */
static int do_connect (struct connector *d, idt_error_t *errp)
{
    if (connect (d->fd, (const struct sockaddr *)&d->to->socket, sizeof (d->to->socket)) < 0)
        return errno == EAGAIN || errno == EINTR ? errset (EAGAIN) : tell_unreachable (d->to, errp);
    d->stage = STAGE_WELCOME;
    return 0;
}

static int put_new (struct connector *d, idt_msg_t *msg)
{
    int rc = msg ? msg_stream_put (d->stream, msg) : -1;

    idt_msg_unref (msg);
    return rc;
}

static int put_rank (struct connector *d)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (msg)
        idt_msg_set_control (msg, MSG_CONTROL_RANK, d->to->rank);
    return put_new (d, msg);
}

static int put_instance (struct connector *d)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, "attr.get") < 0 || idt_msg_set_string (msg, INSTANCE_REQUEST) < 0) {
        idt_msg_unref (msg);
        return -1;
    }
    idt_msg_set_matchtag (msg, 1);
    return put_new (d, msg);
}

/* Called when the broker has confirmed the rank, or if the URI names no rank. */
static int after_rank (struct connector *d)
{
    d->stage = d->wanted ? STAGE_INSTANCE : STAGE_READY;
    return d->wanted ? put_instance (d) : 0;
}

static int read_welcome (struct connector *d, idt_error_t *errp)
{
    unsigned char answer;
    ssize_t n;

    do
        n = read (d->fd, &answer, 1);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return -1;
    if (n >= 0)
        errno = n == 1 ? errnum_of (answer) : ECONNRESET;
    if (n != 1 || answer != 0)
        return tell_refused (d->to, errp);
    if (!(d->stream = msg_stream_create (d->fd, MSG_STREAM_MAX_MESSAGE, MSG_STREAM_MAX_QUEUE)))
        return errprintf (errp, "%s: %s", d->to->text, strerror (errno));
    d->stage = STAGE_RANK;
    if ((d->to->has_rank ? put_rank (d) : after_rank (d)) < 0)
        return errprintf (errp, "%s: %s", d->to->text, strerror (errno));
    return 0;
}

static int read_rank (struct connector *d, idt_error_t *errp)
{
    idt_msg_t *answer = receive (d);

    if (!answer)
        return errno == EAGAIN ? -1 : tell_refused (d->to, errp);
    uint32_t errnum = idt_msg_type (answer) == IDT_MSGTYPE_CONTROL ? idt_msg_control_status (answer) : EPROTO;
    idt_msg_unref (answer);
    if (errnum == EHOSTUNREACH)
        return errsetf (errp, EHOSTUNREACH, "%s: no broker of rank %" PRIu32 " runs there", d->to->text, d->to->rank);
    if (errnum == 0 && after_rank (d) == 0)
        return 0;
    if (errnum != 0)
        errno = errnum_of (errnum);
    return tell_refused (d->to, errp);
}

static int put_asks (struct connector *d)
{
    const idt_msg_t *msg;
    int rc = 0;

    d->stage = STAGE_ASKS;
    while ((msg = fifo_pop (&d->asks))) {
        rc = rc < 0 ? rc : msg_stream_put (d->stream, msg);
        idt_msg_unref (msg);
        d->unanswered++;
    }
    return rc;
}

/* Compare the broker's instance with the wanted one. The broker may not tell its instance: a broker of Flux has none,
 * and a broker whose attributes this user may not read answers EPERM.
 */
static int take_instance (struct connector *d, const idt_msg_t *answer, idt_error_t *errp)
{
    const char *text = idt_msg_string (answer), *value = NULL;
    uint32_t errnum = idt_msg_errnum (answer);
    json_t *o = errnum == 0 && text ? json_loads (text, 0, NULL) : NULL;

    if (errnum != 0 && errnum != ENOENT && errnum != EPERM && errnum != ENOSYS)
        return tell_answer (d, answer, errp);
    value = json_string_value (json_object_get (o, "value"));
    snprintf (d->instance, sizeof (d->instance), "%s", value ? value : "");
    json_decref (o);
    if (*d->wanted == '\0' || strcmp (d->wanted, d->instance) == 0)
        return 0;
    if (*d->instance == '\0')
        return errsetf (errp, ENOTCONN, "%s: the broker there does not know yet whether it belongs to instance %s",
                        d->to->text, d->wanted);
    return errsetf (errp, ESTALE,
                    "%s: the broker there belongs to instance %s, and not to instance %s, which was used before",
                    d->to->text, d->instance, d->wanted);
}

static int read_instance (struct connector *d, idt_error_t *errp)
{
    idt_msg_t *answer = receive_answer (d);

    if (!answer)
        return errno == EAGAIN ? -1 : tell_refused (d->to, errp);
    int rc = take_instance (d, answer, errp);
    idt_msg_unref (answer);
    if (rc == 0 && (rc = put_asks (d)) < 0)
        return errprintf (errp, "%s: %s", d->to->text, strerror (errno));
    return rc;
}

static int read_asks (struct connector *d, idt_error_t *errp)
{
    int rc = 0;

    for (; rc == 0 && d->unanswered > 0; d->unanswered--) {
        idt_msg_t *answer = receive_answer (d);

        if (!answer)
            return errno == EAGAIN ? -1 : tell_refused (d->to, errp);
        if (idt_msg_errnum (answer) != 0)
            rc = tell_answer (d, answer, errp);
        idt_msg_unref (answer);
    }
    if (rc == 0)
        d->stage = STAGE_READY;
    return rc;
}

int connector_go_on (struct connector *d, idt_error_t *errp)
{
    static int (*const step[]) (struct connector * d, idt_error_t * errp) = {
        [STAGE_CONNECT] = do_connect,     [STAGE_WELCOME] = read_welcome, [STAGE_RANK] = read_rank,
        [STAGE_INSTANCE] = read_instance, [STAGE_ASKS] = read_asks,
    };

    while (d->stage != STAGE_READY)
        if (step[d->stage](d, errp) < 0)
            return -1;
    return 0;
}

/* --- waiting, and results ------------------------------------------------------------------ */

int connector_fd (const struct connector *d)
{
    return d->stage == STAGE_CONNECT ? -1 : d->fd;
}

bool connector_wants_write (const struct connector *d)
{
    return d->stream && msg_stream_queued (d->stream) > 0;
}

const char *connector_instance (const struct connector *d)
{
    return d->instance;
}

const idt_msg_t *connector_early (struct connector *d)
{
    return fifo_pop (&d->early);
}

void connector_take (struct connector *d, int *fd, struct msg_stream **stream)
{
    assert (d->stage == STAGE_READY && d->stream);
    *fd = d->fd;
    *stream = d->stream;
    d->fd = -1;
    d->stream = NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

int connector_ask (struct connector *d, const idt_msg_t *request)
{
    idt_msg_t *copy = idt_msg_copy (request, true);

    assert (d->stage == STAGE_CONNECT);
    if (!copy)
        return -1;
    idt_msg_set_matchtag (copy, (uint32_t)d->asks.count + 2);
    if (fifo_push (&d->asks, copy) == 0)
        return 0;
    idt_msg_unref (copy);
    return -1;
}

void connector_destroy (struct connector *d)
{
    if (!d)
        return;
    int saved_errno = errno;
    msg_fifo_fini (&d->asks);
    msg_fifo_fini (&d->early);
    msg_stream_destroy (d->stream);
    if (d->fd >= 0)
        close (d->fd);
    free (d);
    errno = saved_errno;
}

struct connector *connector_create (const struct uri *to, const char *instance)
{
    struct connector *d = calloc (1, sizeof (*d));

    if (!d)
        return NULL;
    d->to = to;
    d->wanted = instance;
    d->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->fd >= 0)
        return d;
    connector_destroy (d);
    return NULL;
}
