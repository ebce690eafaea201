/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message.c - a message's memory, life and fields; its bytes are in codec.c
 *
 * The flags TOPIC, PAYLOAD and ROUTE always describe the contents: only the functions that change the contents change
 * these flags. The reference count is the only member that two threads may access at the same time.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libmsg/message.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"

/* --- the pool ------------------------------------------------------------------------------- */

struct msg_pool {
    size_t users; /* number of blocks in use, plus 1 for the owner; atomic */
    bool busy;    /* a thread uses the members below; atomic */
    size_t bytes; /* bytes of the unused blocks that are kept */
    void *first;  /* list of the unused blocks; each begins with the address of the next */
};

static bool enter (struct msg_pool *pool)
{
    return !__atomic_test_and_set (&pool->busy, __ATOMIC_ACQUIRE);
}

static void leave (struct msg_pool *pool)
{
    __atomic_clear (&pool->busy, __ATOMIC_RELEASE);
}

struct msg_pool *msg_pool_create (void)
{
    struct msg_pool *pool = calloc (1, sizeof (*pool));

    if (pool)
        pool->users = 1;
    return pool;
}

static void *take (struct msg_pool *pool)
{
    void *block = NULL;

    if (!enter (pool))
        return NULL;
    if ((block = pool->first)) {
        pool->first = *(void **)block;
        pool->bytes -= MSG_POOL_BLOCK;
    }
    leave (pool);
    return block;
}

/* Take a block of MSG_POOL_BLOCK bytes. NULL with errno ENOMEM. */
static void *pool_get (struct msg_pool *pool)
{
    void *block = take (pool);

    if (!block && !(block = malloc (MSG_POOL_BLOCK)))
        return NULL;
    __atomic_add_fetch (&pool->users, 1, __ATOMIC_RELAXED);
    return block;
}

static bool keep (struct msg_pool *pool, void *block)
{
    bool kept;

    if (!enter (pool))
        return false;
    if ((kept = pool->bytes + MSG_POOL_BLOCK <= MSG_POOL_BYTES)) {
        *(void **)block = pool->first;
        pool->first = block;
        pool->bytes += MSG_POOL_BLOCK;
    }
    assert (pool->bytes <= MSG_POOL_BYTES);
    leave (pool);
    return kept;
}

