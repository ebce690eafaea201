/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message.h - the inside of a message, shared by message.c and codec.c; transports between brokers also use the codec
 *
 * A message is one allocation: the struct, slots for some routes, the bytes that the message was decoded or copied
 * from, then space for a topic and a payload that are set later. Contents that do not fit there have their own
 * allocation (the _alloc members), which is freed with the message.
 *
 * The route stack grows towards lower addresses. So its order in memory is the order on the wire, newest first, and the
 * routes of a received frame are used where they are. On the wire a route is a size byte and 36 characters. The size
 * byte of the next part becomes the NUL that ends the route's text.
 */
#ifndef MSG_MESSAGE_H
#define MSG_MESSAGE_H

#include <string.h>

#include <idtree/msg.h>

#define MSG_ROUTE_ROOM 4                               /* hops that fit into a new message without malloc () */
#define MSG_SPACE 128                                  /* bytes of a new message for contents that are set later */
#define MSG_HEADER_PART_SIZE (1 + IDT_MSG_HEADER_SIZE) /* the header with its size byte */
#define MSG_CONTENT_FLAGS (IDT_MSGFLAG_TOPIC | IDT_MSGFLAG_PAYLOAD | IDT_MSGFLAG_ROUTE)

struct msg_route {
    char uuid[IDT_MSG_UUID_LEN + 1];
};

struct fifo;
struct msg_pool;

struct idt_msg {
    unsigned refs; /* number of references; atomic */
    uint8_t type;
    uint8_t flags; /* TOPIC, PAYLOAD, ROUTE: whether the members below are valid */
    uint32_t userid;
    uint32_t rolemask;
    uint32_t aux1;
    uint32_t aux2;
    unsigned route_count;
    unsigned route_room;      /* free slots before routes[0] */
    struct msg_route *routes; /* routes[0] is the newest */
    char *topic;
    size_t topic_len;
    void *payload;
    size_t payload_size;
    void *routes_alloc;
    void *topic_alloc;
    void *payload_alloc;
    char *space; /* the free space that is left */
    size_t space_size;
    struct msg_pool *pool; /* the pool that the message's memory belongs to; NULL: malloc () */
    char body[];
};

/* --- message.c --------------------------------------------------------------------------------- */

/* A pool is memory that small messages reuse, in blocks. A message returns its block to its pool when it is freed. Any
 * thread may free it: modules and ZeroMQ have their own threads. A thread that finds the pool in use by another thread
 * does not wait, but calls malloc () or free ().
 */
#define MSG_POOL_BLOCK 512                 /* bytes of a block: the message with its contents */
#define MSG_POOL_BYTES ((size_t)256 << 10) /* maximum bytes of free blocks that a pool keeps */

struct msg_pool *msg_pool_create (void); /* NULL with errno ENOMEM */

/* The owner no longer needs the pool. It is freed together with the last message that uses it. NULL is allowed. */
void msg_pool_let_go (struct msg_pool *pool);

/* Allocate a message with 'size' bytes of contents after the slots for routes, and 'space' free bytes after the
 * contents. The message is a block of 'pool' (may be NULL) if a block is large enough. All members are zero except the
 * reference count and the empty route stack. The stack ends where the contents begin: msg_bytes (). NULL with errno
 * ENOMEM.
 */
struct idt_msg *msg_alloc (struct msg_pool *pool, size_t size, size_t space);

/* Resize the contents of a message to 'size' bytes; the message moves. Only for a message without routes and pool that
 * has no contents other than bytes at msg_bytes (). NULL with errno ENOMEM: the message is unchanged.
 */
struct idt_msg *msg_grow (struct idt_msg *msg, size_t size);

/* As idt_msg_create (). */
idt_msg_t *msg_create (struct msg_pool *pool, enum idt_msgtype type);

static inline char *msg_bytes (struct idt_msg *msg)
{
    return msg->body + MSG_ROUTE_ROOM * sizeof (struct msg_route);
}

/* Drop the messages of a queue, and free it. Keeps errno. */
void msg_fifo_fini (struct fifo *q);

/* Return a message that the caller may change (steals the reference): the message itself if the caller has its only
 * reference, else a copy. NULL with errno ENOMEM.
 */
idt_msg_t *msg_own (const idt_msg_t *msg);

/* --- codec.c: parts of messages, shared by their encodings (protocol.md section 2.3) ----------- */

/* Bytes of a part with 'size' bytes of content, including its size field. */
static inline size_t msg_part_size (size_t size)
{
    return (size < 255 ? 1 : 5) + size;
}

/* Write a part of 'size' bytes (at most UINT32_MAX) to 'p'. Returns the address after it. */
uint8_t *msg_part_put (uint8_t *p, const void *data, size_t size);

/* Write the 20 bytes of the header to 'p'. */
void msg_header_put (const struct idt_msg *msg, uint8_t *p);

/* Write a whole message, idt_msg_encode_size () bytes, to 'p'. Returns the address after it. */
uint8_t *msg_put (uint8_t *p, const struct idt_msg *msg);

/* Write a message in pieces: msg_put_head () writes all bytes before the payload, msg_put_tail () the
 * MSG_HEADER_PART_SIZE bytes after the payload.
 */
uint8_t *msg_put_head (uint8_t *p, const struct idt_msg *msg);
uint8_t *msg_put_tail (uint8_t *p, const struct idt_msg *msg);

/* Write a part of the bytes that msg_put () would write: 'size' bytes from byte 'from' on. The message must have that
 * many bytes.
 */
void msg_put_slice (uint8_t *p, const struct idt_msg *msg, size_t from, size_t size);

/* Set the members of a message from the parts that were written to msg_bytes (), 'size' bytes in all. Returns NULL on
 * success. On failure it returns a constant text that describes the error, and only idt_msg_unref () may be called on
 * the message.
 */
const char *msg_parse (struct idt_msg *msg, size_t size);

/* As idt_msg_decode (), with memory of 'pool' (may be NULL). On EPROTO '*why' ('why' may be NULL) is a constant text
 * that describes the error.
 */
idt_msg_t *msg_decode (struct msg_pool *pool, const void *buf, size_t size, const char **why);

#endif /* MSG_MESSAGE_H */
