/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* codec.c - messages to bytes and back (protocol.md sections 1 and 2.3)
 *
 * Bytes are a message if and only if
 *  (1) they are a sequence of whole parts: a byte 0...254 and that number of bytes, or 255, a big-endian u32 of at
 *      least 255, and that number of bytes;
 *  (2) the last part has 20 bytes: 0x8e, 1, type, flags, big-endian u32 userid, rolemask, aux1, aux2; the type is one
 *      of 1, 2, 4, 8;
 *  (3) the parts before it are the following, in this order, each present if and only if its flag is set: ROUTE, at
 *      most 1024 parts of 36 bytes without a NUL, then an empty one; TOPIC, 1...1024 bytes without a NUL; PAYLOAD, any
 *      bytes.
 * So each message has exactly one encoding, and a decoded message encodes to the same bytes.
 */
#include <assert.h>
#include <errno.h>

#include "libutil/minmax.h"
#include "libutil/errprintf.h"
#include "libmsg/message.h"

#define HEADER_MAGIC 0x8e
#define HEADER_VERSION 1

/* --- writing ------------------------------------------------------------------------------ */

static uint8_t *part_size_put (uint8_t *p, size_t size)
{
    if (size < 255) {
        *p++ = size;
        return p;
    }
    *p++ = 255;
    put_be (p, 4, size);
    return p + 4;
}

uint8_t *msg_part_put (uint8_t *p, const void *data, size_t size)
{
    p = part_size_put (p, size);
    if (size > 0)
        memcpy (p, data, size);
    return p + size;
}

void msg_header_put (const struct idt_msg *msg, uint8_t *p)
{
    p[0] = HEADER_MAGIC;
    p[1] = HEADER_VERSION;
    p[2] = msg->type;
    p[3] = msg->flags;
    put_be (p + 4, 4, msg->userid);
    put_be (p + 8, 4, msg->rolemask);
    put_be (p + 12, 4, msg->aux1);
    put_be (p + 16, 4, msg->aux2);
}

size_t idt_msg_encode_size (const idt_msg_t *msg)
{
    size_t size = MSG_HEADER_PART_SIZE;

    if (msg->flags & IDT_MSGFLAG_ROUTE)
        size += msg->route_count * msg_part_size (IDT_MSG_UUID_LEN) + msg_part_size (0);
    if (msg->flags & IDT_MSGFLAG_TOPIC)
        size += msg_part_size (msg->topic_len);
    if (msg->flags & IDT_MSGFLAG_PAYLOAD)
        size += msg_part_size (msg->payload_size);
    return size;
}

static uint8_t *put_routes (const struct idt_msg *msg, uint8_t *p)
{
    for (unsigned i = 0; i < msg->route_count; i++)
        p = msg_part_put (p, msg->routes[i].uuid, IDT_MSG_UUID_LEN);
    return msg_part_put (p, NULL, 0);
}

uint8_t *msg_put_head (uint8_t *p, const struct idt_msg *msg)
{
    if (msg->flags & IDT_MSGFLAG_ROUTE)
        p = put_routes (msg, p);
    if (msg->flags & IDT_MSGFLAG_TOPIC)
        p = msg_part_put (p, msg->topic, msg->topic_len);
    return msg->flags & IDT_MSGFLAG_PAYLOAD ? part_size_put (p, msg->payload_size) : p;
}

uint8_t *msg_put_tail (uint8_t *p, const struct idt_msg *msg)
{
    *p++ = IDT_MSG_HEADER_SIZE;
    msg_header_put (msg, p);
    return p + IDT_MSG_HEADER_SIZE;
}

uint8_t *msg_put (uint8_t *p, const struct idt_msg *msg)
{
    p = msg_put_head (p, msg);
    if (msg->flags & IDT_MSGFLAG_PAYLOAD && msg->payload_size > 0)
        p = (uint8_t *)memcpy (p, msg->payload, msg->payload_size) + msg->payload_size;
    return msg_put_tail (p, msg);
}

/* Maximum number of bytes before a payload. */
#define HEAD_MAX (IDT_MSG_MAX_ROUTES * (1 + IDT_MSG_UUID_LEN) + 1 + 5 + IDT_MSG_MAX_TOPIC + 5)

/* Copy to 'p' the bytes that a slice and 'bytes' have in common. The slice has 'size' bytes, from byte 'from' of the
 * whole message on. 'bytes' has 'n' bytes and begins at byte 'at' of the whole message.
 */
static void put_common (uint8_t *p, size_t from, size_t size, const void *bytes, size_t at, size_t n)
{
    size_t first = from > at ? from : at, end = from + size < at + n ? from + size : at + n;

    if (first < end)
        memcpy (p + (first - from), (const uint8_t *)bytes + (first - at), end - first);
}

void msg_put_slice (uint8_t *p, const struct idt_msg *msg, size_t from, size_t size)
{
    size_t tail = idt_msg_encode_size (msg) - MSG_HEADER_PART_SIZE, body = tail - msg->payload_size;
    uint8_t head[HEAD_MAX], header[MSG_HEADER_PART_SIZE];

    assert (from + size <= tail + sizeof (header));
    if (from < body) {
        msg_put_head (head, msg);
        put_common (p, from, size, head, 0, body);
    }
    msg_put_tail (header, msg);
    put_common (p, from, size, msg->payload, body, msg->payload_size);
    put_common (p, from, size, header, tail, sizeof (header));
}