static void one_less (struct msg_pool *pool)
{
    void *block;

    if (__atomic_sub_fetch (&pool->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    while ((block = pool->first)) {
        pool->first = *(void **)block;
        free (block);
    }
    free (pool);
}

static void pool_put (struct msg_pool *pool, void *block)
{
    if (!keep (pool, block))
        free (block);
    one_less (pool);
}

void msg_pool_let_go (struct msg_pool *pool)
{
    if (pool)
        one_less (pool);
}

/* --- life ------------------------------------------------------------------------------- */

struct idt_msg *msg_alloc (struct msg_pool *pool, size_t size, size_t space)
{
    size_t head = sizeof (struct idt_msg) + MSG_ROUTE_ROOM * sizeof (struct msg_route);
    size_t all = head + size + space;
    struct idt_msg *msg;

    if (all > MSG_POOL_BLOCK)
        pool = NULL;
    else if (pool)
        all = MSG_POOL_BLOCK;
    if (!(msg = pool ? pool_get (pool) : malloc (all)))
        return NULL;
    *msg = (struct idt_msg){ .refs = 1, .route_room = MSG_ROUTE_ROOM, .pool = pool };
    msg->routes = (struct msg_route *)msg_bytes (msg);
    msg->space = msg_bytes (msg) + size;
    msg->space_size = all - head - size;
    return msg;
}

struct idt_msg *msg_grow (struct idt_msg *msg, size_t size)
{
    assert (!msg->pool && msg->route_count == 0);
    if (!(msg = realloc (msg, sizeof (*msg) + MSG_ROUTE_ROOM * sizeof (struct msg_route) + size)))
        return NULL;
    msg->routes = (struct msg_route *)msg_bytes (msg);
    msg->space = msg_bytes (msg) + size;
    msg->space_size = 0;
    return msg;
}

/* Take memory from the free space of the message's own allocation. NULL: not enough is left. */
static void *take_space (struct idt_msg *msg, size_t size)
{
    size_t skip = -(uintptr_t)msg->space % sizeof (uint64_t);
    char *p = msg->space + skip;

    if (skip + size > msg->space_size)
        return NULL;
    msg->space += skip + size;
    msg->space_size -= skip + size;
    return p;
}

static bool valid_type (enum idt_msgtype type)
{
    return type == IDT_MSGTYPE_REQUEST || type == IDT_MSGTYPE_RESPONSE || type == IDT_MSGTYPE_EVENT
           || type == IDT_MSGTYPE_CONTROL;
}

idt_msg_t *msg_create (struct msg_pool *pool, enum idt_msgtype type)
{
    idt_msg_t *msg;

    if (!valid_type (type))
        return errset_null (EINVAL);
    if (!(msg = msg_alloc (pool, 0, MSG_SPACE)))
        return NULL;
    msg->type = type;
    msg->userid = IDT_USERID_UNKNOWN;
    msg->rolemask = IDT_ROLE_NONE;
    if (type == IDT_MSGTYPE_REQUEST)
        msg->aux1 = IDT_NODEID_ANY;
    return msg;
}

idt_msg_t *idt_msg_create (enum idt_msgtype type)
{
    return msg_create (NULL, type);
}

/* Make a message in one allocation: it contains copies of the routes, of the topic and of 'payload_size' bytes of the
 * payload, and 'space' further bytes.
 */
static struct idt_msg *copy_contents (const struct idt_msg *msg, size_t payload_size, size_t space)
{
    size_t routes_size = msg->route_count * sizeof (struct msg_route);
    size_t topic_size = msg->topic ? msg->topic_len + 1 : 0;
    struct idt_msg *cpy = msg_alloc (msg->pool, routes_size + topic_size + payload_size, space);
    char *p;

    if (!cpy)
        return NULL;
    p = msg_bytes (cpy);
    memcpy (p, msg->routes, routes_size);
    cpy->route_count = msg->route_count;
    if (msg->topic) {
        cpy->topic = memcpy (p + routes_size, msg->topic, topic_size);
        cpy->topic_len = msg->topic_len;
    }
    if (payload_size > 0)
        memcpy (p + routes_size + topic_size, msg->payload, payload_size);
    cpy->payload = p + routes_size + topic_size;
    cpy->payload_size = payload_size;
    cpy->type = msg->type;
    cpy->flags = msg->flags & (IDT_MSGFLAG_TOPIC | IDT_MSGFLAG_ROUTE);
    return cpy;
}

idt_msg_t *idt_msg_copy (const idt_msg_t *msg, bool payload)
{
    idt_msg_t *cpy = copy_contents (msg, payload ? msg->payload_size : 0, 0);

    if (!cpy)
        return NULL;
    cpy->flags = payload ? msg->flags : msg->flags & ~IDT_MSGFLAG_PAYLOAD;
    cpy->userid = msg->userid;
    cpy->rolemask = msg->rolemask;
    cpy->aux1 = msg->aux1;
    cpy->aux2 = msg->aux2;
    return cpy;
}

idt_msg_t *idt_msg_respond (const idt_msg_t *request, uint32_t errnum)
{
    idt_msg_t *msg;

    if (request->type != IDT_MSGTYPE_REQUEST)
        return errset_null (EPROTO);
    if (!(msg = copy_contents (request, 0, MSG_SPACE)))
        return NULL;
    msg->type = IDT_MSGTYPE_RESPONSE;
    msg->flags |= request->flags & IDT_MSGFLAG_STREAMING;
    msg->userid = IDT_USERID_UNKNOWN;
    msg->aux1 = errnum;
    msg->aux2 = request->aux2;
    return msg;
}

idt_msg_t *msg_own (const idt_msg_t *msg)
{
    idt_msg_t *copy;

    if (__atomic_load_n (&msg->refs, __ATOMIC_ACQUIRE) == 1)
        return (idt_msg_t *)msg;
    copy = idt_msg_copy (msg, true);
    idt_msg_unref (msg);
    return copy;
}

const idt_msg_t *idt_msg_ref (const idt_msg_t *msg)
{
    __atomic_add_fetch (&((struct idt_msg *)msg)->refs, 1, __ATOMIC_RELAXED);
    return msg;
}

/* Drop a reference. Returns whether it was the last one. If the caller has the only reference, no atomic write is
 * needed.
 */
static bool last_unref (struct idt_msg *msg)
{
    return __atomic_load_n (&msg->refs, __ATOMIC_ACQUIRE) == 1
           || __atomic_sub_fetch (&msg->refs, 1, __ATOMIC_ACQ_REL) == 0;
}

void idt_msg_unref (const idt_msg_t *cmsg)
{
    struct idt_msg *msg = (struct idt_msg *)cmsg;

    if (msg && last_unref (msg)) {
        int saved_errno = errno;

        free (msg->routes_alloc);
        free (msg->topic_alloc);
        free (msg->payload_alloc);
        if (msg->pool)
            pool_put (msg->pool, msg);
        else
            free (msg);
        errno = saved_errno;
    }
}

void msg_fifo_fini (struct fifo *q)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q)))
        idt_msg_unref (msg);
    fifo_fini (q);
}

