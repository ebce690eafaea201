/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stream_test.c - messages on stream sockets: golden frames, cuts, limits, histories */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmsg/stream.h"
#include "test/msg_vectors.h"

#define MAX_MESSAGE ((size_t)1 << 20)
#define MAX_QUEUE ((size_t)4 << 20)

/* Two connected streams. */
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
           && read (pair.fd[1], buf, sizeof (buf)) == (ssize_t)frame.size && memcmp (buf, frame.data, frame.size) == 0;
    pair_fini (&pair);
    return good;
}

/* Whether the frame, cut in two at each byte, gives EAGAIN and then the message. */
static bool reads_cut_frame (const idt_msg_t *msg, struct bytes frame)
{
    struct msg_stream *s = detached (MAX_MESSAGE);
    bool good = true;

    for (size_t cut = 0; good && cut < frame.size; cut++) {
        idt_msg_t *read = NULL;

        good = msg_stream_feed (s, frame.data, cut) == 0 && is_next_error (s, EAGAIN, NULL)
               && msg_stream_feed (s, frame.data + cut, frame.size - cut) == 0 && (read = msg_stream_next (s, NULL))
               && same_message (read, msg) && is_next_error (s, EAGAIN, NULL);
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
        uint32_t magic = 0xffee0012;
        /* Only the magic number is in the byte order of the host, since a UNIX socket connects processes of one host.
         */
        memcpy (frame.data, &magic, sizeof (magic));
        idt_msg_t *msg = vector_message (json_object_get (vector, "fields"));

        ok (writes_frame (msg, frame), "the message %s is written as the golden frame", name);
        ok (reads_cut_frame (msg, frame), "the message %s is read from the golden frame, cut at any byte", name);
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
        "reading from a socket without data fails with EAGAIN");
    ok (msg_stream_flush (pair.a) == 0, "flushing an empty output queue succeeds");
    ok (msg_stream_put (pair.a, msg) == 0 && msg_stream_put (pair.a, msg) == 0 && msg_stream_flush (pair.a) == 0,
        "two messages are written to a socket");
    ok (msg_stream_fill (pair.b, &eof) > 0, "one read of a socket receives both messages");
    for (int i = 0; i < 2; i++) {
        read = msg_stream_next (pair.b, NULL);
        ok (read && same_message (read, msg) && is_numbered_message (read, 1),
            "message %d of two that were read together is received", i);
        idt_msg_unref (read);
    }
    shutdown (pair.fd[0], SHUT_WR);
    ok (msg_stream_fill (pair.b, &eof) == 0 && eof, "the end of the stream is reported");
    close (pair.fd[1]);
    pair.fd[1] = -1;
    ok (msg_stream_put (pair.a, msg) == 0 && msg_stream_flush (pair.a) < 0 && errno == EPIPE,
        "writing to a socket that the peer has closed fails with EPIPE, without a signal");
    idt_msg_unref (msg);
    pair_fini (&pair);
}

/* --- limits and malformed input ------------------------------------------------------------ */

/* Frame headers are assembled by hand here, independently of stream.c. */
static void frame_header (uint8_t *p, uint32_t size)
{
    uint32_t magic = 0xffee0012;
    uint8_t len[4] = { size >> 24, size >> 16, size >> 8, size };

    memcpy (p, &magic, sizeof (magic));
    memcpy (p + 4, len, sizeof (len));
}

/* Feed only a frame header that claims 'size' bytes. */
static struct msg_stream *claim (uint32_t size, size_t max_message)
{
    struct msg_stream *s = detached (max_message);
    uint8_t head[8];

    frame_header (head, size);
    msg_stream_feed (s, head, sizeof (head));
    return s;
}

static void test_message_limit (void)
{
    struct msg_stream *s = claim (1001, 1000);
    idt_error_t error = { "" };

    ok (is_next_error (s, EMSGSIZE, &error) && strstr (error.text, "1001") && strstr (error.text, "1000"),
        "a frame over the limit fails with EMSGSIZE before it has arrived: %s", error.text);
    ok (is_next_error (s, EMSGSIZE, NULL),
        "reading a stream after a frame over the limit fails again, without an error text");
    msg_stream_destroy (s);
    s = claim (1000, 1000);
    ok (is_next_error (s, EAGAIN, NULL), "a stream waits for a frame whose size is exactly the limit");
    msg_stream_destroy (s);
    s = claim (UINT32_MAX, UINT32_MAX);
    ok (is_next_error (s, EAGAIN, NULL), "a header that announces 4 GiB has no effect before bytes arrive");
    msg_stream_destroy (s);
}

