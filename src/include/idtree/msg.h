/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* msg.h - messages (Flux RFC 3)
 *
 * A message is reference counted. It may be changed only while it has one reference and was not handed to another
 * thread. Strings and payloads that accessors return are borrowed: valid until the message is changed or freed. An
 * accessor for something that a message does not have fails with EPROTO.
 */
#ifndef IDTREE_MSG_H
#define IDTREE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct idt_msg idt_msg_t;

enum idt_msgtype {
    IDT_MSGTYPE_REQUEST = 1,
    IDT_MSGTYPE_RESPONSE = 2,
    IDT_MSGTYPE_EVENT = 4,
    IDT_MSGTYPE_CONTROL = 8,
    IDT_MSGTYPE_ANY = 15,
};

enum idt_msgflag {
    IDT_MSGFLAG_TOPIC = 0x01,      /* set and cleared by idt_msg_set_topic () */
    IDT_MSGFLAG_PAYLOAD = 0x02,    /* set and cleared by functions that set the payload */
    IDT_MSGFLAG_NORESPONSE = 0x04, /* request: no answer is wanted */
    IDT_MSGFLAG_ROUTE = 0x08,      /* has a route stack; set by idt_msg_route_ functions */
    IDT_MSGFLAG_UPSTREAM = 0x10,   /* request: skip the services of rank nodeid */
    IDT_MSGFLAG_PRIVATE = 0x20,    /* event: for its sender and the owner; of documents: also for access.group */
    IDT_MSGFLAG_STREAMING = 0x40,  /* several responses; the last one is an error, ENODATA if all went well */
    IDT_MSGFLAG_USER1 = 0x80,
};

#define IDT_NODEID_ANY UINT32_C (0xffffffff)
#define IDT_NODEID_UPSTREAM UINT32_C (0xfffffffe) /* idt_rpc (): next ancestor with the service */
#define IDT_USERID_UNKNOWN UINT32_C (0xffffffff)

enum idt_role {
    IDT_ROLE_NONE = 0,
    IDT_ROLE_OWNER = 1,
    IDT_ROLE_USER = 2,
    IDT_ROLE_LOCAL = 4, /* came over a local connection */
    IDT_ROLE_ALL = 7,
    IDT_ROLE_BROKER = 0x100, /* sent by a module of a broker, not on behalf of a client (not in RFC 12) */
    IDT_ROLE_GROUP = 0x200,  /* a member of access.group (not in RFC 12) */
};

struct idt_cred {
    uint32_t userid;
    uint32_t rolemask;
};

#define IDT_MSG_HEADER_SIZE 20                    /* bytes of the header, which is the last part */
#define IDT_MSG_UUID_LEN 36                       /* characters of a route */
#define IDT_MSG_MAX_ROUTES 1024                   /* hops */
#define IDT_MSG_MAX_TOPIC 1024                    /* bytes */
#define IDT_MSG_MAX_PAYLOAD UINT32_C (0xff000000) /* bytes; the size of a whole message then fits in 32 bits */

/* --- life ------------------------------------------------------------------------------- */

/* Make a message of a type, without topic and payload. Its user is unknown, and it has no roles. The nodeid of a
 * request is IDT_NODEID_ANY; matchtag, errnum and sequence are 0. NULL with errno EINVAL (unknown type) or ENOMEM.
 */
idt_msg_t *idt_msg_create (enum idt_msgtype type);

/* Copy a message; if 'payload' is false, without its payload. NULL with errno ENOMEM. */
idt_msg_t *idt_msg_copy (const idt_msg_t *msg, bool payload);

const idt_msg_t *idt_msg_ref (const idt_msg_t *msg);
void idt_msg_unref (const idt_msg_t *msg); /* NULL is allowed; errno is preserved */

/* --- header ----------------------------------------------------------------------------- */

enum idt_msgtype idt_msg_type (const idt_msg_t *msg);
const char *idt_msg_typestr (const idt_msg_t *msg); /* "request", "response", "event", "control" */

int idt_msg_flags (const idt_msg_t *msg); /* enum idt_msgflag bits */
bool idt_msg_has_flag (const idt_msg_t *msg, int flag);
/* Set or clear NORESPONSE, UPSTREAM, PRIVATE, STREAMING, USER1; the other flags follow from the contents. */
void idt_msg_set_flag (idt_msg_t *msg, int flag);
void idt_msg_clear_flag (idt_msg_t *msg, int flag);

struct idt_cred idt_msg_cred (const idt_msg_t *msg);
void idt_msg_set_cred (idt_msg_t *msg, struct idt_cred cred);

/* The header's fields aux1 and aux2, under the names that RFC 3 gives them for each type of message. To call such a
 * function for a message of another type is a programming error (asserted).
 */
