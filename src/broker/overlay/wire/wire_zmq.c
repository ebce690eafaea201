/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_zmq.c - wires over ZeroMQ: a DEALER to a broker above, a ROUTER for brokers below
 *
 * Over tcp and ipc a monitor reports closed connections.  Over inproc ZeroMQ reports neither these nor the identity of
 * the connecting broker.  There a line of the process's registry, without messages, does both.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "broker/base/topology.h"
#include "broker/overlay/wire/wire_private.h"
#include "common/libzmqutil/zwatcher.h"
#include "libutil/errprintf.h"
#include "libzmqutil/zmsg.h"

#define HANDSHAKE_MS 5000 /* for a connection to show its key */

static int zmq_send_msg (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form)
{
    zwatcher_touch (w->zs);
    return (form == WIRE_WHOLE ? msg_zmq_send_whole : msg_zmq_send) (zwatcher_socket (w->zs), identity, msg);
}

static void zmq_read_ends (struct wire *w)
{
    if (w->monitor)
        monitor_drain (w->monitor);
}

/* ZeroMQ leaves the socket file behind.  Another process may have replaced it by its own. */
static void remove_socket (const struct wire *w)
{
    if (strncmp (w->endpoint, "ipc://", 6) == 0)
        listener_remove (&w->place, w->endpoint + 6);
}

static void zmq_destroy (struct wire *w, int linger_ms)
{
    monitor_destroy (w->monitor);
    if (w->zs && linger_ms > 0)
        zwatcher_set (w->zs, ZMQ_LINGER, linger_ms);
    inside_port_destroy (w->port);
    inside_line_close (w->line);
    zwatcher_destroy (w->zs);
    remove_socket (w);
    free (w);
}

static const struct wire_class zmq_class = {
    .send = zmq_send_msg,
    .read_ends = zmq_read_ends,
    .destroy = zmq_destroy,
};

/* --- receiving ------------------------------------------------------------------------------------- */

/* The rank whose key the connection has, as overlay_admit () gave it to ZeroMQ. */
static uint32_t rank_of (const char *user)
{
    char *end;
    unsigned long rank = strtoul (user, &end, 10);

    return *user == '\0' || *end != '\0' || rank >= TOPO_NONE ? TOPO_NONE : (uint32_t)rank;
}

static void identify (const struct wire *w, const struct msg_zmq_from *zmq, struct wire_from *from)
{
    memcpy (from->identity, zmq->identity, sizeof (from->identity));
    from->rank = rank_of (zmq->user);
    from->line = zmq->fd;
    if (w->port && !inside_port_who (w->port, from->identity, &from->rank, &from->line))
        from->rank = TOPO_NONE;
}

/* All input was read: report the next end of an inproc connection.  Returns whether there was one. */
static bool report_end (struct wire *w)
{
    struct inside_item item;

    if (w->port && inside_port_next (w->port, &item)) {
        w->ops->closed (w->arg, w, item.line);
        return true;
    }
    if (w->line && !inside_line_next (w->line) && errno == EPIPE)
        w->ops->closed (w->arg, w, 0);
    return false;
}

static bool recv_cb (struct zwatcher *zs, void *arg)
{
    struct wire *w = arg;
    struct msg_zmq_from zmq = { .fd = -1 };
    struct wire_from from = { .wire = w };
    idt_msg_t *msg = msg_zmq_recv (zwatcher_socket (zs), w->is_above, w->conf->max_message, &zmq);

    if (!msg && errno != EPROTO && errno != EMSGSIZE && errno != ENOMEM) {
        w->dry = true;
        return report_end (w);
    }
    int saved = errno;
    identify (w, &zmq, &from);
    errno = saved;
    w->ops->received (w->arg, msg, &from);
    return true;
}

static void monitor_cb (int event, int value, void *arg)
{
    struct wire *w = arg;

    if (event == ZMQ_EVENT_CONNECTED)
        w->reached = true;
    else
        w->ops->closed (w->arg, w, value);
}

/* --- creating ------------------------------------------------------------------------------------ */

static struct wire *create (const struct wire_conf *conf, enum wire_kind kind, bool is_above,
                            const struct wire_ops *ops, void *arg)
{
    struct wire *w = wire_create (&zmq_class, kind, is_above, conf, ops, arg);

    if (!w)
        return NULL;
    w->zs = zwatcher_create (conf->zpoll, conf->zctx, is_above ? ZMQ_ROUTER : ZMQ_DEALER, recv_cb, w);
    if (w->zs && zwatcher_set (w->zs, ZMQ_SNDHWM, conf->hwm) == 0 && zwatcher_set (w->zs, ZMQ_RCVHWM, conf->hwm) == 0
        && (!is_above || zwatcher_set (w->zs, ZMQ_ROUTER_MANDATORY, 1) == 0))
        return w;
    wire_close (w, 0);
    return NULL;
}

static int set_text (struct wire *w, int option, const char *text)
{
    return zmq_setsockopt (zwatcher_socket (w->zs), option, text, strlen (text));
}

