/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - fluid.lease: requests of children to the node or the authority, and the node's requests to the parent */
#include <errno.h>
#include <stdlib.h>
#include <syslog.h>

#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

/* --- from children --------------------------------------------------------------------------------------- */

/* Check that a child requests and returns only its own generator and those of its descendants. A request may combine
 * requests of the child's own children. Rank r owns generator r.
 */
static int check_place (idt_t *h, const idt_msg_t *msg, const struct lease_request *req, idt_error_t *errp)
{
    uint32_t generator = 0;
    bool good = true;

    for (size_t i = 0; good && i < req->nwant; i++)
        good = idt_overlay_covers (h, msg, generator = req->want[i].generator);
    for (size_t i = 0; good && i < req->nback; i++)
        good = idt_overlay_covers (h, msg, generator = req->back[i].generator);
    if (good)
        return 0;
    return errsetf (errp, EPERM,
                    "generator %u belongs neither to the broker that sent the request nor to a "
                    "descendant of it",
                    generator);
}

void service_lease_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct lease_request req;
    idt_error_t err;
    json_t *o;

    if (!(o = idt_msg_json (msg, &err)) || wire_get_lease_request (o, &req, &err) < 0)
        module_respond_error (sv->h, msg, errno, err.text);
    else {
        if (check_place (h, msg, &req, &err) < 0)
            module_respond_error (sv->h, msg, errno, err.text);
        else if (sv->authority)
            service_answer_lease (sv, msg, &req);
        else
            node_lease_request (sv->node, service_now_us (sv), (void *)idt_msg_ref (msg), &req);
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

    if (idt_rpc_get_unpack (f, "o", &o) == 0 && wire_get_lease_answer (o, &answer, NULL) == 0) {
        node_lease_answered (sv->node, service_now_us (sv), up->tag, &answer);
        service_remember (sv, &answer);
        free ((void *)answer.grant);
    }
    else
        node_lease_failed (sv->node, service_now_us (sv), up->tag);
    upcall_destroy (up);
    service_set_timer (sv);
}

int service_lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct service *sv = arg;
    json_t *o = wire_pack_lease_request (req);

    if (tag == 0) { /* fire and forget: the message may be lost */
        idt_future_destroy (idt_rpc_pack (sv->h, "fluid.lease", IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE, "o", o));
        return 0;
    }
    struct upcall *up = upcall_create (&sv->ups, idt_rpc_pack (sv->h, "fluid.lease", IDT_NODEID_UPSTREAM, 0, "o", o),
                                       -1, answered_cb, sv);
    if (!up)
        return -1;
    up->tag = tag;
    return 0;
}

/* --- fluid.lend: subleases of time to other modules of this broker ------------------------------- */

static void answer_loan (struct service *sv, const idt_msg_t *msg)
{
    uint64_t boot_us = service_now_us (sv);
    struct loan l;

    if (node_lend (sv->node, boot_us, idt_msg_route_oldest (msg), &l) < 0)
        module_respond_error (sv->h, msg, errno,
                              errno == ENOTSUP ? "this rank owns no generator"
                                               : "this rank holds no lease that contains now");
    else
        module_respond_object (sv->h, msg,
                               json_pack ("{s:[I,I] s:[I,I] s:I}", "range_ms", (json_int_t)l.lo_ms, (json_int_t)l.hi_ms,
                                          "clock_us", (json_int_t)boot_us, (json_int_t)l.clock_us, "epoch_ms",
                                          (json_int_t)l.epoch_ms));
}

void service_lend_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    json_int_t back_ms = -1;
    idt_error_t err;
    json_t *o = NULL;

    if (!idt_msg_route_oldest (msg))
        module_respond_error (sv->h, msg, EPROTO, "the request has no route, so its sender is unknown");
    else if (idt_msg_unpack (msg, &o, &err, "{s?I}", "back_ms", &back_ms) < 0)
        module_respond_error (sv->h, msg, EPROTO, err.text);
    else if (back_ms >= 0) {
        node_lend_back (sv->node, idt_msg_route_oldest (msg), (uint64_t)back_ms);
        module_respond_object (sv->h, msg, json_object ());
    }
    else
        answer_loan (sv, msg);
    json_decref (o);
}

/* --- fluid.share: requests of children for subleases, and the node's requests to the parent ------ */

#define ANSWER_MS 30000 /* the longest wait for an answer */

/* --- from children --------------------------------------------------------------------------------------- */

static void answer_share (struct service *sv, const idt_msg_t *msg, const struct share_want *want)
{
    struct share share;
    uint64_t retry_ms = 0;
    int n = node_share (sv->node, service_now_us (sv), want, &share, &retry_ms);

    if (n < 0)
        module_respond_error (sv->h, msg, errno,
                              errno == ENOTSUP ? "this broker grants no subleases "
                                                 "(fluid.share=off)"
                                               : SERVICE_STOPPING);
    else
        module_respond_object (sv->h, msg, wire_pack_share (n > 0 ? &share : NULL, retry_ms));
}

/* A request cannot change the subleases of other ranks, because the lender identifies a sublease by its borrower's
 * rank, and that rank is checked here.
 */
void service_share_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct share_want want;
    idt_error_t err;
    json_t *o;

    if (!(o = idt_msg_json (msg, &err)) || wire_get_share_want (o, &want, &err) < 0
        || service_check_rank (h, msg, want.rank, &err) < 0)
        module_respond_error (h, msg, errno, err.text);
    else {
        answer_share (sv, msg, &want);
        service_set_timer (sv);
    }
    json_decref (o);
}

/* --- to the parent ------------------------------------------------------------------------------------------ */

static void share_answered_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct service *sv = up->owner;
    uint64_t retry_ms;
    struct share share;
    bool any = false;
    idt_error_t err;
    json_t *o = NULL;

    if (idt_rpc_get_unpack (f, "o", &o) < 0)
        node_share_failed (sv->node, service_now_us (sv), idt_future_errnum (f));
    else if (wire_get_share (o, &share, &any, &retry_ms, &err) < 0) {
        idt_log (sv->h, LOG_ERR, "the parent sent a malformed answer to fluid.share: %s", err.text);
        node_share_failed (sv->node, service_now_us (sv), EPROTO);
    }
    else
        node_share_answered (sv->node, service_now_us (sv), any ? &share : NULL, retry_ms);
    upcall_destroy (up);
    service_set_timer (sv);
}

int service_share_up_cb (void *arg, const struct share_want *want)
{
    struct service *sv = arg;
    json_t *o = wire_pack_share_want (want);

    if (want->size == 0) { /* a return, fire and forget: the message may be lost */
        idt_future_destroy (idt_rpc_pack (sv->h, "fluid.share", IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE, "o", o));
        return 0;
    }
    return upcall_create (&sv->ups, idt_rpc_pack (sv->h, "fluid.share", IDT_NODEID_UPSTREAM, 0, "o", o), ANSWER_MS,
                          share_answered_cb, sv)
               ? 0
               : -1;
}
