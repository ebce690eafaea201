/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uplink.c - the DEALER to the parent
 *
 * A connection lives from connect to loss under one identity, which is never used again: ZeroMQ's own reconnection
 * is off, so nothing is delivered to a parent that has not taken us in.  Where an answer cannot be sent somebody would
 * wait for ever: the connection is given up, and all that wait for us hear of it.
 *
 *     IDLE --connect--> HELLO --accepted--> JOINED --goodbye--> LEAVING
 *       ^------loss, refusal, silence--------|  (then HELLO again after a pause)
 */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/link.h"
#include "broker/monitor.h"
#include "libmsg/zmsg.h"

#define RETRY_MIN_MS 20.
#define RETRY_MAX_MS 500.

enum uplink_state { UPLINK_IDLE, UPLINK_HELLO, UPLINK_JOINED, UPLINK_LEAVING };

struct uplink {
    struct link_env *env;
    struct card parent;
    enum uplink_state state;
    struct peer peer;
    struct zio *zs;
    struct monitor *monitor;
    idt_watcher_t *retry;
    double retry_ms;
    unsigned seed;     /* of the jitter */
    const char *doomed; /* why it is to be given up; NULL: it is not */
    double heard;      /* link_now () of the parent's last message */
    uint64_t hello_us; /* link_boot_us () when we said hello */
};

static void lose (struct uplink *up, const char *why);

static int uplink_peer_send (void *arg, const idt_msg_t *msg)
{
    return uplink_send (arg, msg);
}

int uplink_send (struct uplink *up, const idt_msg_t *msg)
{
    if (up->state != UPLINK_JOINED && up->state != UPLINK_LEAVING) {
        errno = EHOSTUNREACH;
        return -1;
    }
    zio_touch (up->zs);
    if (msg_zmq_send (zio_socket (up->zs), NULL, msg) == 0)
        return 0;
    if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        up->doomed = "it does not take its messages (tbon.hwm)";
    return -1;
}

bool uplink_turn (struct uplink *up)
{
    if (!up->doomed)
        return false;
    lose (up, up->doomed);
    return true;
}

bool uplink_joined (const struct uplink *up)
{
    return up->state == UPLINK_JOINED;
}

bool uplink_leaving (const struct uplink *up)
{
    return up->state == UPLINK_LEAVING;
}

/* --- hello ----------------------------------------------------------------------------------- */

static idt_msg_t *make_hello (struct uplink *up)
{
    struct overlay_conf *conf = &up->env->conf;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    const char *stream;
    uint32_t seq;
    char *text = NULL;
    json_t *o;

    conf->ops->position (conf->arg, &stream, &seq);
    o = json_pack ("{s:I s:s s:s s:s s:s s:I s:s}", "rank", (json_int_t)conf->rank, "uuid", conf->uuid, "version",
                   PACKAGE_VERSION, "hostname", conf->host, "status", "full", "seq", (json_int_t)seq, "stream", stream);
    if (o)
        text = json_dumps (o, JSON_COMPACT);
    json_decref (o);
    if (!msg || !text || idt_msg_set_topic (msg, "overlay.hello") < 0 || idt_msg_set_string (msg, text) < 0) {
        idt_msg_unref (msg);
        msg = NULL;
    } else {
        idt_msg_set_matchtag (msg, 1);
        idt_msg_set_nodeid (msg, topo_parent (conf->topo, conf->rank));
        idt_msg_set_cred (msg, (struct idt_cred){ geteuid (), IDT_ROLE_OWNER });
        idt_msg_route_clear (msg);
    }
    free (text);
    return msg;
}

static void take_time (struct uplink *up, const struct idt_clock_sample *sample)
{
    struct link_env *env = up->env;

    if (env->clock && sample->peer_received_us > 0)
        env->clock->sample (env->clock_arg, sample);
}

static void joined (struct uplink *up, const char *uuid)
{
    struct overlay_conf *conf = &up->env->conf;

    up->peer = (struct peer){ .kind = PEER_PARENT,
                              .rank = topo_parent (conf->topo, conf->rank),
                              .send = uplink_peer_send,
                              .arg = up };
    memcpy (up->peer.uuid, uuid, sizeof (up->peer.uuid));
    if (router_peer_add (conf->router, &up->peer) < 0) {
        lose (up, "its name is in use here");
        return;
    }
    up->state = UPLINK_JOINED;
    up->retry_ms = RETRY_MIN_MS;
}

