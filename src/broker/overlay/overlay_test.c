/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay_test.c - which brokers may join, which are disconnected, and who is notified
 *
 * There is a parent (rank 0), and if a test needs one a child (rank 1), as in one process.  There are also raw sockets,
 * which behave as no broker does.  Keys are real, connections are ipc.  Tests with two brokers run over each kind of
 * wire.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "broker/overlay/channel.h"
#include "broker/overlay/control.h"
#include "broker/overlay/children_private.h"
#include "libzmqutil/zmsg.h"
#include "libutil/clock.h"
#include "test/tap.h"

#define SIZE 3        /* ranks of the tree: a parent and two children */
#define SIZE_DEEP 4   /* ranks of a tree in which rank 3 is below rank 1 */
#define SIZE_MANY 73  /* ranks of a tree in which many are below rank 2, too */
#define LONG "60s"    /* tbon.timeout for tests in which this time never passes */
#define NOWHERE ""    /* endpoint that makes other processes unable to connect */
#define SHORT "400ms" /* tbon.timeout for tests that wait until this time has passed */
#define HWM "1000"    /* tbon.hwm of the parent */

struct node {
    uint32_t rank;
    char uuid[IDT_MSG_UUID_LEN + 1];
    struct attrs *attrs;
    struct log *log;
    struct router *router;
    struct zpoll *zpoll;
    struct overlay *ov;
    struct peer service, client;
    bool parent_up;
    int ups, downs, stops, intruders, refusals, errnum;
    bool deaf;                      /* it does not read messages */
    struct node *deafens;           /* when a child joins, this other node becomes deaf */
    uint64_t child_us;              /* time that it needs for each child that joins */
    int answers, unreachable, busy; /* number of responses that its client got, and of those with these errors */
    bool replies;                   /* its service answers immediately */
    int requests;                   /* number of requests that its service got */
    bool hears_late;                /* it reports that received messages are not handled yet */
    int looks;                      /* how often it was asked whether they are handled */
    int events;
    const idt_msg_t *held; /* last request to its service */
    struct event *event;
};

struct world {
    idt_reactor_t *reactor;
    struct topo *topo;
    char dir[64];
    char endpoint[128];
    char public_key[SIZE_MANY][OVERLAY_KEY_TEXT];
    char secret_key[SIZE_MANY][OVERLAY_KEY_TEXT];
    struct node parent, child, grand; /* ranks 0, 1, 3 */
    struct node rival;                /* another broker that serves rank 3 */
    struct bizcard ancestors[2];      /* ancestors of the grandchild; the child has only the second one */
    const char *timeout;
    enum wire_kind kind;
    void *zctx;
    struct zpoll *zpoll;
    struct zap *zap;
    struct inside *inside;
    bool woken;         /* a node was woken */
    bool parent_sleeps; /* the parent gets no turns */
};

/* --- callbacks of the overlay ------------------------------------------------------------------------------- */

static void message (void *arg, struct peer *from, idt_msg_t *msg)
{
    struct node *n = arg;

    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        router_request_new (n->router, from, msg);
    else if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        router_response_new (n->router, from, msg);
    else {
        n->events++;
        idt_msg_unref (msg);
    }
}

static void parent (void *arg, bool up)
{
    struct node *n = arg;

    n->parent_up = up;
    n->ups += up;
    n->downs += !up;
}

static void refused (void *arg, int errnum, const char *text)
{
    struct node *n = arg;

    n->refusals++;
    n->errnum = errnum;
}

static void intruder (void *arg, const char *text)
{
    ((struct node *)arg)->intruders++;
}

static void child (void *arg, uint32_t rank, bool up)
{
    struct node *n = arg;

    if (n->child_us > 0)
        clock_sleep_ns ((int64_t)n->child_us * 1000);
    if (n->deafens)
        n->deafens->deaf = true;
    n->ups += up;
    n->downs += !up;
}

static bool heard (void *arg)
{
    struct node *n = arg;

    n->looks++;
    return !n->hears_late;
}

static void stop (void *arg)
{
    ((struct node *)arg)->stops++;
}

static const struct overlay_ops ops = {
    .message = message,
    .parent = parent,
    .refused = refused,
    .intruder = intruder,
    .child = child,
    .heard = heard,
    .stop = stop,
};

static void forward (void *arg, const idt_msg_t *msg)
{
    overlay_event_down (((struct node *)arg)->ov);
}

static void fetch (void *arg, const char *stream, uint64_t from)
{
}

static void announce (void *arg)
{
    overlay_event_position (((struct node *)arg)->ov);
}

static const struct event_ops event_ops = { .forward = forward, .fetch = fetch, .announce = announce };

static int service_send (void *arg, const idt_msg_t *msg)
{
    struct node *n = arg;

    n->requests++;
    idt_msg_unref (n->held);
    n->held = idt_msg_ref (msg);
    if (n->replies)
        router_response_new (n->router, &n->service, idt_msg_respond (msg, 0));
    return 0;
}

static int client_send (void *arg, const idt_msg_t *msg)
{
    struct node *n = arg;

    n->answers++;
    n->errnum = idt_msg_errnum (msg);
    n->unreachable += n->errnum == EHOSTUNREACH;
    n->busy += n->errnum == EAGAIN;
    return 0;
}

/* --- brokers ------------------------------------------------------------------------------------------------ */

static void add_peer (struct node *n, struct peer *p, enum peer_kind kind, const char *name,
                      int (*send) (void *arg, const idt_msg_t *msg))
{
    *p = (struct peer){ .kind = kind, .send = send, .arg = n };
    snprintf (p->uuid, sizeof (p->uuid), "%-8.8s-%04u-4000-8000-000000000000", name, n->rank);
    if (router_peer_add (n->router, p) < 0)
        bail_out ("no peer");
}

static bool admit (const char *domain, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size, void *arg)
{
    const struct world *w = arg;
    const struct node *nodes[] = { &w->parent, &w->child };
    char name[OVERLAY_DOMAIN_SIZE];

    for (int i = 0; i < 2; i++)
        if (nodes[i]->ov && strcmp (domain, overlay_domain (nodes[i]->rank, name)) == 0)
            return overlay_admit (nodes[i]->ov, key, user, size);
    return false;
}

static void woke (void *arg)
{
    ((struct world *)arg)->woken = true;
}

static void node_init (struct node *n, struct world *w, uint32_t rank, const char *hwm)
{
    idt_error_t err;
    struct overlay_conf conf = {
        .reactor = w->reactor,
        .topo = w->topo,
        .rank = rank,
        .uuid = n->uuid,
        .host = "here",
        .ops = &ops,
        .arg = n,
    };

    memset (n, 0, sizeof (*n));
    n->rank = rank;
    snprintf (n->uuid, sizeof (n->uuid), "broker00-%04u-4000-8000-000000000000", rank);
    conf.attrs = n->attrs = attrs_create ();
    attr_give (n->attrs, "log-stderr-level", "0", NULL);
    attr_give (n->attrs, "tbon.timeout", w->timeout, NULL);
    attr_give (n->attrs, "tbon.hwm", hwm, NULL);
    attr_give (n->attrs, "tbon.transport", wire_kind_name (w->kind), NULL);
    conf.log = n->log = log_create (n->attrs, rank, &err);
    conf.router = n->router = router_create (rank, w->topo, 100000);
    conf.event = n->event = event_create (rank == 0, n->uuid, 16, &event_ops, n);
    conf.zctx = w->zctx;
    conf.inside = w->inside;
    conf.zpoll = n->zpoll = zpoll_create (w->reactor);
    zpoll_set_wake (n->zpoll, woke, w);
    conf.public_key = w->public_key[rank];
    conf.secret_key = w->secret_key[rank];
    if (!(n->ov = overlay_create (&conf, &err)))
        bail_out (err.text);
    add_peer (n, &n->service, PEER_MODULE, "service", service_send);
    add_peer (n, &n->client, PEER_CLIENT, "client", client_send);
    router_service_add (n->router, rank == 0 ? "root" : "leaf", &n->service);
}

static void node_fini (struct node *n)
{
    if (!n->ov)
        return;
    overlay_destroy (n->ov);
    router_peer_remove (n->router, &n->service);
    router_peer_remove (n->router, &n->client);
    idt_msg_unref (n->held);
    event_destroy (n->event);
    router_destroy (n->router);
    zpoll_destroy (n->zpoll);
    log_destroy (n->log);
    attrs_destroy (n->attrs);
    n->ov = NULL;
}

static void make_bizcard (struct world *w, uint32_t rank, struct bizcard *bizcard)
{
    memset (bizcard, 0, sizeof (*bizcard));
    bizcard->rank = rank;
    snprintf (bizcard->endpoint, sizeof (bizcard->endpoint), "%s", w->endpoint);
    snprintf (bizcard->host, sizeof (bizcard->host), "here");
    zmq_z85_decode (bizcard->key, w->public_key[rank]);
}

/* Let the parent listen, and give it the keys of its children. */
static void set_children (struct world *w)
{
    struct bizcard bizcards[2];
    idt_error_t err;

    make_bizcard (w, 1, &bizcards[0]);
    make_bizcard (w, 2, &bizcards[1]);
    if (overlay_bind (w->parent.ov, w->endpoint, strcmp (w->endpoint, NOWHERE) != 0, &err) < 0)
        bail_out (err.text);
    overlay_set_bizcards (w->parent.ov, NULL, 0, bizcards);
}

