/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - fluid.lease: requests of children, and the node's requests to the parent; fluid.time: of modules */
#include <errno.h>
#include <stdlib.h>
#include <syslog.h>

#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

#define PART_ANSWER_MS 30000 /* the longest wait for the answer to a request for a part */

/* --- from children --------------------------------------------------------------------------------------- */

/* Check that a child asks only for its own rank and for its descendants, whose requests it may have combined with its
 * own. So it cannot change what others hold.
 */
static int check_place (idt_t *h, const idt_msg_t *msg, const struct lease_request *req, idt_error_t *errp)
{
    for (size_t i = 0; i < req->nwant; i++)
        if (!idt_overlay_covers (h, msg, req->want[i].rank))
            return errsetf (errp, EPERM, "rank %u is neither the broker that sent the request nor a descendant of it",
                            req->want[i].rank);
    return 0;
}

/* The node answers with service_lease_reply_cb (), now or later. That function drops the reference to the message. */
static void ask_node (struct service *sv, const idt_msg_t *msg, const struct lease_request *req)
{
    if (node_lease_request (sv->node, service_now_us (sv), (void *)idt_msg_ref (msg), req) == 0)
        return;
    module_respond_error (sv->h, msg, errno,
                          errno == ENOTSUP ? "this broker grants no part of what it holds (fluid.share=off)"
                                           : SERVICE_STOPPING);
    idt_msg_unref (msg);
}

void service_lease_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct lease_request req;
    idt_error_t err;
    json_t *o;

    if (!(o = idt_msg_json (msg, &err)) || wire_get_lease_request (o, &req, &err) < 0)
        module_respond_error (h, msg, errno, err.text);
    else {
        if (check_place (h, msg, &req, &err) < 0)
            module_respond_error (h, msg, errno, err.text);
        else if (sv->authority && !req.is_part)
            service_answer_lease (sv, msg, &req);
        else
            ask_node (sv, msg, &req);
        lease_request_fini (&req);
        service_set_timer (sv);
    }
    json_decref (o);
}

void service_lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct service *sv = arg;

    module_respond_object (sv->h, cookie, wire_pack_lease_answer (answer));
    idt_msg_unref (cookie);
}

/* --- to the parent ------------------------------------------------------------------------------------------ */

static void answered_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct service *sv = up->owner;
    struct lease_answer answer;
    json_t *o = NULL;
    idt_error_t err;

    if (idt_rpc_get_unpack (f, "o", &o) < 0)
        node_lease_failed (sv->node, service_now_us (sv), up->tag, idt_future_errnum (f));
    else if (wire_get_lease_answer (o, &answer, &err) < 0) {
        idt_log (sv->h, LOG_ERR, "the parent sent a malformed answer to fluid.lease: %s", err.text);
        node_lease_failed (sv->node, service_now_us (sv), up->tag, EPROTO);
    }
    else {
        node_lease_answered (sv->node, service_now_us (sv), up->tag, &answer);
        service_remember (sv, &answer);
        free ((void *)answer.grant);
    }
    upcall_destroy (up);
    service_set_timer (sv);
}

int service_lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct service *sv = arg;
    json_t *o = wire_pack_lease_request (req);

    if (tag == 0) { /* no answer is needed, and the message may be lost */
        idt_future_destroy (idt_rpc_pack (sv->h, "fluid.lease", IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE, "o", o));
        return 0;
    }
    struct upcall *up = upcall_create (&sv->ups, idt_rpc_pack (sv->h, "fluid.lease", IDT_NODEID_UPSTREAM, 0, "o", o),
                                       req->is_part ? PART_ANSWER_MS : -1, answered_cb, sv);
    if (!up)
        return -1;
    up->tag = tag;
    return 0;
}

/* --- from modules of this broker: time for ids of another kind ----------------------------------------------- */

/* This topic is not fluid.lease, because other senders may use it: modules of the broker, and no other broker
 * (libmsg/access.h). The request is {} for more time, or {"end_ms":n} to return what is at or above 'end_ms'.
 */

static void answer_time (struct service *sv, const idt_msg_t *msg)
{
    uint64_t boot_us = service_now_us (sv);
    struct time_grant t;

    if (node_grant_time (sv->node, boot_us, idt_msg_route_oldest (msg), &t) < 0)
        module_respond_error (sv->h, msg, errno,
                              errno == ENOTSUP ? "this rank owns no generator"
                                               : "this rank holds no lease that contains now");
    else
        module_respond_object (sv->h, msg,
                               json_pack ("{s:[I,I] s:[I,I] s:I}", "range_ms", (json_int_t)t.lo_ms, (json_int_t)t.hi_ms,
                                          "clock_us", (json_int_t)boot_us, (json_int_t)t.clock_us, "epoch_ms",
                                          (json_int_t)t.epoch_ms));
}

void service_time_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    json_int_t end_ms = -1;
    idt_error_t err;
    json_t *o = NULL;

    if (!idt_msg_route_oldest (msg))
        module_respond_error (sv->h, msg, EPROTO, "the request has no route, so its sender is unknown");
    else if (idt_msg_unpack (msg, &o, &err, "{s?I}", "end_ms", &end_ms) < 0)
        module_respond_error (sv->h, msg, EPROTO, err.text);
    else if (end_ms < 0 && json_object_get (o, "end_ms"))
        module_respond_error (sv->h, msg, EPROTO, "end_ms must not be negative");
    else if (end_ms >= 0) {
        node_return_time (sv->node, service_now_us (sv), idt_msg_route_oldest (msg), (uint64_t)end_ms);
        module_respond_object (sv->h, msg, json_object ());
    }
    else
        answer_time (sv, msg);
    json_decref (o);
}