static void test_malformed (void)
{
    struct msg_stream *s = detached (MAX_MESSAGE);
    idt_error_t error = { "" };

    msg_stream_feed (s, "\x12\xee\xff\x00\x00\x00\x00\x15", 8);
    ok (is_next_error (s, EPROTO, &error) && strstr (error.text, "0xffee0012"),
        "a frame without its magic number fails with EPROTO: %s", error.text);
    msg_stream_destroy (s);
    for (unsigned size = 0; size <= 21; size++) {
        uint8_t junk[21] = { 0 };

        s = claim (size, MAX_MESSAGE);
        msg_stream_feed (s, junk, size);
        ok (is_next_error (s, EPROTO, &error) && is_next_error (s, EPROTO, NULL),
            "a malformed frame fails with EPROTO each time: %s", error.text);
        msg_stream_destroy (s);
    }
}

static void test_input_bound (void)
{
    struct pair pair;
    uint8_t junk[4096] = { 0 };
    bool eof = false;
    ssize_t n;

    pair_init (&pair, 10000, MAX_QUEUE);
    do {
        if (write (pair.fd[1], junk, sizeof (junk)) < 0)
            break;
        n = msg_stream_fill (pair.a, &eof);
    } while (n > 0);
    ok (n < 0 && errno == ENOBUFS, "a stream whose buffer is full of messages that are not taken fails with ENOBUFS");
    ok (msg_stream_feed (pair.a, junk, 1) < 0 && errno == ENOBUFS,
        "feeding bytes into a stream whose buffer is full fails with ENOBUFS");
    pair_fini (&pair);
}

static void test_queue_limit (void)
{
    idt_msg_t *msg = numbered_message (1, 100);
    size_t size = idt_msg_encode_size (msg) + 8;
    struct msg_stream *s = msg_stream_create (-1, MAX_MESSAGE, 3 * size);
    struct msg_stream *less = msg_stream_create (-1, MAX_MESSAGE, 3 * size - 1);
    struct msg_stream *tiny = msg_stream_create (-1, MAX_MESSAGE, size - 1);

    for (int i = 0; i < 3; i++)
        ok (msg_stream_put (s, msg) == 0, "message %d fits in the queue", i);
    ok (msg_stream_put (s, msg) < 0 && errno == ENOBUFS && msg_stream_queued (s) == 3 * size,
        "one message above the limit of the output queue fails with ENOBUFS and is not added");
    ok (msg_stream_put (less, msg) == 0 && msg_stream_put (less, msg) == 0 && msg_stream_put (less, msg) < 0
            && errno == ENOBUFS,
        "an output queue that is one byte too short for three messages accepts two");
    ok (msg_stream_put (tiny, msg) < 0 && errno == ENOBUFS && msg_stream_queued (tiny) == 0,
        "a message larger than the whole output queue fails with ENOBUFS");
    msg_stream_destroy (s);
    msg_stream_destroy (less);
    msg_stream_destroy (tiny);
    idt_msg_unref (msg);
}

/* --- full sockets --------------------------------------------------------------------------- */

/* Take the messages that have arrived. Returns their number; they must begin with 'first' and be in order. */
static unsigned take_numbered (struct msg_stream *s, unsigned first, bool *good)
{
    unsigned n = first;
    idt_msg_t *msg;

    while ((msg = msg_stream_next (s, NULL))) {
        *good = *good && is_numbered_message (msg, n++);
        idt_msg_unref (msg);
    }
    *good = *good && errno == EAGAIN;
    return n - first;
}

