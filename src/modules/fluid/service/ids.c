/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ids.c - requests for ids: from clients and children to the node, and from the node to the parent */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmsg/access.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

#define REQUESTER_SIZE 32 /* "user " and a number */
#define RUNS_ON_STACK 8   /* an answer of at most this many runs needs no allocation */

/* --- to the node ---------------------------------------------------------------------------------------- */

/* Whether the request is a forward of another broker. Other modules of this broker (IDT_ROLE_LOCAL) count as clients.
 */
static bool is_broker_request (const idt_msg_t *msg)
{
    return (idt_msg_cred (msg).rolemask & (IDT_ROLE_BROKER | IDT_ROLE_LOCAL)) == IDT_ROLE_BROKER;
}

/* The name of the requester that takes turns in the node. For a request of the instance owner or of a child it is the
 * connection. For any other request it is the user, with all of the user's connections.
 */
static const char *requester_of (const idt_msg_t *msg, uint64_t user, char buf[REQUESTER_SIZE])
{
    if (user == 0)
        return idt_msg_route_newest (msg);
    snprintf (buf, REQUESTER_SIZE, "user %" PRIu64, user);
    return buf;
}

/* Pass the request to the node. If the node refuses it, its ids are credited back to the user's rate limit. */
static void ask (struct service *sv, const idt_msg_t *msg, uint32_t count, fluid_t after, bool traced, uint64_t now_us)
{
    bool from_broker = is_broker_request (msg);
    uint64_t user = from_broker ? 0 : access_share (idt_msg_cred (msg));
    char buf[REQUESTER_SIZE];
    const struct node_request req = { .cookie = (void *)idt_msg_ref (msg),
                                      .count = count,
                                      .after = after,
                                      .from_broker = from_broker,
                                      .asker = requester_of (msg, user, buf),
                                      .traced = traced,
                                      .others = user != 0 };

    if (!node_block (sv->node, now_us, &req))
        rate_limit_give (sv->rate_limit, idt_msg_cred (msg), count, now_us);
    service_set_timer (sv);
}

void service_ask (struct service *sv, const idt_msg_t *msg, uint32_t count, fluid_t after,
                  const struct trace_wish *wish)
{
    uint64_t now_us = service_now_us (sv);
    int traced = 0;
    idt_error_t err;

    if (rate_limit_take (sv->rate_limit, idt_msg_cred (msg), count, now_us, &err) < 0) {
        module_respond_error (sv->h, msg, errno, err.text);
        return;
    }
    if (wish && (traced = service_trace_begin (sv, msg, wish, now_us, &err)) < 0) {
        rate_limit_give (sv->rate_limit, idt_msg_cred (msg), count, now_us);
        module_respond_error (sv->h, msg, errno, err.text);
        return;
    }
    ask (sv, msg, count, after, traced > 0, now_us);
}

void service_block_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t err = { "malformed request: no payload" };
    const void *data;
    size_t size;
    uint32_t count;
    fluid_t after;

    if (idt_msg_payload (msg, &data, &size) < 0 || wire_get_block (data, size, &count, &after, &err) < 0)
        module_respond_error (h, msg, EPROTO, err.text);
    else
        service_ask (arg, msg, count, after, NULL);
}

void service_generate_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    idt_error_t err;
    uint32_t count;

    if (wire_get_count (&sv->reader, idt_msg_string (msg), &count, &err) < 0)
        module_respond_error (h, msg, errno, err.text);
    else
        service_ask (sv, msg, count, 0, NULL);
}

/* --- the node's answers ----------------------------------------------------------------------------------- */

static bool is_json_request (const idt_msg_t *msg)
{
    return strcmp (idt_msg_topic (msg), "fluid.generate") == 0;
}

static bool is_traced (const idt_msg_t *msg)
{
    return strcmp (idt_msg_topic (msg), "fluid.trace") == 0;
}

static size_t write_runs (uint8_t *buf, const struct id_run *run, size_t nruns)
{
    for (size_t i = 0; i < nruns; i++)
        block_put_run (buf + i * BLOCK_RUN_SIZE, run[i]);
    return nruns * BLOCK_RUN_SIZE;
}

