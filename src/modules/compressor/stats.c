/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.c - the counters of a rank: compressor.stats-get, compressor.metrics */
#include "libidtree/json_build.h"
#include "libmodule/module.h"
#include "modules/compressor/service.h"

void compressor_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
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

void compressor_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;

    module_report (sv->h, msg, sv->options.rank, report, sv);
}
