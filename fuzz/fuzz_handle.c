/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_handle.c - a broker that sends arbitrary data to a handle, its futures and its handlers
 *
 * The input is frames as on a socket, which a transport without a socket reads. This program waits for two futures,
 * sets callbacks on two others, and handles messages by a table of handlers. Each callback must be called once for each
 * answer, accepted ids must increase, and no object may be left at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/generate.h>

#include "libidtree/transport.h"
#include "libmsg/stream.h"

#define MAX_MESSAGE 100000
#define IDS 8

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void must (bool good)
{
    if (!good)
        abort ();
}

/* --- transport: bytes in memory ------------------------------------------------------------- */

static int mem_send (void *impl, const idt_msg_t *msg)
{
    uint8_t buf[4096];
    size_t size = idt_msg_encode_size (msg);

    must (size > sizeof (buf) || idt_msg_encode (msg, buf, sizeof (buf)) == (ssize_t)size);
    return 0;
}

static const idt_msg_t *mem_recv (void *impl)
{
    const idt_msg_t *msg = msg_stream_next (impl, NULL);

    if (!msg && errno == EAGAIN)
        errno = ECONNRESET; /* end of the input */
    return msg;
}

static int mem_pollfd (void *impl)
{
    return 0;
}

static const char *mem_attr_get (void *impl, const char *name)
{
    return "7";
}

static void mem_destroy (void *impl)
{
    msg_stream_destroy (impl);
}

static const struct idt_transport transport = {
    .send = mem_send,
    .recv = mem_recv,
    .pollfd = mem_pollfd,
    .attr_get = mem_attr_get,
    .destroy = mem_destroy,
};

/* --- callbacks ------------------------------------------------------------------------------ */

struct seen {
    int calls;
    int ends; /* calls of the callback with an error */
};

static void seen_cb (idt_future_t *f, void *arg)
{
    struct seen *seen = arg;
    const char *s;
    int i;

    must (seen->ends == 0 && idt_future_errnum (f) >= 0);
    seen->calls++;
    seen->ends += idt_future_errnum (f) != 0;
    (void)idt_rpc_get (f, &s);
    (void)idt_rpc_get_unpack (f, "{s:i s?s}", "i", &i, "s", &s);
    must (strlen (idt_future_error (f)) < MAX_MESSAGE);
    idt_future_reset (f);
}

static void request_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t error = { .text = "" };
    json_t *o;
    int i;

    must (idt_msg_cred (msg).rolemask & IDT_ROLE_USER);
    if (idt_msg_unpack (msg, &o, &error, "{s:i !}", "i", &i) < 0) {
        must (errno == EPROTO && error.text[0] != '\0' && !o);
        must (idt_respond_error (h, msg, errno, error.text) == 0);
        return;
    }
    must (idt_respond_pack (h, msg, "{s:i}", "i", i) == 0);
    json_decref (o);
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    must (idt_msg_type (msg) == IDT_MSGTYPE_EVENT);
}

static const struct idt_handler_spec table[] = {
    { IDT_MSGTYPE_REQUEST, "mod.do", request_cb, IDT_ROLE_USER },
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    IDT_HANDLERS_END,
};

static void check_ids (idt_future_t *f)
{
    fluid_t ids[IDS];

    if (idt_fluid_generate_get (f, IDS, ids) < 0)
        return;
    for (int i = 1; i < IDS; i++)
        must (ids[i] > ids[i - 1]);
    must (ids[0] > 0);
}

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    must (errnum != 0);
    ++*(int *)arg;
}

/* Send requests, whose matchtags are 1, 2, 3, 4, and run the reactor. */
static void run (idt_t *h)
{
    struct seen one = { 0 }, many = { 0 };
    int lost = 0;
    idt_future_t *ids = idt_fluid_generate_async (h, IDS);
    idt_future_t *stream = idt_rpc (h, "a.stream", NULL, IDT_NODEID_ANY, IDT_RPC_STREAMING);
    idt_future_t *f = idt_rpc (h, "a.one", NULL, IDT_NODEID_UPSTREAM, 0);
    idt_future_t *g = idt_rpc (h, "a.many", NULL, IDT_NODEID_ANY, IDT_RPC_STREAMING);

    must (ids && stream && f && g);
    idt_set_lost (h, lost_cb, &lost);
    must (idt_handlers_add (h, table, NULL) == 0);
    must (idt_future_then (f, -1, seen_cb, &one) == 0);
    must (idt_future_then (g, -1, seen_cb, &many) == 0);
    check_ids (ids);
    while (idt_rpc_get (stream, NULL) == 0)
        idt_future_reset (stream);
    while (lost == 0)
        must (idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT) == 0);
    must (one.calls == 1 && many.calls >= 1 && many.ends == 1 && lost == 1);
    idt_future_destroy (ids);
    idt_future_destroy (stream);
    idt_future_destroy (f);
    idt_future_destroy (g);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct msg_stream *s = msg_stream_create (-1, MAX_MESSAGE, 0);

    must (s && msg_stream_feed (s, data, size) == 0);
    idt_t *h = idt_handle_create (&transport, s);
    must (h && idt_handle_set_module (h, "mod") == 0);
    run (h);
    idt_close (h);
    return 0;
}
