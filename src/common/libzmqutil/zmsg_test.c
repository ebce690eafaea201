/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zmsg_test.c - messages on real ZeroMQ sockets: golden vectors, limits, broken peers, zero copy */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include <zmq.h>

#include "test/msg_vectors.h"
#include "libzmqutil/zmsg.h"

#define UUID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UUID_B "bbbbbbbb-0000-4000-8000-000000000002"
#define MAX_MESSAGE ((size_t)1 << 20)

/* Debian's libzmq is not built for ThreadSanitizer, so ThreadSanitizer cannot see how it orders its threads. */
const char *__tsan_default_suppressions (void);
const char *__tsan_default_suppressions (void)
{
    return "race:libzmq.so\n";
}

/* A DEALER with identity UUID_A, connected to a ROUTER. */
struct wire {
    void *ctx;
    void *router;
    void *dealer;
};

static void wire_init (struct wire *w, const char *endpoint)
{
    int one = 1, zero = 0;

    w->ctx = zmq_ctx_new ();
    w->router = zmq_socket (w->ctx, ZMQ_ROUTER);
    w->dealer = zmq_socket (w->ctx, ZMQ_DEALER);
    zmq_setsockopt (w->router, ZMQ_ROUTER_MANDATORY, &one, sizeof (one));
    zmq_setsockopt (w->router, ZMQ_LINGER, &zero, sizeof (zero));
    zmq_setsockopt (w->dealer, ZMQ_LINGER, &zero, sizeof (zero));
    zmq_setsockopt (w->dealer, ZMQ_ROUTING_ID, UUID_A, IDT_MSG_UUID_LEN);
    if (zmq_bind (w->router, endpoint) < 0 || zmq_connect (w->dealer, endpoint) < 0)
        bail_out ("ZeroMQ sockets do not connect");
}

static void wire_fini (struct wire *w)
{
    zmq_close (w->dealer);
    zmq_close (w->router);
    zmq_ctx_term (w->ctx);
}

static void wait_readable (void *sock)
{
    zmq_pollitem_t item = { .socket = sock, .events = ZMQ_POLLIN };

    wait_until (zmq_poll (&item, 1, TAP_WAIT_S * 1000L) == 1);
}

/* --- golden vectors ----------------------------------------------------------------------- */

typedef int (*send_f) (void *sock, const char *identity, const idt_msg_t *msg);

static bool crosses (struct wire *w, const idt_msg_t *msg, send_f send)
{
    struct msg_zmq_from from;
    idt_msg_t *up = NULL, *down = NULL;
    bool good;

    good = send (w->dealer, NULL, msg) == 0;
    wait_readable (w->router);
    good = good && (up = msg_zmq_recv (w->router, true, MAX_MESSAGE, &from)) && same_message (up, msg)
           && !strcmp (from.identity, UUID_A) && send (w->router, from.identity, up) == 0;
    wait_readable (w->dealer);
    good = good && (down = msg_zmq_recv (w->dealer, false, MAX_MESSAGE, NULL)) && same_message (down, msg);
    idt_msg_unref (up);
    idt_msg_unref (down);
    return good;
}

static void test_golden (const char *endpoint)
{
    json_t *vectors = vectors_load ("rfc3-messages.json");
    struct wire w;
    json_t *vector;
    size_t i;

    wire_init (&w, endpoint);
    json_array_foreach (vectors, i, vector) {
        idt_msg_t *msg = vector_message (json_object_get (vector, "fields"));

        ok (crosses (&w, msg, msg_zmq_send) && crosses (&w, msg, msg_zmq_send_whole),
            "a message %s is received in both directions over %s, in parts and in one frame",
            json_string_value (json_object_get (vector, "name")), endpoint);
        idt_msg_unref (msg);
    }
    wire_fini (&w);
    json_decref (vectors);
}

/* --- nothing there, no room, no peer -------------------------------------------------------- */

static bool is_recv_error (void *sock, bool router, size_t max_message, int errnum)
{
    idt_msg_t *msg;

    errno = 0;
    msg = msg_zmq_recv (sock, router, max_message, NULL);
    idt_msg_unref (msg);
    return !msg && errno == errnum;
}