ssize_t idt_msg_encode (const idt_msg_t *msg, void *buf, size_t size)
{
    if (size < idt_msg_encode_size (msg))
        return errset (EINVAL);
    return msg_put (buf, msg) - (uint8_t *)buf;
}

/* --- reading ------------------------------------------------------------------------------ */

/* The bytes that are not read yet, without the header, which is read first. */
struct part_cursor {
    uint8_t *p;
    uint8_t *end;
};

/* Take the next part: set '*data' and '*size'. Returns false if no part is left, or if it is incomplete. */
static bool take (struct part_cursor *c, uint8_t **data, size_t *size)
{
    uint8_t *p = c->p;
    size_t n;

    if (p == c->end)
        return false;
    n = *p++;
    if (n == 255) {
        if (c->end - p < 4 || (n = get_be (p, 4)) < 255)
            return false;
        p += 4;
    }
    if ((size_t)(c->end - p) < n)
        return false;
    *data = p;
    *size = n;
    c->p = p + n;
    return true;
}

static const char *read_header (struct idt_msg *msg, const uint8_t *p)
{
    if (p[0] != HEADER_MAGIC)
        return "header does not begin with its magic number";
    if (p[1] != HEADER_VERSION)
        return "unknown version in header";
    if (p[2] == 0 || p[2] > IDT_MSGTYPE_CONTROL || (p[2] & (p[2] - 1)) != 0)
        return "unknown type in header";
    msg->type = p[2];
    msg->flags = p[3];
    msg->userid = get_be (p + 4, 4);
    msg->rolemask = get_be (p + 8, 4);
    msg->aux1 = get_be (p + 12, 4);
    msg->aux2 = get_be (p + 16, 4);
    return NULL;
}

static const char *read_routes (struct idt_msg *msg, struct part_cursor *c)
{
    uint8_t *data;
    size_t size;

    while (take (c, &data, &size)) {
        if (size == 0)
            return NULL;
        if (size != IDT_MSG_UUID_LEN || memchr (data, '\0', size))
            return "route is not 36 characters";
        if (msg->route_count == IDT_MSG_MAX_ROUTES)
            return "too many routes";
        msg->route_count++;
    }
    return "no delimiter after routes";
}

static const char *read_topic (struct idt_msg *msg, struct part_cursor *c)
{
    uint8_t *data;
    size_t size;

    if (!take (c, &data, &size))
        return "no topic, although the header's flags say there is one";
    if (size == 0 || size > IDT_MSG_MAX_TOPIC || memchr (data, '\0', size))
        return "topic is empty, too long or has a NUL";
    msg->topic = (char *)data;
    msg->topic_len = size;
    return NULL;
}

static const char *read_payload (struct idt_msg *msg, struct part_cursor *c)
{
    uint8_t *data;

    if (!take (c, &data, &msg->payload_size))
        return "no payload, although the header's flags say there is one";
    msg->payload = data;
    return NULL;
}

/* Put NULs behind the routes and the topic. The bytes there were the sizes of the next parts, which are no longer
 * needed.
 */
static void terminate_strings (struct idt_msg *msg)
{
    for (unsigned i = 0; i < msg->route_count; i++)
        msg->routes[i].uuid[IDT_MSG_UUID_LEN] = '\0';
    if (msg->topic)
        msg->topic[msg->topic_len] = '\0';
}

const char *msg_parse (struct idt_msg *msg, size_t size)
{
    uint8_t *bytes = (uint8_t *)msg_bytes (msg);
    struct part_cursor c;
    const char *why;

    if (size < MSG_HEADER_PART_SIZE)
        return "too short for a header";
    c = (struct part_cursor){ .p = bytes, .end = bytes + size - MSG_HEADER_PART_SIZE };
    if (*c.end != IDT_MSG_HEADER_SIZE)
        return "last part is not a header of 20 bytes";
    if ((why = read_header (msg, c.end + 1)))
        return why;
    msg->routes = (struct msg_route *)(bytes + 1); /* after the size byte of the first route: see message.h */
    if ((msg->flags & IDT_MSGFLAG_ROUTE) && (why = read_routes (msg, &c)))
        return why;
    if ((msg->flags & IDT_MSGFLAG_TOPIC) && (why = read_topic (msg, &c)))
        return why;
    if ((msg->flags & IDT_MSGFLAG_PAYLOAD) && (why = read_payload (msg, &c)))
        return why;
    if (c.p != c.end)
        return "parts that the header's flags do not mention";
    terminate_strings (msg);
    return NULL;
}

idt_msg_t *msg_decode (struct msg_pool *pool, const void *buf, size_t size, const char **why)
{
    struct idt_msg *msg = msg_alloc (pool, size, 0);
    const char *wrong;

    if (!msg)
        return NULL;
    if (size > 0)
        memcpy (msg_bytes (msg), buf, size);
    if ((wrong = msg_parse (msg, size))) {
        idt_msg_unref (msg);
        if (why)
            *why = wrong;
        return errset_null (EPROTO);
    }
    return msg;
}

idt_msg_t *idt_msg_decode (const void *buf, size_t size)
{
    return msg_decode (NULL, buf, size, NULL);
}
