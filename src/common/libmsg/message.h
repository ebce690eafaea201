/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message.h - the inside of a message; only libmsg includes it
 *
 * A message is one allocation: the struct, slots for some routes, the bytes that it was decoded or copied from, then
 * space for a topic and a payload that are set later. Contents that do not fit there have their own allocation (the
 * _alloc members), which is freed with the message.
 *
 * The route stack grows towards lower addresses, so that its order in memory is the order on the wire, newest first,
 * and the routes of a received frame are used in place: there a route is a size byte and 36 characters, and the next
 * part's size byte becomes the terminating NUL.
 */
#ifndef MSG_MESSAGE_H
#define MSG_MESSAGE_H

#include <idtree/msg.h>

#include "libmsg/pool.h"

#define MSG_ROUTE_ROOM 4                               /* hops that fit into a new message without malloc () */
#define MSG_SPACE 128                                  /* bytes of a new message for contents that are set later */
#define MSG_HEADER_PART_SIZE (1 + IDT_MSG_HEADER_SIZE) /* the header with its size byte */
#define MSG_CONTENT_FLAGS (IDT_MSGFLAG_TOPIC | IDT_MSGFLAG_PAYLOAD | IDT_MSGFLAG_ROUTE)

struct msg_route {
    char uuid[IDT_MSG_UUID_LEN + 1];
};

struct idt_msg {
    unsigned refs; /* atomic */
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
    char *space; /* the rest of the free space */
    size_t space_size;
    struct msg_pool *pool; /* the pool of its block; NULL: malloc () */
    char body[];
};

/* Allocate a message with 'size' bytes of contents after the slots for routes, and 'space' free bytes after them. The
 * memory is a block of 'pool' (may be NULL) if it is large enough. All members are zero except the reference count and
 * the empty route stack, which ends where the contents begin: msg_bytes (). NULL with errno ENOMEM.
 */
struct idt_msg *msg_alloc (struct msg_pool *pool, size_t size, size_t space);

/* Resize the contents of a message without routes and pool, of which only the bytes are set, to 'size' bytes; the
 * message moves. NULL with errno ENOMEM: the message is unchanged.
 */
struct idt_msg *msg_grow (struct idt_msg *msg, size_t size);

/* As idt_msg_create (). */
idt_msg_t *msg_create (struct msg_pool *pool, enum idt_msgtype type);

static inline char *msg_bytes (struct idt_msg *msg)
{
    return msg->body + MSG_ROUTE_ROOM * sizeof (struct msg_route);
}

#endif /* MSG_MESSAGE_H */