/* --- header ----------------------------------------------------------------------------- */

enum idt_msgtype idt_msg_type (const idt_msg_t *msg)
{
    return msg->type;
}

const char *idt_msg_typestr (const idt_msg_t *msg)
{
    switch ((enum idt_msgtype)msg->type) {
    case IDT_MSGTYPE_REQUEST:
        return "request";
    case IDT_MSGTYPE_RESPONSE:
        return "response";
    case IDT_MSGTYPE_EVENT:
        return "event";
    case IDT_MSGTYPE_CONTROL:
        return "control";
    case IDT_MSGTYPE_ANY:
        break;
    }
    return "unknown";
}

int idt_msg_flags (const idt_msg_t *msg)
{
    return msg->flags;
}

bool idt_msg_has_flag (const idt_msg_t *msg, int flag)
{
    return (msg->flags & flag) != 0;
}

void idt_msg_set_flag (idt_msg_t *msg, int flag)
{
    assert (!(flag & MSG_CONTENT_FLAGS));
    msg->flags |= flag;
}

void idt_msg_clear_flag (idt_msg_t *msg, int flag)
{
    assert (!(flag & MSG_CONTENT_FLAGS));
    msg->flags &= ~flag;
}

struct idt_cred idt_msg_cred (const idt_msg_t *msg)
{
    return (struct idt_cred){ .userid = msg->userid, .rolemask = msg->rolemask };
}

void idt_msg_set_cred (idt_msg_t *msg, struct idt_cred cred)
{
    msg->userid = cred.userid;
    msg->rolemask = cred.rolemask;
}

uint32_t idt_msg_nodeid (const idt_msg_t *msg)
{
    assert (msg->type == IDT_MSGTYPE_REQUEST);
    return msg->aux1;
}

void idt_msg_set_nodeid (idt_msg_t *msg, uint32_t nodeid)
{
    assert (msg->type == IDT_MSGTYPE_REQUEST);
    msg->aux1 = nodeid;
}

uint32_t idt_msg_matchtag (const idt_msg_t *msg)
{
    assert (msg->type == IDT_MSGTYPE_REQUEST || msg->type == IDT_MSGTYPE_RESPONSE);
    return msg->aux2;
}

void idt_msg_set_matchtag (idt_msg_t *msg, uint32_t matchtag)
{
    assert (msg->type == IDT_MSGTYPE_REQUEST || msg->type == IDT_MSGTYPE_RESPONSE);
    msg->aux2 = matchtag;
}

uint32_t idt_msg_errnum (const idt_msg_t *msg)
{
    assert (msg->type == IDT_MSGTYPE_RESPONSE);
    return msg->aux1;
}

