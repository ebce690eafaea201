/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_memory.c - wires inside a process that need no socket */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/overlay/wire/wire_private.h"

static int memory_send (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form)
{
    return w->port ? inside_port_send (w->port, identity, msg) : inside_line_send (w->line, msg);
}

/* Numbers of lines are used once, so there is nothing to do. */
static void memory_read_ends (struct wire *w)
{
}

static void memory_destroy (struct wire *w, int linger_ms)
{
    inside_port_destroy (w->port);
    inside_line_close (w->line);
    zwatcher_destroy (w->zs);
    free (w);
}

static const struct wire_class memory_class = {
    .send = memory_send,
    .read_ends = memory_read_ends,
    .destroy = memory_destroy,
};

static bool port_cb (struct zwatcher *zs, void *arg)
{
    struct wire *w = arg;
    struct inside_item item;
    struct wire_from from = { .wire = w };

    if (!inside_port_next (w->port, &item)) {
        w->dry = true;
        return false;
    }
    if (!item.msg) {
        w->ops->closed (w->arg, w, item.line);
        return true;
    }
    from.rank = item.rank;
    from.line = item.line;
    memcpy (from.identity, item.identity, sizeof (from.identity));
    w->ops->received (w->arg, item.msg, &from);
    return true;
}

static bool line_cb (struct zwatcher *zs, void *arg)
{
    struct wire *w = arg;
    idt_msg_t *msg = inside_line_next (w->line);

    if (msg) {
        w->ops->received (w->arg, msg, &(struct wire_from){ .wire = w });
        return true;
    }
    if (errno == ENOMEM) {
        w->ops->received (w->arg, NULL, &(struct wire_from){ .wire = w });
        return true;
    }
    w->dry = true;
    if (errno == EPIPE)
        w->ops->closed (w->arg, w, 0);
    return false;
}

struct wire *wire_memory_create (const struct wire_conf *conf, struct inside_port *port, const char *identity,
                                 const struct wire_ops *ops, void *arg)
{
    struct wire *w = wire_create (&memory_class, WIRE_MEMORY, !port, conf, ops, arg);

    if (!w)
        return NULL;
    w->zs = zwatcher_create_plain (conf->zpoll, port ? line_cb : port_cb, w);
    if (w->zs && (port ? wire_open_line (w, port, identity) : wire_open_port (w)) == 0)
        return w;
    wire_close (w, 0);
    return NULL;
}