static void test_full_socket (void)
{
    unsigned sent = 0, got = 0;
    bool good = true, eof = false;
    idt_msg_t *msg = NULL;
    struct pair pair;

    pair_init (&pair, MAX_MESSAGE, MAX_QUEUE);
    do {
        idt_msg_unref (msg);
        msg = numbered_message (sent, 5000 + sent);
    } while (msg_stream_put (pair.a, msg) == 0 && ++sent);
    idt_msg_unref (msg);
    ok (msg_stream_flush (pair.a) == 1 && msg_stream_queued (pair.a) > 0,
        "a socket that is almost full accepts a part of %u messages", sent);
    wait_until (msg_stream_queued (pair.a) == 0)
    {
        msg_stream_fill (pair.b, &eof);
        got += take_numbered (pair.b, got, &good);
        msg_stream_flush (pair.a);
    }
    while (msg_stream_fill (pair.b, &eof) > 0)
        got += take_numbered (pair.b, got, &good);
    ok (good && got == sent, "messages that a full socket accepted in parts arrive whole and in order");
    pair_fini (&pair);
}

static void test_large_message (void)
{
    idt_msg_t *msg = numbered_message (0, 900 * 1024);
    bool good = true, eof = false;
    unsigned got = 0;
    struct pair pair;

    pair_init (&pair, MAX_MESSAGE, MAX_QUEUE);
    msg_stream_put (pair.a, msg);
    wait_until (got > 0)
    {
        msg_stream_flush (pair.a);
        msg_stream_fill (pair.b, &eof);
        got = take_numbered (pair.b, 0, &good);
    }
    ok (good && got == 1, "a message larger than socket and buffers arrives");
    pair_fini (&pair);
    idt_msg_unref (msg);
}

/* The number of bytes that one flush writes, while the other end reads continuously. */
static size_t flush_once (struct pair *pair)
{
    size_t before = msg_stream_queued (pair->a);

    if (msg_stream_flush (pair->a) < 0)
        bail_out ("flush");
    return before - msg_stream_queued (pair->a);
}

static void test_pieces (void)
{
    size_t most_written = 0, most_read = 0, n;
    bool good = true, eof = false;
    unsigned got = 0;
    struct pair pair;

    pair_init (&pair, 4 * MAX_QUEUE, 4 * MAX_QUEUE);
    for (unsigned i = 0; i < 6; i++) {
        idt_msg_t *msg = numbered_message (i, i % 2 ? 100 : 2 * MAX_MESSAGE);

        good = good && msg_stream_put (pair.a, msg) == 0;
        idt_msg_unref (msg);
    }
    wait_until (got == 6)
    {
        n = flush_once (&pair);
        most_written = n > most_written ? n : most_written;
        for (ssize_t rc; (rc = msg_stream_fill (pair.b, &eof)) > 0;) {
            most_read = (size_t)rc > most_read ? (size_t)rc : most_read;
            got += take_numbered (pair.b, got, &good);
        }
    }
    ok (good, "long and short messages arrive in order");
    ok (most_written <= (size_t)1 << 20 && most_read <= (size_t)256 << 10,
        "long messages are transferred in pieces: no call writes more than %zu bytes, or reads more than %zu",
        most_written, most_read);
    pair_fini (&pair);
}

/* A long frame that is malformed; and an unfinished one. */
static void test_long_malformed (void)
{
    idt_msg_t *msg = numbered_message (0, MAX_MESSAGE / 2);
    size_t size = idt_msg_encode_size (msg), n = 0;
    uint8_t *bytes = malloc (8 + size);
    bool eof = false;
    idt_error_t err = { "" };
    struct pair pair;

    pair_init (&pair, MAX_MESSAGE, MAX_QUEUE);
    frame_header (bytes, size);
    idt_msg_encode (msg, bytes + 8, size);
    bytes[8 + size - 20] ^= 1; /* the header's magic number */
    wait_until (n == 8 + size)
    {
        ssize_t rc = write (pair.fd[0], bytes + n, 8 + size - n);

        n += rc > 0 ? (size_t)rc : 0;
        msg_stream_fill (pair.b, &eof);
    }
    while (msg_stream_fill (pair.b, &eof) > 0)
        ;
    ok (msg_stream_wants (pair.b) == 0 && is_next_error (pair.b, EPROTO, &err) && strstr (err.text, "magic"),
        "a malformed long frame is reported: %s", err.text);
    (void)!write (pair.fd[0], bytes, 100000);
    while (msg_stream_fill (pair.b, &eof) > 0)
        ;
    ok (msg_stream_wants (pair.b) == 8 + size && is_next_error (pair.b, EAGAIN, NULL),
        "a stream waits for a frame that has arrived in part, and knows its length");
    pair_fini (&pair);
    idt_msg_unref (msg);
    free (bytes);
}

