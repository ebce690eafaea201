/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_hello.c - messages of a broker with a key to its parent, over real sockets
 *
 * The parent in a tree of seven runs as long as the process. Each input is a connection to it, with the key of rank 1
 * or rank 2. Bits of the first byte: bit 0 selects the rank; bit 1: a valid hello is sent first; bit 2: the connection
 * ends before the answer. The rest of the input is messages: a byte for the kind, two bytes for the length, then the
 * bytes. Kind 0 is a hello with this payload, kind 1 an encoded message, kind 2 a control message with this type; other
 * kinds are raw frames. The parent must survive, and must never accept more than its limits.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

#include "broker/overlay/control.h"
#include "broker/overlay/overlay.h"
#include "fuzz.h"
#include "libzmqutil/zmsg.h"

#define SURE_MS 60000 /* ms; for an answer that must arrive, even on a busy machine */
#define WAIT_MS 20

struct rig {
    idt_reactor_t *r;
    void *ctx;
    struct zpoll *zp;
    struct attrs *attrs;
    struct log *log;
    struct topo *topo;
    struct router *router;
    struct event *event;
    struct overlay *ov;
    char public_key[3][OVERLAY_KEY_TEXT];
    char secret_key[3][OVERLAY_KEY_TEXT];
    char dir[32];
    int children[7];
    uint32_t connections;
};

static struct rig rig;

static void message_cb (void *arg, struct peer *from, idt_msg_t *msg)
{
    must (from->kind == PEER_CHILD && (from->rank == 1 || from->rank == 2));
    must (!(idt_msg_cred (msg).rolemask & IDT_ROLE_LOCAL));
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        router_request_new (rig.router, from, msg);
    else if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        router_response_new (rig.router, from, msg);
    else
        idt_msg_unref (msg);
}

static void child_cb (void *arg, uint32_t rank, bool up)
{
    must (rank == 1 || rank == 2);
    rig.children[rank] += up ? 1 : -1;
    must (rig.children[rank] == 0 || rig.children[rank] == 1);
}

static void none_parent (void *arg, bool up)
{
    must (false);
}

/* this test publishes no events */
static const struct event_ops no_events = { .forward = NULL };

static const struct overlay_ops ops = {
    .message = message_cb,
    .parent = none_parent,
    .child = child_cb,
};

static bool swallow (const char *line, void *arg)
{
    return true;
}

/* Remove the socket's file. Connected peers do not need it, but later ones would. */
static void cleanup (void)
{
    overlay_destroy (rig.ov);
    event_destroy (rig.event);
    topo_destroy (rig.topo);
    rmdir (rig.dir);
}

static void setup (void)
{
    struct overlay_conf conf = { .uuid = "00000000-0000-4000-8000-000000000000", .host = "here", .ops = &ops };
    struct bizcard children[2] = { { .rank = 1, .endpoint = "-", .host = "a" },
                                   { .rank = 2, .endpoint = "-", .host = "b" } };
    char endpoint[64];

    must ((conf.topo = rig.topo = topo_create ("kary:2", 7, NULL)) != NULL);
    for (int i = 0; i < 3; i++)
        must (zmq_curve_keypair (rig.public_key[i], rig.secret_key[i]) == 0);
    for (int i = 0; i < 2; i++)
        must (zmq_z85_decode (children[i].key, rig.public_key[i + 1]) != NULL);
    must ((conf.attrs = rig.attrs = attrs_create ()) && attr_give (rig.attrs, "log-stderr-level", "0", NULL) == 0);
    must ((conf.log = rig.log = log_create (rig.attrs, 0, NULL)) != NULL);
    log_set_forward (rig.log, swallow, NULL);
    must ((conf.reactor = rig.r = idt_reactor_create ()) && (conf.zctx = rig.ctx = zmq_ctx_new ()));
    must ((conf.zpoll = rig.zp = zpoll_create (rig.r))
          && (conf.router = rig.router = router_create (0, rig.topo, 1000)));
    must ((conf.event = rig.event = event_create (true, conf.uuid, 16, &no_events, NULL)) != NULL);
    conf.public_key = rig.public_key[0];
    conf.secret_key = rig.secret_key[0];
    must ((rig.ov = overlay_create (&conf, NULL)) != NULL);
    strcpy (rig.dir, "/tmp/fuzz_hello-XXXXXX");
    must (mkdtemp (rig.dir) != NULL);
    snprintf (endpoint, sizeof (endpoint), "ipc://%s/parent", rig.dir);
    must (overlay_bind (rig.ov, endpoint, true, NULL) == 0);
    overlay_set_bizcards (rig.ov, NULL, 0, children);
    overlay_accept (rig.ov, true);
    atexit (cleanup);
}

