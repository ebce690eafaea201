/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-msg.c - the time of message operations: in memory, on a stream socket, on a ZeroMQ socket
 *
 * Times are nanoseconds for one message, compared with the bare calls that move the same bytes (malloc, memcpy and
 * free; write and read; ZeroMQ frames). The message is a request with a topic, two routes and a payload.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "libmsg/stream.h"
#include "libzmqutil/zmsg.h"
#include "loops.h"

#define ROUNDS 40 /* rounds of a turn */
#define TURNS 12
#define BATCH 64 /* messages that are written to a socket before they are read */
#define UUID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UUID_B "bbbbbbbb-0000-4000-8000-000000000002"
#define LIMIT ((size_t)64 << 20)

struct bed;

typedef int (*work_f) (struct bed *bed); /* returns the number of messages that were processed */

/* The data that the cases use. */
struct bed {
    work_f work; /* the work of the present case, and its repetitions in a round */
    int repeat;
    idt_msg_t *msg;
    uint8_t *bytes; /* the encoded message */
    size_t size;
    uint8_t *buf; /* space for a batch of messages */
    int fd[2];
    struct msg_stream *out;
    struct msg_stream *in;
    void *zmq;
    void *dealer;
    void *router;
};

static void must (bool good, const char *what)
{
    if (!good) {
        perror (what);
        exit (EXIT_FAILURE);
    }
}

/* --- memory ------------------------------------------------------------------------------- */

static int bare_copy (struct bed *bed)
{
    void *volatile p = malloc (bed->size);

    memcpy (p, bed->bytes, bed->size);
    free (p);
    return 1;
}

static int decode (struct bed *bed)
{
    idt_msg_unref (idt_msg_decode (bed->bytes, bed->size));
    return 1;
}

static int encode (struct bed *bed)
{
    return idt_msg_encode (bed->msg, bed->buf, bed->size) > 0;
}

static int hop (struct bed *bed)
{
    idt_msg_t *msg = idt_msg_decode (bed->bytes, bed->size);

    idt_msg_route_push (msg, UUID_A);
    idt_msg_encode (msg, bed->buf, bed->size + 37);
    idt_msg_unref (msg);
    return 1;
}

static int respond (struct bed *bed)
{
    idt_msg_t *msg = idt_msg_respond (bed->msg, 0);

    idt_msg_set_payload (msg, "0123456789ab", 12);
    idt_msg_encode (msg, bed->buf, bed->size);
    idt_msg_unref (msg);
    return 1;
}

/* --- stream socket -------------------------------------------------------------------------- */

static int bare_stream (struct bed *bed, int count)
{
    ssize_t left = count * (bed->size + 8);

    must (write (bed->fd[0], bed->buf, left) == left, "write");
    while (left > 0)
        left -= read (bed->fd[1], bed->buf, left);
    return count;
}

static int stream (struct bed *bed, int count)
{
    bool eof = false;
    int got = 0;

    for (int i = 0; i < count; i++)
        must (msg_stream_put (bed->out, bed->msg) == 0, "msg_stream_put");
    must (msg_stream_flush (bed->out) == 0, "msg_stream_flush");
    while (got < count) {
        idt_msg_t *msg;

        msg_stream_fill (bed->in, &eof);
        while ((msg = msg_stream_next (bed->in, NULL))) {
            got++;
            idt_msg_unref (msg);
        }
    }
    return count;
}

static int bare_stream_one (struct bed *bed)
{
    return bare_stream (bed, 1);
}

static int bare_stream_batch (struct bed *bed)
{
    return bare_stream (bed, BATCH);
}

static int stream_one (struct bed *bed)
{
    return stream (bed, 1);
}

static int stream_batch (struct bed *bed)
{
    return stream (bed, BATCH);
}

/* --- ZeroMQ --------------------------------------------------------------------------------- */

/* Send a message with the same parts: two routes, delimiter, topic, payload, header. */
static int bare_zmq (struct bed *bed)
{
    size_t payload_size;

    idt_msg_payload (bed->msg, NULL, &payload_size);
    const size_t sizes[] = { 36, 36, 0, strlen (idt_msg_topic (bed->msg)), payload_size, 20 };
    for (int i = 0; i < BATCH; i++) {
        for (int j = 0; j < 6; j++)
            zmq_send (bed->dealer, bed->bytes, sizes[j], ZMQ_DONTWAIT | (j < 5 ? ZMQ_SNDMORE : 0));
    }
    for (int i = 0; i < BATCH * 7; i++)
        zmq_recv (bed->router, bed->buf, bed->size, ZMQ_DONTWAIT);
    return BATCH;
}

