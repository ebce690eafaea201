/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connector_local.c - a client's connection to a broker over a UNIX socket (protocol.md section 2)
 *
 * The broker's first byte is 0, or the errno with which it turns us away.  Where the URI names a rank, of those that a process
 * hosts, that is asked for before anything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libidtree/transport.h"
#include "libmsg/stream.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

struct address {
    struct sockaddr_un socket;
    bool has_rank;
    uint32_t rank;
};

struct local {
    int fd;
    struct msg_stream *stream;
};

/* --- transport ------------------------------------------------------------------------------ */

static int local_send (void *impl, const idt_msg_t *msg)
{
    struct local *local = impl;

    return msg_stream_put (local->stream, msg);
}

static const idt_msg_t *local_recv (void *impl)
{
    struct local *local = impl;

    return msg_stream_next (local->stream, NULL);
}

static int local_fill (void *impl)
{
    struct local *local = impl;
    bool eof = false;
    ssize_t n = msg_stream_fill (local->stream, &eof);

    if (eof)
        errno = ECONNRESET;
    return n > 0 ? 0 : -1;
}

static int local_pollfd (void *impl)
{
    struct local *local = impl;

    return local->fd;
}

static bool local_pending (void *impl)
{
    struct local *local = impl;

    return msg_stream_queued (local->stream) > 0;
}

static int local_flush (void *impl)
{
    struct local *local = impl;

    return msg_stream_flush (local->stream);
}

static void local_destroy (void *impl)
{
    struct local *local = impl;

    if (!local)
        return;
    int saved_errno = errno;
    msg_stream_destroy (local->stream);
    if (local->fd >= 0)
        close (local->fd);
    free (local);
    errno = saved_errno;
}

static const struct idt_transport local_transport = {
    .send = local_send,
    .recv = local_recv,
    .fill = local_fill,
    .pollfd = local_pollfd,
    .pending = local_pending,
    .flush = local_flush,
    .destroy = local_destroy,
};

/* --- open ----------------------------------------------------------------------------------- */

/* local://PATH, and ?rank=RANK at will. */
static int parse_uri (const char *uri, struct address *a)
{
    static const char scheme[] = "local://", query[] = "?rank=";
    const char *path = uri + sizeof (scheme) - 1, *end = strstr (uri, query);
    size_t size = sizeof (a->socket.sun_path);
    uint64_t rank = 0;

    if (strncmp (uri, scheme, sizeof (scheme) - 1) != 0)
        return errset (EINVAL);
    if (end && parse_number (end + sizeof (query) - 1, 0, UINT32_MAX, &rank) < 0)
        return errset (EINVAL);
    size_t len = end ? (size_t)(end - path) : strlen (path);
    if (len == 0 || len >= size)
        return errset (EINVAL);
    *a = (struct address){ .socket = { .sun_family = AF_UNIX }, .has_rank = end != NULL, .rank = (uint32_t)rank };
    memcpy (a->socket.sun_path, path, len);
    return 0;
}

static int connect_to (struct local *local, const struct sockaddr_un *addr)
{
    if ((local->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
        return -1;
    int rc;
    do
        rc = connect (local->fd, (const struct sockaddr *)addr, sizeof (*addr));
    while (rc < 0 && errno == EINTR);
    return rc;
}

/* Read the byte that the broker greets with. */
static int read_welcome (struct local *local)
{
    unsigned char answer;
    ssize_t n;

    do
        n = read (local->fd, &answer, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1 && answer == 0)
        return 0;
    if (n >= 0)
        errno = n == 1 ? answer : ECONNRESET;
    return -1;
}

/* The one message that comes before any request, and its answer; the socket blocks yet. */
static idt_msg_t *exchange (struct local *local, const idt_msg_t *msg)
{
    idt_msg_t *answer = NULL;
    int rc = msg_stream_put (local->stream, msg) < 0 ? -1 : msg_stream_flush (local->stream);

    while (rc >= 0 && !(answer = msg_stream_next (local->stream, NULL)))
        rc = errno == EAGAIN ? local_fill (local) : -1;
    return answer;
}

static int choose_rank (struct local *local, uint32_t rank)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL), *answer = NULL;
    uint32_t errnum = 0;

    if (!msg)
        return -1;
    idt_msg_set_control (msg, MSG_CONTROL_RANK, rank);
    if ((answer = exchange (local, msg)))
        errnum = idt_msg_type (answer) == IDT_MSGTYPE_CONTROL ? idt_msg_control_status (answer) : EPROTO;
    int rc = answer ? 0 : -1;
    idt_msg_unref (msg);
    idt_msg_unref (answer);
    return errnum ? errset ((int)errnum) : rc;
}

static int start_stream (struct local *local, const struct address *a)
{
    int flags = fcntl (local->fd, F_GETFL);

    if (flags < 0 || !(local->stream = msg_stream_create (local->fd, MSG_STREAM_MAX_MESSAGE, MSG_STREAM_MAX_QUEUE)))
        return -1;
    if (a->has_rank && choose_rank (local, a->rank) < 0)
        return -1;
    return fcntl (local->fd, F_SETFL, flags | O_NONBLOCK);
}

/* Why it is not open. */
static void tell (const char *uri, const struct address *a, idt_error_t *errp)
{
    if (a->has_rank && errno == EHOSTUNREACH)
        errprintf (errp, "%s: no broker of rank %" PRIu32 " runs there", uri, a->rank);
    else
        errprintf (errp, "%s: %s", uri, strerror (errno));
}

idt_t *idt_open (const char *uri, idt_error_t *errp)
{
    struct address a;
    struct local *local;
    idt_t *h = NULL;

    if (!uri) {
        errsetf (errp, EINVAL, "no URI of a broker is given: IDTREE_URI has it where an instance runs");
        return NULL;
    }
    if (parse_uri (uri, &a) < 0) {
        errprintf (errp, "%s: not local:// and a path of at most %zu bytes, and ?rank=RANK at will", uri,
                   sizeof (a.socket.sun_path) - 1);
        return NULL;
    }
    if ((local = calloc (1, sizeof (*local))) && connect_to (local, &a.socket) == 0 && read_welcome (local) == 0
        && start_stream (local, &a) == 0)
        h = idt_handle_create (&local_transport, local);
    if (!h) {
        tell (uri, &a, errp);
        local_destroy (local);
    }
    return h;
}