/* --- histories ------------------------------------------------------------------------------- */

static uint32_t random_next (uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Mostly small messages, some larger than a buffer, and some that are written in pieces. */
static size_t random_size (uint64_t *rnd)
{
    uint32_t kind = random_next (rnd) % 64;

    return random_next (rnd) % (kind == 0 ? 800000 : kind < 4 ? 200000 : 300);
}

static bool put_random (struct msg_stream *s, unsigned *sent, uint64_t *rnd)
{
    idt_msg_t *msg = numbered_message (*sent, random_size (rnd));
    bool good = msg_stream_put (s, msg) == 0;

    idt_msg_unref (msg);
    if (good)
        ++*sent;
    return good || errno == ENOBUFS;
}

/* Write, read and take messages at random, then the rest: each message arrives once, whole, and in order. */
static bool history_holds (uint64_t rnd)
{
    unsigned sent = 0, got = 0;
    bool good = true, eof = false;
    struct pair pair;

    pair_init (&pair, 800100, 1500000);
    for (int i = 0; good && i < 300; i++) {
        unsigned what = random_next (&rnd) % 8;

        if (what < 4)
            good = put_random (pair.a, &sent, &rnd);
        else if (what < 6)
            good = msg_stream_flush (pair.a) >= 0;
        else if (what == 6)
            good = msg_stream_fill (pair.b, &eof) > 0 || errno == EAGAIN || errno == ENOBUFS;
        else
            got += take_numbered (pair.b, got, &good);
    }
    while (good && got < sent) {
        good = msg_stream_flush (pair.a) >= 0;
        msg_stream_fill (pair.b, &eof);
        got += take_numbered (pair.b, got, &good);
    }
    pair_fini (&pair);
    return good && got == sent;
}

static void test_histories (void)
{
    uint64_t seed = 0;

    while (seed < 100 && history_holds (seed))
        seed++;
    ok (seed == 100, "in 100 histories of writing and reading no message is lost, repeated or reordered");
    if (seed < 100)
        diag ("seed %llu fails", (unsigned long long)seed);
}

static void append_frame (struct bytes *all, unsigned n, size_t payload_size)
{
    idt_msg_t *msg = numbered_message (n, payload_size);
    size_t size = idt_msg_encode_size (msg);

    frame_header (all->data + all->size, size);
    idt_msg_encode (msg, all->data + all->size + 8, size);
    all->size += 8 + size;
    idt_msg_unref (msg);
}

/* Feed bytes in pieces of at most 'max_cut'. Returns whether 'count' messages are received in order. */
static bool comes_out (struct bytes all, unsigned count, unsigned max_cut)
{
    struct msg_stream *s = detached (MAX_MESSAGE);
    uint64_t rnd = max_cut;
    unsigned got = 0;
    bool good = true;

    for (size_t i = 0, n; good && i < all.size; i += n) {
        n = 1 + random_next (&rnd) % max_cut;
        n = n < all.size - i ? n : all.size - i;
        good = msg_stream_feed (s, all.data + i, n) == 0;
        got += take_numbered (s, got, &good);
    }
    msg_stream_destroy (s);
    return good && got == count;
}

static void test_cuts (void)
{
    struct bytes all = { .data = malloc (MAX_QUEUE) };
    bool good = true;

    for (unsigned n = 0; n < 50; n++)
        append_frame (&all, n, n < 49 ? 3 * n : 100000);
    for (unsigned max_cut = 1; good && max_cut < 300000; max_cut *= 3)
        good = comes_out (all, 50, max_cut);
    ok (good, "50 messages are received from pieces of any size");
    free (all.data);
}

int main (void)
{
    test_golden ();
    test_connection ();
    test_message_limit ();
    test_malformed ();
    test_input_bound ();
    test_queue_limit ();
    test_full_socket ();
    test_large_message ();
    test_pieces ();
    test_long_malformed ();
    test_cuts ();
    test_histories ();
    return done_testing ();
}
