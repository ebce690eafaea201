/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stream.h - messages on a non-blocking stream socket (protocol.md section 2)
 *
 * Input is a buffer of what was read and is not yet a whole message; a long one is read into its own memory.  Output
 * is references to messages, of which as many bytes are made as go into one write: what a thousand subscribers get
 * is kept once.
 */
#ifndef MSG_STREAM_H
#define MSG_STREAM_H

#include <idtree/error.h>
#include <idtree/msg.h>

struct msg_stream;
struct msg_pool;

/* The control message with which a client says which rank of a process it means, in 'status' (protocol.md section 2);
 * and the answer, with 0 or an errno there.
 */
#define MSG_CONTROL_RANK 64

/* Buffers that streams of one thread lend each other: one that is empty holds none; and memory of small messages.  All
 * zero at first.
 */
#define MSG_SPARE_MAX 4
struct msg_spare {
    void *data[MSG_SPARE_MAX];
    int count;
    struct msg_pool *pool; /* NULL: messages come from malloc () */
};
void msg_spare_fini (struct msg_spare *spare);

#define MSG_STREAM_BUFFER ((size_t)64 << 10)      /* bytes; what a shorter message needs */
#define MSG_STREAM_MAX_MESSAGE ((size_t)64 << 20) /* default limit of one frame, bytes */
#define MSG_STREAM_MAX_QUEUE ((size_t)64 << 20)   /* default limit of unwritten output, bytes */

/* 'max_message': longest frame taken, in bytes that follow the 8-byte frame header; 'max_queue':
 * most bytes of output that may wait.  The file descriptor is borrowed and must be non-blocking.
 * NULL with errno ENOMEM.
 */
struct msg_stream *msg_stream_create (int fd, size_t max_message, size_t max_queue);
void msg_stream_destroy (struct msg_stream *s);

/* Use and leave empty buffers there (borrowed); before the first use.  Else a stream keeps its own. */
void msg_stream_share (struct msg_stream *s, struct msg_spare *spare);

/* Read once from the socket into the buffer.  Returns the bytes read; 0 with '*eof' set to true at
 * the end of the stream ('*eof' is not touched else); -1 with errno set:
 *   EAGAIN    nothing there now
 *   ENOBUFS   the buffer holds a message of the limit's size or more: msg_stream_next () first
 *   ENOMEM, and what read (2) has
 */
ssize_t msg_stream_fill (struct msg_stream *s, bool *eof);

/* Take the next whole message out of the buffer.  Returns NULL with errno set:
 *   EAGAIN    no whole message yet: msg_stream_fill () first
 *   EPROTO    malformed; 'errp' (may be NULL) says how
 *   EMSGSIZE  longer than the limit; 'errp' names both
 *   ENOMEM
 * After EPROTO and EMSGSIZE the stream is broken: only destroy it.
 */
idt_msg_t *msg_stream_next (struct msg_stream *s, idt_error_t *errp);

/* Bytes of the frame that has begun and is not whole, where it is longer than MSG_STREAM_BUFFER; else 0. */
size_t msg_stream_wants (const struct msg_stream *s);

/* Append a message (a reference; it may not be changed any more) to the output.  Returns 0, or -1 with errno ENOBUFS
 * (over 'max_queue'; the message was not added) or ENOMEM.
 */
int msg_stream_put (struct msg_stream *s, const idt_msg_t *msg);

/* Write as much output as the socket takes, within what others can wait for.  Returns 0 when nothing
 * is left, 1 when some is left (the socket is full, or others have their turn), -1 with errno set when the
 * connection is gone.  Raises no SIGPIPE.
 */
int msg_stream_flush (struct msg_stream *s);

size_t msg_stream_queued (const struct msg_stream *s); /* bytes of output that wait */

/* Append bytes to the buffer as if msg_stream_fill () had read them (the way in for tests and for
 * bytes that were read before the stream was made).  Returns 0, or -1 with errno ENOBUFS (as above)
 * or ENOMEM.
 */
int msg_stream_feed (struct msg_stream *s, const void *buf, size_t size);

#endif /* MSG_STREAM_H */
