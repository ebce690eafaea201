/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.c - messages to and from other brokers, over any transport
 *
 * Over ZeroMQ a DEALER connects to a broker above, and a ROUTER listens for brokers below.  Over tcp and ipc a monitor
 * reports closed connections.  Over inproc ZeroMQ reports neither closed connections nor the identity of the connecting
 * broker.  So a wire of kind inproc also has a line of the process's registry, which does both, but carries no
 * messages.  A wire of kind memory has no socket: the line also carries its messages.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "broker/base/topology.h"
#include "broker/overlay/wire/wire.h"
#include "common/libzmqutil/zwatcher.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"
#include "libzmqutil/zmsg.h"

#define HANDSHAKE_MS 5000 /* limit for a connection to show its key */

struct wire {
    const struct wire_conf *conf;
    const struct wire_ops *ops;
    void *arg;
    enum wire_kind kind;
    struct zwatcher *zs;
    struct monitor *monitor;  /* reports closed connections over tcp or ipc; NULL for other kinds */
    struct inside_port *port; /* port for brokers of this process; may be NULL */
    struct inside_line *line; /* line to a broker of this process; may be NULL */
    char endpoint[256];
    struct listener_place place; /* place of the socket file at an ipc endpoint */
    bool is_above;
    bool dry;     /* all input was read since wire_look () */
    bool reached; /* the process or host of the other side took the connection */
};

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

/* Remove the socket file, which ZeroMQ leaves behind, unless another process has replaced it by its own. */
static void remove_socket (const struct wire *w)
{
    if (strncmp (w->endpoint, "ipc://", 6) == 0)
        listener_remove (&w->place, w->endpoint + 6);
}

void wire_close (struct wire *w, int linger_ms)
{
    int saved_errno = errno;

    if (!w)
        return;
    monitor_destroy (w->monitor);
    if (w->zs && w->kind != WIRE_MEMORY && linger_ms > 0)
        zwatcher_set (w->zs, ZMQ_LINGER, linger_ms);
    inside_port_destroy (w->port);
    inside_line_close (w->line);
    zwatcher_destroy (w->zs);
    remove_socket (w);
    free (w);
    errno = saved_errno;
}

/* --- brokers of this process ------------------------------------------------------------------------ */

static void touched (void *arg)
{
    struct wire *w = arg;

    zwatcher_wake (w->zs);
}

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

/* --- ZeroMQ ----------------------------------------------------------------------------------------- */

/* The rank whose key the connection has.  overlay_admit () gave the rank to ZeroMQ as text. */
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

/* Called when all messages were read: report the next end of an inproc connection.  Returns whether an end was
 * reported.
 */
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

/* --- creating --------------------------------------------------------------------------------------- */

/* Make a wire that has no port, no line and no connection yet.  NULL with errno set. */
static struct wire *create (const struct wire_conf *conf, enum wire_kind kind, bool is_above,
                            const struct wire_ops *ops, void *arg)
{
    struct wire *w = calloc (1, sizeof (*w));

    if (!w)
        return NULL;
    *w = (struct wire){ .conf = conf, .ops = ops, .arg = arg, .kind = kind, .is_above = is_above };
    if (kind == WIRE_MEMORY)
        w->zs = zwatcher_create_plain (conf->zpoll, is_above ? port_cb : line_cb, w);
    else
        w->zs = zwatcher_create (conf->zpoll, conf->zctx, is_above ? ZMQ_ROUTER : ZMQ_DEALER, recv_cb, w);
    if (w->zs
        && (kind == WIRE_MEMORY
            || (zwatcher_set (w->zs, ZMQ_SNDHWM, conf->hwm) == 0 && zwatcher_set (w->zs, ZMQ_RCVHWM, conf->hwm) == 0
                && (!is_above || zwatcher_set (w->zs, ZMQ_ROUTER_MANDATORY, 1) == 0))))
        return w;
    wire_close (w, 0);
    return NULL;
}

/* If 'rc' is 0 return 'w'.  Otherwise close 'w' and return NULL with errno set. */
static struct wire *opened (struct wire *w, int rc)
{
    if (rc == 0)
        return w;
    wire_close (w, 0);
    return NULL;
}

static int set_text (struct wire *w, int option, const char *text)
{
    return zmq_setsockopt (zwatcher_socket (w->zs), option, text, strlen (text));
}

/* Let TCP close a connection to a silent host, or to a process that takes nothing, so that its queue is freed.  A
 * ROUTER has no other way to disconnect one peer.  ZeroMQ's own heartbeat is not used: if a connection ends while our
 * queue is full, and a heartbeat for it is due afterwards, libzmq 4.3 aborts the process.
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

/* All brokers have the same user, so only this user may reach the socket.  Other users can then not use up descriptors
 * there.
 */
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

    return w ? opened (w, listen_outside (w, endpoint)) : NULL;
}

/* 'port' not NULL: open the line that identifies this broker at 'port'.  'port' NULL: make the port that identifies
 * others.  A wire of kind inproc also gets a socket.
 */
static int open_inside (struct wire *w, struct inside_port *port, const char *identity)
{
    struct inside_end end = { .messages = w->conf->hwm, .bytes = w->conf->max_queue, .touched = touched, .arg = w };
    char name[128];

    assert (w->is_above == !port && w->kind != WIRE_ZMQ);
    if (port)
        w->line = inside_line_open (port, w->conf->rank, identity, &end);
    else
        w->port = port = inside_port_create (w->conf->inside, w->conf->rank, w->kind, &end);
    if (!w->line && !w->port)
        return -1;
    if (w->kind == WIRE_MEMORY)
        return 0;
    snprintf (name, sizeof (name), "inproc://%s", inside_port_name (port));
    if (w->is_above)
        return zmq_bind (zwatcher_socket (w->zs), name);
    return set_text (w, ZMQ_ROUTING_ID, identity) < 0 ? -1 : zmq_connect (zwatcher_socket (w->zs), name);
}

struct wire *wire_listen_inside (const struct wire_conf *conf, const struct wire_ops *ops, void *arg)
{
    enum wire_kind kind = conf->kind == WIRE_MEMORY ? WIRE_MEMORY : WIRE_INPROC;
    struct wire *w = create (conf, kind, true, ops, arg);

    assert (conf->inside);
    return w ? opened (w, open_inside (w, NULL, NULL)) : NULL;
}

/* The kind of the listening broker determines the kind of the wire. */
struct wire *wire_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                           const struct wire_ops *ops, void *arg)
{
    bool may_be = conf->inside && conf->kind != WIRE_ZMQ;
    struct inside_port *port = may_be ? inside_find (conf->inside, to->rank) : NULL;
    struct wire *w = create (conf, port ? inside_port_tag (port) : WIRE_ZMQ, false, ops, arg);

    if (!w)
        return NULL;
    return opened (w, port ? open_inside (w, port, identity) : connect_outside (w, to, identity));
}

/* --- use -------------------------------------------------------------------------------------------- */

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
    assert (w->is_above == (identity != NULL));
    if (w->kind == WIRE_MEMORY)
        return w->is_above ? inside_port_send (w->port, identity, msg) : inside_line_send (w->line, msg);
    zwatcher_touch (w->zs);
    return (form == WIRE_WHOLE ? msg_zmq_send_whole : msg_zmq_send) (zwatcher_socket (w->zs), identity, msg);
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

/* Over inproc and memory this does nothing, because the number of a line is used only once. */
void wire_read_ends (struct wire *w)
{
    if (w->monitor)
        monitor_drain (w->monitor);
}
