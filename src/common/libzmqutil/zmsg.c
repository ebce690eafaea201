/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zmsg.c - messages on ZeroMQ sockets: one frame for each part, or one frame for the whole message (protocol.md section
 * 1)
 *
 * A message in one frame has the encoding of codec.c. A message in parts that is only a header is also a single frame.
 * The two differ in size: a header has 20 bytes, its one-frame encoding 21.
 *
 * A message is sent completely or not at all. All parts are allocated before the first one is sent. If ZeroMQ took the
 * first part, the message is always completed, because otherwise ZeroMQ would take the next message for its
 * continuation.
 *
 * A receiver writes the parts into a new message in the stream encoding, which codec.c decodes in place. So one decoder
 * with one set of rules serves both encodings. All parts of a message are read, even if some are malformed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

#include "libutil/errprintf.h"
#include "libmsg/message.h"
#include "libzmqutil/zmsg.h"

#define PARTS_MAX (IDT_MSG_MAX_ROUTES + 5) /* at most: identity, routes, delimiter, topic, payload, header */

#if defined(__SANITIZE_THREAD__)
#define MSG_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MSG_TSAN 1
#endif
#endif

/* ZeroMQ passes bytes between threads in ways that ThreadSanitizer cannot see. The calls of hand_off () and take_over
 * () announce these transfers.
 */
#ifdef MSG_TSAN
void __tsan_release (void *addr);
void __tsan_acquire (void *addr);
#define hand_off(addr) __tsan_release (addr)
#define take_over(addr) __tsan_acquire (addr)
#else
#define hand_off(addr) ((void)(addr))
#define take_over(addr) ((void)(addr))
#endif

/* --- parts -------------------------------------------------------------------------------- */

/* The ZeroMQ frames of one message. There is space for one more frame, to detect a message with too many. */
struct parts {
    size_t count;
    zmq_msg_t frames[PARTS_MAX + 1];
};

static void parts_fini (struct parts *parts)
{
    int saved_errno = errno;

    for (size_t i = 0; i < parts->count; i++)
        zmq_msg_close (&parts->frames[i]);
    errno = saved_errno;
}

/* Append a frame of 'size' bytes. Returns where to write these bytes, or NULL with errno ENOMEM. */
static void *parts_add (struct parts *parts, size_t size)
{
    zmq_msg_t *frame = &parts->frames[parts->count];

    if (zmq_msg_init_size (frame, size) < 0)
        return NULL;
    parts->count++;
    return zmq_msg_data (frame);
}

static int parts_add_copy (struct parts *parts, const void *data, size_t size)
{
    void *p = parts_add (parts, size);

    if (!p)
        return -1;
    memcpy (p, data, size);
    return 0;
}

/* --- sending ------------------------------------------------------------------------------ */

/* ZeroMQ calls this in its own thread when it no longer needs the payload. */
static void payload_sent_cb (void *data, void *msg)
{
    idt_msg_unref (msg);
}

static int add_payload (struct parts *parts, const idt_msg_t *msg)
{
    if (msg->payload_size < ZMSG_ZERO_COPY_SIZE)
        return parts_add_copy (parts, msg->payload, msg->payload_size);
    if (zmq_msg_init_data (&parts->frames[parts->count], msg->payload, msg->payload_size, payload_sent_cb, (void *)msg)
        < 0)
        return -1;
    idt_msg_ref (msg);
    parts->count++;
    return 0;
}

static int add_routes (struct parts *parts, const idt_msg_t *msg)
{
    for (unsigned i = 0; i < msg->route_count; i++) {
        if (parts_add_copy (parts, msg->routes[i].uuid, IDT_MSG_UUID_LEN) < 0)
            return -1;
    }
    return parts_add (parts, 0) ? 0 : -1;
}

static int add_header (struct parts *parts, const idt_msg_t *msg)
{
    uint8_t *p = parts_add (parts, IDT_MSG_HEADER_SIZE);

    if (!p)
        return -1;
    msg_header_put (msg, p);
    return 0;
}