void idt_msg_set_errnum (idt_msg_t *msg, uint32_t errnum)
{
    assert (msg->type == IDT_MSGTYPE_RESPONSE);
    msg->aux1 = errnum;
}

uint32_t idt_msg_seq (const idt_msg_t *msg)
{
    assert (msg->type == IDT_MSGTYPE_EVENT);
    return msg->aux1;
}

void idt_msg_set_seq (idt_msg_t *msg, uint32_t seq)
{
    assert (msg->type == IDT_MSGTYPE_EVENT);
    msg->aux1 = seq;
}

uint32_t idt_msg_control_type (const idt_msg_t *msg)
{
    assert (msg->type == IDT_MSGTYPE_CONTROL);
    return msg->aux1;
}

uint32_t idt_msg_control_status (const idt_msg_t *msg)
{
    assert (msg->type == IDT_MSGTYPE_CONTROL);
    return msg->aux2;
}

void idt_msg_set_control (idt_msg_t *msg, uint32_t type, uint32_t status)
{
    assert (msg->type == IDT_MSGTYPE_CONTROL);
    msg->aux1 = type;
    msg->aux2 = status;
}

/* --- routes --------------------------------------------------------------------------------- */

/* A push writes to the slot before routes[0]; a pop makes the next slot routes[0]. When no slot is left, the stack
 * moves to the end of an allocation of twice its size.
 */

unsigned idt_msg_route_count (const idt_msg_t *msg)
{
    return msg->route_count;
}

const char *idt_msg_route_at (const idt_msg_t *msg, unsigned i)
{
    return i < msg->route_count ? msg->routes[i].uuid : NULL;
}

const char *idt_msg_route_newest (const idt_msg_t *msg)
{
    return idt_msg_route_at (msg, 0);
}

const char *idt_msg_route_oldest (const idt_msg_t *msg)
{
    return msg->route_count > 0 ? msg->routes[msg->route_count - 1].uuid : NULL;
}

static int grow (struct idt_msg *msg)
{
    unsigned slots = msg->route_count > 0 ? 2 * msg->route_count : MSG_ROUTE_ROOM;
    struct msg_route *stack = malloc (slots * sizeof (*stack));

    if (!stack)
        return -1;
    msg->route_room = slots - msg->route_count;
    memcpy (stack + msg->route_room, msg->routes, msg->route_count * sizeof (*stack));
    free (msg->routes_alloc);
    msg->routes_alloc = stack;
    msg->routes = stack + msg->route_room;
    return 0;
}

int idt_msg_route_push (idt_msg_t *msg, const char *uuid)
{
    struct msg_route route; /* a copy, since 'uuid' may be a route of this stack, and the stack may move */

    if (strnlen (uuid, sizeof (route.uuid)) != IDT_MSG_UUID_LEN)
        return errset (EINVAL);
    if (msg->route_count == IDT_MSG_MAX_ROUTES)
        return errset (EOVERFLOW);
    memcpy (route.uuid, uuid, sizeof (route.uuid));
    if (msg->route_room == 0 && grow (msg) < 0)
        return -1;
    assert (msg->route_room > 0);
    *--msg->routes = route;
    msg->route_room--;
    msg->route_count++;
    msg->flags |= IDT_MSGFLAG_ROUTE;
    return 0;
}

void idt_msg_route_pop (idt_msg_t *msg)
{
    if (msg->route_count > 0) {
        msg->routes++;
        msg->route_room++;
        msg->route_count--;
    }
}

void idt_msg_route_drop_oldest (idt_msg_t *msg)
{
    if (msg->route_count > 0)
        msg->route_count--;
}

void idt_msg_route_clear (idt_msg_t *msg)
{
    msg->routes += msg->route_count;
    msg->route_room += msg->route_count;
    msg->route_count = 0;
    msg->flags |= IDT_MSGFLAG_ROUTE;
}

/* --- topic ------------------------------------------------------------------------------- */