static void hello_accepted (struct uplink *up, const idt_msg_t *msg)
{
    struct link_env *env = up->env;
    struct idt_clock_sample sample = { .sent_us = up->hello_us, .received_us = link_boot_us () };
    const char *uuid, *version, *stream;
    json_int_t seq, received = 0, sent = 0, bound = 0;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s s:s s:I s?[I,I] s?I}", "uuid", &uuid, "version", &version, "stream",
                        &stream, "seq", &seq, "time_us", &received, &sent, "bound_us", &bound) < 0) {
        lose (up, err.text);
        return;
    }
    if (strlen (uuid) != IDT_MSG_UUID_LEN || strlen (stream) > IDT_MSG_UUID_LEN) {
        lose (up, "its hello has a malformed uuid");
        json_decref (o);
        return;
    }
    joined (up, uuid);
    if (up->state == UPLINK_JOINED) {
        sample.peer_received_us = received;
        sample.peer_sent_us = sent;
        sample.peer_bound_us = bound;
        take_time (up, &sample);
        env->conf.ops->newest (env->conf.arg, stream, seq);
        if (env->clock)
            env->clock->parent (env->clock_arg, true);
        env->conf.ops->parent (env->conf.arg, true);
    }
    json_decref (o);
}

static void hello_answered (struct uplink *up, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &up->env->conf;
    uint32_t errnum = idt_msg_errnum (msg);
    const char *text = idt_msg_string (msg);

    if (errnum == 0) {
        hello_accepted (up, msg);
        return;
    }
    conf->ops->refused (conf->arg, errnum, text ? text : strerror (errnum));
    lose (up, NULL);
}

/* --- messages --------------------------------------------------------------------------------- */

static void heartbeat_received (struct uplink *up, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &up->env->conf;
    struct heartbeat hb;

    if (control_decode_down (msg, &hb) < 0)
        return;
    take_time (up, &(struct idt_clock_sample){ hb.sent_us, hb.peer_received_us, hb.peer_sent_us, link_boot_us (),
                                               hb.peer_bound_us });
    conf->ops->newest (conf->arg, hb.stream, hb.seq);
}

static void control_received (struct uplink *up, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &up->env->conf;

    switch (idt_msg_control_type (msg)) {
    case CONTROL_HEARTBEAT:
        if (up->state == UPLINK_JOINED)
            heartbeat_received (up, msg);
        break;
    case CONTROL_STOP:
        conf->ops->stop (conf->arg);
        break;
    case CONTROL_DISCONNECT:
        lose (up, up->state == UPLINK_LEAVING ? NULL : idt_msg_string (msg));
        break;
    default: /* of a newer version */
        break;
    }
}

/* What a broker says comes over the network, whatever it was before. */
static void clear_local_role (idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);

    cred.rolemask &= ~(uint32_t)IDT_ROLE_LOCAL;
    idt_msg_set_cred (msg, cred);
}

/* Steals the reference. */
static void message_received (struct uplink *up, idt_msg_t *msg)
{
    struct overlay_conf *conf = &up->env->conf;

    clear_local_role (msg);
    switch (idt_msg_type (msg)) {
    case IDT_MSGTYPE_REQUEST:
        conf->ops->request (conf->arg, &up->peer, msg);
        return;
    case IDT_MSGTYPE_RESPONSE:
        conf->ops->response (conf->arg, &up->peer, msg);
        return;
    case IDT_MSGTYPE_EVENT:
        conf->ops->event (conf->arg, &up->peer, msg);
        return;
    default:
        control_received (up, msg);
        idt_msg_unref (msg);
    }
}

static void recv_cb (struct zio *zs, void *arg)
{
    struct uplink *up = arg;
    idt_msg_t *msg = msg_zmq_recv (zio_socket (zs), false, LINK_MAX_MESSAGE, NULL);

    zio_touch (zs);
    if (!msg) {
        if (errno == EPROTO || errno == EMSGSIZE)
            lose (up, "it sent a malformed message");
        return;
    }
    up->heard = link_now ();
    if (up->state == UPLINK_JOINED || up->state == UPLINK_LEAVING) {
        message_received (up, msg);
        return;
    }
    if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        hello_answered (up, msg);
    else if (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL)
        control_received (up, msg);
    idt_msg_unref (msg);
}

/* --- connecting and losing ------------------------------------------------------------------------ */

static void monitor_cb (int event, int value, void *arg)
{
    struct uplink *up = arg;

    lose (up, up->state == UPLINK_JOINED ? "the connection was closed" : NULL);
}

static void *make_socket (struct uplink *up, const char *identity)
{
    struct overlay_conf *conf = &up->env->conf;
    void *sock = zmq_socket (conf->zctx, ZMQ_DEALER);
    int never = -1;

    if (!sock)
        return NULL;
    if (link_setup_socket (up->env, sock) < 0
        || zmq_setsockopt (sock, ZMQ_ROUTING_ID, identity, IDT_MSG_UUID_LEN) < 0
        || zmq_setsockopt (sock, ZMQ_RECONNECT_IVL, &never, sizeof (never)) < 0
        || zmq_setsockopt (sock, ZMQ_CURVE_SERVERKEY, up->parent.key, ZAP_KEY_SIZE) < 0
        || zmq_setsockopt (sock, ZMQ_CURVE_PUBLICKEY, conf->public_key, strlen (conf->public_key)) < 0
        || zmq_setsockopt (sock, ZMQ_CURVE_SECRETKEY, conf->secret_key, strlen (conf->secret_key)) < 0) {
        zmq_close (sock);
        return NULL;
    }
    return sock;
}

