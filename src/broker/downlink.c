/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* downlink.c - the ROUTER for the children
 *
 * A child is known by the identity of its connection, which it never uses twice; what comes from an identity that has
 * not said hello is answered with DISCONNECT.  A child is removed only in downlink_turn () or where its own message or
 * connection says so, never while another message is being handed on: whoever finds it broken dooms it.
 *
 * Besides the children proper, whose records last, there are adopted ones: descendants whose own parent is gone.  Their
 * records last until they leave.  An adopted one is no part of this broker's health: its parent's loss is.
 */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/link.h"
#include "broker/monitor.h"
#include "libmsg/zmsg.h"
#include "libutil/errprintf.h"

#define ADOPT_BUDGET 64 /* descendants that are taken in between two beats */

struct child {
    struct peer peer;
    struct downlink *down;
    enum health health;       /* of its subtree, as it says; LOST and OFFLINE: not connected */
    double since;             /* link_now () of the last change of health */
    double heard;             /* link_now () of its last message */
    int fd;                   /* of its connection, as the monitor names it */
    char uuid[IDT_MSG_UUID_LEN + 1]; /* of the broker: its incarnation */
    char host[256];
    bool adopted;
    const char *doomed;       /* why it is to be removed; NULL: it is not */
    idt_msg_t *hello;         /* waits until we take children in */
    uint64_t hello_us;        /* our clock's reading (instance) when it came */
    char hello_identity[IDT_MSG_UUID_LEN + 1];
    int hello_fd;
};

struct downlink {
    struct link_env *env;
    struct zio *zs;
    struct monitor *monitor;
    char endpoint[256];
    struct child **children; /* the children proper in order of rank, then the adopted ones */
    uint32_t count;          /* of the children proper */
    uint32_t total;
    uint32_t size;           /* of the array */
    uint32_t first;          /* rank of children[0] */
    uint32_t budget;         /* adopted ones that may be taken in until the next beat */
    bool accept;
    bool stopping; /* takes no child in any more */
    bool doomed;   /* one of them is */
    double since;  /* of the health of all */
    enum health health;
};

const char *health_name (enum health health)
{
    static const char *names[] = { "full", "partial", "degraded", "lost", "offline" };

    return names[health];
}

static bool is_online (const struct child *c)
{
    return c->health < HEALTH_LOST;
}

/* The health of this subtree: what the worst of the children makes of it. */
static enum health worst (const struct downlink *down)
{
    enum health health = HEALTH_FULL;

    for (uint32_t i = 0; i < down->count; i++) {
        enum health h = down->children[i]->health;

        if (h == HEALTH_LOST || h == HEALTH_DEGRADED)
            return HEALTH_DEGRADED;
        if (h != HEALTH_FULL)
            health = HEALTH_PARTIAL;
    }
    return health;
}

static void set_health (struct child *c, enum health health)
{
    struct downlink *down = c->down;
    enum health all;

    if (c->health == health)
        return;
    c->health = health;
    c->since = link_now ();
    if (!c->adopted && (all = worst (down)) != down->health) {
        down->health = all;
        down->since = c->since;
    }
}

/* --- sending ------------------------------------------------------------------------------------ */

static int send_to (struct downlink *down, const char *identity, const idt_msg_t *msg)
{
    zio_touch (down->zs);
    return msg_zmq_send (zio_socket (down->zs), identity, msg);
}

static void doom (struct child *c, const char *why)
{
    if (!c->doomed) {
        c->doomed = why;
        c->down->doomed = true;
    }
}

static int child_send (void *arg, const idt_msg_t *msg)
{
    struct child *c = arg;

    if (c->doomed) {
        errno = EHOSTUNREACH;
        return -1;
    }
    if (send_to (c->down, c->peer.uuid, msg) < 0) {
        doom (c, errno == EAGAIN ? "it does not take its messages (tbon.hwm)" : "its connection is gone");
        return -1;
    }
    return 0;
}

static void send_disconnect (struct downlink *down, const char *identity, int errnum, const char *why)
{
    idt_msg_t *msg = control_encode (CONTROL_DISCONNECT, errnum, why);

    if (msg)
        send_to (down, identity, msg);
    idt_msg_unref (msg);
}

void downlink_send_all (struct downlink *down, const idt_msg_t *msg)
{
    for (uint32_t i = 0; i < down->total; i++)
        if (is_online (down->children[i]))
            child_send (down->children[i], msg);
}

/* --- loss --------------------------------------------------------------------------------------- */

