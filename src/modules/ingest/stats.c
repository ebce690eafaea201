/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.c - the counters of a rank: job-ingest.stats-get, job-ingest.metrics */
#include "libidtree/json.h"
#include "libmodule/module.h"
#include "modules/ingest/service.h"

void ingest_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;
    struct entry_stats e = entry_stats (sv->entry);
    struct job_relay_stats r = job_relay_stats (sv->relay);
    json_t *o = json_pack ("{s:I s:I s:{s:I s:I s:I s:I s:I s:I s:I s:I} s:{s:I s:I s:I s:I s:I s:I}}", "submitted",
                           (json_int_t)sv->submitted, "refused", (json_int_t)sv->refused, "entry", "jobs",
                           (json_int_t)e.jobs, "bytes", (json_int_t)e.bytes, "stored", (json_int_t)e.stored, "same",
                           (json_int_t)e.same, "late", (json_int_t)e.late, "refused", (json_int_t)e.refused,
                           "forgotten", (json_int_t)e.forgotten, "expired", (json_int_t)e.expired, "relay", "parcels",
                           (json_int_t)r.parcels, "under_way", (json_int_t)r.under_way, "bytes", (json_int_t)r.bytes,
                           "batches", (json_int_t)r.batches, "jobs", (json_int_t)r.jobs, "failed",
                           (json_int_t)r.failed);

    if (o && sv->root)
        json_put_new (&o, "root", job_root_stats (sv->root));
    module_respond_object (sv->h, msg, o);
}

/* The counters of verdicts are for jobs that were submitted at this rank. */
static void report (void *arg, bool states, struct metrics *m)
{
    struct ingest *sv = arg;
    struct entry_stats e = entry_stats (sv->entry);
    struct job_relay_stats r = job_relay_stats (sv->relay);

    if (states)
        return;
    metrics_put_count (m, "ingest_submitted", sv->submitted);
    metrics_put_count (m, "ingest_bad", sv->refused);
    metrics_put_count (m, "ingest_stored", e.stored);
    metrics_put_count (m, "ingest_same", e.same);
    metrics_put_count (m, "ingest_late", e.late);
    metrics_put_count (m, "ingest_refused", e.refused);
    metrics_put_count (m, "ingest_forgotten", e.forgotten);
    metrics_put_count (m, "ingest_expired", e.expired);
    metrics_put_count (m, "ingest_waiting_jobs", e.jobs);
    metrics_put_count (m, "ingest_waiting_bytes", e.bytes);
    metrics_put_count (m, "ingest_batches", r.batches);
    metrics_put_count (m, "ingest_batches_failed", r.failed);
    metrics_put_count (m, "ingest_batches_under_way", r.under_way);
    metrics_put_count (m, "ingest_relay_bytes", r.bytes);
    if (sv->root)
        job_root_report (sv->root, m);
}

void ingest_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;

    module_report (sv->h, msg, sv->options.rank, report, sv);
}