/* Make a parent that accepts no children yet.  'endpoint' NULL: it listens at an ipc endpoint. */
static void world_make (struct world *w, const char *timeout, uint32_t size, const char *endpoint, enum wire_kind kind)
{
    memset (w, 0, sizeof (*w));
    w->timeout = timeout;
    w->kind = kind;
    w->topo = topo_create ("kary:2", size, NULL);
    snprintf (w->dir, sizeof (w->dir), "/tmp/overlay_test.XXXXXX");
    if (!mkdtemp (w->dir) || !(w->reactor = idt_reactor_create ()))
        bail_out ("no world");
    w->zctx = zmq_ctx_new ();
    w->zpoll = zpoll_create (w->reactor);
    w->inside = inside_create ();
    if (!(w->zap = zap_create (w->zpoll, w->zctx, admit, w)))
        bail_out ("no handler of keys");
    if (endpoint)
        snprintf (w->endpoint, sizeof (w->endpoint), "%s", endpoint);
    else
        snprintf (w->endpoint, sizeof (w->endpoint), "ipc://%s/tbon-0", w->dir);
    for (uint32_t i = 0; i < size; i++)
        zmq_curve_keypair (w->public_key[i], w->secret_key[i]);
    node_init (&w->parent, w, 0, HWM);
    set_children (w);
}

static void world_init_at (struct world *w, const char *timeout, uint32_t size, const char *endpoint,
                           enum wire_kind kind)
{
    world_make (w, timeout, size, endpoint, kind);
    overlay_accept (w->parent.ov, true);
}

static void world_init_tree (struct world *w, const char *timeout, uint32_t size)
{
    world_init_at (w, timeout, size, NULL, WIRE_ZMQ);
}

static void world_init (struct world *w, const char *timeout)
{
    world_init_tree (w, timeout, SIZE);
}

/* Make two brokers that are linked by wires of this kind. */
static void world_init_kind (struct world *w, const char *timeout, enum wire_kind kind)
{
    world_init_at (w, timeout, SIZE, kind == WIRE_ZMQ ? NULL : NOWHERE, kind);
    printf ("# %s\n", wire_kind_name (kind));
}

static void start_child (struct world *w, const char *hwm)
{
    node_init (&w->child, w, 1, hwm);
    make_bizcard (w, 0, &w->ancestors[1]);
    overlay_set_bizcards (w->child.ov, &w->ancestors[1], 1, NULL);
    overlay_connect (w->child.ov);
}

/* Start a child that has a child of its own. */
static void start_middle (struct world *w)
{
    struct bizcard below, *self = &w->ancestors[0];
    idt_error_t err;

    node_init (&w->child, w, 1, "1000");
    make_bizcard (w, 0, &w->ancestors[1]);
    make_bizcard (w, 1, self);
    make_bizcard (w, 3, &below);
    snprintf (self->endpoint, sizeof (self->endpoint), "ipc://%s/tbon-1", w->dir);
    if (overlay_bind (w->child.ov, self->endpoint, w->kind == WIRE_ZMQ, &err) < 0)
        bail_out (err.text);
    overlay_set_bizcards (w->child.ov, &w->ancestors[1], 1, &below);
    overlay_accept (w->child.ov, true);
    overlay_connect (w->child.ov);
}

static void start_grand (struct world *w)
{
    node_init (&w->grand, w, 3, "1000");
    overlay_set_bizcards (w->grand.ov, w->ancestors, 2, NULL);
    overlay_connect (w->grand.ov);
}

/* Start another broker that serves rank 3. */
static void start_rival (struct world *w)
{
    node_init (&w->rival, w, 3, "1000");
    memcpy (w->rival.uuid, "rival", 5);
    w->rival.ov->conf.configured = true;
    overlay_set_bizcards (w->rival.ov, w->ancestors, 2, NULL);
    overlay_connect (w->rival.ov);
}

static void world_fini (struct world *w)
{
    node_fini (&w->rival);
    node_fini (&w->grand);
    node_fini (&w->child);
    node_fini (&w->parent);
    zap_destroy (w->zap);
    zpoll_destroy (w->zpoll);
    zmq_ctx_term (w->zctx);
    inside_destroy (w->inside);
    idt_reactor_destroy (w->reactor);
    topo_destroy (w->topo);
    if (rmdir (w->dir) < 0)
        ok (false, "an overlay leaves no socket behind");
}

/* Run the reactor for one turn; it waits for an event, such as a heartbeat. */
static void turn (struct world *w)
{
    struct node *nodes[] = { &w->parent, &w->child, &w->grand, &w->rival };
    bool busy = w->zpoll && zpoll_turn (w->zpoll);

    w->woken = false;
    for (int i = 0; i < 4; i++) {
        if (!nodes[i]->ov || (i == 0 && w->parent_sleeps))
            continue;
        if (!nodes[i]->deaf)
            busy = zpoll_turn (nodes[i]->zpoll) || busy;
        busy = overlay_turn (nodes[i]->ov) || busy;
    }
    idt_reactor_run (w->reactor, busy || w->woken ? IDT_REACTOR_NOWAIT : IDT_REACTOR_ONCE);
}

#define UNTIL(w, condition)              \
    do {                                 \
        turn (w);                        \
        wait_until (condition) turn (w); \
    } while (0)

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    *(bool *)arg = true;
}

/* Run turns for 'ms', to see that nothing happens that must not happen in this time. */
static void turn_for (struct world *w, double ms)
{
    bool over = false;
    idt_watcher_t *timer = idt_timer_watcher_create (w->reactor, ms, 0., timer_cb, &over);

    idt_watcher_start (timer);
    while (!over)
        turn (w);
    idt_watcher_destroy (timer);
}

/* Make three brokers that have joined: rank 0, rank 1, and rank 3 below rank 1. */
static void world_deep (struct world *w, enum wire_kind kind)
{
    world_make (w, LONG, SIZE_DEEP, kind == WIRE_ZMQ ? NULL : NOWHERE, kind);
    overlay_accept (w->parent.ov, true);
    start_middle (w);
    start_grand (w);
    UNTIL (w, w->grand.parent_up && overlay_children_online (w->parent.ov) == 1);
}

static idt_msg_t *make_request (const char *topic, uint32_t nodeid, uint32_t tag)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, topic);
    idt_msg_set_nodeid (msg, nodeid);
    idt_msg_set_matchtag (msg, tag);
    idt_msg_route_clear (msg);
    return msg;
}

static void ask (struct node *n, const char *topic, uint32_t nodeid, uint32_t tag, size_t size)
{
    idt_msg_t *msg = make_request (topic, nodeid, tag);

    if (size > 0)
        memset (idt_msg_alloc_payload (msg, size), 'x', size);
    router_request_new (n->router, &n->client, msg);
}

static void reply (struct node *n)
{
    router_response_new (n->router, &n->service, idt_msg_respond (n->held, 0));
}

/* --- raw sockets -------------------------------------------------------------------------------------------- */

struct raw {
    void *ctx;
    void *sock;
    void *monitor;
    idt_watcher_t *w[2];
};

static unsigned raw_count;

static void wake_cb (idt_watcher_t *w, int revents, void *arg)
{
}

/* Let a message on a raw socket wake the reactor. */
static idt_watcher_t *watch (struct world *w, void *sock)
{
    size_t size = sizeof (int);
    idt_watcher_t *watcher;
    int fd;

    if (zmq_getsockopt (sock, ZMQ_FD, &fd, &size) < 0
        || !(watcher = idt_fd_watcher_create (w->reactor, fd, IDT_POLLIN, wake_cb, NULL)))
        bail_out ("no watcher");
    idt_watcher_start (watcher);
    return watcher;
}