/* 'why' NULL: it said goodbye. */
static void remove_child (struct child *c, const char *why)
{
    struct overlay_conf *conf = &c->down->env->conf;

    if (!is_online (c))
        return;
    c->doomed = NULL;
    set_health (c, why ? HEALTH_LOST : HEALTH_OFFLINE);
    c->fd = -1;
    if (why)
        log_printf (conf->log, LOG_WARNING, "overlay", "%s (rank %u) is lost: %s",
                    c->adopted ? "adopted child" : "child", c->peer.rank, why);
    router_peer_remove (conf->router, &c->peer);
    conf->ops->child (conf->arg, c->peer.rank, false);
    if (c->adopted)
        c->down->doomed = true; /* its record is freed in downlink_turn () */
}

static void free_child (struct child *c)
{
    idt_msg_unref (c->hello);
    free (c);
}

/* Records of adopted ones that left. */
static void drop_adopted (struct downlink *down)
{
    for (uint32_t i = down->count; i < down->total;) {
        struct child *c = down->children[i];

        if (is_online (c) || c->hello)
            i++;
        else {
            down->children[i] = down->children[--down->total];
            free_child (c);
        }
    }
}

bool downlink_turn (struct downlink *down)
{
    bool busy = down->doomed;

    while (down->doomed) {
        down->doomed = false;
        for (uint32_t i = 0; i < down->total; i++)
            if (down->children[i]->doomed)
                remove_child (down->children[i], down->children[i]->doomed);
        drop_adopted (down);
    }
    return busy;
}

static void monitor_cb (int event, int value, void *arg)
{
    struct downlink *down = arg;

    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (is_online (c) && c->fd == value)
            remove_child (c, "the connection was closed");
    }
}

void downlink_check_silence (struct downlink *down, bool was_asleep)
{
    double now = link_now ();

    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (was_asleep)
            c->heard = now;
        if (is_online (c) && now - c->heard > down->env->timeout) {
            send_disconnect (down, c->peer.uuid, ETIMEDOUT, "this child was silent (tbon.timeout)");
            remove_child (c, "it is silent (tbon.timeout)");
        }
    }
}

/* --- hello ---------------------------------------------------------------------------------------- */

struct hello {
    const idt_msg_t *msg;
    const struct msg_zmq_from *from;
    json_t *o; /* what the texts point into */
    json_int_t rank;
    const char *uuid;
    const char *version;
    const char *host;
};

