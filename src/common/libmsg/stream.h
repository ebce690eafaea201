/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stream.h - messages on a non-blocking stream socket (protocol.md section 2)
 *
 * Input is a buffer of bytes that are not a whole message yet; a long message is read directly into its own memory.
 * Output is a queue of references to messages. Only the bytes of the next write are encoded, so a message to a thousand
 * subscribers is stored once.
 */
#ifndef MSG_STREAM_H
#define MSG_STREAM_H

#include <idtree/error.h>
#include <idtree/msg.h>

struct msg_stream;
struct msg_pool;

/* A control message. In 'status' a client names the rank that it wants to reach, if a process hosts several ranks
 * (protocol.md section 2). The response has 0 or an errno in 'status'.
 */
#define MSG_CONTROL_RANK 64

/* A free list of buffers that the streams of one thread share, so that a stream without input has no buffer; and the
 * memory of small messages. All members are zero at first.
 */
#define MSG_SPARE_MAX 4
struct msg_spare {
    void *data[MSG_SPARE_MAX];
    int count;
    struct msg_pool *pool; /* NULL: messages come from malloc () */
};
void msg_spare_fini (struct msg_spare *spare);

#define MSG_STREAM_BUFFER ((size_t)64 << 10) /* bytes of a buffer; longer messages are read into their own memory */
#define MSG_STREAM_MAX_MESSAGE ((size_t)64 << 20) /* default limit of one frame, bytes */
#define MSG_STREAM_MAX_QUEUE ((size_t)64 << 20)   /* default limit of unwritten output, bytes */

/* 'max_message': maximum length of a frame, in bytes after the 8-byte frame header; 'max_queue': maximum number of
 * unwritten bytes of output. The file descriptor is borrowed and must be non-blocking. NULL with errno ENOMEM.
 */
struct msg_stream *msg_stream_create (int fd, size_t max_message, size_t max_queue);
void msg_stream_destroy (struct msg_stream *s);

/* Take buffers from 'spare' (borrowed), and return empty ones to it. Call this before the first use of the stream. A
 * stream without 'spare' keeps its own buffers.
 */
void msg_stream_share (struct msg_stream *s, struct msg_spare *spare);

/* Read once from the socket into the buffer. Returns the number of bytes read; 0 with '*eof' set to true at the end of
 * the stream (otherwise '*eof' is not touched); -1 with errno set:
 *   EAGAIN    nothing to read now
 *   ENOBUFS   the buffer holds as much as the longest message: call msg_stream_next () first
 *   ENOMEM, and errors of read (2)
 */
ssize_t msg_stream_fill (struct msg_stream *s, bool *eof);

/* Take the next whole message out of the buffer. Returns NULL with errno set:
 *   EAGAIN    no whole message yet: call msg_stream_fill () first
 *   EPROTO    malformed; 'errp' (may be NULL) describes the error
 *   EMSGSIZE  longer than the limit; 'errp' names the length and the limit
 *   ENOMEM
 * After EPROTO and EMSGSIZE the stream is broken: it can only be destroyed.
 */
idt_msg_t *msg_stream_next (struct msg_stream *s, idt_error_t *errp);

/* Total bytes of the unfinished frame if it is longer than MSG_STREAM_BUFFER; else 0. */
size_t msg_stream_wants (const struct msg_stream *s);

/* Append a message to the output. The stream takes a reference; the message must not be changed afterwards. Returns 0,
 * or -1 with errno ENOBUFS (the output would exceed 'max_queue'; the message was not added) or ENOMEM.
 */
int msg_stream_put (struct msg_stream *s, const idt_msg_t *msg);

/* Write as much output as the socket accepts, up to a limit that leaves time for other streams. Returns 0 if no output
 * is left, 1 if some is left (the socket is full, or the limit was reached), -1 with errno set if the connection is
 * lost. Raises no SIGPIPE.
 */
int msg_stream_flush (struct msg_stream *s);

size_t msg_stream_queued (const struct msg_stream *s); /* bytes of unwritten output */

/* Append bytes to the buffer as if msg_stream_fill () had read them (for tests, and for bytes that were read before the
 * stream was made). Returns 0, or -1 with errno ENOBUFS (as msg_stream_fill ()) or ENOMEM.
 */
int msg_stream_feed (struct msg_stream *s, const void *buf, size_t size);

#endif /* MSG_STREAM_H */