static void raw_open (struct raw *raw, struct world *w, uint32_t key_of)
{
    char identity[IDT_MSG_UUID_LEN + 1];
    uint8_t server_key[ZAP_KEY_SIZE];
    int linger = 0;

    raw->ctx = zmq_ctx_new ();
    raw->sock = zmq_socket (raw->ctx, ZMQ_DEALER);
    snprintf (identity, sizeof (identity), "%08x-2222-4000-8000-000000000000", ++raw_count);
    zmq_setsockopt (raw->sock, ZMQ_ROUTING_ID, identity, IDT_MSG_UUID_LEN);
    zmq_setsockopt (raw->sock, ZMQ_LINGER, &linger, sizeof (linger));
    zmq_z85_decode (server_key, w->public_key[0]);
    zmq_setsockopt (raw->sock, ZMQ_CURVE_SERVERKEY, server_key, ZAP_KEY_SIZE);
    zmq_setsockopt (raw->sock, ZMQ_CURVE_PUBLICKEY, w->public_key[key_of], OVERLAY_KEY_TEXT - 1);
    zmq_setsockopt (raw->sock, ZMQ_CURVE_SECRETKEY, w->secret_key[key_of], OVERLAY_KEY_TEXT - 1);
    zmq_socket_monitor (raw->sock, "inproc://raw",
                        ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
                            | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
    raw->monitor = zmq_socket (raw->ctx, ZMQ_PAIR);
    zmq_setsockopt (raw->monitor, ZMQ_LINGER, &linger, sizeof (linger));
    zmq_connect (raw->monitor, "inproc://raw");
    if (zmq_connect (raw->sock, w->endpoint) < 0)
        bail_out ("cannot connect");
    raw->w[0] = watch (w, raw->sock);
    raw->w[1] = watch (w, raw->monitor);
}

static void raw_close (struct raw *raw)
{
    idt_watcher_destroy (raw->w[0]);
    idt_watcher_destroy (raw->w[1]);
    zmq_close (raw->monitor);
    zmq_close (raw->sock);
    zmq_ctx_term (raw->ctx);
}

static void raw_send (struct raw *raw, idt_msg_t *msg)
{
    if (msg_zmq_send (raw->sock, NULL, msg) < 0)
        bail_out ("cannot send");
    idt_msg_unref (msg);
}

/* Receive the next message, and run the brokers until it arrives. */
static idt_msg_t *raw_recv (struct raw *raw, struct world *w)
{
    idt_msg_t *msg;

    wait_until ((msg = msg_zmq_recv (raw->sock, false, 1 << 20, NULL))) turn (w);
    return msg;
}

static int raw_handshake (struct raw *raw, struct world *w)
{
    char frame[8], address[256];
    uint16_t event;

    wait_until (zmq_recv (raw->monitor, frame, sizeof (frame), ZMQ_DONTWAIT) == 6) turn (w);
    zmq_recv (raw->monitor, address, sizeof (address), ZMQ_DONTWAIT);
    memcpy (&event, frame, 2);
    return event;
}

static idt_msg_t *make_hello (const char *payload)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, "overlay.hello");
    idt_msg_set_string (msg, payload);
    idt_msg_set_matchtag (msg, 1);
    idt_msg_route_clear (msg);
    return msg;
}

#define UUID_A "aaaaaaaa-0000-4000-8000-000000000000"
#define UUID_B "bbbbbbbb-0000-4000-8000-000000000000"
#define HELLO_OF(rank, uuid, version, status)                         \
    "{\"rank\":" rank ",\"uuid\":\"" uuid "\",\"version\":\"" version \
    "\",\"protocol\":2,\"hostname\":\"h\",\"status\":\"" status "\",\"seq\":0,\"stream\":\"\"}"
#define HELLO_LINK(rank, uuid, version)                                       \
    "{\"rank\":" rank ",\"uuid\":\"" uuid "\",\"version\":\"" PACKAGE_VERSION \
    "\",\"protocol\":2,\"hostname\":\"h\",\"seq\":0,"                         \
    "\"stream\":\"\",\"link\":" version "}"
#define HELLO_JOINED(rank, uuid, joined)                                      \
    "{\"rank\":" rank ",\"uuid\":\"" uuid "\",\"version\":\"" PACKAGE_VERSION \
    "\",\"protocol\":2,\"hostname\":\"h\",\"joined\":" joined "}"
#define HELLO_TOPOLOGY(rank, uuid, topology)                                  \
    "{\"rank\":" rank ",\"uuid\":\"" uuid "\",\"version\":\"" PACKAGE_VERSION \
    "\",\"protocol\":2,\"hostname\":\"h\",\"topology\":"                      \
    "\"" topology "\"}"
#define HELLO(rank, uuid, version) HELLO_OF (rank, uuid, version, "full")

/* Send hello.  Returns the errno of the response; 0: the hello was accepted. */
static int say_hello (struct raw *raw, struct world *w, const char *payload)
{
    idt_msg_t *msg;
    int errnum;

    raw_send (raw, make_hello (payload));
    msg = raw_recv (raw, w);
    errnum = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE ? (int)idt_msg_errnum (msg) : -1;
    idt_msg_unref (msg);
    return errnum;
}

/* Receive the next message.  Returns the status if it is a DISCONNECT, else -1. */
static int disconnected (struct raw *raw, struct world *w)
{
    idt_msg_t *msg = raw_recv (raw, w);
    int status = idt_msg_type (msg) == IDT_MSGTYPE_CONTROL && idt_msg_control_type (msg) == CONTROL_DISCONNECT
                     ? (int)idt_msg_control_status (msg)
                     : -1;

    idt_msg_unref (msg);
    return status;
}

/* Let time pass: a stranger connects and is disconnected a few times. */
static void pass_time (struct world *w)
{
    for (int i = 0; i < 10; i++) {
        struct raw raw;
        idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

        raw_open (&raw, w, 2);
        idt_msg_set_topic (msg, "a.b");
        raw_send (&raw, msg);
        if (disconnected (&raw, w) != EPROTO)
            bail_out ("a stranger is accepted");
        raw_close (&raw);
    }
}

/* --- tests -------------------------------------------------------------------------------------------------- */