/* Let TCP close a connection to a silent host, or to a process that takes nothing, so that its queue is freed: a ROUTER
 * has no other way to disconnect one peer.  ZeroMQ's own heartbeat is not used: if it is due for a connection that
 * ended while our queue was full, libzmq 4.3 aborts the process.
 */
static int set_patience (struct wire *w)
{
    int timeout_ms = w->conf->timeout_ms;
    int timeout_s = (timeout_ms + 999) / 1000;

    if (zwatcher_set (w->zs, ZMQ_TCP_MAXRT, timeout_ms) < 0 || zwatcher_set (w->zs, ZMQ_TCP_KEEPALIVE, 1) < 0
        || zwatcher_set (w->zs, ZMQ_TCP_KEEPALIVE_IDLE, timeout_s) < 0
        || zwatcher_set (w->zs, ZMQ_TCP_KEEPALIVE_INTVL, timeout_s) < 0
        || zwatcher_set (w->zs, ZMQ_HANDSHAKE_IVL, timeout_ms < HANDSHAKE_MS ? timeout_ms : HANDSHAKE_MS) < 0)
        return -1;
    return 0;
}

static int set_outside (struct wire *w)
{
    int64_t max = (int64_t)w->conf->max_frame;

    if (zwatcher_set (w->zs, ZMQ_IPV6, 1) < 0 || set_patience (w) < 0
        || set_text (w, ZMQ_CURVE_SECRETKEY, w->conf->secret_key) < 0
        || zmq_setsockopt (zwatcher_socket (w->zs), ZMQ_MAXMSGSIZE, &max, sizeof (max)) < 0)
        return -1;
    return 0;
}

static int watch_ends (struct wire *w, int events)
{
    w->monitor = monitor_create (w->conf->zpoll, w->conf->zctx, zwatcher_socket (w->zs), events, monitor_cb, w);
    return w->monitor ? 0 : -1;
}

static int connect_outside (struct wire *w, const struct wire_target *to, const char *identity)
{
    int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
                 | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    void *sock = zwatcher_socket (w->zs);

    if (set_outside (w) < 0 || set_text (w, ZMQ_ROUTING_ID, identity) < 0
        || zwatcher_set (w->zs, ZMQ_RECONNECT_IVL, -1) < 0
        || zmq_setsockopt (sock, ZMQ_CURVE_SERVERKEY, to->key, ZAP_KEY_SIZE) < 0
        || set_text (w, ZMQ_CURVE_PUBLICKEY, w->conf->public_key) < 0 || watch_ends (w, events) < 0)
        return -1;
    return zmq_connect (sock, to->endpoint);
}

struct wire *wire_zmq_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                               const struct wire_ops *ops, void *arg)
{
    struct wire *w = create (conf, WIRE_ZMQ, false, ops, arg);

    if (!w || connect_outside (w, to, identity) == 0)
        return w;
    wire_close (w, 0);
    return NULL;
}

/* All brokers have one user, and only that user reaches their sockets: others cannot use up descriptors there. */
static int keep_private (struct wire *w)
{
    if (strncmp (w->endpoint, "ipc://", 6) != 0)
        return 0;
    return listener_note (&w->place, w->endpoint + 6) < 0 ? -1 : chmod (w->endpoint + 6, 0600);
}

static int listen_outside (struct wire *w, const char *endpoint)
{
    void *sock = zwatcher_socket (w->zs);
    size_t size = sizeof (w->endpoint);

    if (set_outside (w) < 0 || zwatcher_set (w->zs, ZMQ_CURVE_SERVER, 1) < 0
        || set_text (w, ZMQ_ZAP_DOMAIN, w->conf->domain) < 0 || zmq_bind (sock, endpoint) < 0
        || zmq_getsockopt (sock, ZMQ_LAST_ENDPOINT, w->endpoint, &size) < 0 || keep_private (w) < 0)
        return -1;
    return watch_ends (w, ZMQ_EVENT_DISCONNECTED);
}

struct wire *wire_listen (const struct wire_conf *conf, const char *endpoint, const struct wire_ops *ops, void *arg)
{
    struct wire *w = create (conf, WIRE_ZMQ, true, ops, arg);

    if (!w || listen_outside (w, endpoint) == 0)
        return w;
    wire_close (w, 0);
    return NULL;
}

static int open_inproc (struct wire *w, struct inside_port *port, const char *identity)
{
    void *sock = zwatcher_socket (w->zs);
    char name[128];

    if ((port ? wire_open_line (w, port, identity) : wire_open_port (w)) < 0)
        return -1;
    snprintf (name, sizeof (name), "inproc://%s", inside_port_name (port ? port : w->port));
    if (!port)
        return zmq_bind (sock, name);
    return set_text (w, ZMQ_ROUTING_ID, identity) < 0 ? -1 : zmq_connect (sock, name);
}

struct wire *wire_inproc_create (const struct wire_conf *conf, struct inside_port *port, const char *identity,
                                 const struct wire_ops *ops, void *arg)
{
    struct wire *w = create (conf, WIRE_INPROC, !port, ops, arg);

    if (!w || open_inproc (w, port, identity) == 0)
        return w;
    wire_close (w, 0);
    return NULL;
}