static int add_all (struct parts *parts, const idt_msg_t *msg)
{
    if ((msg->flags & IDT_MSGFLAG_ROUTE) && add_routes (parts, msg) < 0)
        return -1;
    if ((msg->flags & IDT_MSGFLAG_TOPIC) && parts_add_copy (parts, msg->topic, msg->topic_len) < 0)
        return -1;
    if ((msg->flags & IDT_MSGFLAG_PAYLOAD) && add_payload (parts, msg) < 0)
        return -1;
    return add_header (parts, msg);
}

static int send_frame (void *sock, zmq_msg_t *frame, int more)
{
    int rc;

    hand_off (zmq_msg_data (frame));
    do
        rc = zmq_msg_send (frame, sock, ZMQ_DONTWAIT | more);
    while (rc < 0 && errno == EINTR);
    return rc;
}

/* Complete a message that was sent only in part, by an empty frame. If a connection breaks in the middle of a message,
 * ZeroMQ drops the parts that it has and all further parts. Without this frame it would also drop the next message.
 */
static void end_message (void *sock)
{
    int saved_errno = errno;
    zmq_msg_t frame;

    zmq_msg_init (&frame);
    send_frame (sock, &frame, 0);
    zmq_msg_close (&frame);
    errno = saved_errno;
}

/* Send the first part. ZeroMQ checks only now and then whether the peer has read messages. Therefore, before this
 * function reports EAGAIN, it makes ZeroMQ check.
 */
static int send_first (void *sock, zmq_msg_t *frame, int more)
{
    int rc = send_frame (sock, frame, more);

    if (rc < 0 && errno == EAGAIN) {
        int events;
        size_t size = sizeof (events);

        zmq_getsockopt (sock, ZMQ_EVENTS, &events, &size);
        rc = send_frame (sock, frame, more);
    }
    return rc;
}

static int send_all (void *sock, struct parts *parts)
{
    size_t last = parts->count - 1;

    assert (parts->count > 0 && parts->count <= PARTS_MAX);
    if (send_first (sock, &parts->frames[0], last > 0 ? ZMQ_SNDMORE : 0) < 0)
        return -1;
    for (size_t i = 1; i <= last; i++) {
        if (send_frame (sock, &parts->frames[i], i < last ? ZMQ_SNDMORE : 0) < 0) {
            if (i < last)
                end_message (sock);
            return -1;
        }
    }
    return 0;
}

static int add_whole (struct parts *parts, const idt_msg_t *msg)
{
    uint8_t *p = parts_add (parts, idt_msg_encode_size (msg));

    if (!p)
        return -1;
    msg_put (p, msg);
    return 0;
}

static int send_message (void *sock, const char *identity, const idt_msg_t *msg, bool whole)
{
    struct parts parts;
    int rc = -1;

    parts.count = 0;
    if ((!identity || parts_add_copy (&parts, identity, strlen (identity)) == 0)
        && (whole ? add_whole (&parts, msg) : add_all (&parts, msg)) == 0)
        rc = send_all (sock, &parts);
    parts_fini (&parts);
    return rc;
}

int msg_zmq_send (void *sock, const char *identity, const idt_msg_t *msg)
{
    return send_message (sock, identity, msg, false);
}

int msg_zmq_send_whole (void *sock, const char *identity, const idt_msg_t *msg)
{
    return send_message (sock, identity, msg, msg->payload_size < ZMSG_ZERO_COPY_SIZE);
}

/* --- receiving ---------------------------------------------------------------------------- */

