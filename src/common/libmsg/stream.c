/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stream.c - messages on a non-blocking stream socket (protocol.md section 2)
 *
 * A frame is: 4 bytes magic 0xffee0012 in host byte order, big-endian u32 size of the rest, the message's parts
 * (codec.c).
 *
 * All work is linear in the number of bytes that pass. The unread bytes of a buffer move to its start only if at least
 * as many bytes were read before them. Otherwise the buffer doubles. A buffer grows with the bytes that have arrived,
 * not with the size that a frame claims to have.
 *
 * A frame that is longer than a buffer is read directly into the memory of its message. The kernel allocates this
 * memory only as bytes are written to it. A long payload is written directly from its message. So long frames and
 * payloads are never copied or accessed as a whole: one call reads or writes a limited number of bytes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmsg/message.h"
#include "libmsg/stream.h"
#include "libutil/minmax.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"

#define FRAME_MAGIC UINT32_C (0xffee0012)
#define FRAME_HEADER_SIZE 8

#define BUF_MIN_SIZE MSG_STREAM_BUFFER
#define BUF_KEEP_SIZE ((size_t)1 << 20) /* bytes; a buffer that is larger is freed when it is empty */
#define READ_MIN_SIZE ((size_t)16 << 10)
#define WRITE_SIZE ((size_t)96 << 10)  /* enough bytes for one write */
#define LONG_SIZE ((size_t)256 << 10)  /* bytes of a long message in one read or write */
#define FLUSH_SIZE ((size_t)512 << 10) /* bytes of one flush; then other streams have their turn */

/* Unread bytes are data[head] ... data[tail - 1]. */
struct buf {
    uint8_t *data;
    size_t size;
    size_t head;
    size_t tail;
    struct msg_spare *spare; /* free list of buffers; NULL: none */
};

/* A message that is read or written in pieces. If 'msg' is NULL, there is no such message. */
struct long_message {
    struct idt_msg *msg;
    size_t size; /* bytes of the frame without its header, or of the payload */
    size_t done;
};

struct msg_stream {
    int fd;
    size_t max_message;
    size_t max_queue;
    struct msg_pool *pool; /* memory of received messages; NULL: malloc () */
    struct buf in;
    struct long_message long_in; /* its beginning was in 'in'; 'in' stays empty until 'long_in' is whole */
    struct fifo messages;        /* output that is not encoded yet */
    size_t messages_size;        /* encoded size of 'messages' and of the rest of 'long_out' */
    struct buf out;
    struct long_message long_out; /* written after 'out', and before 'messages' */
};

/* --- buffer ------------------------------------------------------------------------------- */

static size_t buf_used (const struct buf *b)
{
    return b->tail - b->head;
}

static void buf_give_back (struct buf *b)
{
    if (b->size == BUF_MIN_SIZE && b->spare && b->spare->count < MSG_SPARE_MAX)
        b->spare->data[b->spare->count++] = b->data;
    else
        free (b->data);
    b->data = NULL;
    b->size = 0;
}

static uint8_t *buf_alloc (struct buf *b, size_t size)
{
    if (size == BUF_MIN_SIZE && b->spare && b->spare->count > 0)
        return b->spare->data[--b->spare->count];
    return malloc (size);
}

static int buf_grow (struct buf *b, size_t room)
{
    size_t used = buf_used (b);
    size_t size = b->size > 0 ? 2 * b->size : BUF_MIN_SIZE;
    uint8_t *data;

    if (size < used + room)
        size = used + room;
    if (!(data = buf_alloc (b, size)))
        return -1;
    if (used > 0)
        memcpy (data, b->data + b->head, used);
    buf_give_back (b);
    b->data = data;
    b->size = size;
    b->head = 0;
    b->tail = used;
    return 0;
}

/* Make space for at least 'room' more bytes at the tail. */
static int buf_reserve (struct buf *b, size_t room)
{
    size_t used = buf_used (b);

    if (b->size - b->tail >= room)
        return 0;
    if (b->head < used || b->size - used < room)
        return buf_grow (b, room);
    if (used > 0)
        memcpy (b->data, b->data + b->head, used);
    b->head = 0;
    b->tail = used;
    return 0;
}

