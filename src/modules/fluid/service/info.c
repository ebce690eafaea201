/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* info.c - what a rank reports about itself: fluid.info, stats-get, stats-clear, metrics */
#include <stdio.h>
#include <stdlib.h>

#include "libidtree/json.h"
#include "libmodule/module.h"
#include "libutil/clock.h"
#include "libutil/text.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

/* --- fluid.info -------------------------------------------------------------------------------------------- */

static json_t *us_to_ms (int64_t us)
{
    return json_real ((double)us / 1000);
}

static json_t *make_range (const struct range *r)
{
    return json_pack ("[o,o]", wire_number (r->lo_ms), wire_number (r->hi_ms));
}

static void add_root_info (struct service *sv, json_t **o)
{
    struct authority_status s;
    char store[512];

    authority_status (sv->authority, service_now_us (sv), &s);
    service_describe_store (sv, &s, store, sizeof (store));
    json_put_new (o, "horizon_ms", wire_number (s.horizon_ms));
    json_put_new (o, "ahead_ms", us_to_ms (s.ahead_us));
    json_put_new (o, "store", json_string (store));
}

static bool makes_ids (const struct node_status *s)
{
    return s->state == NODE_ACTIVE || s->state == NODE_SHARING;
}

/* The part of a generator that this rank holds: generator, ids of each millisecond, and end. */
static json_t *make_part (const struct box *b)
{
    return json_pack ("{s:I s:I s:o}", "generator", (json_int_t)b->generator, "per_ms",
                      (json_int_t)box_size (b->granules), "until_ms", wire_number (b->range.hi_ms));
}

/* The parts that this rank granted, and the child ranks that hold them. Those ranks may grant parts of them further
 * down.
 */
static json_t *make_granted (const struct service *sv, uint64_t now_us, const struct node_status *s)
{
    uint32_t ranks[GRANTS_MAX];
    size_t n = node_granted_to (sv->node, now_us, ranks);
    char *text = ranges_format (ranks, n);
    json_t *o = json_pack ("{s:I s:I s:s*}", "parts", (json_int_t)s->grants, "per_ms", (json_int_t)s->granted_per_ms,
                           "ranks", text);

    free (text);
    return o;
}

/* The part of the answer that this rank knows itself. A rank that makes no ids adds the parent's answer (above_cb ()).
 * Returns NULL if memory is exhausted.
 */
static json_t *make_info (struct service *sv, struct node_status *s)
{
    const struct node_config *config = &sv->options.node;
    uint64_t now_us = service_now_us (sv);
    json_t *o;

    node_status (sv->node, now_us, s);
    o = json_pack ("{s:I s:s s:I}", "rank", (json_int_t)config->rank, "state", node_state_name (s->state),
                   "max_generators", (json_int_t)config->max_generators);
    if (!o)
        return NULL;
    json_put_new (&o, "generator", s->owns_generator ? json_integer (s->generator) : json_null ());
    if (config->lanes > 1) { /* generators of rank r: r, r + ranks, ... */
        json_put_new (&o, "lanes", json_integer (config->lanes));
        json_put_new (&o, "ranks", json_integer (config->size));
    }
    json_put_new (&o, "served_by", makes_ids (s) ? json_integer (config->rank) : json_null ());
    json_put_new (&o, "timestamp_ms", s->time_known ? wire_number (s->timestamp_ms) : json_null ());
    json_put_new (&o, "epoch", s->has_epoch ? wire_date (s->epoch_ms) : json_null ());
    json_put_new (&o, "lease", s->state == NODE_ACTIVE ? make_range (&s->lease.box.range) : json_null ());
    if (s->state == NODE_SHARING)
        json_put_new (&o, "part", make_part (&s->lease.box));
    if (s->owns_generator && config->share != NODE_SHARE_OFF)
        json_put_new (&o, "grants", json_true ());
    if (s->grants > 0)
        json_put_new (&o, "granted", make_granted (sv, now_us, s));
    json_put_new (&o, "skew_bound_ms", s->time_known ? us_to_ms ((int64_t)s->bound_us) : json_null ());
    if (sv->authority)
        add_root_info (sv, &o);
    return o;
}

