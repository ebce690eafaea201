/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* share.c - fluid.share: requests of children for subleases, and the node's requests to the parent */
#include <errno.h>
#include <syslog.h>

#include "libidtree/json_build.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

#define ANSWER_MS 30000 /* a later answer is not awaited */

/* --- from children --------------------------------------------------------------------------------------- */

static void answer (struct service *sv, const idt_msg_t *msg, const struct share_want *want)
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

/* A request cannot change the subleases of other ranks: the lender identifies a sublease by its rank, and the rank is
 * checked here.
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
        answer (sv, msg, &want);
        service_set_timer (sv);
    }
    json_decref (o);
}

/* --- to the parent ------------------------------------------------------------------------------------------ */

static void answered_cb (idt_future_t *f, void *arg)
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
                          answered_cb, sv)
               ? 0
               : -1;
}