static idt_msg_t *numbered_message (unsigned n, size_t size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    memset (idt_msg_alloc_payload (msg, size), (int)n, size);
    idt_msg_set_topic (msg, "zmsg.test");
    idt_msg_set_matchtag (msg, n);
    idt_msg_route_push (msg, UUID_B);
    return msg;
}

static void test_nothing (const char *endpoint)
{
    idt_msg_t *msg = numbered_message (1, 10);
    void *ctx = zmq_ctx_new ();
    void *alone = zmq_socket (ctx, ZMQ_DEALER);
    struct wire w;

    wire_init (&w, endpoint);
    ok (is_recv_error (w.router, true, MAX_MESSAGE, EAGAIN),
        "receiving from a socket without a message fails with EAGAIN");
    ok (msg_zmq_send (w.router, UUID_B, msg) < 0 && errno == EHOSTUNREACH,
        "sending to an unknown peer fails with EHOSTUNREACH");
    ok (msg_zmq_send (alone, NULL, msg) < 0 && errno == EAGAIN,
        "sending on a socket without a connection fails with EAGAIN");
    zmq_close (alone);
    zmq_ctx_term (ctx);
    wire_fini (&w);
    idt_msg_unref (msg);
}

/* Send until the queue is full. Returns the number of messages sent. */
static unsigned fill_queue (void *sock, const char *identity, size_t size)
{
    unsigned n = 0;
    int rc;

    do {
        idt_msg_t *msg = numbered_message (n, size);

        rc = msg_zmq_send (sock, identity, msg);
        idt_msg_unref (msg);
    } while (rc == 0 && ++n);
    return errno == EAGAIN ? n : 0;
}

static bool queue_holds (void *sock, bool router, unsigned count, size_t size)
{
    bool good = true;

    for (unsigned n = 0; good && n < count; n++) {
        idt_msg_t *expected = numbered_message (n, size);
        idt_msg_t *msg;

        wait_readable (sock);
        msg = msg_zmq_recv (sock, router, MAX_MESSAGE, NULL);
        good = msg && same_message (msg, expected);
        idt_msg_unref (msg);
        idt_msg_unref (expected);
    }
    return good;
}

static void test_full_queue (size_t size)
{
    idt_msg_t *hello = numbered_message (0, 1);
    unsigned up, down;
    struct wire w;

    wire_init (&w, "inproc://zmsg-test");
    msg_zmq_send (w.dealer, NULL, hello);
    idt_msg_unref (msg_zmq_recv (w.router, true, MAX_MESSAGE, NULL));
    up = fill_queue (w.dealer, NULL, size);
    ok (up > 0 && queue_holds (w.router, true, up, size),
        "a DEALER sends %u messages of %zu bytes until EAGAIN, and all arrive complete", up, size);
    down = fill_queue (w.router, UUID_A, size);
    ok (down > 0 && queue_holds (w.dealer, false, down, size),
        "a ROUTER sends messages until EAGAIN, and all arrive "
        "complete (%u)",
        down);
    wire_fini (&w);
    idt_msg_unref (hello);
}

/* EAGAIN must mean that the queue is full now, not that it was full a moment ago. */
static void test_drained_queue (void)
{
    idt_msg_t *msg = numbered_message (1, 1);
    bool good = true;
    struct wire w;
    unsigned n;

    wire_init (&w, "inproc://zmsg-test");
    for (n = 0; good && n < 20000; n++) {
        idt_msg_t *got;

        good = msg_zmq_send (w.dealer, NULL, msg) == 0;
        got = msg_zmq_recv (w.router, true, MAX_MESSAGE, NULL);
        good = good && got && same_message (got, msg);
        idt_msg_unref (got);
    }
    ok (good, "a message queue that is emptied as fast as it is filled is never full (%u messages)", n);
    wire_fini (&w);
    idt_msg_unref (msg);
}

/* --- malformed messages ---------------------------------------------------------------------- */