/* The parent has answered. Take over from its answer what this rank does not know. */
static void above_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct service *sv = up->owner;
    struct node_status s;
    json_t *o = make_info (sv, &s), *above = NULL;

    if (o && !makes_ids (&s) && idt_rpc_get_unpack (f, "o", &above) == 0) {
        json_object_set (o, "served_by", json_object_get (above, "served_by"));
        if (!s.has_epoch)
            json_object_set (o, "epoch", json_object_get (above, "epoch"));
    }
    module_respond_object (sv->h, up->msg, o);
    upcall_destroy (up);
}

void service_info_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct node_status s;
    struct upcall *up = NULL;
    json_t *o = make_info (sv, &s);

    if (!makes_ids (&s) && s.parent_up)
        up = upcall_create (&sv->ups, idt_rpc (h, "fluid.info", NULL, IDT_NODEID_UPSTREAM, 0), -1, above_cb, sv);
    if (up) {
        up->msg = idt_msg_ref (msg);
        json_decref (o);
    }
    else
        module_respond_object (sv->h, msg, o);
}

/* --- statistics ------------------------------------------------------------------------------------------------ */

static json_t *pack_stats (const struct node_stats *s, const struct authority_stats *root, uint64_t lease_requests)
{
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        { "requests", s->requests },
        { "ids", s->ids },
        { "ids_from_above", s->ids_from_above },
        { "page_ids", s->page_ids },
        { "forwarded", s->forwards },
        { "combined", s->combined },
        { "forwards_lost", s->forwards_lost },
        { "stalls", s->waiting.stalls },
        { "refused", s->waiting.refused },
        { "unreachable", s->waiting.unreachable },
        { "renewals", s->renewals },
        { "parts_received", s->parts_received },
        { "parts_granted", s->parts_granted },
        { "part_messages", s->part_messages },
        { "lease_messages", s->lease_messages + lease_requests }, /* sent to the parent, or received at rank 0 */
        { "stores", root->stores },
        { "store_failures", root->store_failures },
    };
    json_t *o = json_object ();

    for (size_t i = 0; i < sizeof (counters) / sizeof (counters[0]); i++)
        json_put_new (&o, counters[i].name, json_integer ((json_int_t)counters[i].value));
    json_put_new (&o, "longest_stall_ms", us_to_ms ((int64_t)s->waiting.waits.longest_us));
    return o;
}

void service_stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    const struct authority_stats none = { 0 }, *root = sv->authority ? authority_stats (sv->authority) : &none;

    module_respond_object (sv->h, msg, pack_stats (node_stats (sv->node), root, sv->lease_requests));
}

/* Also called for the event fluid.stats-clear, which gets no response. */
void service_stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;

    *node_stats (sv->node) = (struct node_stats){ 0 };
    if (sv->authority)
        *authority_stats (sv->authority) = (struct authority_stats){ 0 };
    sv->lease_requests = 0;
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        module_respond (sv->h, msg, NULL);
}

/* --- what a rank reports to be summed up: fluid.metrics (libmetrics/metrics.h) ------------------- */

/* Put the state of the rank. For a rank that holds a part put the generator, too, so that the reduction forms a set of
 * ranks for each generator.
 */
static void put_states (struct service *sv, const struct node_status *s, struct metrics *m)
{
    uint32_t rank = sv->options.node.rank;
    char generator[16];

    metrics_put_rank (m, "fluid_state", node_state_name (s->state), rank);
    if (s->state != NODE_SHARING)
        return;
    snprintf (generator, sizeof (generator), "%u", (unsigned)s->lease.box.generator);
    metrics_put_rank (m, "fluid_part_of", generator, rank);
}

/* --- numbers ---------------------------------------------------------------------------------------- */

static void put_counters (struct service *sv, struct metrics *m)
{
    const struct node_stats *s = node_stats (sv->node);

    metrics_put_count (m, "fluid_requests", s->requests);
    metrics_put_count (m, "fluid_ids", s->ids);
    metrics_put_count (m, "fluid_ids_from_above", s->ids_from_above);
    metrics_put_count (m, "fluid_page_ids", s->page_ids);
    metrics_put_count (m, "fluid_forwarded", s->forwards);
    metrics_put_count (m, "fluid_combined", s->combined);
    metrics_put_count (m, "fluid_forwards_lost", s->forwards_lost);
    metrics_put_count (m, "fluid_stalls", s->waiting.stalls);
    metrics_put_count (m, "fluid_refused", s->waiting.refused);
    metrics_put_count (m, "fluid_unreachable", s->waiting.unreachable);
    metrics_put_count (m, "fluid_renewals", s->renewals);
    metrics_put_count (m, "fluid_lease_messages", s->lease_messages + sv->lease_requests);
    metrics_put_count (m, "fluid_parts_received", s->parts_received);
    metrics_put_count (m, "fluid_parts_granted", s->parts_granted);
    metrics_put_count (m, "fluid_part_messages", s->part_messages);
}

