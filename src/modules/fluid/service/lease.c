/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - fluid.lease: requests of children to the node or the authority, and the node's requests to the parent */
#include <errno.h>
#include <stdlib.h>

#include "libutil/errprintf.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

/* --- from children --------------------------------------------------------------------------------------- */

/* Check that a child requests and returns only generators of itself and of its descendants, whatever combined requests
 * it received. Rank r owns generator r.
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