static void test_join (enum wire_kind kind)
{
    struct world w;
    idt_msg_t *msg;

    world_init_kind (&w, LONG, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    ok (overlay_children_online (w.parent.ov) == 1 && overlay_has_parent (w.child.ov) && !overlay_is_full (w.parent.ov),
        "a parent of two counts the child that joined as online, and the other as missing");
    ask (&w.child, "root.x", IDT_NODEID_ANY, 1, 10);
    UNTIL (&w, w.parent.requests == 1);
    ok (idt_msg_route_count (w.parent.held) == 2, "the request of a child arrives over the link");
    reply (&w.parent);
    UNTIL (&w, w.child.answers == 1);
    ask (&w.parent, "leaf.x", 1, 1, 100000);
    UNTIL (&w, w.child.requests == 1);
    reply (&w.child);
    UNTIL (&w, w.parent.answers == 1);
    ok (w.child.unreachable == 0 && w.parent.unreachable == 0, "requests in both directions over a link are answered");
    msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    idt_msg_set_topic (msg, "a.b");
    event_publish_new (w.parent.event, msg);
    UNTIL (&w, w.child.events == 1);
    overlay_stop_children (w.parent.ov);
    UNTIL (&w, w.child.stops == 1);
    overlay_goodbye (w.child.ov);
    ok (overlay_is_leaving (w.child.ov), "a child that said goodbye is leaving");
    UNTIL (&w, !w.child.parent_up);
    ok (w.parent.downs == 1 && overlay_children_online (w.parent.ov) == 0 && !overlay_is_leaving (w.child.ov),
        "a child that said goodbye is leaving until the parent releases it");
    world_fini (&w);
}

/* The last messages of a child are handled before the child is removed, unless handling them takes too long. */
static void test_last_words (bool heard_at_last)
{
    struct world w;

    world_init (&w, LONG);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    w.parent.hears_late = true;
    ask (&w.child, "root.x", IDT_NODEID_ANY, 1, 10);
    overlay_goodbye (w.child.ov);
    UNTIL (&w, w.parent.looks > 2);
    ok (w.parent.requests == 1 && overlay_children_online (w.parent.ov) == 1
            && router_covers (w.parent.router, w.parent.held, 1),
        "a child that said goodbye stays connected until the parent has handled its last messages");
    w.parent.hears_late = !heard_at_last;
    UNTIL (&w, !w.child.parent_up);
    ok (overlay_children_online (w.parent.ov) == 0 && !router_covers (w.parent.router, w.parent.held, 1),
        heard_at_last ? "a child that said goodbye is removed when the parent has handled its last messages"
                      : "a child that said goodbye is removed when its last messages have waited for too long");
    world_fini (&w);
}

static void test_keys (void)
{
    char key[OVERLAY_KEY_TEXT];
    struct world w;
    struct raw raw;

    world_init (&w, LONG);
    raw_open (&raw, &w, 1);
    ok (raw_handshake (&raw, &w) == ZMQ_EVENT_HANDSHAKE_SUCCEEDED, "a parent accepts the child's key");
    raw_close (&raw);
    zmq_curve_keypair (w.public_key[1], w.secret_key[1]);
    raw_open (&raw, &w, 1);
    ok (raw_handshake (&raw, &w) == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, "a parent refuses a key that is not the child's");
    raw_close (&raw);
    raw_open (&raw, &w, 0);
    ok (raw_handshake (&raw, &w) == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH,
        "a parent refuses a child that has the parent's own key");
    raw_close (&raw);
    memcpy (key, w.public_key[0], sizeof (key));
    memcpy (w.public_key[0], w.public_key[2], sizeof (key));
    start_child (&w, "1000");
    memcpy (w.public_key[0], key, sizeof (key));
    pass_time (&w);
    ok (!w.child.parent_up && w.parent.ups == 0, "a child does not join a parent that has another key than expected");
    world_fini (&w);
}

/* Whether a connection with rank 3's key is accepted. */
static bool is_let_in (struct world *w)
{
    struct raw raw;
    int event;

    raw_open (&raw, w, 3);
    event = raw_handshake (&raw, w);
    raw_close (&raw);
    return event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
}

/* Rank 1 reports the present key of rank 3 to its parent. */
static void report_key (struct raw *raw, struct world *w)
{
    struct control_key key = { .rank = 3 };
    idt_msg_t *msg;

    zmq_z85_decode (key.key, w->public_key[3]);
    if (!(msg = control_encode_keys (&key, 1)))
        bail_out ("no message");
    raw_send (raw, msg);
    pass_time (w);
}

static void test_adoption (void)
{
    struct world w;
    struct raw child, other, liar, orphan;

    world_init_tree (&w, LONG, SIZE_DEEP);
    raw_open (&child, &w, 1);
    raw_open (&other, &w, 2);
    say_hello (&child, &w, HELLO ("1", UUID_A, PACKAGE_VERSION));
    say_hello (&other, &w, HELLO ("2", UUID_B, PACKAGE_VERSION));
    ok (!is_let_in (&w), "a descendant is refused by an ancestor if no child reported its key");
    report_key (&other, &w);
    ok (!is_let_in (&w),
        "an ancestor ignores a key that was reported by a child whose subtree does not have the key's rank");
    raw_open (&liar, &w, 1);
    ok (say_hello (&liar, &w, HELLO ("3", UUID_B, PACKAGE_VERSION)) == EPERM,
        "a broker that has its parent's key cannot join under its own rank");
    raw_close (&liar);
    report_key (&child, &w);
    raw_open (&orphan, &w, 3);
    ok (say_hello (&orphan, &w, HELLO ("1", UUID_A, PACKAGE_VERSION)) == EPERM,
        "a broker that has its own key cannot join under its parent's rank");
    ok (say_hello (&orphan, &w, HELLO ("3", UUID_A, PACKAGE_VERSION)) == 0
            && overlay_children_online (w.parent.ov) == 3,
        "an ancestor accepts a descendant whose key was reported by the descendant's parent");
    zmq_curve_keypair (w.public_key[3], w.secret_key[3]);
    ok (!is_let_in (&w), "an ancestor refuses another key for the rank of a descendant whose key was reported");
    raw_close (&orphan);
    raw_close (&other);
    raw_close (&child);
    world_fini (&w);
}

static void report_joined (struct raw *raw, struct world *w, uint32_t joined)
{
    idt_msg_t *msg = control_encode (CONTROL_JOINED, joined, NULL);

    if (!msg)
        bail_out ("no message");
    raw_send (raw, msg);
    pass_time (w);
}

/* Children report various numbers of joined brokers, even impossible ones. */
static void test_joined (void)
{
    struct raw liar, other;
    struct world w;

    world_init_tree (&w, LONG, SIZE_DEEP);
    ok (overlay_joined (w.parent.ov) == 1, "a broker without children counts only itself as joined");
    raw_open (&other, &w, 2);
    ok (say_hello (&other, &w, HELLO ("2", UUID_B, PACKAGE_VERSION)) == 0 && overlay_joined (w.parent.ov) == 2,
        "a child that does not report how many brokers have joined below it counts as one");
    raw_open (&liar, &w, 1);
    ok (say_hello (&liar, &w, HELLO_JOINED ("1", UUID_A, "4294967296")) == 0 && overlay_joined (w.parent.ov) == 3,
        "a child that reports an impossible number of joined brokers counts as one");
    report_joined (&liar, &w, 2);
    ok (overlay_joined (w.parent.ov) == SIZE_DEEP, "a child that reports 2 joined brokers counts as two");
    report_joined (&liar, &w, UINT32_MAX);
    report_joined (&other, &w, UINT32_MAX);
    ok (overlay_joined (w.parent.ov) == SIZE_DEEP,
        "the number of joined brokers counted for a child never exceeds the size of its subtree");
    report_joined (&other, &w, 0);
    report_joined (&liar, &w, 0);
    ok (overlay_joined (w.parent.ov) == 3, "a child that reports 0 joined brokers counts as one");
    raw_close (&liar);
    UNTIL (&w, overlay_joined (w.parent.ov) == 2);
    ok (overlay_joined (w.parent.ov) == 2, "the joined brokers of a lost child are subtracted");
    raw_close (&other);
    world_fini (&w);
}

static void orphan_hello (struct raw *raw, struct world *w, uint32_t rank)
{
    struct bizcard bizcard;
    struct control_key key = { .rank = rank };
    char payload[256];

    make_bizcard (w, rank, &bizcard);
    memcpy (key.key, bizcard.key, sizeof (key.key));
    keyring_put (w->parent.ov->keys, &key);
    snprintf (payload, sizeof (payload),
              "{\"rank\":%u,\"uuid\":\"%08x-0000-4000-8000-000000000000\",\"version\":\"" PACKAGE_VERSION
              "\",\"protocol\":2,\"hostname\":\"h\"}",
              rank, rank);
    raw_open (raw, w, rank);
    raw_send (raw, make_hello (payload));
}

/* A router is lost.  All brokers below it then connect at the same time to another broker, which is slow. */
static void test_many_orphans (void)
{
    static struct raw orphans[SIZE_MANY];
    uint32_t most = 0, last = 0, count = SIZE_MANY - SIZE;
    struct world w;

    world_make (&w, LONG, SIZE_MANY, NULL, WIRE_ZMQ);
    for (uint32_t i = SIZE; i < SIZE_MANY; i++)
        orphan_hello (&orphans[i], &w, i);
    UNTIL (&w, w.parent.ov->down->hellos == count);
    ok (overlay_children_online (w.parent.ov) == 0, "a broker that accepts no children yet adopts no orphans");
    w.parent.child_us = ADOPT_US + 500;
    overlay_accept (w.parent.ov, true);
    last = most = overlay_children_online (w.parent.ov);
    ok (last > 0, "a broker adopts waiting orphans as soon as it accepts children");
    for (bool again = true; again; last = overlay_children_online (w.parent.ov)) {
        again = overlay_turn (w.parent.ov);
        uint32_t more = overlay_children_online (w.parent.ov) - last;
        most = more > most ? more : most;
    }
    ok (last == count, "%d orphans are adopted without waiting for a heartbeat", (int)count);
    ok (most <= 2, "a broker adopts at most %d orphans in a turn, so that others are served", (int)most);
    for (uint32_t i = SIZE; i < SIZE_MANY; i++)
        raw_close (&orphans[i]);
    world_fini (&w);
}

static void test_hello (void)
{
    static const struct {
        const char *payload;
        int errnum;
        const char *what;
    } hellos[] = {
        { HELLO ("2", UUID_A, PACKAGE_VERSION), EPERM, "for a rank that has another key" },
        { HELLO ("0", UUID_A, PACKAGE_VERSION), EINVAL, "for the parent's own rank" },
        { HELLO ("3", UUID_A, PACKAGE_VERSION), EINVAL, "for a rank that is not a child" },
        { HELLO ("-1", UUID_A, PACKAGE_VERSION), EINVAL, "for a negative rank" },
        { HELLO ("4294967297", UUID_A, PACKAGE_VERSION), EINVAL, "for a rank beyond 32 bits" },
        { HELLO_TOPOLOGY ("1", UUID_A, "kary:3"), EINVAL, "of another topology" },
        { HELLO_TOPOLOGY ("1", UUID_A, ""), EINVAL, "of no topology" },
        { HELLO ("1", UUID_A, "9.0.0"), EPROTO, "of another major version" },
        { HELLO ("1", UUID_A, "abc"), EPROTO, "without a version" },
        { "{\"rank\":1,\"uuid\":\"" UUID_A "\",\"version\":\"" PACKAGE_VERSION "\",\"hostname\":\"h\"}", EPROTO,
          "of the version of the protocol before" },
        { HELLO ("1", "short", PACKAGE_VERSION), EPROTO, "with a malformed uuid" },
        { "{\"rank\":1}", EPROTO, "that lacks most members" },
        { "{\"rank\":\"1\",\"uuid\":7,\"version\":[],\"hostname\":{}}", EPROTO, "with values of other types" },
        { "[]", EPROTO, "that is not an object" },
        { "{", EPROTO, "that is not JSON" },
    };
    struct world w;
    struct raw raw, second;

    world_init (&w, LONG);
    raw_open (&raw, &w, 1);
    for (size_t i = 0; i < sizeof (hellos) / sizeof (hellos[0]); i++)
        ok (say_hello (&raw, &w, hellos[i].payload) == hellos[i].errnum, "a hello %s is refused: %s", hellos[i].what,
            strerror (hellos[i].errnum));
    ok (overlay_children_online (w.parent.ov) == 0, "no child whose hello was refused has joined");
    ok (say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION)) == 0, "a valid hello is accepted");
    raw_open (&second, &w, 1);
    ok (say_hello (&second, &w, HELLO ("1", UUID_B, PACKAGE_VERSION)) == EADDRINUSE,
        "a second broker with the rank of a connected child is refused");
    ok (say_hello (&second, &w, HELLO_TOPOLOGY ("1", UUID_A, "kary:2")) == 0 && w.parent.ups == 2
            && w.parent.downs == 1,
        "a child that connects again replaces its old connection");
    raw_close (&raw);
    pass_time (&w);
    ok (overlay_children_online (w.parent.ov) == 1, "the end of a replaced connection does not end the new one");
    raw_close (&second);
    UNTIL (&w, w.parent.downs == 2);
    ok (overlay_children_online (w.parent.ov) == 0, "the end of a child's connection is noticed immediately");
    world_fini (&w);
}