/* The times that requests waited. Requests that did not wait are counted in the first bucket. */
static void put_waits (struct service *sv, struct metrics *m)
{
    const struct node_stats *s = node_stats (sv->node);
    struct metrics_times waits = s->waiting.waits;
    uint64_t others = s->waiting.stalls + s->waiting.refused;

    waits.count[0] += s->requests > others ? s->requests - others : 0;
    metrics_put_times (m, "fluid_wait_seconds", "fluid_longest_wait_seconds", &waits);
}

/* Waiting requests, the configured lease and the skew bound; age and rest of the lease only if it contains now. */
static void put_lease (struct service *sv, const struct node_status *s, struct metrics *m)
{
    double left_ms = (double)s->lease.box.range.hi_ms - (double)s->timestamp_ms;

    metrics_put_count (m, "fluid_waiting", s->waiting);
    metrics_put_ms (m, METRICS_MAX, "fluid_lease_seconds", (double)sv->options.node.lease_ms);
    if (s->time_known)
        metrics_put_ms (m, METRICS_MAX, "fluid_skew_bound_seconds", (double)s->bound_us / 1E3);
    if (s->state != NODE_ACTIVE)
        return;
    metrics_put_ms (m, METRICS_MAX, "fluid_lease_age_seconds", (double)s->lease_age_us / 1E3);
    metrics_put_ms (m, METRICS_MIN, "fluid_lease_left_seconds", left_ms);
    metrics_put_ms (m, METRICS_MAX, "fluid_lease_left_longest_seconds", left_ms);
}

/* --- rank 0 ------------------------------------------------------------------------------------------- */

static void put_watermark (struct service *sv, uint64_t now_us, int64_t epoch_ms, struct metrics *m)
{
    if (!service_watermark_look (sv, now_us))
        return;
    metrics_put_ms (m, METRICS_MAX, "fluid_watermark_timestamp_seconds", (double)epoch_ms + (double)sv->mark_ms);
    metrics_put_ms (m, METRICS_MAX, "fluid_watermark_still_seconds",
                    (double)(clock_ms (CLOCK_MONOTONIC) - sv->mark_moved_ms));
}

static void put_root (struct service *sv, uint64_t now_us, struct metrics *m)
{
    const struct authority_stats *stats = authority_stats (sv->authority);
    struct authority_status s;

    authority_status (sv->authority, now_us, &s);
    metrics_put_count (m, "fluid_stores", stats->stores);
    metrics_put_count (m, "fluid_store_failures", stats->store_failures);
    metrics_put_times (m, "fluid_store_seconds", "fluid_longest_store_seconds", &stats->commits);
    metrics_put_new (m, METRICS_MAX, "fluid_store_slow", json_integer (s.store != AUTHORITY_STORE_GOOD));
    metrics_put_new (m, METRICS_MAX, "fluid_store_failing", json_integer (s.store == AUTHORITY_STORE_FAILING));
    metrics_put_ms (m, METRICS_MAX, "fluid_ahead_seconds", (double)s.ahead_us / 1E3);
    metrics_put_ms (m, METRICS_MAX, "fluid_horizon_timestamp_seconds", (double)s.epoch_ms + (double)s.horizon_ms);
    put_watermark (sv, now_us, s.epoch_ms, m);
}

/* --- fluid.metrics ------------------------------------------------------------------------------------ */

static void report (void *arg, bool states, struct metrics *m)
{
    struct service *sv = arg;
    uint64_t now_us = service_now_us (sv);
    struct node_status s;

    node_status (sv->node, now_us, &s);
    put_states (sv, &s, m);
    if (states)
        return;
    put_counters (sv, m);
    put_waits (sv, m);
    put_lease (sv, &s, m);
    if (sv->authority)
        put_root (sv, now_us, m);
}

void service_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const struct service *sv = arg;

    module_report (h, msg, sv->options.node.rank, report, arg);
}