#define HEADER(flags) "\x8e\x01\x01" flags "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* Frames that a broken peer may send; NULL ends the list. */
static const struct broken {
    const char *what;
    const char *frames[6];
    int sizes[6];
} broken[] = {
    { .what = "an empty frame", .frames = { "" } },
    { .what = "no header", .frames = { "a.b", "{}" }, .sizes = { 3, 2 } },
    { .what = "a header too short", .frames = { HEADER ("\0") }, .sizes = { 19 } },
    { .what = "a header with wrong magic", .frames = { "\x8f\x01" }, .sizes = { 20 } },
    { .what = "a topic without its flag", .frames = { "a.b", HEADER ("\0") }, .sizes = { 3, 20 } },
    { .what = "no delimiter", .frames = { UUID_B, HEADER ("\x08") }, .sizes = { 36, 20 } },
    { .what = "a short route", .frames = { UUID_B, "", HEADER ("\x08") }, .sizes = { 35, 0, 20 } },
    { .what = "an empty topic", .frames = { "", HEADER ("\x01") }, .sizes = { 0, 20 } },
    { .what = "a part after the header", .frames = { HEADER ("\0"), "x" }, .sizes = { 20, 1 } },
};

static void send_raw (void *sock, const struct broken *b)
{
    for (int i = 0; b->frames[i]; i++) {
        char frame[64] = { 0 };

        memcpy (frame, b->frames[i], strnlen (b->frames[i], 36));
        if (b->sizes[i] == 20 && (uint8_t)b->frames[i][0] == 0x8e)
            memcpy (frame, b->frames[i], 20);
        zmq_send (sock, frame, b->sizes[i], b->frames[i + 1] ? ZMQ_SNDMORE : 0);
    }
}

static void test_malformed (void)
{
    idt_msg_t *good = numbered_message (1, 10);
    struct wire w;

    wire_init (&w, "inproc://zmsg-test");
    for (size_t i = 0; i < sizeof (broken) / sizeof (broken[0]); i++) {
        struct msg_zmq_from from = { .fd = 0 };
        idt_msg_t *msg;

        send_raw (w.dealer, &broken[i]);
        msg_zmq_send (w.dealer, NULL, good);
        msg = msg_zmq_recv (w.router, true, MAX_MESSAGE, &from);
        ok (!msg && errno == EPROTO && !strcmp (from.identity, UUID_A),
            "a message with %s fails with EPROTO, and the sender is known", broken[i].what);
        idt_msg_unref (msg);
        msg = msg_zmq_recv (w.router, true, MAX_MESSAGE, NULL);
        ok (msg && same_message (msg, good), "after a malformed message the next message arrives complete");
        idt_msg_unref (msg);
    }
    wire_fini (&w);
    idt_msg_unref (good);
}

/* Send 'count' parts that are a valid message except that there are too many. */
static void send_routes (void *sock, int count)
{
    for (int i = 0; i < count - 2; i++)
        zmq_send (sock, UUID_B, IDT_MSG_UUID_LEN, ZMQ_SNDMORE);
    zmq_send (sock, "", 0, ZMQ_SNDMORE);
    zmq_send (sock, HEADER ("\x08"), IDT_MSG_HEADER_SIZE, 0);
}

static void test_many_parts (void)
{
    const int counts[] = { 1027, 1028, 1029, 1030, 1031, 1032, 5000 }; /* 1026 is the most */
    idt_msg_t *msg = numbered_message (1, 10);
    bool good = true;
    struct wire w;
    idt_msg_t *got;

    wire_init (&w, "inproc://zmsg-test");
    for (size_t i = 0; i < sizeof (counts) / sizeof (counts[0]); i++) {
        struct msg_zmq_from from = { .identity = "" };

        send_routes (w.dealer, counts[i]);
        got = msg_zmq_recv (w.router, true, MAX_MESSAGE, &from);
        ok (!got && errno == EPROTO && !strcmp (from.identity, UUID_A),
            "a message with %d parts fails with EPROTO, and the sender is known", counts[i]);
    }
    for (int i = 1; i < IDT_MSG_MAX_ROUTES; i++)
        good = good && idt_msg_route_push (msg, UUID_A) == 0;
    msg_zmq_send (w.dealer, NULL, msg);
    got = msg_zmq_recv (w.router, true, MAX_MESSAGE, NULL);
    ok (good && got && same_message (got, msg), "a message with %d routes, topic and payload arrives complete",
        IDT_MSG_MAX_ROUTES);
    idt_msg_unref (got);
    wire_fini (&w);
    idt_msg_unref (msg);
}