/* A child joins before its own children have joined. */
static void test_whole (void)
{
    struct world w;
    struct raw first, second;

    world_init_tree (&w, LONG, SIZE_DEEP);
    raw_open (&first, &w, 1);
    say_hello (&first, &w, HELLO_OF ("1", UUID_A, PACKAGE_VERSION, "partial"));
    raw_open (&second, &w, 2);
    say_hello (&second, &w, HELLO ("2", UUID_B, PACKAGE_VERSION));
    ok (overlay_children_online (w.parent.ov) == 2 && !overlay_is_full (w.parent.ov),
        "a tree is not full if a child reports that its subtree is not");
    raw_send (&first, control_heartbeat_up (HEALTH_FULL, 1));
    UNTIL (&w, overlay_is_full (w.parent.ov));
    ok (overlay_children_online (w.parent.ov) == 2,
        "a tree becomes full when a heartbeat of the last child reports that its subtree is full");
    raw_close (&second);
    raw_close (&first);
    world_fini (&w);
}

static void test_before_hello (void)
{
    struct world w;
    struct raw raw;
    idt_msg_t *msg;
    static const enum idt_msgtype types[] = { IDT_MSGTYPE_REQUEST, IDT_MSGTYPE_RESPONSE, IDT_MSGTYPE_EVENT,
                                              IDT_MSGTYPE_CONTROL };

    world_init (&w, LONG);
    raw_open (&raw, &w, 1);
    for (size_t i = 0; i < sizeof (types) / sizeof (types[0]); i++) {
        msg = idt_msg_create (types[i]);
        idt_msg_set_topic (msg, "root.x");
        idt_msg_route_clear (msg);
        raw_send (&raw, msg);
        ok (disconnected (&raw, &w) == EPROTO, "a message of type %d before the hello is answered with a disconnect",
            types[i]);
    }
    ok (w.parent.requests == 0 && w.parent.events == 0, "messages before the hello are not passed on");
    zmq_send (raw.sock, "garbage", 7, 0);
    zmq_send (raw.sock, "more", 4, ZMQ_SNDMORE);
    zmq_send (raw.sock, "", 0, ZMQ_SNDMORE);
    zmq_send (raw.sock, "garbage", 7, 0);
    ok (say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION)) == 0,
        "malformed messages of an unknown peer are dropped");
    zmq_send (raw.sock, "garbage", 7, 0);
    UNTIL (&w, w.parent.downs == 1);
    ok (w.parent.downs == 1 && overlay_children_online (w.parent.ov) == 0,
        "a malformed message of a child ends the child's connection");
    raw_close (&raw);
    world_fini (&w);
}

/* A peer connects and shows no key.  ZeroMQ by itself would wait half a minute until it closes such a connection. */
static void test_no_handshake (void)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    char buf[256];
    struct world w;
    idt_watcher_t *timer;
    bool late = false;
    ssize_t n;

    world_init (&w, SHORT);
    snprintf (sun.sun_path, sizeof (sun.sun_path), "%.100s", w.endpoint + strlen ("ipc://"));
    if (fd < 0 || connect (fd, (struct sockaddr *)&sun, sizeof (sun)) < 0)
        bail_out ("cannot connect");
    timer = idt_timer_watcher_create (w.reactor, 15E3, 0., timer_cb, &late);
    idt_watcher_start (timer);
    do {
        turn (&w);
        n = read (fd, buf, sizeof (buf));
    } while ((n > 0 || (n < 0 && errno == EAGAIN)) && !late);
    ok (n == 0, "a connection whose peer shows no key is closed%s", late ? ": its end did not come" : "");
    idt_watcher_destroy (timer);
    close (fd);
    world_fini (&w);
}

/* A peer with a key sends more than the broker's queue takes, and its connection ends before the broker reads it.  Then
 * another peer connects and shows no key.  ZeroMQ's thread disconnects this peer after the timeout.  By then it has
 * handled the end of the first connection, and everything that was due within the timeout.
 */
static void test_end_while_full (void)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int one = 1, fd = socket (AF_UNIX, SOCK_STREAM, 0);
    size_t large = 400000; /* more bytes than the kernel takes */
    char buf[256], *body = calloc (1, large);
    struct world w;
    struct raw raw;

    world_init (&w, SHORT);
    raw_open (&raw, &w, 1);
    zmq_setsockopt (raw.sock, ZMQ_SNDHWM, &one, sizeof (one));
    if (raw_handshake (&raw, &w) != ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        bail_out ("no handshake");
    for (int i = 0; i <= atoi (HWM); i++)
        if (!body || zmq_send (raw.sock, body, i < atoi (HWM) ? 1 : large, 0) < 0)
            bail_out ("cannot send");
    raw_close (&raw);
    snprintf (sun.sun_path, sizeof (sun.sun_path), "%.100s", w.endpoint + strlen ("ipc://"));
    if (fd < 0 || connect (fd, (struct sockaddr *)&sun, sizeof (sun)) < 0)
        bail_out ("cannot connect");
    while (read (fd, buf, sizeof (buf)) > 0)
        ;
    raw_open (&raw, &w, 1);
    ok (say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION)) == 0,
        "a connection that ends while its queue is full does no harm");
    raw_close (&raw);
    close (fd);
    free (body);
    world_fini (&w);
}

/* --- strangers that take all descriptors ---
 *
 * The strangers are a separate process, because descriptors are counted for each process.  This process connects and
 * sends nothing, and connects again when it is disconnected.  Then a broker with a key joins.
 */
#define STRANGERS 40
#define FREE_FDS 10 /* descriptors that the broker has for all strangers */

struct crowd_report {
    int errnum; /* errno of the response to hello */
    int ended;  /* number of connections of strangers that had ended before */
};

static int stranger_connect (const struct sockaddr_in *sin)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0 || (connect (fd, (const struct sockaddr *)sin, sizeof (*sin)) < 0 && errno != EINPROGRESS))
        bail_out ("a stranger cannot connect");
    return fd;
}

struct strangers {
    struct sockaddr_in sin;
    int fd[STRANGERS];
    int ended;
};

/* The broker has closed a connection: connect again. */
static void strangers_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct strangers *s = arg;
    char buf[256];

    for (int i = 0; i < STRANGERS; i++) {
        ssize_t n = read (s->fd[i], buf, sizeof (buf));

        if (n > 0 || (n < 0 && errno == EAGAIN))
            continue;
        close (s->fd[i]);
        s->fd[i] = stranger_connect (&s->sin);
        s->ended++;
    }
}

/* The process of the strangers.  It receives the broker's address over 'fd', and sends its report over 'fd'. */
static void crowd_main (int fd)
{
    struct strangers s = { .sin = { .sin_family = AF_INET } };
    struct crowd_report report;
    struct world w;
    struct raw raw;

    if (read (fd, &w, sizeof (w)) != sizeof (w))
        _exit (1);
    memset (&w.parent, 0, sizeof (w.parent));
    w.zpoll = NULL;
    w.reactor = idt_reactor_create ();
    s.sin.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    s.sin.sin_port = htons ((uint16_t)atoi (strrchr (w.endpoint, ':') + 1));
    for (int i = 0; i < STRANGERS; i++)
        s.fd[i] = stranger_connect (&s.sin);
    idt_watcher_start (idt_timer_watcher_create (w.reactor, 0.01, 0.01, strangers_cb, &s));
    raw_open (&raw, &w, 1);
    report.errnum = say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION));
    report.ended = s.ended;
    _exit (write (fd, &report, sizeof (report)) != sizeof (report));
}

/* Start the process of the strangers, before this process has threads.  Returns our end of the connection to it. */
static int crowd_start (pid_t *pid)
{
    int fds[2];

    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0 || (*pid = fork ()) < 0)
        bail_out ("no other process");
    if (*pid == 0) {
        fcntl (fds[1], F_SETFL, 0);
        close (fds[0]);
        crowd_main (fds[1]);
    }
    close (fds[1]);
    return fds[0];
}

static void test_all_descriptors (void)
{
    struct crowd_report report = { .errnum = -1 };
    struct rlimit before, limit;
    struct world w;
    pid_t pid;
    int fd = crowd_start (&pid), free_fd;

    world_init_at (&w, SHORT, SIZE, "tcp://127.0.0.1:*", WIRE_ZMQ);
    snprintf (w.endpoint, sizeof (w.endpoint), "%s", overlay_endpoint (w.parent.ov));
    getrlimit (RLIMIT_NOFILE, &before);
    limit = before;
    free_fd = dup (fd);
    close (free_fd);
    limit.rlim_cur = free_fd + FREE_FDS;
    setrlimit (RLIMIT_NOFILE, &limit);
    if (write (fd, &w, sizeof (w)) != sizeof (w))
        bail_out ("the other process has ended");
    UNTIL (&w, read (fd, &report, sizeof (report)) >= 0);
    ok (report.errnum == 0 && report.ended > 0 && report.ended < 10 * STRANGERS,
        "a child joins even while unknown peers repeatedly use up all descriptors (after %d of %d)", report.ended,
        STRANGERS);
    setrlimit (RLIMIT_NOFILE, &before);
    close (fd);
    waitpid (pid, NULL, 0);
    world_fini (&w);
}