static void buf_consume (struct buf *b, size_t size)
{
    assert (size <= buf_used (b));
    b->head += size;
    if (b->head < b->tail)
        return;
    b->head = b->tail = 0;
    if (b->spare || b->size > BUF_KEEP_SIZE)
        buf_give_back (b);
}

/* --- input -------------------------------------------------------------------------------- */

/* Make space for 'room' bytes of input. Fails with ENOBUFS if the buffer holds as much as the longest frame:
 * msg_stream_next () must be called first.
 */
static int reserve_input (struct msg_stream *s, size_t room)
{
    if (buf_used (&s->in) >= FRAME_HEADER_SIZE + s->max_message)
        return errset (ENOBUFS);
    return buf_reserve (&s->in, room);
}

/* Read a frame's header. Returns 0 with the size of the rest of the frame in '*size', or -1 as msg_stream_next (). */
static int read_frame_header (const struct msg_stream *s, size_t *size, idt_error_t *errp)
{
    const uint8_t *p;
    uint32_t magic;

    if (buf_used (&s->in) < FRAME_HEADER_SIZE)
        return errset (EAGAIN);
    p = s->in.data + s->in.head;
    memcpy (&magic, p, sizeof (magic));
    if (magic != FRAME_MAGIC)
        return errsetf (errp, EPROTO, "a frame begins with 0x%08x instead of 0x%08x", magic, FRAME_MAGIC);
    *size = get_be (p + 4, 4);
    if (*size > s->max_message)
        return errsetf (errp, EMSGSIZE, "a message of %zu bytes is too long: the limit is %zu", *size, s->max_message);
    return 0;
}

static size_t long_left (const struct long_message *l)
{
    return l->msg ? l->size - l->done : 0;
}

/* If a long frame has begun, make a message into which its rest is read. Returns 0, or -1 with errno ENOMEM. */
static int begin_long (struct msg_stream *s)
{
    size_t have = buf_used (&s->in), size;

    if (s->long_in.msg || have < FRAME_HEADER_SIZE || read_frame_header (s, &size, NULL) < 0
        || FRAME_HEADER_SIZE + size <= BUF_MIN_SIZE || have >= FRAME_HEADER_SIZE + size)
        return 0;
    have -= FRAME_HEADER_SIZE;
    s->long_in = (struct long_message){ .msg = msg_alloc (NULL, size, 0), .size = size, .done = have };
    if (!s->long_in.msg)
        return -1;
    memcpy (msg_bytes (s->long_in.msg), s->in.data + s->in.head + FRAME_HEADER_SIZE, have);
    buf_consume (&s->in, FRAME_HEADER_SIZE + have);
    return 0;
}

/* Read once from the socket to 'p'. */
static ssize_t read_to (struct msg_stream *s, void *p, size_t size)
{
    ssize_t n;

    do
        n = read (s->fd, p, size);
    while (n < 0 && errno == EINTR);
    return n;
}

ssize_t msg_stream_fill (struct msg_stream *s, bool *eof)
{
    struct long_message *l = &s->long_in;
    ssize_t n;

    if (begin_long (s) < 0)
        return -1;
    if (long_left (l) > 0) {
        n = read_to (s, msg_bytes (l->msg) + l->done, long_left (l) < LONG_SIZE ? long_left (l) : LONG_SIZE);
        l->done += n > 0 ? (size_t)n : 0;
    }
    else {
        if (reserve_input (s, READ_MIN_SIZE) < 0)
            return -1;
        n = read_to (s, s->in.data + s->in.tail, s->in.size - s->in.tail);
        s->in.tail += n > 0 ? (size_t)n : 0;
    }
    if (n == 0)
        *eof = true;
    return n;
}

int msg_stream_feed (struct msg_stream *s, const void *buf, size_t size)
{
    struct long_message *l = &s->long_in;
    size_t rest = long_left (l) < size ? long_left (l) : size;

    if (reserve_input (s, size - rest) < 0)
        return -1;
    if (rest > 0)
        memcpy (msg_bytes (l->msg) + l->done, buf, rest);
    l->done += rest;
    if (size > rest)
        memcpy (s->in.data + s->in.tail, (const uint8_t *)buf + rest, size - rest);
    s->in.tail += size - rest;
    return 0;
}

