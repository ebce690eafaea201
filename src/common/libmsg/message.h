/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message.h - the inside of a message, for libmsg alone
 *
 * A message lives in one allocation: the struct, room for some routes, the bytes that it was decoded
 * or copied from, then space for a topic and a payload that are set later.  What does not fit there
 * has an allocation of its own (the _alloc members), which is freed with the message.
 *
 * The route stack grows towards lower addresses, so that its order in memory is the order of the
 * wire, newest first, and routes of a received frame are used where they lie: a route there is a
 * size byte and 36 characters, and the next part's size byte becomes the terminating NUL.
 */
#ifndef MSG_MESSAGE_H
#define MSG_MESSAGE_H

#include <idtree/msg.h>

#include "libmsg/pool.h"

#define MSG_ROUTE_ROOM 4                               /* hops that a new message takes without malloc */
#define MSG_SPACE 128                                  /* bytes for what is set later, of a message that is made */
#define MSG_HEADER_PART_SIZE (1 + IDT_MSG_HEADER_SIZE) /* the header with its size byte */
#define MSG_CONTENT_FLAGS (IDT_MSGFLAG_TOPIC | IDT_MSGFLAG_PAYLOAD | IDT_MSGFLAG_ROUTE)

struct msg_route {
    char uuid[IDT_MSG_UUID_LEN + 1];
};

struct idt_msg {
    unsigned refs; /* atomic */
    uint8_t type;
    uint8_t flags; /* TOPIC, PAYLOAD, ROUTE tell whether the members below mean something */
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
    char *space; /* what is left of it */
    size_t space_size;
    struct msg_pool *pool; /* whose block it is; NULL: of malloc () */
    char body[];
};

/* Allocate a message that has 'size' bytes of its own after the room for routes, and 'space' bytes behind them; out of
 * 'pool' (may be NULL), where they fit into a block of it.  All members are zero but the count of references and the
 * empty route stack, which ends where the bytes begin: msg_bytes ().  NULL with errno ENOMEM.
 */
struct idt_msg *msg_alloc (struct msg_pool *pool, size_t size, size_t space);

/* Give one that is nothing yet but bytes of its own room for 'size' of them; it moves.  NULL with errno ENOMEM: it is
 * as it was.
 */
struct idt_msg *msg_grow (struct idt_msg *msg, size_t size);

/* As idt_msg_create (). */
idt_msg_t *msg_create (struct msg_pool *pool, enum idt_msgtype type);

static inline char *msg_bytes (struct idt_msg *msg)
{
    return msg->body + MSG_ROUTE_ROOM * sizeof (struct msg_route);
}

#endif /* MSG_MESSAGE_H */