static int recv_frame (void *sock, zmq_msg_t *frame)
{
    int rc;

    do
        rc = zmq_msg_recv (frame, sock, ZMQ_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    if (rc >= 0)
        take_over (zmq_msg_data (frame));
    return rc;
}

/* Read and drop the remaining parts of a message. */
static void drain (void *sock)
{
    int saved_errno = errno;
    zmq_msg_t frame;
    int more;

    zmq_msg_init (&frame);
    do
        more = recv_frame (sock, &frame) >= 0 && zmq_msg_more (&frame);
    while (more);
    zmq_msg_close (&frame);
    errno = saved_errno;
}

/* Read all parts of a message. At most one part more than a valid message has is kept, and msg_parse () refuses a
 * message with that part.
 */
static int recv_all (void *sock, struct parts *parts)
{
    bool more = true;

    while (more && parts->count <= PARTS_MAX) {
        zmq_msg_t *frame = &parts->frames[parts->count++];

        zmq_msg_init (frame);
        if (recv_frame (sock, frame) < 0)
            return -1;
        more = zmq_msg_more (frame);
    }
    if (more)
        drain (sock);
    return 0;
}

/* Fill in the sender of a message. Each frame has ZeroMQ's properties of the connection. */
static void fill_from (struct msg_zmq_from *from, zmq_msg_t *identity, zmq_msg_t *last)
{
    const char *user = zmq_msg_gets (last, "User-Id");

    *from = (struct msg_zmq_from){ .fd = zmq_msg_get (last, ZMQ_SRCFD) };
    if (user && strlen (user) < sizeof (from->user))
        strcpy (from->user, user);
    if (identity)
        memcpy (from->identity, zmq_msg_data (identity), IDT_MSG_UUID_LEN);
}

static bool valid_identity (zmq_msg_t *frame)
{
    return zmq_msg_size (frame) == IDT_MSG_UUID_LEN && !memchr (zmq_msg_data (frame), '\0', IDT_MSG_UUID_LEN);
}

/* Make a message of frames. 'size' is their total size, including their size bytes. */
static idt_msg_t *parse_frames (zmq_msg_t *frames, size_t count, size_t size)
{
    struct idt_msg *msg = msg_alloc (NULL, size, 0);
    uint8_t *p;

    if (!msg)
        return NULL;
    p = (uint8_t *)msg_bytes (msg);
    for (size_t i = 0; i < count; i++)
        p = msg_part_put (p, zmq_msg_data (&frames[i]), zmq_msg_size (&frames[i]));
    if (msg_parse (msg, size)) {
        idt_msg_unref (msg);
        return errset_null (EPROTO);
    }
    return msg;
}

static idt_msg_t *read_whole (zmq_msg_t *frame, size_t max_message)
{
    if (zmq_msg_size (frame) > max_message)
        return errset_null (EMSGSIZE);
    return msg_decode (NULL, zmq_msg_data (frame), zmq_msg_size (frame), NULL);
}

static idt_msg_t *read_message (zmq_msg_t *frames, size_t count, size_t max_message)
{
    size_t size = 0;

    if (count == 1 && zmq_msg_size (&frames[0]) != IDT_MSG_HEADER_SIZE)
        return read_whole (&frames[0], max_message);
    for (size_t i = 0; i < count; i++) {
        size_t part_size = msg_part_size (zmq_msg_size (&frames[i]));

        if (part_size > UINT32_MAX || part_size > max_message - size)
            return errset_null (EMSGSIZE);
        size += part_size;
    }
    return parse_frames (frames, count, size);
}

static idt_msg_t *read_parts (struct parts *parts, bool router, size_t max_message, struct msg_zmq_from *from)
{
    zmq_msg_t *frames = parts->frames;
    size_t skip = router ? 1 : 0;
    bool identified = router && valid_identity (&frames[0]);

    if (from)
        fill_from (from, identified ? &frames[0] : NULL, &frames[parts->count - 1]);
    if (router && !identified)
        return errset_null (EPROTO);
    return read_message (frames + skip, parts->count - skip, max_message);
}

idt_msg_t *msg_zmq_recv (void *sock, bool router, size_t max_message, struct msg_zmq_from *from)
{
    struct parts parts;
    idt_msg_t *msg = NULL;

    parts.count = 0;
    if (recv_all (sock, &parts) == 0)
        msg = read_parts (&parts, router, max_message, from);
    parts_fini (&parts);
    return msg;
}