static void test_limit (void)
{
    idt_msg_t *msg = numbered_message (1, 1000);
    size_t size = idt_msg_encode_size (msg);
    idt_msg_t *got;
    struct wire w;

    wire_init (&w, "inproc://zmsg-test");
    msg_zmq_send (w.dealer, NULL, msg);
    msg_zmq_send (w.dealer, NULL, msg);
    ok (is_recv_error (w.router, true, size - 1, EMSGSIZE),
        "receiving a message of one byte over the limit fails with EMSGSIZE");
    got = msg_zmq_recv (w.router, true, size, NULL);
    ok (got && same_message (got, msg), "a message whose size is exactly the limit is received");
    idt_msg_unref (got);
    wire_fini (&w);
    idt_msg_unref (msg);
}

/* --- one frame ------------------------------------------------------------------------------- */

static int count_frames (void *sock)
{
    int n = 0, more = 1;
    size_t size = sizeof (more);

    for (; more; n++) {
        if (zmq_recv (sock, NULL, 0, ZMQ_DONTWAIT) < 0)
            return -1;
        zmq_getsockopt (sock, ZMQ_RCVMORE, &more, &size);
    }
    return n;
}

static int frames_of (struct wire *w, size_t payload_size)
{
    idt_msg_t *msg = numbered_message (1, payload_size);
    int rc = msg_zmq_send_whole (w->router, UUID_A, msg);

    idt_msg_unref (msg);
    wait_readable (w->dealer);
    return rc < 0 ? -1 : count_frames (w->dealer);
}

/* Send the first 'size' bytes as a frame. Returns the receiver's errno, or 0 if it received a message. */
static int cut_frame (struct wire *w, const uint8_t *bytes, size_t size)
{
    idt_msg_t *msg;
    int errnum;

    zmq_send (w->dealer, bytes, size, 0);
    wait_readable (w->router);
    msg = msg_zmq_recv (w->router, true, MAX_MESSAGE, NULL);
    errnum = msg ? 0 : errno;
    idt_msg_unref (msg);
    return errnum;
}

static void test_whole (void)
{
    idt_msg_t *msg = numbered_message (1, 100), *bare = idt_msg_create (IDT_MSGTYPE_CONTROL);
    size_t size = idt_msg_encode_size (msg), wrong = 0;
    uint8_t bytes[512];
    struct wire w;

    wire_init (&w, "inproc://zmsg-test");
    ok (crosses (&w, bare, msg_zmq_send) && crosses (&w, bare, msg_zmq_send_whole),
        "a message that is only a header is one frame in both encodings");
    idt_msg_encode (msg, bytes, sizeof (bytes));
    for (size_t n = 0; n < size; n++)
        wrong += cut_frame (&w, bytes, n) != EPROTO;
    ok (wrong == 0 && cut_frame (&w, bytes, size) == 0,
        "a message whose frame is truncated at any length is malformed");
    ok (cut_frame (&w, bytes, size + 1) == EPROTO, "a message whose frame has a further byte is malformed");
    msg_zmq_send_whole (w.dealer, NULL, msg);
    ok (is_recv_error (w.router, true, size - 1, EMSGSIZE),
        "sending a message of one byte over the limit fails with EMSGSIZE");
    ok (frames_of (&w, ZMSG_ZERO_COPY_SIZE - 1) == 1 && frames_of (&w, ZMSG_ZERO_COPY_SIZE) == 5,
        "a payload that is sent without a copy is a frame of its own, without other parts");
    wire_fini (&w);
    idt_msg_unref (bare);
    idt_msg_unref (msg);
}

/* --- identities ------------------------------------------------------------------------------ */

static void test_identity (const char *what, const char *identity, size_t size)
{
    struct msg_zmq_from from = { .identity = "x" };
    idt_msg_t *msg = numbered_message (1, 10);
    void *ctx = zmq_ctx_new ();
    void *router = zmq_socket (ctx, ZMQ_ROUTER);
    void *dealer = zmq_socket (ctx, ZMQ_DEALER);

    if (size > 0)
        zmq_setsockopt (dealer, ZMQ_ROUTING_ID, identity, size);
    zmq_bind (router, "inproc://identity");
    zmq_connect (dealer, "inproc://identity");
    msg_zmq_send (dealer, NULL, msg);
    ok (!msg_zmq_recv (router, true, MAX_MESSAGE, &from) && errno == EPROTO && !from.identity[0],
        "a one-frame message with %s fails with EPROTO", what);
    zmq_close (dealer);
    zmq_close (router);
    zmq_ctx_term (ctx);
    idt_msg_unref (msg);
}

