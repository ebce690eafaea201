/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc.c - requests to services, and their responses (RFC 6) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/handle.h"
#include "libidtree/json.h"
#include "libutil/errprintf.h"

/* --- requests ------------------------------------------------------------------------------- */

static int address (idt_t *h, idt_msg_t *request, uint32_t nodeid)
{
    if (nodeid == IDT_NODEID_UPSTREAM) {
        if (idt_get_rank (h, &nodeid) < 0)
            return -1;
        idt_msg_set_flag (request, IDT_MSGFLAG_UPSTREAM);
    }
    idt_msg_set_nodeid (request, nodeid);
    return 0;
}

/* Prepare a future to wait for a response. With IDT_RPC_NORESPONSE the future is fulfilled immediately instead. */
static int expect (idt_future_t *f, idt_msg_t *request, int flags)
{
    if (flags & IDT_RPC_NORESPONSE) {
        idt_msg_set_flag (request, IDT_MSGFLAG_NORESPONSE);
        f->ready = true;
        return 0;
    }
    if (flags & IDT_RPC_STREAMING) {
        idt_msg_set_flag (request, IDT_MSGFLAG_STREAMING);
        f->streaming = true;
    }
    if (f->h->lost && !handle_is_sought (f->h))
        return errset (f->h->lost); /* earlier futures have failed already, so nothing would end this one */
    f->connection = f->h->connections;
    if ((f->tag = matchtag_table_add (&f->h->tags, f)) == 0)
        return -1;
    idt_msg_set_matchtag (request, f->tag);
    return 0;
}

static idt_future_t *try_send (idt_t *h, idt_msg_t *request, int flags)
{
    idt_future_t *f = future_create (h);

    if (f && expect (f, request, flags) == 0 && handle_send (h, request, flags & RPC_TYPED) == 0)
        return f;
    idt_future_destroy (f);
    return NULL;
}

/* Send a request. If this finds that the connection is lost, the request was not sent completely, so no broker has
 * received it. It may be sent again over the next connection.
 */
static idt_future_t *send_or_seek (idt_t *h, idt_msg_t *request, int flags)
{
    bool may = flags & RPC_TYPED ? handle_may_follow (h) : handle_follows (h);

    if (may && h->lost)
        (void)handle_seek (h);
    bool was_lost = h->lost != 0;
    idt_future_t *f = try_send (h, request, flags);
    if (!f && may && !was_lost && h->lost && handle_seek (h))
        f = try_send (h, request, flags);
    return f;
}

/* Send a request (stolen, also on failure). */
static idt_future_t *send_new (idt_t *h, idt_msg_t *request, uint32_t nodeid, int flags)
{
    idt_future_t *f = address (h, request, nodeid) == 0 ? send_or_seek (h, request, flags) : NULL;

    idt_msg_unref (request);
    return f;
}

idt_future_t *idt_rpc_raw (idt_t *h, const char *topic, const void *data, size_t size, uint32_t nodeid, int flags)
{
    idt_msg_t *request = msg_create (h->pool, IDT_MSGTYPE_REQUEST);

    if (request && idt_msg_set_topic (request, topic) == 0 && idt_msg_set_payload (request, data, size) == 0)
        return send_new (h, request, nodeid, flags);
    idt_msg_unref (request);
    return NULL;
}

idt_future_t *idt_rpc (idt_t *h, const char *topic, const char *s, uint32_t nodeid, int flags)
{
    return idt_rpc_raw (h, topic, s, s ? strlen (s) + 1 : 0, nodeid, flags);
}

idt_future_t *idt_rpc_pack (idt_t *h, const char *topic, uint32_t nodeid, int flags, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    char *s = json_vpack_text (NULL, fmt, ap);
    va_end (ap);
    if (!s)
        return NULL;
    idt_future_t *f = idt_rpc (h, topic, s, nodeid, flags);
    free (s);
    return f;
}

idt_future_t *idt_rpc_message (idt_t *h, const idt_msg_t *request, uint32_t nodeid, int flags)
{
    idt_msg_t *copy = idt_msg_create (IDT_MSGTYPE_REQUEST);
    const void *data = NULL;
    size_t size = 0;

    (void)idt_msg_payload (request, &data, &size); /* a request may have no payload */
    if (copy && idt_msg_set_topic (copy, idt_msg_topic (request)) == 0 && idt_msg_set_payload (copy, data, size) == 0) {
        idt_msg_set_cred (copy, idt_msg_cred (request));
        return send_new (h, copy, nodeid, flags);
    }
    idt_msg_unref (copy);
    return NULL;
}

/* --- responses ------------------------------------------------------------------------------ */

/* Wait for the result. Returns 0, or -1 with errno set to the result's error. */
static int get (idt_future_t *f)
{
    if (!f->ready && idt_future_wait (f, -1) < 0)
        return -1;
    return f->errnum == 0 ? 0 : errset (f->errnum);
}

int idt_rpc_get (idt_future_t *f, const char **s)
{
    const char *text = NULL;

    if (get (f) < 0)
        return -1;
    if (!s)
        return 0;
    if (f->response && idt_msg_has_flag (f->response, IDT_MSGFLAG_PAYLOAD) && !(text = idt_msg_string (f->response)))
        return -1;
    *s = text;
    return 0;
}

int idt_rpc_get_raw (idt_future_t *f, const void **data, size_t *size)
{
    if (get (f) < 0)
        return -1;
    if (f->response)
        return idt_msg_payload (f->response, data, size);
    return errset (EPROTO);
}

int idt_rpc_get_unpack (idt_future_t *f, const char *fmt, ...)
{
    json_t *o = NULL;
    va_list ap;

    if (get (f) < 0)
        return -1;
    if (!f->response)
        return errset (EPROTO);
    va_start (ap, fmt);
    int rc = json_msg_vunpack (f->response, &o, NULL, fmt, ap);
    va_end (ap);
    if (rc < 0)
        return -1;
    json_decref (f->json);
    f->json = o;
    return 0;
}

const idt_msg_t *idt_rpc_get_msg (idt_future_t *f)
{
    if (!f->ready && idt_future_wait (f, -1) < 0)
        return NULL;
    return f->response;
}