uint32_t idt_msg_nodeid (const idt_msg_t *msg); /* request */
void idt_msg_set_nodeid (idt_msg_t *msg, uint32_t nodeid);
uint32_t idt_msg_matchtag (const idt_msg_t *msg); /* request, response; 0 is an ordinary value */
void idt_msg_set_matchtag (idt_msg_t *msg, uint32_t matchtag);
uint32_t idt_msg_errnum (const idt_msg_t *msg); /* response; 0: success */
void idt_msg_set_errnum (idt_msg_t *msg, uint32_t errnum);
uint32_t idt_msg_seq (const idt_msg_t *msg); /* event */
void idt_msg_set_seq (idt_msg_t *msg, uint32_t seq);
uint32_t idt_msg_control_type (const idt_msg_t *msg); /* control */
uint32_t idt_msg_control_status (const idt_msg_t *msg);
void idt_msg_set_control (idt_msg_t *msg, uint32_t type, uint32_t status);

/* --- topic ------------------------------------------------------------------------------- */

/* The topic, NUL-terminated; NULL: none. Decoding refuses a topic with a NUL inside. */
const char *idt_msg_topic (const idt_msg_t *msg);

/* Set a copy of 'topic', or none (NULL).  Returns 0, or -1 with errno EINVAL (empty, or longer than
 * IDT_MSG_MAX_TOPIC) or ENOMEM.
 */
int idt_msg_set_topic (idt_msg_t *msg, const char *topic);

/* --- payload ----------------------------------------------------------------------------- */

/* Store the address and the number of the payload's bytes in '*data' and '*size' (each of the two may be NULL). The
 * address has no particular alignment. Returns 0, or -1 with errno EPROTO (no payload).
 */
int idt_msg_payload (const idt_msg_t *msg, const void **data, size_t *size);

/* Set a copy of 'size' bytes, or no payload (data NULL). A payload may have 0 bytes. Returns 0, or -1 with errno
 * EOVERFLOW (over IDT_MSG_MAX_PAYLOAD) or ENOMEM.
 */
int idt_msg_set_payload (idt_msg_t *msg, const void *data, size_t size);

/* Make a payload of 'size' bytes with undefined contents, and return its address, where the caller writes the contents.
 * This saves a copy. NULL with errno as for idt_msg_set_payload ().
 */
void *idt_msg_alloc_payload (idt_msg_t *msg, size_t size);

/* The payload as a string, whose last byte must be its only NUL. NULL with errno EPROTO: no payload, or not such a
 * string.
 */
const char *idt_msg_string (const idt_msg_t *msg);

/* Set a copy of 's' with its NUL, or no payload (NULL). Returns 0, or -1 with errno as for idt_msg_set_payload (). */
int idt_msg_set_string (idt_msg_t *msg, const char *s);

/* --- routes ------------------------------------------------------------------------------ */

/* The route stack.  Each route is a text of IDT_MSG_UUID_LEN characters, NUL-terminated here. */
unsigned idt_msg_route_count (const idt_msg_t *msg);
const char *idt_msg_route_newest (const idt_msg_t *msg);         /* the next hop of the answer; NULL: empty */
const char *idt_msg_route_oldest (const idt_msg_t *msg);         /* the requester; NULL: empty */
const char *idt_msg_route_at (const idt_msg_t *msg, unsigned i); /* 0: newest; NULL: none */

/* Push a route.  Returns 0, or -1 with errno EINVAL (not 36 characters), EOVERFLOW (too many),
 * ENOMEM.
 */
int idt_msg_route_push (idt_msg_t *msg, const char *uuid);

/* Drop the newest route, or the oldest, if any. */
void idt_msg_route_pop (idt_msg_t *msg);
void idt_msg_route_drop_oldest (idt_msg_t *msg);

/* Drop all routes. Leaves an empty stack (flag ROUTE), even if there was no stack. */
void idt_msg_route_clear (idt_msg_t *msg);

/* Make the response to a request. It has the request's topic, matchtag, routes and STREAMING flag, and nothing else of
 * the request. NULL with errno ENOMEM, or EPROTO if 'request' is not a request.
 */
idt_msg_t *idt_msg_respond (const idt_msg_t *request, uint32_t errnum);

/* --- bytes ------------------------------------------------------------------------------- */

/* The size of the encoded message, which consists of the parts in order, each with its size before it (protocol.md,
 * section 2.3). A stream socket carries these bytes after 8 bytes of frame header.
 */
size_t idt_msg_encode_size (const idt_msg_t *msg);

/* Write idt_msg_encode_size () bytes to 'buf'. Returns their number, or -1 with errno EINVAL ('size' is too small). */
ssize_t idt_msg_encode (const idt_msg_t *msg, void *buf, size_t size);

/* Read a message from 'size' bytes. NULL with errno EPROTO (malformed in any way) or ENOMEM. Allocates no more than a
 * constant plus a small multiple of 'size'.
 */
idt_msg_t *idt_msg_decode (const void *buf, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_MSG_H */