static void test_identities (void)
{
    char nul[IDT_MSG_UUID_LEN] = UUID_A;

    nul[20] = '\0';
    test_identity ("a peer without an identity of its own", NULL, 0);
    test_identity ("an identity of 35 characters", UUID_A, IDT_MSG_UUID_LEN - 1);
    test_identity ("an identity of 37 characters", UUID_A "x", IDT_MSG_UUID_LEN + 1);
    test_identity ("an identity with a NUL", nul, sizeof (nul));
}

/* --- whose a message is ---------------------------------------------------------------------- */

/* Answer one request of ZeroMQ's authentication (RFC 27/ZAP): accept the peer under the name 'user'. */
static void zap_welcome (void *zap, const char *user)
{
    char request_id[64];
    char part[256];
    int id_size = 0;
    int more = 1;
    size_t more_size = sizeof (more);

    for (int i = 0; more; i++) {
        int n = zmq_recv (zap, part, sizeof (part), 0);

        if (i == 1)
            memcpy (request_id, part, id_size = n);
        zmq_getsockopt (zap, ZMQ_RCVMORE, &more, &more_size);
    }
    zmq_send (zap, "1.0", 3, ZMQ_SNDMORE);
    zmq_send (zap, request_id, id_size, ZMQ_SNDMORE);
    zmq_send (zap, "200", 3, ZMQ_SNDMORE);
    zmq_send (zap, "OK", 2, ZMQ_SNDMORE);
    zmq_send (zap, user, strlen (user), ZMQ_SNDMORE);
    zmq_send (zap, "", 0, 0);
}

static void test_user (const char *endpoint, const char *user, const char *expected)
{
    void *ctx = zmq_ctx_new ();
    void *zap = zmq_socket (ctx, ZMQ_REP);
    void *router = zmq_socket (ctx, ZMQ_ROUTER);
    void *dealer = zmq_socket (ctx, ZMQ_DEALER);
    idt_msg_t *msg = numbered_message (1, 10);
    struct msg_zmq_from from = { .fd = -2 };
    idt_msg_t *got;

    zmq_bind (zap, "inproc://zeromq.zap.01");
    zmq_setsockopt (router, ZMQ_ZAP_DOMAIN, "test", 4);
    zmq_setsockopt (dealer, ZMQ_ROUTING_ID, UUID_A, IDT_MSG_UUID_LEN);
    zmq_bind (router, endpoint);
    zmq_connect (dealer, endpoint);
    zap_welcome (zap, user);
    msg_zmq_send (dealer, NULL, msg);
    wait_readable (router);
    got = msg_zmq_recv (router, true, MAX_MESSAGE, &from);
    ok (got && !strcmp (from.user, expected) && !strcmp (from.identity, UUID_A),
        "the user '%s' of a connection is reported as '%s'", user, expected);
    ok (from.fd >= 0, "the file descriptor of a connection is reported");
    zmq_close (dealer);
    zmq_close (router);
    zmq_close (zap);
    zmq_ctx_term (ctx);
    idt_msg_unref (got);
    idt_msg_unref (msg);
}

static void test_from_inproc (void)
{
    struct msg_zmq_from from = { .fd = 0 };
    idt_msg_t *msg = numbered_message (1, 10);
    idt_msg_t *got;
    struct wire w;

    wire_init (&w, "inproc://zmsg-test");
    msg_zmq_send (w.dealer, NULL, msg);
    got = msg_zmq_recv (w.router, true, MAX_MESSAGE, &from);
    ok (got && from.fd == -1 && from.user[0] == '\0', "an inproc connection has no file descriptor and no user");
    idt_msg_unref (got);
    idt_msg_unref (msg);
    wire_fini (&w);
}

/* --- large payloads --------------------------------------------------------------------------- */

