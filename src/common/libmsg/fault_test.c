/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fault_test.c - each allocation or send fails in turn; and how much work operations need
 *
 * Linked with --wrap for the functions below. Allocation number 'fail_at' (from 0) fails. Each case runs with fail_at =
 * 0, 1, 2, ... until it succeeds. The address sanitizer finds leaks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

#include "libmsg/stream.h"
#include "libzmqutil/zmsg.h"
#include "test/tap.h"

#define UUID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UUID_B "bbbbbbbb-0000-4000-8000-000000000002"

static const uint32_t frame_magic = 0xffee0012;

static unsigned fail_at = -1u; /* counts down; the call that finds it 0 fails */
static size_t largest;         /* the largest number of bytes that one call requested */

static bool fails (size_t size)
{
    if (size > largest)
        largest = size;
    if (fail_at == -1u || fail_at-- > 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc (size_t size);
void *__wrap_malloc (size_t size);
void *__wrap_malloc (size_t size)
{
    return fails (size) ? NULL : __real_malloc (size);
}

void *__real_calloc (size_t count, size_t size);
void *__wrap_calloc (size_t count, size_t size);
void *__wrap_calloc (size_t count, size_t size)
{
    return fails (count * size) ? NULL : __real_calloc (count, size);
}

int __real_zmq_msg_init_size (zmq_msg_t *frame, size_t size);
int __wrap_zmq_msg_init_size (zmq_msg_t *frame, size_t size);
int __wrap_zmq_msg_init_size (zmq_msg_t *frame, size_t size)
{
    return fails (size) ? -1 : __real_zmq_msg_init_size (frame, size);
}

int __real_zmq_msg_init_data (zmq_msg_t *, void *, size_t, zmq_free_fn *, void *);
int __wrap_zmq_msg_init_data (zmq_msg_t *, void *, size_t, zmq_free_fn *, void *);
int __wrap_zmq_msg_init_data (zmq_msg_t *frame, void *data, size_t size, zmq_free_fn *f, void *arg)
{
    return fails (size) ? -1 : __real_zmq_msg_init_data (frame, data, size, f, arg);
}

/* --- a failing connection ------------------------------------------------------------------- */

static unsigned break_at = -1u; /* the frame that cannot be sent: EAGAIN */
static unsigned break_times;    /* the number of failures in a row */

int __real_zmq_msg_send (zmq_msg_t *frame, void *sock, int flags);
int __wrap_zmq_msg_send (zmq_msg_t *frame, void *sock, int flags);
int __wrap_zmq_msg_send (zmq_msg_t *frame, void *sock, int flags)
{
    if (break_at == 0 && break_times > 0) {
        break_times--;
        errno = EAGAIN;
        return -1;
    }
    if (break_at > 0 && break_at != -1u)
        break_at--;
    return __real_zmq_msg_send (frame, sock, flags);
}

/* --- a socket that accepts few bytes, and a count of copied bytes ------------------------------ */

static size_t send_takes; /* bytes that the next send accepts; 0: the socket is full */
static size_t copied;     /* bytes */

ssize_t __wrap_send (int fd, const void *data, size_t size, int flags);
ssize_t __wrap_send (int fd, const void *data, size_t size, int flags)
{
    size_t n = size < send_takes ? size : send_takes;

    send_takes = 0;
    if (n > 0)
        return n;
    errno = EAGAIN;
    return -1;
}

void *__real_memcpy (void *to, const void *from, size_t size);
void *__wrap_memcpy (void *to, const void *from, size_t size);
void *__wrap_memcpy (void *to, const void *from, size_t size)
{
    copied += size;
    return __real_memcpy (to, from, size);
}

/* --- cases ----------------------------------------------------------------------------------- */

/* A case works on a new request that has all parts, and returns 0 or -1. */
static idt_msg_t *full_request (size_t payload_size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, "a.b");
    memset (idt_msg_alloc_payload (msg, payload_size), 'x', payload_size);
    for (int i = 0; i < 4; i++)
        idt_msg_route_push (msg, UUID_A);
    return msg;
}

static int result (idt_msg_t *msg)
{
    idt_msg_unref (msg);
    return msg ? 0 : -1;
}

static int try_create (idt_msg_t *msg)
{
    return result (idt_msg_create (IDT_MSGTYPE_EVENT));
}

static int try_copy (idt_msg_t *msg)
{
    return result (idt_msg_copy (msg, true));
}

static int try_respond (idt_msg_t *msg)
{
    return result (idt_msg_respond (msg, 0));
}

static const char long_text[] =
    "a text that does not fit into the message itself, because topic or payload were set before, has an allocation "
    "of its own: "
    "this text is long enough for that";

static int try_topic (idt_msg_t *msg)
{
    return idt_msg_set_topic (msg, long_text);
}

static int try_payload (idt_msg_t *msg)
{
    return idt_msg_set_payload (msg, long_text, sizeof (long_text));
}

static int try_string (idt_msg_t *msg)
{
    return idt_msg_set_string (msg, long_text);
}

static int try_alloc_payload (idt_msg_t *msg)
{
    return idt_msg_alloc_payload (msg, sizeof (long_text)) ? 0 : -1;
}

static int try_route (idt_msg_t *msg)
{
    return idt_msg_route_push (msg, UUID_B);
}

static int try_route_again (idt_msg_t *msg)
{
    idt_msg_route_pop (msg);
    return idt_msg_route_push (msg, UUID_A);
}

static int try_decode (idt_msg_t *msg)
{
    uint8_t buf[10000];
    ssize_t size = idt_msg_encode (msg, buf, sizeof (buf));

    return result (idt_msg_decode (buf, size));
}

static int try_stream (idt_msg_t *msg)
{
    struct msg_stream *s = msg_stream_create (-1, 10000, 10000);
    uint8_t buf[10000] = { 0 };
    ssize_t size = idt_msg_encode (msg, buf + 8, sizeof (buf) - 8);
    int rc = -1;

    memcpy (buf, &frame_magic, sizeof (frame_magic));
    buf[6] = size >> 8;
    buf[7] = size;
    if (s && msg_stream_put (s, msg) == 0 && msg_stream_feed (s, buf, size + 8) == 0)
        rc = result (msg_stream_next (s, NULL));
    msg_stream_destroy (s);
    return rc;
}

/* Send it to a ROUTER, and back to its sender. */
static int try_zmq (idt_msg_t *msg)
{
    void *ctx = zmq_ctx_new ();
    void *router = zmq_socket (ctx, ZMQ_ROUTER);
    void *dealer = zmq_socket (ctx, ZMQ_DEALER);
    idt_msg_t *got = NULL;
    int rc = -1;

    zmq_setsockopt (dealer, ZMQ_ROUTING_ID, UUID_A, IDT_MSG_UUID_LEN);
    zmq_bind (router, "inproc://fault");
    zmq_connect (dealer, "inproc://fault");
    if (msg_zmq_send (dealer, NULL, msg) == 0 && (got = msg_zmq_recv (router, true, 1 << 20, NULL))
        && msg_zmq_send (router, UUID_A, got) == 0)
        rc = result (msg_zmq_recv (dealer, false, 1 << 20, NULL));
    idt_msg_unref (got);
    int saved_errno = errno;
    zmq_close (dealer);
    zmq_close (router);
    zmq_ctx_term (ctx);
    errno = saved_errno;
    return rc;
}

static int try_zmq_many_routes (idt_msg_t *msg)
{
    unsigned saved = fail_at;

    fail_at = -1u;
    for (int i = 0; i < 60; i++)
        idt_msg_route_push (msg, UUID_B);
    fail_at = saved;
    return try_zmq (msg);
}

static const struct {
    const char *name;
    int (*try) (idt_msg_t *msg);
    size_t payload_size;
    bool changes; /* whether success changes the message */
    unsigned allocations;
} cases[] = {
    { "idt_msg_create", try_create, 3, false, 1 },
    { "idt_msg_copy", try_copy, 3, false, 1 },
    { "idt_msg_respond", try_respond, 3, false, 1 },
    { "idt_msg_set_topic", try_topic, 3, true, 1 },
    { "idt_msg_set_payload", try_payload, 3, true, 1 },
    { "idt_msg_set_string", try_string, 3, true, 1 },
    { "idt_msg_alloc_payload", try_alloc_payload, 3, true, 1 },
    { "idt_msg_route_push", try_route, 3, true, 1 },
    { "idt_msg_route_push after a pop", try_route_again, 3, false, 0 },
    { "idt_msg_decode", try_decode, 300, false, 1 },
    { "a stream", try_stream, 300, false, 4 },
    { "ZeroMQ, small", try_zmq, 3, false, 19 },
    { "ZeroMQ, zero copy", try_zmq, ZMSG_ZERO_COPY_SIZE, false, 19 },
    { "ZeroMQ, many routes", try_zmq_many_routes, 3, true, 139 },
};

/* --- running out of memory ------------------------------------------------------------------- */

static bool same_bytes (const idt_msg_t *a, const idt_msg_t *b)
{
    size_t size = idt_msg_encode_size (a);
    uint8_t *pa = malloc (size), *pb = malloc (size);
    bool same = size == idt_msg_encode_size (b);

    if (same) {
        idt_msg_encode (a, pa, size);
        idt_msg_encode (b, pb, size);
        same = memcmp (pa, pb, size) == 0;
    }
    free (pa);
    free (pb);
    return same;
}

static void test_memory (int i)
{
    unsigned n = 0;
    bool good = true;
    int rc;

    do {
        idt_msg_t *msg = full_request (cases[i].payload_size);
        idt_msg_t *before = idt_msg_copy (msg, true);

        errno = 0;
        fail_at = n;
        rc = cases[i].try (msg);
        if (rc < 0)
            good = good && errno == ENOMEM;
        fail_at = -1u;
        if ((rc < 0 && cases[i].try != try_zmq_many_routes) || !cases[i].changes)
            good = good && same_bytes (msg, before);
        idt_msg_unref (before);
        idt_msg_unref (msg);
    } while (rc < 0 && n++ < 1000);
    ok (good, "%s: each failed allocation gives ENOMEM and changes nothing", cases[i].name);
    ok (n == cases[i].allocations, "the call %s needs exactly %u allocations", cases[i].name, n);
}

/* The caller did not initialize the error text. */
static void test_reason (void)
{
    struct msg_stream *s = msg_stream_create (-1, 10000, 0);
    idt_msg_t *msg = full_request (300);
    uint8_t frame[8 + 1000] = { 0 };
    ssize_t size = idt_msg_encode (msg, frame + 8, sizeof (frame) - 8);
    idt_error_t err;

    memcpy (frame, &frame_magic, sizeof (frame_magic));
    frame[6] = size >> 8;
    frame[7] = size;
    msg_stream_feed (s, frame, 8 + size);
    memset (err.text, 0xff, sizeof (err.text));
    err.text[sizeof (err.text) - 1] = '\0';
    fail_at = 0;
    idt_msg_t *got = msg_stream_next (s, &err);
    int errnum = errno;
    fail_at = -1u;
    ok (!got && errnum == ENOMEM && strstr (err.text, strerror (ENOMEM)),
        "the error text of a stream says that memory for a message is missing");
    got = msg_stream_next (s, &err);
    ok (got != NULL, "a message that could not be read for lack of memory can be read later");
    idt_msg_unref (got);
    idt_msg_unref (msg);
    msg_stream_destroy (s);
}

/* --- claimed sizes do not allocate memory ----------------------------------------------------- */

static void test_claims (void)
{
    struct msg_stream *s = msg_stream_create (-1, UINT32_MAX, 10000);
    uint8_t frame[8 + 26] = { [7] = 26, 255, 0xff, 0xff, 0xff, 0xff, 20, 0x8e, 1, 1, 2 };

    memcpy (frame, &frame_magic, sizeof (frame_magic));
    largest = 0;
    idt_msg_unref (idt_msg_decode (frame + 8, 26));
    ok (largest < 26 + 512, "a frame of 26 bytes with a part of 4 GiB makes the decoder allocate only %zu bytes",
        largest);
    largest = 0;
    memset (frame + 4, 0xff, 4);
    msg_stream_feed (s, frame, sizeof (frame));
    idt_msg_unref (msg_stream_next (s, NULL));
    ok (largest <= 64 * 1024,
        "a frame of 4 GiB of which 26 bytes have arrived makes the stream allocate only %zu bytes", largest);
    msg_stream_destroy (s);
}

/* --- work is linear --------------------------------------------------------------------------- */

/* A queue that stays nearly full: each flush writes one message. */
static void test_linear_output (void)
{
    struct msg_stream *s = msg_stream_create (-1, 1 << 20, 65500);
    idt_msg_t *msg = full_request (50);
    size_t size = idt_msg_encode_size (msg) + 8;
    size_t put = 0;

    copied = 0;
    while (msg_stream_put (s, msg) == 0)
        put += size;
    for (int i = 0; i < 5000; i++) {
        send_takes = size;
        msg_stream_flush (s);
        if (msg_stream_put (s, msg) == 0)
            put += size;
    }
    ok (copied / put <= 4, "each byte of a long output queue is copied at most 4 times");
    diag ("%zu bytes were put, %zu copied", put, copied);
    msg_stream_destroy (s);
    idt_msg_unref (msg);
}

/* A frame that arrives in small pieces after another one. */
static void test_linear_input (void)
{
    struct msg_stream *s = msg_stream_create (-1, 4 << 20, 0);
    uint8_t piece[1000] = { 0 };
    size_t fed = 0;

    memcpy (piece, &frame_magic, sizeof (frame_magic));
    memcpy (piece + 4, "\x00\x40\x00\x00", 4);
    copied = 0;
    do {
        msg_stream_feed (s, piece, sizeof (piece));
        fed += sizeof (piece);
    } while (!msg_stream_next (s, NULL) && errno == EAGAIN);
    ok (fed >= (4 << 20) && copied / fed <= 4, "each byte of a long received frame is copied at most 4 times");
    diag ("%zu bytes were fed, %zu copied", fed, copied);
    msg_stream_destroy (s);
}

/* --- whole messages or none -------------------------------------------------------------------- */

/* If a frame of a message cannot be sent, the next message is not mistaken for its rest. */
static void test_broken_send (void)
{
    void *ctx = zmq_ctx_new ();
    void *router = zmq_socket (ctx, ZMQ_ROUTER);
    void *dealer = zmq_socket (ctx, ZMQ_DEALER);
    idt_msg_t *msg = full_request (3);
    const unsigned frames = 4 + 1 + 1 + 1 + 1;

    zmq_setsockopt (dealer, ZMQ_ROUTING_ID, UUID_A, IDT_MSG_UUID_LEN);
    zmq_bind (router, "inproc://fault");
    zmq_connect (dealer, "inproc://fault");
    for (unsigned i = 0; i + 1 < frames; i++) { /* after the last frame no message is incomplete */
        idt_msg_t *got;
        int rc;

        break_at = i;
        break_times = i == 0 ? 2 : 1; /* the first frame is tried twice */
        rc = msg_zmq_send (dealer, NULL, msg);
        break_at = -1u;
        ok (rc < 0 && errno == EAGAIN, "a message whose frame %u cannot be sent fails with EAGAIN", i);
        msg_zmq_send (dealer, NULL, msg);
        wait_until ((got = msg_zmq_recv (router, true, 1 << 20, NULL)) || errno != EPROTO);
        ok (got && same_bytes (got, msg), "after a message that was sent in part, the next message arrives whole");
        idt_msg_unref (got);
    }
    zmq_close (dealer);
    zmq_close (router);
    zmq_ctx_term (ctx);
    idt_msg_unref (msg);
}

int main (void)
{
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        test_memory (i);
    test_reason ();
    test_claims ();
    test_linear_output ();
    test_linear_input ();
    test_broken_send ();
    return done_testing ();
}
