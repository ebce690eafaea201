/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.c - the compressor service: start, end, options, the timer, the table of topics, figures
 *
 * The module runs in a thread, because converting many ids and reading the stored documents take longer than a broker's
 * reactor may be blocked. Only the module of rank 0 ever blocks: it waits for the disk when it starts and when it ends.
 * So the modules of all brokers of a process share one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libidtree/json.h"
#include "libmodule/module.h"
#include "libutil/errprintf.h"
#include "modules/compressor/service.h"

/* --- time ------------------------------------------------------------------------------------------------ */

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct compressor *sv = arg;

    idt_watcher_stop (sv->timer);
    sv->armed = false;
    if (sv->root)
        document_root_tick (sv->root);
    documents_tick (sv);
    uplink_tick (sv);
}

/* --- figures ------------------------------------------------------------------------------------------------ */

static void stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;
    struct range_relay_stats r = range_relay_stats (sv->relay);
    const struct service_counters *c = &sv->counters;
    json_t *o = json_pack ("{s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I}", "open", (json_int_t)sv->ndocuments,
                           "generated", (json_int_t)c->generated, "applied", (json_int_t)c->applied, "events",
                           (json_int_t)c->events, "fetches", (json_int_t)c->fetches, "loads", (json_int_t)c->loads,
                           "orders", (json_int_t)c->orders, "orders_failed", (json_int_t)c->orders_failed, "elements",
                           (json_int_t)r.sent, "waiting", (json_int_t)r.elements, "asked",
                           (json_int_t)uplink_asked (sv), "awaited", (json_int_t)documents_awaited (sv));

    if (o && sv->root)
        json_put_new (&o, "root", document_root_stats (sv->root));
    module_respond_object (sv->h, msg, o);
}

static void report (void *arg, bool states, struct metrics *m)
{
    struct compressor *sv = arg;
    struct range_relay_stats r = range_relay_stats (sv->relay);
    const struct service_counters *c = &sv->counters;

    if (states)
        return;
    metrics_put_count (m, "compressor_open", sv->ndocuments);
    metrics_put_count (m, "compressor_generated", c->generated);
    metrics_put_count (m, "compressor_applied", c->applied);
    metrics_put_count (m, "compressor_fetches", c->fetches);
    metrics_put_count (m, "compressor_loads", c->loads);
    metrics_put_count (m, "compressor_orders", c->orders);
    metrics_put_count (m, "compressor_orders_failed", c->orders_failed);
    metrics_put_count (m, "compressor_waiting", r.elements);
    metrics_put_count (m, "compressor_asked", uplink_asked (sv));
    metrics_put_count (m, "compressor_awaited", documents_awaited (sv));
    if (sv->root)
        document_root_report (sv->root, m);
}

static void metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;

    module_report (sv->h, msg, sv->options.rank, report, sv);
}

/* --- requests --------------------------------------------------------------------------------------------- */

/* Requests that only rank 0 can answer. */
static void root_request_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;

    if (sv->root)
        document_root_request (sv->root, msg);
    else
        service_pass_on (sv, msg);
}

static void order_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;

    if (sv->root)
        document_root_request (sv->root, msg);
    else
        uplink_order (sv, msg);
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;

    documents_forget (sv, msg);
    service_forget_ups (sv, msg);
    uplink_forget (sv, msg);
    if (sv->root)
        document_root_forget (sv->root, msg);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "compressor.generate", methods_generate_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "compressor.normalize", methods_normalize_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "compressor.decompress", methods_decompress_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "compressor.recompress", methods_recompress_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.save", methods_save_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.stats", methods_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.open", document_open_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.close", document_close_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "compressor.submit", uplink_submit_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "compressor.order", order_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.join", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.fetch", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.state", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.create", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.delete", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.rename", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.list", root_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.stats-get", stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "compressor.metrics", metrics_cb, 0 },
    { IDT_MSGTYPE_EVENT, DOCWIRE_EVENT_PREFIX "*", document_ranges_cb, 0 },
    { IDT_MSGTYPE_EVENT, "event.lost", document_lost_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- start and end ------------------------------------------------------------------------------------------- */

#define MILLION 1000000

static int read_options (idt_t *h, struct compressor_options *o, idt_error_t *errp)
{
    *o = (struct compressor_options){ 0 };
    if (idt_get_rank (h, &o->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if (module_option_number (h, "compressor.max-documents", "1024", 1, 65536, &o->max_documents, errp) < 0
        || module_option_number (h, "compressor.max-sessions", "65536", 1, MILLION, &o->limits.sessions, errp) < 0
        || module_option_number (h, "compressor.max-clusters", "1000000", 1, MILLION, &o->limits.clusters, errp) < 0
        || module_option_number (h, "compressor.max-count", "1048576", 1, 1 << 30, &o->max_count, errp) < 0
        || module_option_number (h, "compressor.max-waiting", "16384", 1, MILLION, &o->max_waiting, errp) < 0
        || module_option_number (h, "compressor.window", "4096", 1, MILLION, &o->limits.window, errp) < 0
        || module_option_number (h, "compressor.compact", "4096", 1, MILLION, &o->compact, errp) < 0
        || module_option_duration (h, "compressor.timeout", module_option_root_timeout (h), 10, 3600000,
                                   "10ms to 1h, such as 5s", &o->timeout_ms, errp)
               < 0)
        return -1;
    /* The last: its texts are borrowed until their attributes are requested again. */
    return o->rank == 0 ? module_option_place (h, "documents", &o->place, errp) : 0;
}

/* End the service, and with it all sessions of this rank. Rank 0 may still order ranges that were announced before. */
static void service_destroy (struct compressor *sv)
{
    int saved = errno;

    idt_handlers_remove (sv->h, handlers);
    documents_destroy (sv);
    idt_future_destroy (sv->order);
    sv->order = NULL;
    sv->order_paused = true;
    range_relay_destroy (sv->relay);
    upcalls_stop (&sv->ups, sv->h, SERVICE_STOPPING);
    document_root_destroy (sv->root);
    idt_watcher_destroy (sv->timer);
    free (sv);
    errno = saved;
}

static void compressor_fini (idt_t *h, void *ctx)
{
    service_destroy (ctx);
}

static int compressor_init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct compressor *sv;

    if (module_option_none (argc, argv, errp) < 0)
        return -1;
    if (!(sv = calloc (1, sizeof (*sv))))
        return errprintf (errp, "out of memory");
    sv->h = h;
    if (read_options (h, &sv->options, errp) < 0)
        goto error;
    if (!(sv->relay = range_relay_create (sv->options.max_waiting))
        || !(sv->timer = idt_timer_watcher_create (idt_get_reactor (h), SERVICE_PAUSE_MS, 0, timer_cb, sv))
        || (sv->options.rank == 0 && !(sv->root = document_root_create (sv, errp)))
        || idt_handlers_add (h, handlers, sv) < 0) {
        if (!*errp->text)
            errprintf (errp, "cannot start: %s", strerror (errno));
        goto error;
    }
    /* The broker handles the requests of a connection in order, so it subscribes this module before it handles any
     * later request.
     */
    idt_future_destroy (idt_event_subscribe (h, "event.lost"));
    *ctx = sv;
    return 0;
error:
    service_destroy (sv);
    return -1;
}

IDT_MODULE_SHARED ("compressor", compressor_init, compressor_fini)