static int over_zmq (struct bed *bed)
{
    struct msg_zmq_from from;

    for (int i = 0; i < BATCH; i++)
        must (msg_zmq_send (bed->dealer, NULL, bed->msg) == 0, "msg_zmq_send");
    for (int i = 0; i < BATCH; i++) {
        idt_msg_t *msg = msg_zmq_recv (bed->router, true, LIMIT, &from);

        must (msg != NULL, "msg_zmq_recv");
        idt_msg_unref (msg);
    }
    return BATCH;
}

/* --- all of it ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    work_f work;
    work_f bare;
    int repeat;
    int messages; /* messages of one call */
} cases[] = {
    { "decode", decode, bare_copy, 400, 1 },
    { "encode", encode, bare_copy, 400, 1 },
    { "decode, push a route, encode", hop, bare_copy, 400, 1 },
    { "respond, set payload, encode", respond, bare_copy, 400, 1 },
    { "stream, one at a time", stream_one, bare_stream_one, 100, 1 },
    { "stream, 64 together", stream_batch, bare_stream_batch, 4, BATCH },
    { "ZeroMQ inproc, 64 together", over_zmq, bare_zmq, 2, BATCH },
};

#define CASES (sizeof (cases) / sizeof (cases[0]))

static void take_case (void *arg, int i)
{
    struct bed *bed = arg;

    bed->work = i % 2 ? cases[i / 2].bare : cases[i / 2].work;
    bed->repeat = cases[i / 2].repeat;
}

static size_t repeat (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    for (int i = 0; i < bed->repeat; i++)
        done += bed->work (bed);
    return done;
}

/* Measure each case and its bare calls, in turn. */
static void measure (struct bed *bed, size_t payload_size)
{
    struct loop loops[2 * CASES] = { 0 };

    for (size_t i = 0; i < 2 * CASES; i++)
        loops[i] = (struct loop){
            .name = cases[i / 2].name,
            .work = repeat,
            .prepare = take_case,
            .arg = (int)i,
            .count = (size_t)cases[i / 2].repeat * cases[i / 2].messages,
            .rounds = ROUNDS,
        };
    loops_run (loops, 2 * CASES, bed, TURNS);
    for (size_t i = 0; i < CASES; i++)
        line_print (&(struct line){
            .subject = "messages",
            .name = cases[i].name,
            .unit = "ns",
            .figures = &loops[2 * i].figures,
            .bare = &loops[2 * i + 1].figures,
            .limit_of = "the bare calls",
            .size = payload_size,
            .size_of = "bytes",
        });
    for (size_t i = 0; i < 2 * CASES; i++)
        figures_fini (&loops[i].figures);
}

static void bed_init (struct bed *bed, size_t payload_size)
{
    bed->msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    idt_msg_set_topic (bed->msg, "fluid.block");
    memset (idt_msg_alloc_payload (bed->msg, payload_size), 'p', payload_size);
    idt_msg_route_push (bed->msg, UUID_A);
    idt_msg_route_push (bed->msg, UUID_B);
    bed->size = idt_msg_encode_size (bed->msg);
    bed->bytes = malloc (bed->size);
    bed->buf = calloc (BATCH, bed->size + 64);
    idt_msg_encode (bed->msg, bed->bytes, bed->size);
    must (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, bed->fd) == 0, "socketpair");
    bed->out = msg_stream_create (bed->fd[0], LIMIT, LIMIT);
    bed->in = msg_stream_create (bed->fd[1], LIMIT, LIMIT);
    bed->zmq = zmq_ctx_new ();
    bed->router = zmq_socket (bed->zmq, ZMQ_ROUTER);
    bed->dealer = zmq_socket (bed->zmq, ZMQ_DEALER);
    zmq_setsockopt (bed->dealer, ZMQ_ROUTING_ID, UUID_A, IDT_MSG_UUID_LEN);
    zmq_bind (bed->router, "inproc://bench");
    zmq_connect (bed->dealer, "inproc://bench");
}

static void bed_fini (struct bed *bed)
{
    zmq_close (bed->dealer);
    zmq_close (bed->router);
    zmq_ctx_term (bed->zmq);
    msg_stream_destroy (bed->out);
    msg_stream_destroy (bed->in);
    close (bed->fd[0]);
    close (bed->fd[1]);
    free (bed->buf);
    free (bed->bytes);
    idt_msg_unref (bed->msg);
}

int main (void)
{
    const size_t payload_sizes[] = { 12, 1000 };

    for (size_t i = 0; i < sizeof (payload_sizes) / sizeof (payload_sizes[0]); i++) {
        struct bed bed = { 0 };

        bed_init (&bed, payload_sizes[i]);
        measure (&bed, payload_sizes[i]);
        bed_fini (&bed);
    }
    return 0;
}
