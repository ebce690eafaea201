/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - fluid.position, on its way to rank 0, and fluid.watermark, which rank 0 answers
 *
 * A rank has at most one fluid.watermark request to its parent under way. Its answer goes to all requesters that
 * arrived before the answer.
 */
#include <errno.h>
#include <string.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

/* --- positions ------------------------------------------------------------------------------------------- */

/* A report cannot change the reports or parts of other ranks, because both are identified by rank, and the rank is
 * checked here.
 */
void service_position_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct report report;
    idt_error_t err;
    json_t *o = NULL;

    if (!(o = idt_msg_json (msg, &err)) || wire_get_report (o, &report, &err) < 0
        || service_check_rank (h, msg, report.rank, &err) < 0)
        module_respond_error (sv->h, msg, errno, err.text);
    else {
        node_report (sv->node, service_now_us (sv), &report);
        service_set_timer (sv);
        module_respond_object (sv->h, msg, json_object ());
    }
    json_decref (o);
}

void service_report_up_cb (void *arg, const struct report *report)
{
    struct service *sv = arg;

    idt_future_destroy (idt_rpc_pack (sv->h, "fluid.position", IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE, "o",
                                      wire_pack_report (report)));
}

/* --- the watermark, at rank 0 ------------------------------------------------------------------------------ */

bool service_watermark_look (struct service *sv, uint64_t now_us)
{
    uint64_t ms;

    if (!authority_watermark (sv->authority, now_us, &ms))
        return false;
    if (ms != sv->mark_ms || sv->mark_moved_ms == 0)
        sv->mark_moved_ms = clock_ms (CLOCK_MONOTONIC);
    sv->mark_ms = ms;
    return true;
}

/* Describe the watermark as a time and as an id. "id" is the lowest id that may still be made, so all ids below it are
 * final. At the end of the range of timestamps no further id can be made, and "id" is the last possible id. "behind_ms"
 * is measured in the time of ids, which runs ahead of the clock after a crash. "still_ms" is measured with
 * CLOCK_MONOTONIC.
 */
static json_t *make_watermark (struct service *sv, uint64_t now_us)
{
    uint64_t ms = sv->mark_ms, still_ms = clock_ms (CLOCK_MONOTONIC) - sv->mark_moved_ms;
    struct node_status s;
    char id[FLUID_TEXT_MAX];

    node_status (sv->node, now_us, &s);
    fluid_format (ms <= FLUID_TIMESTAMP_MAX ? ms << 24 : UINT64_MAX, FLUID_F58, id, sizeof (id));
    return json_pack ("{s:o s:s s:o s:I s:I}", "timestamp_ms", wire_number (ms), "id", id, "date",
                      wire_date (s.epoch_ms + (int64_t)ms), "behind_ms",
                      (json_int_t)(s.timestamp_ms > ms ? s.timestamp_ms - ms : 0), "still_ms", (json_int_t)still_ms);
}

static void answer (struct service *sv, const idt_msg_t *msg)
{
    uint64_t now_us = service_now_us (sv);

    if (service_watermark_look (sv, now_us))
        module_respond_object (sv->h, msg, make_watermark (sv, now_us));
    else
        module_respond_error (sv->h, msg, EAGAIN,
                              "rank 0 cannot determine the watermark: brokers hold leases of another statedir");
}

/* --- the watermark, elsewhere -------------------------------------------------------------------------------- */

/* Answer all requests that wait with 'payload', or with an error if that is NULL. */
static void answer_waiting (struct service *sv, const char *payload, int errnum, const char *text)
{
    const idt_msg_t *msg;

    sv->asked = false;
    while ((msg = fifo_pop (&sv->waiting))) {
        if (payload)
            module_respond (sv->h, msg, payload);
        else
            module_respond_error (sv->h, msg, errnum, text);
        quota_give (&sv->waiting_quota, idt_msg_cred (msg));
        idt_msg_unref (msg);
    }
}

static void heard_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    const char *payload = NULL;

    if (idt_rpc_get (f, &payload) < 0)
        answer_waiting (up->owner, NULL, idt_future_errnum (f), idt_future_error (f));
    else
        answer_waiting (up->owner, payload ? payload : "{}", 0, NULL);
    upcall_destroy (up);
}

static void ask_up (struct service *sv)
{
    if (upcall_create (&sv->ups, idt_rpc (sv->h, "fluid.watermark", "{}", IDT_NODEID_UPSTREAM, 0), -1, heard_cb, sv))
        sv->asked = true;
    else
        answer_waiting (sv, NULL, errno, NULL);
}

static int keep_waiting (struct service *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    if (quota_take (&sv->waiting_quota, idt_msg_cred (msg), errp) < 0)
        return -1;
    if (fifo_push (&sv->waiting, msg) < 0) {
        quota_give (&sv->waiting_quota, idt_msg_cred (msg));
        return errsetf (errp, ENOMEM, "out of memory");
    }
    idt_msg_ref (msg);
    return 0;
}

void service_watermark_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    idt_error_t err;

    if (sv->options.node.rank == 0)
        answer (sv, msg);
    else if (keep_waiting (sv, msg, &err) < 0)
        module_respond_error (sv->h, msg, errno, err.text);
    else if (!sv->asked)
        ask_up (sv);
}

void service_watermark_start (struct service *sv)
{
    uint32_t max = sv->options.node.max_waiting;

    sv->waiting_rule = (struct quota_rule){
        "fluid.watermark requests (fluid.max-waiting)", max, (max + 1) / 2, (max + 7) / 8, (max + 7) / 8, EAGAIN
    };
    quota_init_by (&sv->waiting_quota, &sv->waiting_rule);
}

void service_watermark_stop (struct service *sv)
{
    answer_waiting (sv, NULL, EHOSTUNREACH, SERVICE_STOPPING);
    fifo_fini (&sv->waiting);
    quota_fini (&sv->waiting_quota);
}