/* A peer without a key begins a handshake of 64 MiB.  ZeroMQ would use 64 MiB of memory for this peer. */
static void test_large_handshake (void)
{
    static const unsigned char greeting[64] = {
        [0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'C', [13] = 'U', [14] = 'R', [15] = 'V', [16] = 'E'
    };
    static const unsigned char command[9] = { 0x06, 0, 0, 0, 0, 4 }; /* header of a command of 64 MiB */
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM, 0);
    char *junk = calloc (1, 1 << 16);
    size_t sent = 0;
    struct world w;
    ssize_t n = 0;

    world_init (&w, LONG);
    snprintf (sun.sun_path, sizeof (sun.sun_path), "%.100s", w.endpoint + strlen ("ipc://"));
    if (fd < 0 || connect (fd, (struct sockaddr *)&sun, sizeof (sun)) < 0 || write (fd, greeting, sizeof (greeting)) < 0
        || write (fd, command, sizeof (command)) < 0)
        bail_out ("cannot connect");
    while (sent < 32 << 20 && (n = send (fd, junk, 1 << 16, MSG_NOSIGNAL)) > 0)
        sent += n;
    ok (n < 0 && errno == EPIPE, "a handshake of 64 MiB is refused (%zu bytes were sent)", sent);
    free (junk);
    close (fd);
    world_fini (&w);
}

#define HELLO_INSTANCE(rank, uuid, instance)                                                                          \
    "{\"rank\":" rank ",\"uuid\":\"" uuid "\",\"version\":\"" PACKAGE_VERSION "\",\"protocol\":2,\"hostname\":\"h\"," \
    "\"instance\":{\"uuid\":\"" instance "\",\"name\":\"n\",\"lived\":true}}"

/* Whether the root refuses a broker of another tree, and continues to run. */
static bool stays (struct raw *other, struct world *w)
{
    int intruders = w->parent.intruders;

    return say_hello (other, w, HELLO_INSTANCE ("2", UUID_B, "theirs")) == STATE_REFUSED
           && w->parent.intruders == intruders;
}

/* A broker that belongs to another tree returns to the root.  Either the root or this broker has the wrong state. */
static void test_wrong_root (void)
{
    struct instance instance = { .uuid = "ours", .name = "n" };
    struct world w;
    struct raw raw, other;

    world_init_tree (&w, LONG, SIZE_DEEP);
    w.parent.ov->conf.instance = &instance;
    raw_open (&raw, &w, 1);
    raw_open (&other, &w, 2);
    ok (say_hello (&raw, &w, HELLO_JOINED ("1", UUID_A, "2")) == 0
            && say_hello (&other, &w, HELLO_INSTANCE ("2", UUID_B, "theirs")) == STATE_REFUSED
            && w.parent.intruders == 1,
        "rank 0 is of the wrong instance if a broker of another instance is the first to return, even if new "
        "brokers have joined");
    w.parent.ov->down->taken -= 61.;
    ok (stays (&other, &w) && stays (&other, &w),
        "after tbon.timeout, if more new brokers have joined than brokers of another instance return, the returning "
        "broker is of the wrong instance");
    raw_close (&raw);
    UNTIL (&w, overlay_children_online (w.parent.ov) == 0);
    raw_open (&raw, &w, 1);
    ok (say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION)) == 0 && !stays (&other, &w),
        "if as many brokers of another instance return as new ones have joined, rank 0 is of the wrong instance, "
        "even later");
    for (int i = 0; i < WITNESSES_MAX; i++)
        w.parent.ov->down->witness[i] = (struct witness){ .rank = 100 + i, .heard = link_now () - 61. };
    raw_close (&raw);
    UNTIL (&w, overlay_children_online (w.parent.ov) == 0);
    raw_open (&raw, &w, 1);
    ok (say_hello (&raw, &w, HELLO_JOINED ("1", UUID_A, "2")) == 0 && stays (&other, &w),
        "old hellos of another instance are no longer counted");
    for (int i = 0; i < WITNESSES_MAX; i++)
        w.parent.ov->down->witness[i].heard = link_now ();
    ok (!stays (&other, &w), "recent hellos of another instance are counted");
    raw_close (&raw);
    UNTIL (&w, overlay_children_online (w.parent.ov) == 0);
    raw_open (&raw, &w, 1);
    ok (say_hello (&raw, &w, HELLO_INSTANCE ("1", UUID_A, "ours")) == 0 && stays (&other, &w),
        "rank 0 is of the right instance once a broker of its own instance has joined, however many brokers of "
        "others return");
    raw_close (&raw);
    raw_close (&other);
    world_fini (&w);
}

/* Receive the next message.  Returns the number of its frames. */
static int next_frames (struct raw *raw, struct world *w)
{
    int n = 0, more = 1;
    size_t size = sizeof (more);

    for (; more; n++) {
        wait_until (zmq_recv (raw->sock, NULL, 0, ZMQ_DONTWAIT) >= 0) turn (w);
        zmq_getsockopt (raw->sock, ZMQ_RCVMORE, &more, &size);
    }
    return n;
}

static void test_frames (void)
{
    struct world w;
    struct raw old, new;

    world_init (&w, LONG);
    raw_open (&old, &w, 1);
    raw_open (&new, &w, 2);
    say_hello (&old, &w, HELLO_LINK ("1", UUID_A, "1"));
    say_hello (&new, &w, HELLO_LINK ("2", UUID_B, "2"));
    ok (next_frames (&old, &w) == 2,
        "a peer that does not report that it accepts a message in one frame gets a frame for each part");
    ok (next_frames (&new, &w) == 1, "a peer that reports that it accepts a message in one frame gets one frame");
    raw_close (&new);
    raw_close (&old);
    world_fini (&w);
}

/* A child that violates the protocol of the link is disconnected, and other children stay connected. */
static void test_liar (void)
{
    static const uint8_t more[WINDOW_RECORD] = { [0] = CLASS_ASK, [7] = 9, [15] = 9 };
    static const uint8_t less[WINDOW_RECORD] = { [0] = CLASS_ASK, [7] = 8, [15] = 9 };
    struct world w;
    struct raw raw, other;
    idt_msg_t *msg;

    world_init (&w, LONG);
    raw_open (&raw, &w, 1);
    raw_open (&other, &w, 2);
    say_hello (&raw, &w, HELLO_LINK ("1", UUID_A, "1"));
    say_hello (&other, &w, HELLO ("2", UUID_B, PACKAGE_VERSION));
    msg = raw_recv (&raw, &w);
    ok (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL && idt_msg_control_type (msg) == CONTROL_CREDIT,
        "a child that knows credit gets a grant");
    idt_msg_unref (msg);
    ask (&w.parent, "leaf.x", 1, 1, 0);
    pass_time (&w);
    ok (w.parent.answers == 0 && msg_zmq_recv (raw.sock, false, 1 << 20, NULL) == NULL,
        "a child that knows credit gets no request before it has granted credit");
    for (int i = 0; i < 2; i++) {
        msg = control_encode (CONTROL_CREDIT, 0, NULL);
        idt_msg_set_payload (msg, i == 0 ? more : less, WINDOW_RECORD);
        raw_send (&raw, msg);
    }
    UNTIL (&w, w.parent.downs == 1);
    ok (w.parent.unreachable == 1 && overlay_children_online (w.parent.ov) == 1,
        "a child that revokes credit is disconnected, and no other child is");
    ask (&w.parent, "leaf.x", 2, 2, 0);
    msg = raw_recv (&other, &w);
    ok (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST, "a child that knows no credit gets requests");
    idt_msg_unref (msg);
    raw_close (&other);
    raw_close (&raw);
    world_fini (&w);
}

static void test_accept (void)
{
    struct world w;
    struct raw raw;

    world_init (&w, LONG);
    overlay_accept (w.parent.ov, false);
    raw_open (&raw, &w, 1);
    ok (say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION)) == ESHUTDOWN,
        "a broker that is stopping accepts no child");
    raw_close (&raw);
    world_fini (&w);
}

/* A clock that steps forward by a minute at each reading. */
static bool read_stepping (void *arg, uint64_t *inst_us, uint64_t *bound_us)
{
    uint64_t *us = arg;

    *inst_us = *us += 60000000;
    *bound_us = 0;
    return true;
}

static void take_no_sample (void *arg, const struct idt_clock_sample *sample)
{
}

static void take_no_parent (void *arg, bool up)
{
}

/* Between a hello and the response, the parent's clock is stepped.  The step does not count as waiting time of the
 * hello.
 */
static void test_stepped (void)
{
    static const struct idt_overlay_ops stepping = { .read_clock = read_stepping,
                                                     .sample = take_no_sample,
                                                     .parent = take_no_parent };
    json_int_t received = 0, sent = 0;
    uint64_t us = 0;
    struct world w;
    struct raw raw;
    idt_msg_t *msg;
    json_t *o;

    world_init (&w, LONG);
    if (overlay_attach (w.parent.ov, &stepping, &us) < 0)
        bail_out ("no clock");
    raw_open (&raw, &w, 1);
    raw_send (&raw, make_hello (HELLO ("1", UUID_A, PACKAGE_VERSION)));
    msg = raw_recv (&raw, &w);
    if (idt_msg_unpack (msg, &o, NULL, "{s:[I,I]}", "time_us", &received, &sent) < 0)
        bail_out ("no time");
    ok (received > 0 && sent >= received && sent - received < 60000000,
        "a step of the parent's wall clock does not count as time that a hello has waited");
    json_decref (o);
    idt_msg_unref (msg);
    raw_close (&raw);
    overlay_attach (w.parent.ov, NULL, NULL);
    world_fini (&w);
}

