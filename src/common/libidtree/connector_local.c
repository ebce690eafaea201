/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connector_local.c - a client's connection to a broker over a UNIX socket (protocol.md section 2)
 *
 * The broker's first byte is 0, or the errno with which it turns us away.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libidtree/transport.h"
#include "libmsg/stream.h"
#include "libutil/errprintf.h"

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

static int parse_uri (const char *uri, struct sockaddr_un *addr)
{
    static const char scheme[] = "local://";
    const char *path = uri + sizeof (scheme) - 1;

    if (strncmp (uri, scheme, sizeof (scheme) - 1) != 0 || *path == '\0' || strlen (path) >= sizeof (addr->sun_path))
        return errset (EINVAL);
    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    strcpy (addr->sun_path, path);
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

static int start_stream (struct local *local)
{
    int flags = fcntl (local->fd, F_GETFL);

    if (flags < 0 || fcntl (local->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -1;
    local->stream = msg_stream_create (local->fd, MSG_STREAM_MAX_MESSAGE, MSG_STREAM_MAX_QUEUE);
    return local->stream ? 0 : -1;
}

idt_t *idt_open (const char *uri, idt_error_t *errp)
{
    struct sockaddr_un addr;
    struct local *local;
    idt_t *h = NULL;

    if (!uri) {
        errsetf (errp, EINVAL, "no URI of a broker is given: IDTREE_URI has it where an instance runs");
        return NULL;
    }
    if (parse_uri (uri, &addr) < 0) {
        errprintf (errp, "%s: not local:// and a path of at most %zu bytes", uri, sizeof (addr.sun_path) - 1);
        return NULL;
    }
    if ((local = calloc (1, sizeof (*local))) && connect_to (local, &addr) == 0 && read_welcome (local) == 0
        && start_stream (local) == 0)
        h = idt_handle_create (&local_transport, local);
    if (!h) {
        errprintf (errp, "%s: %s", uri, strerror (errno));
        local_destroy (local);
    }
    return h;
}