static void turns (int n)
{
    for (int i = 0; i < n; i++) {
        must (idt_reactor_run (rig.r, IDT_REACTOR_NOWAIT) == 0);
        for (int j = 0; j < 100 && (zpoll_turn (rig.zp) || overlay_turn (rig.ov)); j++)
            ;
    }
}

static void *connect_as (int rank)
{
    void *sock = zmq_socket (rig.ctx, ZMQ_DEALER);
    char identity[IDT_MSG_UUID_LEN + 1];
    int linger = 0;

    snprintf (identity, sizeof (identity), "cccccccc-0000-4000-8000-%012x", ++rig.connections);
    must (sock && zmq_setsockopt (sock, ZMQ_LINGER, &linger, sizeof (linger)) == 0
          && zmq_setsockopt (sock, ZMQ_ROUTING_ID, identity, IDT_MSG_UUID_LEN) == 0
          && zmq_setsockopt (sock, ZMQ_CURVE_SERVERKEY, rig.public_key[0], OVERLAY_KEY_TEXT) == 0
          && zmq_setsockopt (sock, ZMQ_CURVE_PUBLICKEY, rig.public_key[rank], OVERLAY_KEY_TEXT) == 0
          && zmq_setsockopt (sock, ZMQ_CURVE_SECRETKEY, rig.secret_key[rank], OVERLAY_KEY_TEXT) == 0
          && zmq_connect (sock, overlay_endpoint (rig.ov)) == 0);
    return sock;
}

static void send_hello (void *sock, const void *payload, size_t size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    must (msg && idt_msg_set_topic (msg, "overlay.hello") == 0 && idt_msg_set_payload (msg, payload, size) == 0);
    idt_msg_set_matchtag (msg, 1);
    idt_msg_route_clear (msg);
    msg_zmq_send (sock, NULL, msg);
    idt_msg_unref (msg);
}

static void send_good_hello (void *sock, int rank)
{
    char text[256];
    int n = snprintf (
        text, sizeof (text),
        "{\"rank\":%d,\"uuid\":\"bbbbbbbb-0000-4000-8000-%012x\",\"version\":\"%s\",\"hostname\":\"h\",\"protocol\":2}",
        rank, rank, PACKAGE_VERSION);

    send_hello (sock, text, n + 1);
}

static void send_control (void *sock, const uint8_t *data, size_t size)
{
    idt_msg_t *msg = size > 0 ? control_encode (data[0] % 8, size > 1 ? data[1] : 0, NULL) : NULL;

    if (msg && size > 2)
        must (idt_msg_set_payload (msg, data + 2, size - 2) == 0);
    if (msg)
        msg_zmq_send (sock, NULL, msg);
    idt_msg_unref (msg);
}

static void send_one (void *sock, struct input *in)
{
    uint8_t kind = input_byte (in);
    size_t size = (size_t)input_byte (in) << 8;

    size |= input_byte (in);
    size = size < in->left ? size : in->left;
    idt_msg_t *msg = kind == 1 ? idt_msg_decode (in->p, size) : NULL;
    if (kind == 0)
        send_hello (sock, in->p, size);
    else if (msg)
        msg_zmq_send (sock, NULL, msg);
    else if (kind == 2)
        send_control (sock, in->p, size);
    else
        zmq_send (sock, in->p, size, ZMQ_DONTWAIT | (kind & 8 ? ZMQ_SNDMORE : 0));
    idt_msg_unref (msg);
    in->p += size;
    in->left -= size;
}

/* Whether the parent sends an answer within 'wait_ms'. */
static bool heard (void *sock, int wait_ms)
{
    zmq_pollitem_t item = { .socket = sock, .events = ZMQ_POLLIN };
    idt_msg_t *msg;

    for (int i = 0; i < wait_ms; i++) {
        turns (2);
        if (zmq_poll (&item, 1, 1) > 0) {
            msg = msg_zmq_recv (sock, false, 1 << 20, NULL);
            must (msg != NULL); /* the parent sends no malformed message */
            idt_msg_unref (msg);
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    uint8_t how = input_byte (&in);
    int rank = how & 1 ? 2 : 1;

    if (!rig.ov)
        setup ();
    void *sock = connect_as (rank);
    if (how & 2)
        send_good_hello (sock, rank);
    for (int i = 0; i < 16 && in.left > 0; i++)
        send_one (sock, &in);
    if (how & 4)
        turns (1);
    else if (how & 2)
        must (heard (sock, size > 1 ? WAIT_MS : SURE_MS) || size > 1);
    else
        heard (sock, WAIT_MS);
    zmq_close (sock);
    turns (2);
    return 0;
}