static void test_silent_child (void)
{
    struct world w;
    struct raw raw;

    world_init (&w, SHORT);
    raw_open (&raw, &w, 1);
    say_hello (&raw, &w, HELLO ("1", UUID_A, PACKAGE_VERSION));
    ask (&w.parent, "leaf.x", 1, 1, 0);
    idt_msg_unref (raw_recv (&raw, &w));
    UNTIL (&w, w.parent.downs == 1);
    ok (w.parent.answers == 1 && w.parent.unreachable == 1,
        "a parent ends the link to a silent child, and requests sent to that child fail with EHOSTUNREACH");
    ok (disconnected (&raw, &w) == ETIMEDOUT, "a silent child is disconnected with reason ETIMEDOUT");
    ask (&w.parent, "leaf.x", 1, 2, 0);
    ok (w.parent.unreachable == 2, "further requests for a disconnected child fail immediately");
    ok (say_hello (&raw, &w, HELLO ("1", UUID_B, PACKAGE_VERSION)) == 0,
        "another broker may join in place of a disconnected child");
    raw_close (&raw);
    world_fini (&w);
}

/* --- the child's side --------------------------------------------------------------------------------------- */

/* A parent accepts a child, and then sends nothing. */
static void test_silent_parent (enum wire_kind kind)
{
    struct world w;

    world_init_kind (&w, SHORT, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up);
    ask (&w.child, "root.x", IDT_NODEID_ANY, 1, 0);
    w.parent_sleeps = true;
    UNTIL (&w, !w.child.parent_up);
    ok (w.child.answers == 1 && w.child.unreachable == 1,
        "a child ends the link to a silent parent, and requests sent to that parent fail with EHOSTUNREACH");
    ask (&w.child, "root.x", IDT_NODEID_ANY, 2, 0);
    ok (w.child.unreachable == 2, "further requests for a disconnected parent fail immediately");
    w.parent_sleeps = false;
    UNTIL (&w, w.child.parent_up && overlay_children_online (w.parent.ov) == 1);
    ask (&w.child, "root.x", IDT_NODEID_ANY, 3, 0);
    UNTIL (&w, w.parent.held && idt_msg_matchtag (w.parent.held) == 3);
    reply (&w.parent);
    UNTIL (&w, w.child.answers == 3);
    ok (w.child.unreachable == 2 && w.child.ups >= 2, "when a silent parent continues, its child joins it again");
    world_fini (&w);
}

static void test_lost_parent (enum wire_kind kind)
{
    struct world w;

    world_init_at (&w, LONG, SIZE, NULL, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up);
    ask (&w.child, "root.x", IDT_NODEID_ANY, 1, 0);
    node_fini (&w.parent);
    UNTIL (&w, !w.child.parent_up);
    ok (w.child.unreachable == 1, "a child notices the end of its parent immediately");
    node_init (&w.parent, &w, 0, "1000");
    set_children (&w);
    pass_time (&w);
    ok (!w.child.parent_up, "a child waits while its parent has not joined itself");
    overlay_accept (w.parent.ov, true);
    UNTIL (&w, w.child.parent_up);
    ok (w.child.ups == 2, "a child joins when its parent has joined");
    world_fini (&w);
}

static void hang_up (const struct node *n)
{
    struct peer *requester = router_peer (n->router, idt_msg_route_newest (n->held));

    requester->hang_up (requester->arg);
}

/* If a broker has no memory for a response, the broker ends the link, so that the requester at the other end gets an
 * error.
 */
static void test_hung_up (enum wire_kind kind)
{
    struct world w;

    world_init_kind (&w, LONG, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    ask (&w.child, "root.x", IDT_NODEID_ANY, 1, 0);
    UNTIL (&w, w.parent.held);
    hang_up (&w.parent);
    UNTIL (&w, w.child.unreachable == 1);
    ok (w.child.answers == 1, "a link is ended if a response cannot be sent to the child");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 2);
    ask (&w.parent, "leaf.x", 1, 1, 0);
    UNTIL (&w, w.child.held);
    hang_up (&w.child);
    UNTIL (&w, w.parent.unreachable == 1);
    ok (w.parent.answers == 1, "a link is ended if a response cannot be sent to the parent");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 3);
    ok (overlay_children_online (w.parent.ov) == 1,
        "a link that was lost because a response could not be sent is connected again");
    world_fini (&w);
}

/* A link with a small limit is filled.  Further requests are then refused, a response is sent before waiting requests,
 * and no link is lost.
 */
static void test_full (enum wire_kind kind)
{
    struct world w;
    int tag = 0;

    world_init_kind (&w, LONG, kind);
    start_child (&w, "10");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    w.parent.replies = true;
    ask (&w.parent, "leaf.x", 1, 1, 0);
    UNTIL (&w, w.child.requests == 1);
    while (w.child.busy == 0 && tag < 100000)
        ask (&w.child, "root.x", IDT_NODEID_ANY, ++tag, 5000);
    ok (w.child.busy == 1 && w.child.answers == 1,
        "a request that does not fit into the link fails with EAGAIN (after %d)", tag);
    reply (&w.child);
    UNTIL (&w, w.parent.answers == 1);
    ok (w.parent.requests < tag - 1, "a response does not wait for queued requests (%d of them arrived before it)",
        w.parent.requests);
    UNTIL (&w, w.child.answers == tag);
    ok (w.child.busy == 1 && w.child.unreachable == 0 && w.parent.requests == tag - 1,
        "all requests that were queued on a loaded link are answered");
    ok (w.child.downs == 0 && w.parent.downs == 0, "a link under load is not ended");
    world_fini (&w);
}

/* Send a request over the link, up or down, and return its roles after the link. */
static uint32_t roles_behind (struct world *w, bool up, struct idt_cred cred, uint32_t tag)
{
    struct node *from = up ? &w->child : &w->parent, *to = up ? &w->parent : &w->child;
    idt_msg_t *msg = up ? make_request ("root.x", IDT_NODEID_ANY, tag) : make_request ("leaf.x", 1, tag);

    idt_msg_set_cred (msg, cred);
    router_request_new (from->router, &from->client, msg);
    UNTIL (w, to->held && idt_msg_matchtag (to->held) == tag);
    return idt_msg_cred (to->held).rolemask;
}