static void refuse (struct downlink *down, const struct hello *hello, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

static void refuse (struct downlink *down, const struct hello *hello, int errnum, const char *fmt, ...)
{
    idt_msg_t *msg = idt_msg_respond (hello->msg, errnum);
    char text[512];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    if (msg && idt_msg_set_string (msg, text) == 0)
        send_to (down, hello->from->identity, msg);
    idt_msg_unref (msg);
    log_printf (down->env->conf.log, LOG_WARNING, "overlay", "a hello is refused: %s", text);
}

static struct child *make_child (struct downlink *down, uint32_t rank, bool adopted)
{
    struct child *c = calloc (1, sizeof (*c));

    if (!c)
        return NULL;
    c->down = down;
    c->peer = (struct peer){ .kind = PEER_CHILD, .rank = rank, .send = child_send, .arg = c };
    c->health = HEALTH_OFFLINE;
    c->since = link_now ();
    c->fd = -1;
    c->adopted = adopted;
    return c;
}

/* The record of an adopted descendant, made where there is none.  NULL: no memory. */
static struct child *adopted_child (struct downlink *down, uint32_t rank)
{
    struct child *c;

    for (uint32_t i = down->count; i < down->total; i++)
        if (down->children[i]->peer.rank == rank)
            return down->children[i];
    if (down->total == down->size) {
        uint32_t size = down->size * 2 + 16;
        struct child **children = realloc (down->children, size * sizeof (children[0]));

        if (!children)
            return NULL;
        down->children = children;
        down->size = size;
    }
    if ((c = make_child (down, rank, true)))
        down->children[down->total++] = c;
    return c;
}

static struct child *child_of_rank (struct downlink *down, uint32_t rank)
{
    if (rank >= down->first && rank - down->first < down->count)
        return down->children[rank - down->first];
    return adopted_child (down, rank);
}

/* The child that a hello is for; NULL: it was refused. */
static struct child *find_child (struct downlink *down, const struct hello *hello)
{
    struct overlay_conf *conf = &down->env->conf;
    char user[32];
    struct child *c;

    if (hello->rank < 0 || hello->rank >= conf->topo->size
        || topo_child_toward (conf->topo, conf->rank, hello->rank) == TOPO_NONE) {
        refuse (down, hello, EINVAL, "rank %jd is not below rank %u", (intmax_t)hello->rank, conf->rank);
        return NULL;
    }
    snprintf (user, sizeof (user), "%jd", (intmax_t)hello->rank);
    if (strcmp (user, hello->from->user) != 0) {
        refuse (down, hello, EPERM, "the key of this connection is not rank %jd's", (intmax_t)hello->rank);
        return NULL;
    }
    if (!link_same_version (hello->version, PACKAGE_VERSION)) {
        refuse (down, hello, EPROTO, "rank %jd runs version %s, its parent %s", (intmax_t)hello->rank, hello->version,
                PACKAGE_VERSION);
        return NULL;
    }
    if (!(c = child_of_rank (down, hello->rank)))
        return NULL;
    if (is_online (c) && strcmp (c->uuid, hello->uuid) != 0) {
        refuse (down, hello, EADDRINUSE, "rank %u is served by %s on %s", c->peer.rank, c->uuid, c->host);
        return NULL;
    }
    return c;
}

static idt_msg_t *make_welcome (struct child *c)
{
    struct link_env *env = c->down->env;
    idt_msg_t *msg = idt_msg_respond (c->hello, 0);
    uint64_t sent, bound;
    const char *stream;
    char *text = NULL;
    uint32_t seq;
    json_t *o;

    env->conf.ops->position (env->conf.arg, &stream, &seq);
    link_read_clock (env, &sent, &bound);
    o = json_pack ("{s:s s:s s:s s:I s:[I,I] s:I}", "uuid", env->conf.uuid, "version", PACKAGE_VERSION, "stream",
                   stream, "seq", (json_int_t)seq, "time_us", (json_int_t)c->hello_us, (json_int_t)sent, "bound_us",
                   (json_int_t)bound);
    if (o)
        text = json_dumps (o, JSON_COMPACT);
    json_decref (o);
    if (msg && (!text || idt_msg_set_string (msg, text) < 0)) {
        idt_msg_unref (msg);
        msg = NULL;
    }
    free (text);
    return msg;
}

/* Answer a hello that waits: the child is in. */
static void take_in (struct child *c)
{
    struct overlay_conf *conf = &c->down->env->conf;
    idt_msg_t *msg;

    remove_child (c, "it says hello anew");
    memcpy (c->peer.uuid, c->hello_identity, sizeof (c->peer.uuid));
    c->fd = c->hello_fd;
    c->heard = link_now ();
    if ((msg = make_welcome (c)) && send_to (c->down, c->peer.uuid, msg) == 0
        && router_peer_add (conf->router, &c->peer) == 0) {
        set_health (c, HEALTH_FULL);
        log_printf (conf->log, c->adopted ? LOG_INFO : LOG_DEBUG, "overlay", "%s (rank %u) is taken in: %s on %s",
                    c->adopted ? "adopted child" : "child", c->peer.rank, c->uuid, c->host);
        conf->ops->child (conf->arg, c->peer.rank, true);
    }
    idt_msg_unref (msg);
    idt_msg_unref (c->hello);
    c->hello = NULL;
}

static void hello_received (struct downlink *down, const struct hello *hello)
{
    struct child *c;
    uint64_t bound;

    /* What happened to connections before this hello comes first: a descriptor may be in use again. */
    monitor_drain (down->monitor);
    if (down->stopping) {
        refuse (down, hello, ESHUTDOWN, "rank %u is shutting down", down->env->conf.rank);
        return;
    }
    if (!(c = find_child (down, hello)))
        return;
    idt_msg_unref (c->hello);
    c->hello = (idt_msg_t *)idt_msg_ref (hello->msg);
    c->hello_fd = hello->from->fd;
    memcpy (c->hello_identity, hello->from->identity, sizeof (c->hello_identity));
    link_read_clock (down->env, &c->hello_us, &bound);
    snprintf (c->uuid, sizeof (c->uuid), "%s", hello->uuid);
    snprintf (c->host, sizeof (c->host), "%s", hello->host);
    if (c->adopted)
        downlink_adopt (down);
    else if (down->accept)
        take_in (c);
}

/* Those whose turn has not come wait: so many at a time keep nobody else from being served. */
void downlink_adopt (struct downlink *down)
{
    for (uint32_t i = down->count; down->accept && down->budget > 0 && i < down->total; i++) {
        if (down->children[i]->hello) {
            down->budget--;
            take_in (down->children[i]);
        }
    }
}

void downlink_refill (struct downlink *down)
{
    down->budget = ADOPT_BUDGET;
    downlink_adopt (down);
}

/* A message of an identity that we do not know. */
static void stranger (struct downlink *down, idt_msg_t *msg, const struct msg_zmq_from *from)
{
    struct hello hello = { .msg = msg, .from = from };
    const char *topic = idt_msg_topic (msg);
    idt_error_t err;

    if (idt_msg_type (msg) != IDT_MSGTYPE_REQUEST || !topic || strcmp (topic, "overlay.hello") != 0)
        send_disconnect (down, from->identity, EPROTO, "say hello first");
    else if (idt_msg_unpack (msg, &hello.o, &err, "{s:I s:s s:s s:s}", "rank", &hello.rank, "uuid", &hello.uuid,
                             "version", &hello.version, "hostname", &hello.host) < 0)
        refuse (down, &hello, EPROTO, "malformed hello: %s", err.text);
    else if (strlen (hello.uuid) != IDT_MSG_UUID_LEN)
        refuse (down, &hello, EPROTO, "malformed hello: the uuid must have %d characters", IDT_MSG_UUID_LEN);
    else
        hello_received (down, &hello);
    json_decref (hello.o);
    idt_msg_unref (msg);
}

/* --- messages --------------------------------------------------------------------------------------- */

static void put_position (struct link_env *env, struct heartbeat *hb)
{
    const char *stream;

    env->conf.ops->position (env->conf.arg, &stream, &hb->seq);
    snprintf (hb->stream, sizeof (hb->stream), "%s", stream);
}

/* A beat that answers none: it carries no time. */
void downlink_send_position (struct downlink *down)
{
    struct heartbeat hb = { 0 };
    idt_msg_t *msg;

    put_position (down->env, &hb);
    if ((msg = control_heartbeat_down (&hb)))
        downlink_send_all (down, msg);
    idt_msg_unref (msg);
}

static void heartbeat_received (struct child *c, const idt_msg_t *msg)
{
    struct link_env *env = c->down->env;
    struct heartbeat hb = { 0 };
    uint64_t bound;
    idt_msg_t *answer;

    link_read_clock (env, &hb.peer_received_us, &bound);
    if (control_decode_up (msg, &hb.sent_us) < 0)
        return;
    if (idt_msg_control_status (msg) <= HEALTH_DEGRADED)
        set_health (c, idt_msg_control_status (msg));
    put_position (env, &hb);
    link_read_clock (env, &hb.peer_sent_us, &hb.peer_bound_us);
    if ((answer = control_heartbeat_down (&hb)))
        child_send (c, answer);
    idt_msg_unref (answer);
}

/* A child may speak for those below it. */
static void key_received (const struct control_key *key, void *arg)
{
    struct child *c = arg;
    struct overlay_conf *conf = &c->down->env->conf;

    if (key->rank < conf->topo->size && topo_child_toward (conf->topo, c->peer.rank, key->rank) != TOPO_NONE)
        keyring_put (c->down->env->keys, key);
}

static void control_received (void *arg, const idt_msg_t *msg)
{
    struct child *c = arg;
    char identity[IDT_MSG_UUID_LEN + 1];

    switch (idt_msg_control_type (msg)) {
    case CONTROL_HEARTBEAT:
        heartbeat_received (c, msg);
        break;
    case CONTROL_KEYS:
        control_decode_keys (msg, key_received, c);
        break;
    case CONTROL_GOODBYE:
        memcpy (identity, c->peer.uuid, sizeof (identity));
        send_disconnect (c->down, identity, 0, NULL);
        remove_child (c, NULL);
        break;
    default: /* of a newer version */
        break;
    }
}

static void recv_cb (struct zio *zs, void *arg)
{
    struct downlink *down = arg;
    struct msg_zmq_from from;
    idt_msg_t *msg;
    struct peer *p;

    from.identity[0] = '\0';
    msg = msg_zmq_recv (zio_socket (zs), true, LINK_MAX_MESSAGE, &from);
    zio_touch (zs);
    if (!msg && errno != EPROTO && errno != EMSGSIZE)
        return;
    p = router_peer (down->env->conf.router, from.identity);
    if (p && p->kind == PEER_CHILD) {
        ((struct child *)p->arg)->heard = link_now ();
        if (msg)
            link_received (down->env, p, msg, control_received, p->arg);
        else
            doom (p->arg, "it sent a malformed message");
    } else if (msg)
        stranger (down, msg, &from);
}

/* --- life --------------------------------------------------------------------------------------------- */

struct downlink *downlink_create (struct link_env *env)
{
    struct downlink *down = calloc (1, sizeof (*down));
    struct overlay_conf *conf = &env->conf;

    if (!down)
        return NULL;
    down->env = env;
    down->since = link_now ();
    down->budget = ADOPT_BUDGET;
    down->count = topo_child_count (conf->topo, conf->rank);
    down->first = topo_child (conf->topo, conf->rank, 0);
    down->health = down->count > 0 ? HEALTH_PARTIAL : HEALTH_FULL;
    down->size = down->count + 1;
    if (!(down->children = calloc (down->size, sizeof (down->children[0])))) {
        free (down);
        return NULL;
    }
    for (; down->total < down->count; down->total++) {
        if (!(down->children[down->total] = make_child (down, down->first + down->total, false))) {
            downlink_destroy (down);
            return NULL;
        }
    }
    return down;
}

static int setup_server (struct downlink *down, void *sock)
{
    struct overlay_conf *conf = &down->env->conf;
    int on = 1;

    if (link_setup_socket (down->env, sock) < 0 || zmq_setsockopt (sock, ZMQ_ROUTER_MANDATORY, &on, sizeof (on)) < 0
        || zmq_setsockopt (sock, ZMQ_CURVE_SERVER, &on, sizeof (on)) < 0
        || zmq_setsockopt (sock, ZMQ_ZAP_DOMAIN, "idtree", 6) < 0
        || zmq_setsockopt (sock, ZMQ_CURVE_SECRETKEY, conf->secret_key, strlen (conf->secret_key)) < 0)
        return -1;
    return 0;
}

int downlink_bind (struct downlink *down, const char *endpoint, idt_error_t *errp)
{
    struct overlay_conf *conf = &down->env->conf;
    void *sock = zmq_socket (conf->zctx, ZMQ_ROUTER);
    size_t size = sizeof (down->endpoint);

    if (!sock || setup_server (down, sock) < 0 || zmq_bind (sock, endpoint) < 0
        || zmq_getsockopt (sock, ZMQ_LAST_ENDPOINT, down->endpoint, &size) < 0) {
        errprintf (errp, "tbon.endpoint %s: %s", endpoint, zmq_strerror (errno));
        if (sock)
            zmq_close (sock);
        return -1;
    }
    if (!(down->zs = zio_create (conf->zpoll, sock, recv_cb, down))) {
        zmq_close (sock);
        return errprintf (errp, "tbon.endpoint %s: %s", endpoint, strerror (errno));
    }
    if (!(down->monitor = monitor_create (conf->zpoll, conf->zctx, sock, ZMQ_EVENT_DISCONNECTED, monitor_cb, down)))
        return errprintf (errp, "tbon.endpoint %s: no monitor: %s", endpoint, strerror (errno));
    return 0;
}

const char *downlink_endpoint (const struct downlink *down)
{
    return down->zs ? down->endpoint : NULL;
}

/* ZeroMQ leaves it behind. */
static void remove_socket (struct downlink *down)
{
    if (strncmp (down->endpoint, "ipc://", 6) == 0)
        unlink (down->endpoint + 6);
}

void downlink_destroy (struct downlink *down)
{
    if (!down)
        return;
    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (is_online (c)) {
            send_disconnect (down, c->peer.uuid, ESHUTDOWN, "the parent has stopped");
            router_peer_remove (down->env->conf.router, &c->peer);
        }
        free_child (c);
    }
    monitor_destroy (down->monitor);
    zio_destroy (down->zs);
    remove_socket (down);
    free (down->children);
    free (down);
}

void downlink_accept (struct downlink *down, bool accept)
{
    down->accept = accept;
    down->stopping = !accept;
    for (uint32_t i = 0; accept && i < down->count; i++)
        if (down->children[i]->hello)
            take_in (down->children[i]);
    downlink_adopt (down);
}

uint32_t downlink_online (const struct downlink *down)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < down->total; i++)
        n += is_online (down->children[i]);
    return n;
}

uint32_t downlink_adopted (const struct downlink *down)
{
    uint32_t n = 0;

    for (uint32_t i = down->count; i < down->total; i++)
        n += is_online (down->children[i]);
    return n;
}

enum health downlink_health (const struct downlink *down)
{
    return down->health;
}

double downlink_since (const struct downlink *down)
{
    return down->since;
}

json_t *downlink_describe (const struct downlink *down)
{
    json_t *a = json_array ();

    for (uint32_t i = 0; i < down->count; i++) {
        const struct child *c = down->children[i];

        json_array_append_new (a, json_pack ("{s:I s:s s:f}", "rank", (json_int_t)c->peer.rank, "status",
                                             health_name (c->health), "duration", link_now () - c->since));
    }
    return a;
}
