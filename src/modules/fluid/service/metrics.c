/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.c - what a rank tells of itself to be summed up: fluid.metrics (libmetrics/metrics.h) */
#include <errno.h>
#include <stdio.h>

#include "libidtree/json_build.h"
#include "libmetrics/bounds.h"
#include "libmetrics/metrics.h"
#include "libutil/clock.h"
#include "modules/fluid/service/service.h"

/* Whose generator it borrows of is a state, too: a set for each lender. */
static void put_states (struct service *sv, const struct node_status *s, struct metrics *m)
{
    uint32_t rank = sv->options.node.rank;
    char lender[16];

    metrics_put_rank (m, "fluid_state", node_state_name (s->state), rank);
    if (s->state != NODE_BORROWING)
        return;
    snprintf (lender, sizeof (lender), "%u", (unsigned)s->area.generator);
    metrics_put_rank (m, "fluid_borrowed_of", lender, rank);
}

/* --- numbers ---------------------------------------------------------------------------------------- */

static json_t *seconds (double ms)
{
    return json_real (ms / 1E3);
}

static void put_count (struct metrics *m, const char *name, uint64_t count)
{
    metrics_put_new (m, METRICS_SUM, name, json_integer ((json_int_t)count));
}

static void put_counters (struct service *sv, struct metrics *m)
{
    const struct node_stats *s = node_stats (sv->node);

    put_count (m, "fluid_requests", s->requests);
    put_count (m, "fluid_ids", s->ids);
    put_count (m, "fluid_ids_from_above", s->ids_from_above);
    put_count (m, "fluid_forwarded", s->forwards);
    put_count (m, "fluid_combined", s->combined);
    put_count (m, "fluid_forwards_lost", s->forwards_lost);
    put_count (m, "fluid_spilled", s->spilled);
    put_count (m, "fluid_stalls", s->waiting.stalls);
    put_count (m, "fluid_refused", s->waiting.refused);
    put_count (m, "fluid_unreachable", s->waiting.unreachable);
    put_count (m, "fluid_renewals", s->renewals);
    put_count (m, "fluid_lease_messages", s->lease_messages + sv->lease_requests);
    put_count (m, "fluid_borrowed", s->borrowed);
    put_count (m, "fluid_lent", s->lent);
    put_count (m, "fluid_share_messages", s->share_messages);
}

/* Those that did not wait have the first bucket. */
static void put_waits (struct service *sv, struct metrics *m)
{
    const struct node_stats *s = node_stats (sv->node);
    const struct waiting_stats *w = &s->waiting;
    uint64_t others = w->stalls + w->refused, at_once = s->requests > others ? s->requests - others : 0;
    json_t *buckets = json_array ();

    for (size_t i = 0; i <= METRICS_BOUNDS; i++)
        json_add_new (&buckets, json_integer ((json_int_t)(w->waits[i] + (i == 0 ? at_once : 0))));
    metrics_put_new (m, METRICS_BUCKETS, "fluid_wait_seconds", buckets);
    metrics_put_new (m, METRICS_SUM, "fluid_wait_seconds_sum", seconds ((double)w->waited_us / 1E3));
    metrics_put_new (m, METRICS_MAX, "fluid_longest_wait_seconds", seconds ((double)w->longest_us / 1E3));
}

/* Who owns a generator has a lease, or should have; who has none told yet has nothing to lose. */
static void put_lease (struct service *sv, const struct node_status *s, struct metrics *m)
{
    double left_ms = (double)s->hi_ms - (double)s->timestamp_ms;

    metrics_put_new (m, METRICS_SUM, "fluid_waiting", json_integer ((json_int_t)s->waiting));
    metrics_put_new (m, METRICS_MAX, "fluid_lease_seconds", seconds ((double)sv->options.node.lease_ms));
    if (s->time_known)
        metrics_put_new (m, METRICS_MAX, "fluid_skew_bound_seconds", seconds ((double)s->bound_us / 1E3));
    if (!s->time_known || !s->owns_generator || s->hi_ms == 0)
        return;
    metrics_put_new (m, METRICS_MIN, "fluid_lease_left_seconds", seconds (left_ms));
    metrics_put_new (m, METRICS_MAX, "fluid_lease_left_longest_seconds", seconds (left_ms));
}

/* --- rank 0 ------------------------------------------------------------------------------------------- */

static void put_watermark (struct service *sv, uint64_t now_us, int64_t epoch_ms, struct metrics *m)
{
    if (!service_watermark_look (sv, now_us))
        return;
    metrics_put_new (m, METRICS_MAX, "fluid_watermark_timestamp_seconds",
                     seconds ((double)epoch_ms + (double)sv->mark_ms));
    metrics_put_new (m, METRICS_MAX, "fluid_watermark_still_seconds",
                     seconds ((double)(clock_ms (CLOCK_MONOTONIC) - sv->mark_moved_ms)));
}

static void put_root (struct service *sv, uint64_t now_us, struct metrics *m)
{
    const struct authority_stats *stats = authority_stats (sv->authority);
    struct authority_status s;

    authority_status (sv->authority, now_us, &s);
    put_count (m, "fluid_stores", stats->stores);
    put_count (m, "fluid_store_failures", stats->store_failures);
    metrics_put_new (m, METRICS_MAX, "fluid_store_slow", json_integer (s.store != AUTHORITY_STORE_GOOD));
    metrics_put_new (m, METRICS_MAX, "fluid_store_failing", json_integer (s.store == AUTHORITY_STORE_FAILING));
    metrics_put_new (m, METRICS_MAX, "fluid_ahead_seconds", seconds ((double)s.ahead_us / 1E3));
    metrics_put_new (m, METRICS_MAX, "fluid_horizon_timestamp_seconds",
                     seconds ((double)s.epoch_ms + (double)s.horizon_ms));
    put_watermark (sv, now_us, s.epoch_ms, m);
}

/* --- fluid.metrics ------------------------------------------------------------------------------------ */

static json_t *report_new (struct service *sv, bool states, bool brief)
{
    struct metrics *m = metrics_create (sv->options.node.rank + 1);
    uint64_t now_us = service_now_us (sv);
    struct node_status s;

    if (!m)
        return NULL;
    node_status (sv->node, now_us, &s);
    put_states (sv, &s, m);
    if (!states) {
        put_counters (sv, m);
        put_waits (sv, m);
        put_lease (sv, &s, m);
    }
    if (!states && sv->authority)
        put_root (sv, now_us, m);
    if (brief)
        metrics_leave_out_zeros (m);
    json_t *report = metrics_report_new (m);
    metrics_destroy (m);
    return report;
}

void service_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t err;
    int states = 0, brief = 0;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?b s?b}", "states", &states, "brief", &brief) < 0) {
        module_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    module_respond_object (h, msg, report_new (arg, states, brief));
    json_decref (o);
}