static void test_roles (enum wire_kind kind)
{
    static const uint32_t all = 0xffffffff, known = IDT_ROLE_USER | IDT_ROLE_GROUP;
    struct idt_cred owner = { geteuid (), all }, guest = { geteuid () + 1, all }, nobody = { IDT_USERID_UNKNOWN, all };
    struct world w;

    world_init_kind (&w, LONG, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    for (int up = 0; up < 2; up++) {
        const char *side = up ? "a child" : "the parent";

        ok (roles_behind (&w, up, owner, 10 + up) == (known | IDT_ROLE_OWNER | IDT_ROLE_BROKER),
            "behind %s no sender has role local, and a sender with an unknown user has no role", side);
        ok (roles_behind (&w, up, guest, 20 + up) == known,
            "behind a link another user is neither the owner nor a broker");
        ok (roles_behind (&w, up, nobody, 30 + up) == IDT_ROLE_NONE, "a sender without a user id has no role");
    }
    world_fini (&w);
}

/* Large messages are sent over a link whose frames are small, one message at a time. */
static void test_large (enum wire_kind kind)
{
    static const size_t sizes[] = { 262000, 262144, 300000, 524288, 1000000, 10000000 };
    struct world w;
    bool good = true;

    world_init_kind (&w, LONG, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++) {
        const void *data;
        size_t size;

        ask (&w.parent, "leaf.x", 1, i + 1, sizes[i]);
        UNTIL (&w, w.child.requests == (int)i + 1);
        good = good && idt_msg_payload (w.child.held, &data, &size) == 0 && size == sizes[i]
               && memcmp (data, "xxxx", 4) == 0 && idt_msg_matchtag (w.child.held) == i + 1;
        reply (&w.child);
        UNTIL (&w, w.parent.answers == (int)i + 1);
    }
    ok (good, "large messages arrive complete over links");
    ask (&w.parent, "leaf.x", 1, 100, CHANNEL_MAX_MESSAGE);
    ok (w.parent.answers == 7 && w.parent.errnum == EMSGSIZE && w.parent.downs == 0,
        "a request longer than a link accepts is refused by the first broker that gets it");
    ask (&w.parent, "leaf.x", 1, 101, 0);
    UNTIL (&w, w.child.held && idt_msg_matchtag (w.child.held) == 101);
    w.parent.errnum = 0;
    idt_msg_t *answer = idt_msg_respond (w.child.held, 0);
    memset (idt_msg_alloc_payload (answer, CHANNEL_MAX_MESSAGE), 'x', CHANNEL_MAX_MESSAGE);
    router_response_new (w.child.router, &w.child.service, answer);
    UNTIL (&w, w.parent.answers == 8);
    ok (w.parent.errnum == EMSGSIZE && w.parent.downs == 0 && w.child.downs == 0,
        "a response longer than a link accepts arrives at the requester as an error");
    world_fini (&w);
}

/* A parent is so busy that it sends heartbeats but reads no messages.  Its children send messages meanwhile, and do not
 * count as silent.
 */
static void test_deaf_parent (enum wire_kind kind)
{
    struct world w;

    world_init_kind (&w, SHORT, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    w.parent.deaf = true;
    turn_for (&w, 600.);
    w.parent.deaf = false;
    ok (w.parent.downs == 0, "a child whose heartbeats have arrived but have not been read is not silent");
    world_fini (&w);
}

static void test_lost_child (enum wire_kind kind)
{
    struct world w;

    world_init_kind (&w, LONG, kind);
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 1);
    ask (&w.parent, "leaf.x", 1, 1, 0);
    node_fini (&w.child);
    UNTIL (&w, w.parent.downs == 1);
    ok (w.parent.unreachable == 1, "the end of a child that sent no goodbye is noticed immediately");
    start_child (&w, "1000");
    UNTIL (&w, w.child.parent_up && w.parent.ups == 2);
    ok (overlay_children_online (w.parent.ov) == 1, "a child that ended without a goodbye may join again");
    world_fini (&w);
}

/* Rank 1 ends.  Rank 3 attaches to rank 0, and returns to rank 1 when this rank runs again. */
static void test_orphan (enum wire_kind kind)
{
    struct world w;

    world_deep (&w, kind);
    UNTIL (&w, overlay_joined (w.parent.ov) == 3);
    ok (overlay_joined (w.child.ov) == 2 && overlay_joined (w.grand.ov) == 1,
        "each broker of a path counts the brokers that joined below it");
    ask (&w.grand, "root.x", IDT_NODEID_ANY, 1, 0);
    UNTIL (&w, w.parent.requests == 1);
    node_fini (&w.child);
    UNTIL (&w, w.grand.downs == 1 && w.grand.parent_up);
    ok (w.grand.unreachable == 1 && overlay_children_online (w.parent.ov) == 1,
        "rank 0 adopts a grandchild whose parent has ended");
    ok (overlay_joined (w.parent.ov) == 2, "an adopted grandchild counts as joined, and its lost parent does not");
    w.parent.replies = true;
    ask (&w.grand, "root.x", IDT_NODEID_ANY, 2, 0);
    UNTIL (&w, w.grand.answers == 2);
    ok (w.grand.unreachable == 1, "requests of an adopted grandchild are served");
    start_middle (&w);
    UNTIL (&w, w.grand.downs == 2 && w.grand.parent_up && w.parent.downs == 2);
    ok (overlay_children_online (w.child.ov) == 1 && overlay_children_online (w.parent.ov) == 1,
        "an adopted grandchild returns to its parent when that parent has joined");
    UNTIL (&w, overlay_joined (w.parent.ov) == 3);
    ok (overlay_joined (w.child.ov) == 2, "a grandchild that has returned to its parent is counted there");
    world_fini (&w);
}

/* A second broker that serves rank 3 cannot join any broker, not even rank 0, before the first one has left. */
static void test_second (enum wire_kind kind)
{
    struct world w;

    world_deep (&w, kind);
    start_rival (&w);
    UNTIL (&w, w.rival.refusals == 3 || w.rival.parent_up);
    ok (!w.rival.parent_up && w.rival.errnum == EADDRINUSE && overlay_children_online (w.parent.ov) == 1,
        "a second broker of a rank is refused by its parent, and tries no ancestor");
    node_fini (&w.grand);
    UNTIL (&w, w.rival.parent_up);
    ok (overlay_children_online (w.child.ov) == 1, "when the first broker of a rank has left, the second one joins");
    node_fini (&w.child);
    UNTIL (&w, w.rival.downs == 1 && w.rival.parent_up);
    w.rival.deaf = true;
    start_middle (&w);
    start_grand (&w);
    UNTIL (&w, w.grand.parent_up && overlay_children_online (w.child.ov) == 1);
    w.rival.deaf = false;
    UNTIL (&w, w.rival.downs == 2 && w.rival.refusals > 3);
    ok (overlay_children_online (w.parent.ov) == 1 && w.grand.parent_up,
        "if two brokers of a rank joined different ancestors, the one that is farther from the rank's own place "
        "leaves");
    world_fini (&w);
}

/* A broker that is refused tries again after longer and longer pauses, but immediately when overlay_connect () is
 * called.
 */
static void test_refused_again (void)
{
    struct world w;

    world_deep (&w, WIRE_ZMQ);
    start_rival (&w);
    UNTIL (&w, w.rival.ov->up->retry_ms > 2 * RETRY_MAX_MS || w.rival.refusals > 20);
    ok (w.rival.refusals <= 20, "a second broker of a rank tries to join less and less often");
    w.rival.ov->up->retry_ms = REFUSED_MAX_MS;
    UNTIL (&w, w.rival.ov->up->retry_ms == REFUSED_MAX_MS);
    node_fini (&w.grand);
    overlay_connect (w.rival.ov);
    UNTIL (&w, w.rival.parent_up);
    ok (w.rival.ov->up->retry_ms == RETRY_MIN_MS,
        "overlay_connect () tries immediately, and after success the pause is the shortest again");
    world_fini (&w);
}

/* The parent has another certificate.  It closes the connection, because it cannot read messages that were encrypted
 * for another key.  At the end of the test there is no parent.
 */
static void test_other_certificate (void)
{
    struct world w;
    struct parent *up;

    world_init (&w, LONG);
    memcpy (w.public_key[0], w.public_key[2], sizeof (w.public_key[0]));
    start_child (&w, "1000");
    up = w.child.ov->up;
    UNTIL (&w, up->retry_ms > 2 * RETRY_MAX_MS || up->attempts > 20);
    ok (up->attempts <= 20 && w.child.refusals == 0,
        "a broker with another certificate tries to join less and less often");
    node_fini (&w.parent);
    overlay_connect (w.child.ov);
    UNTIL (&w, up->retry_ms == RETRY_MAX_MS);
    ok (!w.child.parent_up, "a broker tries several times per second to join an absent parent, also after a refusal");
    world_fini (&w);
}

/* A broker is attached to another ancestor, and probes its parent, which has another certificate. */
static void test_refused_probe (void)
{
    struct world w;
    struct parent *up;

    world_make (&w, LONG, SIZE_DEEP, NULL, WIRE_ZMQ);
    overlay_accept (w.parent.ov, true);
    start_middle (&w);
    memcpy (w.ancestors[0].key, w.ancestors[1].key, ZAP_KEY_SIZE);
    node_init (&w.grand, &w, 3, "1000");
    w.grand.ov->conf.configured = true;
    overlay_set_bizcards (w.grand.ov, w.ancestors, 2, NULL);
    overlay_connect (w.grand.ov);
    up = w.grand.ov->up;
    UNTIL (&w, w.grand.parent_up);
    UNTIL (&w, up->probe_ms > PROBE_MS || up->probe->hello_us > up->used->hello_us + 30000000);
    ok (up->probe_ms > PROBE_MS && w.grand.parent_up,
        "an adopted broker probes a parent that refuses it less and less often");
    world_fini (&w);
}

/* An orphan is adopted, but is too busy to read this for longer than its timeout. */
static void test_late_answer (enum wire_kind kind)
{
    struct world w;

    world_deep (&w, kind);
    node_fini (&w.child);
    UNTIL (&w, w.parent.downs == 1);
    w.parent.deafens = &w.grand;
    UNTIL (&w, w.grand.deaf);
    turn_for (&w, 1000.);
    w.parent.deafens = NULL;
    w.grand.deaf = false;
    UNTIL (&w, w.grand.parent_up);
    ok (w.parent.downs == 1, "a response that has arrived but was not read is not late");
    world_fini (&w);
}

/* The parent of an orphan refuses it, and the orphan reads this only when its timeout passes.  It then tries again. */
static void test_late_refusal (enum wire_kind kind)
{
    struct world w;

    world_deep (&w, kind);
    node_fini (&w.child);
    UNTIL (&w, w.grand.downs == 1 && w.grand.parent_up);
    w.grand.deaf = true;
    start_middle (&w);
    overlay_accept (w.child.ov, false);
    turn_for (&w, 3200.); /* each attempt takes at most 1.5 s, and so does each pause */
    w.grand.deaf = false;
    turn (&w);
    overlay_accept (w.child.ov, true);
    UNTIL (&w, w.grand.downs == 2 && w.grand.parent_up);
    ok (overlay_children_online (w.child.ov) == 1, "after a late refusal a broker tries to join its parent again");
    world_fini (&w);
}

static void test_kind (enum wire_kind kind)
{
    test_late_answer (kind);
    test_lost_child (kind);
    test_orphan (kind);
    test_second (kind);
    test_join (kind);
    test_silent_parent (kind);
    test_deaf_parent (kind);
    test_lost_parent (kind);
    test_hung_up (kind);
    test_full (kind);
    test_roles (kind);
    test_large (kind);
}

int main (void)
{
    test_all_descriptors ();
    test_last_words (true);
    test_last_words (false);
    test_keys ();
    test_adoption ();
    test_many_orphans ();
    test_joined ();
    test_hello ();
    test_whole ();
    test_before_hello ();
    test_no_handshake ();
    test_end_while_full ();
    test_large_handshake ();
    test_frames ();
    test_liar ();
    test_wrong_root ();
    test_accept ();
    test_stepped ();
    test_silent_child ();
    test_late_refusal (WIRE_MEMORY);
    test_refused_again ();
    test_other_certificate ();
    test_refused_probe ();
    test_kind (WIRE_ZMQ);
    test_kind (WIRE_INPROC);
    test_kind (WIRE_MEMORY);
    return done_testing ();
}