static void test_large (const char *endpoint)
{
    struct wire w;
    bool good = true;

    wire_init (&w, endpoint);
    for (size_t size = ZMSG_ZERO_COPY_SIZE - 1; size <= MAX_MESSAGE / 2; size = size * 2 + 1) {
        idt_msg_t *msg = numbered_message (size & 0xff, size);
        idt_msg_t *expected = idt_msg_copy (msg, true);
        idt_msg_t *got;

        for (int i = 0; i < 3; i++)
            good = good && msg_zmq_send (w.dealer, NULL, msg) == 0;
        idt_msg_unref (msg);
        for (int i = 0; i < 3; i++) {
            wait_readable (w.router);
            got = msg_zmq_recv (w.router, true, MAX_MESSAGE, NULL);
            good = good && got && same_message (got, expected);
            idt_msg_unref (got);
        }
        idt_msg_unref (expected);
    }
    ok (good, "large payloads arrive complete over %s after the sender dropped its reference", endpoint);
    wire_fini (&w);
}

static void test_abandoned (void)
{
    idt_msg_t *msg = numbered_message (1, 100000);
    struct wire w;

    wire_init (&w, "inproc://zmsg-test");
    msg_zmq_send (w.dealer, NULL, msg);
    msg_zmq_send (w.router, UUID_B, msg);
    wire_fini (&w);
    ok (idt_msg_set_string (msg, "mine again") == 0,
        "the sender owns an undelivered message again after the sockets are closed");
    idt_msg_unref (msg);
}

/* --- threads ---------------------------------------------------------------------------------- */

#define ROUNDS 200

/* Send each message back with one more route. */
static void *echo_cb (void *dealer)
{
    for (int i = 0; i < ROUNDS; i++) {
        idt_msg_t *msg;

        wait_readable (dealer);
        msg = msg_zmq_recv (dealer, false, MAX_MESSAGE, NULL);
        idt_msg_route_push (msg, UUID_A);
        msg_zmq_send (dealer, NULL, msg);
        idt_msg_unref (msg);
    }
    return NULL;
}

static bool comes_back (void *router, unsigned n)
{
    idt_msg_t *msg = numbered_message (n, n % 2 ? 100 : ZMSG_ZERO_COPY_SIZE);
    idt_msg_t *expected = idt_msg_copy (msg, true);
    idt_msg_t *got = NULL;
    bool good = msg_zmq_send (router, UUID_A, msg) == 0;

    idt_msg_unref (msg);
    idt_msg_route_push (expected, UUID_A);
    if (good) {
        wait_readable (router);
        got = msg_zmq_recv (router, true, MAX_MESSAGE, NULL);
        good = got && same_message (got, expected);
    }
    idt_msg_unref (got);
    idt_msg_unref (expected);
    return good;
}

static void test_threads (const char *endpoint)
{
    idt_msg_t *hello = numbered_message (0, 1);
    bool good = true;
    pthread_t thread;
    struct wire w;

    wire_init (&w, endpoint);
    msg_zmq_send (w.dealer, NULL, hello);
    wait_readable (w.router);
    idt_msg_unref (msg_zmq_recv (w.router, true, MAX_MESSAGE, NULL));
    pthread_create (&thread, NULL, echo_cb, w.dealer);
    for (unsigned n = 0; n < ROUNDS; n++)
        good = comes_back (w.router, n) && good;
    pthread_join (thread, NULL);
    ok (good, "a thread sends back what it receives over %s", endpoint);
    wire_fini (&w);
    idt_msg_unref (hello);
}

int main (void)
{
    char ipc[64];

    snprintf (ipc, sizeof (ipc), "ipc://@idtree-zmsg-test-%d", getpid ());
    test_golden ("inproc://zmsg-test");
    test_golden (ipc);
    test_nothing ("inproc://zmsg-test");
    test_nothing (ipc);
    test_full_queue (10);
    test_full_queue (ZMSG_ZERO_COPY_SIZE);
    test_drained_queue ();
    test_malformed ();
    test_many_parts ();
    test_limit ();
    test_whole ();
    test_identities ();
    test_user (ipc, "rank 7", "rank 7");
    test_user (ipc, "a name of thirty-one characters", "a name of thirty-one characters");
    test_user (ipc, "a name of thirty-two characters!", "");
    test_from_inproc ();
    test_large ("inproc://zmsg-test");
    test_large (ipc);
    test_abandoned ();
    test_threads ("inproc://zmsg-test");
    test_threads (ipc);
    return done_testing ();
}