const char *idt_msg_topic (const idt_msg_t *msg)
{
    return msg->topic;
}

/* Set the topic. 'alloc' is an allocation that is freed together with the topic; NULL: none. The old topic is freed
 * here. The caller has copied the new topic before, since it may be a part of the old one.
 */
static void replace_topic (struct idt_msg *msg, char *topic, size_t len, void *alloc)
{
    free (msg->topic_alloc);
    msg->topic_alloc = alloc;
    msg->topic = topic;
    msg->topic_len = len;
    if (topic)
        msg->flags |= IDT_MSGFLAG_TOPIC;
    else
        msg->flags &= ~IDT_MSGFLAG_TOPIC;
}

int idt_msg_set_topic (idt_msg_t *msg, const char *topic)
{
    void *alloc = NULL;
    size_t len;
    char *cpy;

    if (!topic) {
        replace_topic (msg, NULL, 0, NULL);
        return 0;
    }
    len = strnlen (topic, IDT_MSG_MAX_TOPIC + 1);
    if (len == 0 || len > IDT_MSG_MAX_TOPIC)
        return errset (EINVAL);
    if (!(cpy = take_space (msg, len + 1)) && !(cpy = alloc = malloc (len + 1)))
        return -1;
    memcpy (cpy, topic, len);
    cpy[len] = '\0';
    replace_topic (msg, cpy, len, alloc);
    return 0;
}

/* --- payload ----------------------------------------------------------------------------- */

int idt_msg_payload (const idt_msg_t *msg, const void **data, size_t *size)
{
    if (!(msg->flags & IDT_MSGFLAG_PAYLOAD))
        return errset (EPROTO);
    if (data)
        *data = msg->payload;
    if (size)
        *size = msg->payload_size;
    return 0;
}

/* Set the payload. The message must have only one reference: the old payload must not be freed while another holder of
 * the message, such as ZeroMQ, may read it.
 */
static void replace_payload (struct idt_msg *msg, void *payload, size_t size, void *alloc)
{
    assert (__atomic_load_n (&msg->refs, __ATOMIC_ACQUIRE) == 1);
    free (msg->payload_alloc);
    msg->payload_alloc = alloc;
    msg->payload = payload;
    msg->payload_size = size;
    if (payload)
        msg->flags |= IDT_MSGFLAG_PAYLOAD;
    else
        msg->flags &= ~IDT_MSGFLAG_PAYLOAD;
}

/* Allocate a payload. '*alloc' is an allocation that must be freed together with it; NULL: none. An empty payload also
 * has an address.
 */
static void *payload_new (struct idt_msg *msg, size_t size, void **alloc)
{
    void *p;

    *alloc = NULL;
    if (size > IDT_MSG_MAX_PAYLOAD)
        return errset_null (EOVERFLOW);
    if ((p = take_space (msg, size > 0 ? size : 1)))
        return p;
    return *alloc = malloc (size > 0 ? size : 1);
}

void *idt_msg_alloc_payload (idt_msg_t *msg, size_t size)
{
    void *alloc, *payload = payload_new (msg, size, &alloc);

    if (payload)
        replace_payload (msg, payload, size, alloc);
    return payload;
}

int idt_msg_set_payload (idt_msg_t *msg, const void *data, size_t size)
{
    void *alloc = NULL, *payload = NULL;

    if (data) {
        if (!(payload = payload_new (msg, size, &alloc)))
            return -1;
        memcpy (payload, data, size);
    }
    replace_payload (msg, payload, data ? size : 0, alloc);
    return 0;
}

const char *idt_msg_string (const idt_msg_t *msg)
{
    const char *s = msg->payload;
    size_t size = msg->payload_size;

    if (!(msg->flags & IDT_MSGFLAG_PAYLOAD) || size == 0 || memchr (s, '\0', size) != s + size - 1)
        return errset_null (EPROTO);
    return s;
}

int idt_msg_set_string (idt_msg_t *msg, const char *s)
{
    return idt_msg_set_payload (msg, s, s ? strlen (s) + 1 : 0);
}
