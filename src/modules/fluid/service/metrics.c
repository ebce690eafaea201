/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.c - what a rank reports to be summed up: fluid.metrics (libmetrics/metrics.h) */
#include <stdio.h>

#include "libmodule/report.h"
#include "libutil/clock.h"
#include "modules/fluid/service/service.h"

/* The state of the rank. For a borrowing rank the generator is a state, too: the reduction forms a set of ranks for
 * each lender.
 */
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
    metrics_put_count (m, "fluid_spilled", s->spilled);
    metrics_put_count (m, "fluid_stalls", s->waiting.stalls);
    metrics_put_count (m, "fluid_refused", s->waiting.refused);
    metrics_put_count (m, "fluid_unreachable", s->waiting.unreachable);
    metrics_put_count (m, "fluid_renewals", s->renewals);
    metrics_put_count (m, "fluid_lease_messages", s->lease_messages + sv->lease_requests);
    metrics_put_count (m, "fluid_borrowed", s->borrowed);
    metrics_put_count (m, "fluid_lent", s->lent);
    metrics_put_count (m, "fluid_share_messages", s->share_messages);
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

/* Age and rest of the lease, only for a rank that owns a generator and has been granted a lease. */
static void put_lease (struct service *sv, const struct node_status *s, struct metrics *m)
{
    double left_ms = (double)s->hi_ms - (double)s->timestamp_ms;

    metrics_put_count (m, "fluid_waiting", s->waiting);
    metrics_put_ms (m, METRICS_MAX, "fluid_lease_seconds", (double)sv->options.node.lease_ms);
    if (s->time_known)
        metrics_put_ms (m, METRICS_MAX, "fluid_skew_bound_seconds", (double)s->bound_us / 1E3);
    if (!s->time_known || !s->owns_generator || s->hi_ms == 0)
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
