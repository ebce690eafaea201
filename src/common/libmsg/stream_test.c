/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stream_test.c - messages on stream sockets: golden frames, cuts, limits, full sockets, histories */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmsg/stream.h"
#include "libmsg/vectors.h"

#define MAX_MESSAGE ((size_t)1 << 20)
#define MAX_QUEUE ((size_t)4 << 20)

/* Two streams that talk to each other. */
struct pair {
    int fd[2];
    struct msg_stream *a;
    struct msg_stream *b;
};

static void pair_init (struct pair *pair, size_t max_message, size_t max_queue)
{
    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair->fd) < 0)
        bail_out ("socketpair");
    pair->a = msg_stream_create (pair->fd[0], max_message, max_queue);
    pair->b = msg_stream_create (pair->fd[1], max_message, max_queue);
}

static void pair_fini (struct pair *pair)
{
    msg_stream_destroy (pair->a);
    msg_stream_destroy (pair->b);
    close (pair->fd[0]);
    close (pair->fd[1]);
}

static struct msg_stream *detached (size_t max_message)
{
    return msg_stream_create (-1, max_message, MAX_QUEUE);
}

static bool is_next_error (struct msg_stream *s, int errnum, idt_error_t *errp)
{
    idt_msg_t *msg;

    errno = 0;
    msg = msg_stream_next (s, errp);
    idt_msg_unref (msg);
    return !msg && errno == errnum;
}

/* A request whose payload is 'size' bytes that depend on 'n', its matchtag. */
static idt_msg_t *numbered_message (unsigned n, size_t size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    uint8_t *p = idt_msg_alloc_payload (msg, size);

    idt_msg_set_topic (msg, "stream.test");
    idt_msg_set_matchtag (msg, n);
    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)(n + i);
    return msg;
}

static bool is_numbered_message (const idt_msg_t *msg, unsigned n)
{
    const void *data;
    const uint8_t *p;
    size_t size;

    if (idt_msg_matchtag (msg) != n || idt_msg_payload (msg, &data, &size) < 0)
        return false;
    p = data;
    for (size_t i = 0; i < size; i++) {
        if (p[i] != (uint8_t)(n + i))
            return false;
    }
    return true;
}

/* --- golden frames ------------------------------------------------------------------------ */

static bool writes_frame (const idt_msg_t *msg, struct bytes frame)
{
    struct pair pair;
    uint8_t buf[4096];
    bool good;

    pair_init (&pair, MAX_MESSAGE, MAX_QUEUE);
    good = msg_stream_put (pair.a, msg) == 0 && msg_stream_queued (pair.a) == frame.size
           && msg_stream_flush (pair.a) == 0 && msg_stream_queued (pair.a) == 0
           && read (pair.fd[1], buf, sizeof (buf)) == (ssize_t)frame.size
           && memcmp (buf, frame.data, frame.size) == 0;
    pair_fini (&pair);
    return good;
}

/* Whether each cut of the frame in two gives EAGAIN, then the message. */
static bool reads_cut_frame (const idt_msg_t *msg, struct bytes frame)
{
    struct msg_stream *s = detached (MAX_MESSAGE);
    bool good = true;

    for (size_t cut = 0; good && cut < frame.size; cut++) {
        idt_msg_t *read = NULL;

        good = msg_stream_feed (s, frame.data, cut) == 0 && is_next_error (s, EAGAIN, NULL)
               && msg_stream_feed (s, frame.data + cut, frame.size - cut) == 0
               && (read = msg_stream_next (s, NULL)) && same_message (read, msg)
               && is_next_error (s, EAGAIN, NULL);
        idt_msg_unref (read);
    }
    msg_stream_destroy (s);
    return good;
}

static void test_golden (void)
{
    json_t *vectors = vectors_load ("rfc3-messages.json");
    json_t *vector;
    size_t i;

    json_array_foreach (vectors, i, vector) {
        const char *name = json_string_value (json_object_get (vector, "name"));
        struct bytes frame = bytes_get (vector, "socket_frame_hex");
        idt_msg_t *msg = vector_message (json_object_get (vector, "fields"));

        ok (writes_frame (msg, frame), "%s is written as the golden frame", name);
        ok (reads_cut_frame (msg, frame), "%s is read from the golden frame, cut anywhere", name);
        idt_msg_unref (msg);
        free (frame.data);
    }
    json_decref (vectors);
}

/* --- life of a connection ------------------------------------------------------------------ */

static void test_connection (void)
{
    struct pair pair;
    idt_msg_t *msg = numbered_message (1, 100);
    idt_msg_t *read;
    bool eof = false;

    pair_init (&pair, MAX_MESSAGE, MAX_QUEUE);
    ok (msg_stream_fill (pair.b, &eof) < 0 && errno == EAGAIN && !eof,
        "filling from a quiet socket is EAGAIN");
    ok (msg_stream_flush (pair.a) == 0, "flushing nothing is nothing");
    ok (msg_stream_put (pair.a, msg) == 0 && msg_stream_put (pair.a, msg) == 0
            && msg_stream_flush (pair.a) == 0,
        "two messages go out");
    ok (msg_stream_fill (pair.b, &eof) > 0, "one read takes both");
    for (int i = 0; i < 2; i++) {
        read = msg_stream_next (pair.b, NULL);
        ok (read && same_message (read, msg) && is_numbered_message (read, 1), "message %d comes out", i);
        idt_msg_unref (read);
    }
    shutdown (pair.fd[0], SHUT_WR);
    ok (msg_stream_fill (pair.b, &eof) == 0 && eof, "the end of the stream is told");
    close (pair.fd[1]);
    pair.fd[1] = -1;
    ok (msg_stream_put (pair.a, msg) == 0 && msg_stream_flush (pair.a) < 0 && errno == EPIPE,
        "writing to a peer that is gone is EPIPE, without a signal");
    idt_msg_unref (msg);
    pair_fini (&pair);
}

int main (void)
{
    test_golden ();
    test_connection ();
    return done_testing ();
}