static int open_connection (struct uplink *up)
{
    struct overlay_conf *conf = &up->env->conf;
    zuuid_t *identity = zuuid_new ();
    void *sock = identity ? make_socket (up, zuuid_str_canonical (identity)) : NULL;
    int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

    zuuid_destroy (&identity);
    if (!sock)
        return -1;
    if (!(up->zs = zio_create (conf->zpoll, sock, recv_cb, up))) {
        zmq_close (sock);
        return -1;
    }
    if (!(up->monitor = monitor_create (conf->zpoll, conf->zctx, sock, events, monitor_cb, up)))
        return -1;
    return zmq_connect (sock, up->parent.endpoint);
}

static void close_connection (struct uplink *up)
{
    up->doomed = NULL;
    monitor_destroy (up->monitor);
    up->monitor = NULL;
    zio_destroy (up->zs);
    up->zs = NULL;
}

static void retry_later (struct uplink *up)
{
    double jitter = (double)rand_r (&up->seed) / RAND_MAX;

    idt_timer_watcher_reset (up->retry, up->retry_ms * (0.5 + jitter), 0.);
    idt_watcher_start (up->retry);
    up->retry_ms = up->retry_ms * 2 < RETRY_MAX_MS ? up->retry_ms * 2 : RETRY_MAX_MS;
}

static void lose (struct uplink *up, const char *why)
{
    struct link_env *env = up->env;
    enum uplink_state was = up->state;

    if (was == UPLINK_IDLE)
        return;
    close_connection (up);
    up->state = UPLINK_IDLE;
    if (why)
        log_printf (env->conf.log, LOG_WARNING, "overlay", "parent (rank %u) is lost: %s",
                    topo_parent (env->conf.topo, env->conf.rank), why);
    if (was == UPLINK_JOINED || was == UPLINK_LEAVING) {
        router_peer_remove (env->conf.router, &up->peer);
        if (env->clock)
            env->clock->parent (env->clock_arg, false);
        env->conf.ops->parent (env->conf.arg, false);
    }
    if (was != UPLINK_LEAVING)
        retry_later (up);
}

void uplink_connect (struct uplink *up)
{
    idt_msg_t *hello;

    if (up->state != UPLINK_IDLE)
        return;
    up->state = UPLINK_HELLO;
    up->heard = link_now ();
    if (open_connection (up) < 0) {
        lose (up, NULL);
        return;
    }
    hello = make_hello (up);
    up->hello_us = link_boot_us ();
    if (!hello || msg_zmq_send (zio_socket (up->zs), NULL, hello) < 0)
        lose (up, NULL);
    else
        zio_touch (up->zs);
    idt_msg_unref (hello);
}

static void retry_cb (idt_watcher_t *w, int revents, void *arg)
{
    uplink_connect (arg);
}

/* --- heartbeat, end ---------------------------------------------------------------------------- */

void uplink_heartbeat (struct uplink *up, enum health health, bool was_asleep)
{
    idt_msg_t *msg;

    if (up->state == UPLINK_IDLE)
        return;
    if (was_asleep)
        up->heard = link_now ();
    if (link_now () - up->heard > up->env->timeout) {
        lose (up, up->state == UPLINK_HELLO ? NULL : "it is silent (tbon.timeout)");
        return;
    }
    if (up->state != UPLINK_JOINED || !(msg = control_heartbeat_up (health, link_boot_us ())))
        return;
    uplink_send (up, msg);
    idt_msg_unref (msg);
}

void uplink_goodbye (struct uplink *up)
{
    idt_msg_t *msg;

    idt_watcher_stop (up->retry);
    if (up->state != UPLINK_JOINED) {
        close_connection (up);
        up->state = UPLINK_IDLE;
        return;
    }
    if ((msg = control_encode (CONTROL_GOODBYE, 0, NULL)))
        uplink_send (up, msg);
    idt_msg_unref (msg);
    up->state = UPLINK_LEAVING;
}

/* --- life ---------------------------------------------------------------------------------------- */

struct uplink *uplink_create (struct link_env *env)
{
    struct uplink *up = calloc (1, sizeof (*up));

    if (!up || !(up->retry = idt_timer_watcher_create (env->conf.reactor, 0., 0., retry_cb, up))) {
        free (up);
        return NULL;
    }
    up->env = env;
    up->retry_ms = RETRY_MIN_MS;
    up->seed = env->conf.rank * 2654435761U ^ (unsigned)link_boot_us ();
    return up;
}

int uplink_set_parent (struct uplink *up, const struct card *parent)
{
    up->parent = *parent;
    return 0;
}

void uplink_destroy (struct uplink *up)
{
    if (!up)
        return;
    if (up->state == UPLINK_JOINED || up->state == UPLINK_LEAVING)
        router_peer_remove (up->env->conf.router, &up->peer);
    close_connection (up);
    idt_watcher_destroy (up->retry);
    free (up);
}
