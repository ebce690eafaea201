/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stream.c - messages on a non-blocking stream socket (protocol.md section 2)
 *
 * A frame is: 4 bytes magic 0xffee0012 in host byte order, big-endian u32 size of what follows, the
 * message's parts (codec.c).
 *
 * All work is linear in the bytes that pass.  A buffer's unread bytes move to its start only when
 * at least as many were read before them; else it doubles.  It grows with the bytes that came, not
 * with the size that a frame claims to have.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmsg/codec.h"
#include "libmsg/pool.h"
#include "libmsg/stream.h"
#include "libutil/errprintf.h"
#include "libutil/fifo.h"

#define FRAME_MAGIC UINT32_C (0xffee0012)
#define FRAME_HEADER_SIZE 8

#define BUF_MIN_SIZE MSG_STREAM_BUFFER
#define BUF_KEEP_SIZE ((size_t)1 << 20) /* an empty buffer over this is given back */
#define READ_MIN_SIZE ((size_t)16 << 10)
#define WRITE_SIZE ((size_t)96 << 10) /* what is enough for one write */

/* Unread bytes are data[head] ... data[tail - 1]. */
struct buf {
    uint8_t *data;
    size_t size;
    size_t head;
    size_t tail;
    struct msg_spare *spare; /* NULL: none */
};

struct msg_stream {
    int fd;
    size_t max_message;
    size_t max_queue;
    struct msg_pool *pool; /* of messages that come; NULL: none */
    struct buf in;
    struct fifo messages; /* output that has no bytes yet */
    size_t messages_size; /* what it will have */
    struct buf out;
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

/* Make room for at least 'room' more bytes at the tail. */
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
    b->head += size;
    if (b->head < b->tail)
        return;
    b->head = b->tail = 0;
    if (b->spare || b->size > BUF_KEEP_SIZE)
        buf_give_back (b);
}

/* --- input -------------------------------------------------------------------------------- */

/* A buffer that holds as much as a whole frame may have needs msg_stream_next () first. */
static int reserve_input (struct msg_stream *s, size_t room)
{
    if (buf_used (&s->in) >= FRAME_HEADER_SIZE + s->max_message)
        return errset (ENOBUFS);
    return buf_reserve (&s->in, room);
}

ssize_t msg_stream_fill (struct msg_stream *s, bool *eof)
{
    ssize_t n;

    if (reserve_input (s, READ_MIN_SIZE) < 0)
        return -1;
    do
        n = read (s->fd, s->in.data + s->in.tail, s->in.size - s->in.tail);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        s->in.tail += n;
    if (n == 0)
        *eof = true;
    return n;
}

int msg_stream_feed (struct msg_stream *s, const void *buf, size_t size)
{
    if (reserve_input (s, size) < 0)
        return -1;
    if (size > 0)
        memcpy (s->in.data + s->in.tail, buf, size);
    s->in.tail += size;
    return 0;
}

/* Read a frame's header.  Returns 0 and the size of what follows, or -1 as msg_stream_next (). */
static int read_frame_header (const struct msg_stream *s, size_t *size, idt_error_t *errp)
{
    const uint8_t *p;
    uint32_t magic;

    if (buf_used (&s->in) < FRAME_HEADER_SIZE)
        return errset (EAGAIN);
    p = s->in.data + s->in.head;
    memcpy (&magic, p, sizeof (magic));
    if (magic != FRAME_MAGIC)
        return errsetf (errp, EPROTO, "frame begins with 0x%08x, not 0x%08x", magic, FRAME_MAGIC);
    *size = be32_get (p + 4);
    if (*size > s->max_message)
        return errsetf (errp, EMSGSIZE, "message of %zu bytes: the limit is %zu", *size, s->max_message);
    return 0;
}

size_t msg_stream_wants (const struct msg_stream *s)
{
    size_t size;

    if (buf_used (&s->in) < FRAME_HEADER_SIZE)
        return 0;
    size = FRAME_HEADER_SIZE + (size_t)be32_get (s->in.data + s->in.head + 4);
    return size > BUF_MIN_SIZE && size > buf_used (&s->in) ? size : 0;
}

idt_msg_t *msg_stream_next (struct msg_stream *s, idt_error_t *errp)
{
    const char *why = NULL;
    idt_msg_t *msg;
    size_t size = 0;

    if (read_frame_header (s, &size, errp) < 0)
        return NULL;
    if (buf_used (&s->in) - FRAME_HEADER_SIZE < size)
        return errset_null (EAGAIN);
    if (!(msg = msg_decode (s->pool, s->in.data + s->in.head + FRAME_HEADER_SIZE, size, &why))) {
        errprintf (errp, "message of %zu bytes: %s", size, errno == EPROTO ? why : strerror (errno));
        return NULL;
    }
    buf_consume (&s->in, FRAME_HEADER_SIZE + size);
    return msg;
}

/* --- output ------------------------------------------------------------------------------- */

size_t msg_stream_queued (const struct msg_stream *s)
{
    return buf_used (&s->out) + s->messages_size;
}

/* Make the bytes of a message. */
static int encode (struct msg_stream *s, const idt_msg_t *msg)
{
    size_t size = idt_msg_encode_size (msg);
    uint32_t magic = FRAME_MAGIC;
    uint8_t *p;

    if (buf_reserve (&s->out, FRAME_HEADER_SIZE + size) < 0)
        return -1;
    p = s->out.data + s->out.tail;
    memcpy (p, &magic, sizeof (magic));
    be32_put (p + 4, size);
    msg_put (p + FRAME_HEADER_SIZE, msg);
    s->out.tail += FRAME_HEADER_SIZE + size;
    return 0;
}

/* The first ones are bytes at once, as long as a buffer has room: that is cheapest.  Those behind wait as what they
 * are, for others may have them, too.
 */
int msg_stream_put (struct msg_stream *s, const idt_msg_t *msg)
{
    size_t size = FRAME_HEADER_SIZE + idt_msg_encode_size (msg); /* fits in a u32: see IDT_MSG_MAX_PAYLOAD */

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

/* Make the bytes of as many messages as go into one write. */
static int encode_some (struct msg_stream *s)
{
    const idt_msg_t *msg;

    while (buf_used (&s->out) < WRITE_SIZE && (msg = fifo_pop (&s->messages))) {
        size_t size = FRAME_HEADER_SIZE + idt_msg_encode_size (msg);
        int rc = encode (s, msg);

        idt_msg_unref (msg);
        if (rc < 0)
            return -1;
        s->messages_size -= size;
    }
    return 0;
}

int msg_stream_flush (struct msg_stream *s)
{
    while (encode_some (s) == 0 && buf_used (&s->out) > 0) {
        ssize_t n = send (s->fd, s->out.data + s->out.head, buf_used (&s->out), MSG_NOSIGNAL);

        if (n >= 0)
            buf_consume (&s->out, n);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 1;
        else if (errno != EINTR)
            return -1;
    }
    return msg_stream_queued (s) > 0 ? -1 : 0; /* out of memory */
}

/* --- life --------------------------------------------------------------------------------- */

void msg_stream_destroy (struct msg_stream *s)
{
    if (s) {
        int saved_errno = errno;
        const idt_msg_t *msg;

        buf_give_back (&s->in);
        buf_give_back (&s->out);
        while ((msg = fifo_pop (&s->messages)))
            idt_msg_unref (msg);
        fifo_fini (&s->messages);
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