void service_reply_cb (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct service *sv = arg;
    char small[WIRE_RUNS_TEXT (RUNS_ON_STACK)], *buf = small;

    if (is_traced (cookie))
        service_trace_reply (sv, cookie, run, nruns);
    else if (nruns > RUNS_ON_STACK && !(buf = malloc (WIRE_RUNS_TEXT (nruns))))
        module_respond_error (sv->h, cookie, ENOMEM, NULL);
    else if (is_json_request (cookie))
        module_respond_raw (sv->h, cookie, buf, wire_write_runs (buf, run, nruns));
    else
        module_respond_raw (sv->h, cookie, buf, write_runs ((uint8_t *)buf, run, nruns));
    if (buf != small)
        free (buf);
    idt_msg_unref (cookie);
}

static void drop (struct service *sv, const idt_msg_t *msg)
{
    service_trace_forget (sv, msg);
    idt_msg_unref (msg);
}

void service_fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    struct service *sv = arg;

    module_respond_error (sv->h, cookie, errnum, text);
    drop (sv, cookie);
}

/* --- requests that are withdrawn ------------------------------------------------------------------------------ */

struct canceling {
    struct service *service;
    const idt_msg_t *msg;
};

static bool client_gone_cb (void *cookie, void *arg)
{
    struct canceling *canceling = arg;

    if (!module_same_client (cookie, canceling->msg))
        return false;
    drop (canceling->service, cookie);
    return true;
}

void service_disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;

    node_cancel (sv->node, service_now_us (sv), client_gone_cb, &(struct canceling){ sv, msg });
    service_set_timer (sv);
}

/* A child withdraws its forward. The forward is answered nevertheless, so that the brokers on its route forget it. */
static bool canceled_cb (void *cookie, void *arg)
{
    struct canceling *canceling = arg;

    if (!is_broker_request (cookie) || !module_same_client (cookie, canceling->msg))
        return false;
    module_respond_error (canceling->service->h, cookie, ECANCELED, NULL);
    drop (canceling->service, cookie);
    return true;
}

void service_cancel_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;

    node_cancel (sv->node, service_now_us (sv), canceled_cb, &(struct canceling){ sv, msg });
    service_set_timer (sv);
}

/* --- to the parent -------------------------------------------------------------------------------------------- */

static void forwarded_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct service *sv = up->owner;
    const void *data;
    size_t size, n;
    struct id_run small[RUNS_ON_STACK], *run = NULL;

    if (idt_rpc_get_raw (f, &data, &size) == 0)
        run = wire_get_runs (data, size, small, RUNS_ON_STACK, &n);
    if (sv->traces.count > 0)
        service_trace_ended (sv, up->tag, run);
    if (run)
        node_forwarded (sv->node, service_now_us (sv), up->tag, run, n);
    else
        node_forward_failed (sv->node, service_now_us (sv), up->tag, errno);
    if (run != small)
        free (run);
    upcall_destroy (up);
    service_set_timer (sv);
}

static int keep (struct service *sv, idt_future_t *f, uint32_t tag, idt_future_f cb)
{
    struct upcall *up = upcall_create (&sv->ups, f, -1, cb, sv);

    if (!up)
        return -1;
    up->tag = tag;
    return 0;
}

/* The answer to a forward that was sent as fluid.trace. A parent of an earlier version answers ENOSYS. In that case the
 * node gets EAGAIN, and forwards the requests again, without a trace.
 */
static void traced_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct service *sv = up->owner;
    size_t n;
    struct id_run *run = service_trace_came (sv, up->tag, f, &n);

    if (run)
        node_forwarded (sv->node, service_now_us (sv), up->tag, run, n);
    else
        node_forward_failed (sv->node, service_now_us (sv), up->tag, errno == ENOSYS ? EAGAIN : errno);
    free (run);
    upcall_destroy (up);
    service_set_timer (sv);
}

int service_forward_up_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct service *sv = arg;
    uint8_t buf[BLOCK_REQUEST_SIZE];
    idt_future_t *f = sv->traces.count > 0 ? service_trace_up (sv, tag, count, after) : NULL;

    if (f)
        return keep (sv, f, tag, traced_cb);
    block_put_request (buf, count, after);
    return keep (sv, idt_rpc_raw (sv->h, "fluid.block", buf, sizeof (buf), IDT_NODEID_UPSTREAM, 0), tag, forwarded_cb);
}

void service_cancel_up_cb (void *arg)
{
    struct service *sv = arg;

    idt_future_destroy (idt_rpc (sv->h, "fluid.cancel", NULL, IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE));
}