size_t msg_stream_wants (const struct msg_stream *s)
{
    size_t size;

    if (s->long_in.msg)
        return long_left (&s->long_in) > 0 ? FRAME_HEADER_SIZE + s->long_in.size : 0;
    if (buf_used (&s->in) < FRAME_HEADER_SIZE)
        return 0;
    size = FRAME_HEADER_SIZE + get_be (s->in.data + s->in.head + 4, 4);
    return size > BUF_MIN_SIZE && size > buf_used (&s->in) ? size : 0;
}

/* Return 'msg'. If it is NULL, describe the reason in 'errp': 'why' for EPROTO, otherwise errno. */
static idt_msg_t *decoded (idt_msg_t *msg, size_t size, const char *why, idt_error_t *errp)
{
    if (!msg)
        errprintf (errp, "cannot read a message of %zu bytes: %s", size, errno == EPROTO ? why : strerror (errno));
    return msg;
}

static idt_msg_t *next_long (struct msg_stream *s, idt_error_t *errp)
{
    struct long_message l = s->long_in;
    const char *why;

    if (long_left (&l) > 0)
        return errset_null (EAGAIN);
    s->long_in.msg = NULL;
    if ((why = msg_parse (l.msg, l.size))) {
        idt_msg_unref (l.msg);
        l.msg = errset_null (EPROTO);
    }
    return decoded (l.msg, l.size, why, errp);
}

idt_msg_t *msg_stream_next (struct msg_stream *s, idt_error_t *errp)
{
    const char *why = NULL;
    idt_msg_t *msg;
    size_t size = 0;

    if (s->long_in.msg)
        return next_long (s, errp);
    if (read_frame_header (s, &size, errp) < 0)
        return NULL;
    if (buf_used (&s->in) - FRAME_HEADER_SIZE < size)
        return errset_null (EAGAIN);
    msg = msg_decode (s->pool, s->in.data + s->in.head + FRAME_HEADER_SIZE, size, &why);
    if (msg)
        buf_consume (&s->in, FRAME_HEADER_SIZE + size);
    return decoded (msg, size, why, errp);
}

/* --- output ------------------------------------------------------------------------------- */

size_t msg_stream_queued (const struct msg_stream *s)
{
    return buf_used (&s->out) + s->messages_size;
}

/* Begin a frame of 'size' bytes in the output buffer, with space for its first 'now' bytes. Returns where to write
 * these bytes; NULL: out of memory.
 */
static uint8_t *begin_frame (struct msg_stream *s, size_t size, size_t now)
{
    uint32_t magic = FRAME_MAGIC;
    uint8_t *p;

    if (buf_reserve (&s->out, FRAME_HEADER_SIZE + now) < 0)
        return NULL;
    p = s->out.data + s->out.tail;
    memcpy (p, &magic, sizeof (magic));
    put_be (p + 4, 4, size);
    s->out.tail += FRAME_HEADER_SIZE + now;
    return p + FRAME_HEADER_SIZE;
}

/* Encode a message into the buffer. */
static int encode (struct msg_stream *s, const idt_msg_t *msg)
{
    size_t size = idt_msg_encode_size (msg);
    uint8_t *p = begin_frame (s, size, size);

    if (!p)
        return -1;
    msg_put (p, msg);
    return 0;
}

/* As long as the buffer has space, messages are encoded immediately, which is fastest. Further messages are queued as
 * references, because other streams may have the same messages.
 */
int msg_stream_put (struct msg_stream *s, const idt_msg_t *msg)
{
    size_t size = FRAME_HEADER_SIZE + idt_msg_encode_size (msg); /* fits in 32 bits: see IDT_MSG_MAX_PAYLOAD */

    if (size > s->max_queue || msg_stream_queued (s) > s->max_queue - size)
        return errset (ENOBUFS);
    if (s->messages_size == 0 && buf_used (&s->out) + size <= BUF_MIN_SIZE)
        return encode (s, msg);
    if (fifo_push (&s->messages, msg) < 0)
        return -1;
    idt_msg_ref (msg);
    s->messages_size += size;
    return 0;
}

/* Begin a message with a long payload: encode the bytes before the payload. The payload is then written directly from
 * the message.
 */
