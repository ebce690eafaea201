/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lend.c - fluid.lend: subleases of time to other modules of this broker */
#include <errno.h>

#include "modules/fluid/service/service.h"

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
