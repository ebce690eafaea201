/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.c - what wires of all kinds have in common, and which kind is used for a connection */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/overlay/wire/wire_private.h"
#include "libutil/errprintf.h"

static const char *names[] = { "zmq", "inproc", "memory" };

const char *wire_kind_name (enum wire_kind kind)
{
    return names[kind];
}

int wire_kind_decode (const char *name, enum wire_kind *kind)
{
    for (enum wire_kind k = WIRE_ZMQ; k <= WIRE_MEMORY; k++) {
        if (strcmp (name, names[k]) == 0) {
            *kind = k;
            return 0;
        }
    }
    return errset (EINVAL);
}

struct wire *wire_create (const struct wire_class *class, enum wire_kind kind, bool is_above,
                          const struct wire_conf *conf, const struct wire_ops *ops, void *arg)
{
    struct wire *w = calloc (1, sizeof (*w));

    if (!w)
        return NULL;
    w->class = class;
    w->kind = kind;
    w->is_above = is_above;
    w->conf = conf;
    w->ops = ops;
    w->arg = arg;
    return w;
}

static void touched (void *arg)
{
    struct wire *w = arg;

    zwatcher_wake (w->zs);
}

static struct inside_end end_of (struct wire *w)
{
    return (struct inside_end){
        .messages = w->conf->hwm,
        .bytes = w->conf->max_queue,
        .touched = touched,
        .arg = w,
    };
}

int wire_open_port (struct wire *w)
{
    struct inside_end end = end_of (w);

    w->port = inside_port_create (w->conf->inside, w->conf->rank, w->kind, &end);
    return w->port ? 0 : -1;
}

int wire_open_line (struct wire *w, struct inside_port *port, const char *identity)
{
    struct inside_end end = end_of (w);

    w->line = inside_line_open (port, w->conf->rank, identity, &end);
    return w->line ? 0 : -1;
}

/* The listening broker determines the kind. */
struct wire *wire_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                           const struct wire_ops *ops, void *arg)
{
    bool may_be = conf->inside && conf->kind != WIRE_ZMQ;
    struct inside_port *port = may_be ? inside_find (conf->inside, to->rank) : NULL;

    if (!port)
        return wire_zmq_connect (conf, to, identity, ops, arg);
    return inside_port_tag (port) == WIRE_MEMORY ? wire_memory_create (conf, port, identity, ops, arg)
                                                 : wire_inproc_create (conf, port, identity, ops, arg);
}

struct wire *wire_listen_inside (const struct wire_conf *conf, const struct wire_ops *ops, void *arg)
{
    return conf->kind == WIRE_MEMORY ? wire_memory_create (conf, NULL, NULL, ops, arg)
                                     : wire_inproc_create (conf, NULL, NULL, ops, arg);
}

void wire_close (struct wire *w, int linger_ms)
{
    int saved_errno = errno;

    if (w)
        w->class->destroy (w, linger_ms);
    errno = saved_errno;
}

enum wire_kind wire_kind (const struct wire *w)
{
    return w->kind;
}

const char *wire_endpoint (const struct wire *w)
{
    return w->endpoint;
}

int wire_send (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form)
{
    return w->class->send (w, identity, msg, form);
}

void wire_look (struct wire *w)
{
    w->dry = false;
    zwatcher_touch (w->zs);
}

bool wire_is_dry (const struct wire *w)
{
    return w->dry;
}

bool wire_was_reached (const struct wire *w)
{
    return w->reached;
}

void wire_read_ends (struct wire *w)
{
    w->class->read_ends (w);
}
