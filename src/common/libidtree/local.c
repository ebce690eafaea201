/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* local.c - the transport of a handle that is connected to a broker over a UNIX socket */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libidtree/local.h"

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

void local_hang_up (struct local *local)
{
    msg_stream_destroy (local->stream);
    if (local->fd >= 0)
        close (local->fd);
    *local = (struct local){ .fd = -1 };
}

static void local_destroy (void *impl)
{
    int saved_errno = errno;

    local_hang_up (impl);
    free (impl);
    errno = saved_errno;
}

const struct idt_transport local_transport = {
    .send = local_send,
    .recv = local_recv,
    .fill = local_fill,
    .pollfd = local_pollfd,
    .pending = local_pending,
    .flush = local_flush,
    .destroy = local_destroy,
};

struct local *local_create (void)
{
    struct local *local = calloc (1, sizeof (*local));

    if (local)
        local->fd = -1;
    return local;
}