static int encode_long (struct msg_stream *s, const idt_msg_t *msg)
{
    size_t size = idt_msg_encode_size (msg), head = size - msg->payload_size - MSG_HEADER_PART_SIZE;
    uint8_t *p = begin_frame (s, size, head);

    if (!p)
        return -1;
    msg_put_head (p, msg);
    s->messages_size -= FRAME_HEADER_SIZE + head;
    s->long_out = (struct long_message){ .msg = (struct idt_msg *)idt_msg_ref (msg), .size = msg->payload_size };
    return 0;
}

/* End a message with a long payload after its payload is written: encode the bytes that follow the payload. */
static int end_long (struct msg_stream *s)
{
    struct idt_msg *msg = s->long_out.msg;

    if (buf_reserve (&s->out, MSG_HEADER_PART_SIZE) < 0)
        return -1;
    msg_put_tail (s->out.data + s->out.tail, msg);
    s->out.tail += MSG_HEADER_PART_SIZE;
    s->messages_size -= MSG_HEADER_PART_SIZE;
    s->long_out.msg = NULL;
    idt_msg_unref (msg);
    return 0;
}

/* Encode messages until there are enough bytes for one write, but not beyond the beginning of a long payload. */
static int encode_some (struct msg_stream *s)
{
    const idt_msg_t *msg;

    while (!s->long_out.msg && buf_used (&s->out) < WRITE_SIZE && (msg = fifo_pop (&s->messages))) {
        size_t size = FRAME_HEADER_SIZE + idt_msg_encode_size (msg);
        bool is_long = msg->payload_size >= LONG_SIZE;
        int rc = is_long ? encode_long (s, msg) : encode (s, msg);

        idt_msg_unref (msg);
        if (rc < 0)
            return -1;
        s->messages_size -= is_long ? 0 : size;
    }
    return 0;
}

/* Write once: encoded bytes if there are any, else a piece of the long payload. Returns as send (2). */
static ssize_t write_some (struct msg_stream *s)
{
    struct long_message *l = &s->long_out;
    size_t left = long_left (l) < LONG_SIZE ? long_left (l) : LONG_SIZE;
    ssize_t n;

    if (buf_used (&s->out) > 0) {
        if ((n = send (s->fd, s->out.data + s->out.head, buf_used (&s->out), MSG_NOSIGNAL)) > 0)
            buf_consume (&s->out, (size_t)n);
        return n;
    }
    if ((n = send (s->fd, (const char *)l->msg->payload + l->done, left, MSG_NOSIGNAL)) > 0) {
        l->done += (size_t)n;
        s->messages_size -= (size_t)n;
    }
    return n;
}

/* If there are messages, encode bytes for the next write. Returns 0, or -1 with errno ENOMEM. */
static int prepare_output (struct msg_stream *s)
{
    if (s->long_out.msg && long_left (&s->long_out) == 0 && end_long (s) < 0)
        return -1;
    return encode_some (s);
}

int msg_stream_flush (struct msg_stream *s)
{
    size_t written = 0;

    while (prepare_output (s) == 0 && msg_stream_queued (s) > 0) {
        ssize_t n = written < FLUSH_SIZE ? write_some (s) : errset (EAGAIN);

        if (n >= 0)
            written += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 1;
        else if (errno != EINTR)
            return -1;
    }
    return msg_stream_queued (s) > 0 ? -1 : 0; /* -1 if memory was exhausted */
}

/* --- life --------------------------------------------------------------------------------- */

void msg_stream_destroy (struct msg_stream *s)
{
    if (s) {
        int saved_errno = errno;

        buf_give_back (&s->in);
        buf_give_back (&s->out);
        idt_msg_unref (s->long_in.msg);
        idt_msg_unref (s->long_out.msg);
        msg_fifo_fini (&s->messages);
        free (s);
        errno = saved_errno;
    }
}

struct msg_stream *msg_stream_create (int fd, size_t max_message, size_t max_queue)
{
    struct msg_stream *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->fd = fd;
    s->max_message = max_message;
    s->max_queue = max_queue;
    return s;
}

void msg_stream_share (struct msg_stream *s, struct msg_spare *spare)
{
    s->in.spare = s->out.spare = spare;
    s->pool = spare->pool;
}

void msg_spare_fini (struct msg_spare *spare)
{
    while (spare->count > 0)
        free (spare->data[--spare->count]);
    msg_pool_let_go (spare->pool);
    spare->pool = NULL;
}
