/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* catalog.c - what the names in a report mean */
#include <string.h>

#include "libmetrics/catalog.h"

#define COUNT(name, family, help)                                          \
    {                                                                      \
        name, METRICS_SUM, METRICS_COUNTER, family, NULL, NULL, NULL, help \
    }
#define PART(name, family, label, value, help)                               \
    {                                                                        \
        name, METRICS_SUM, METRICS_COUNTER, family, label, value, NULL, help \
    }
#define TIMES(name, help)                                                           \
    {                                                                               \
        name, METRICS_BUCKETS, METRICS_HISTOGRAM, name, NULL, NULL, "seconds", help \
    }
#define LEVEL(merge, name, unit, help)                           \
    {                                                            \
        name, merge, METRICS_GAUGE, name, NULL, NULL, unit, help \
    }
#define STATE(name, family, label, help)                                    \
    {                                                                       \
        name, METRICS_RANKS, METRICS_GAUGE, family, label, NULL, NULL, help \
    }

const struct metrics_row metrics_catalog[] = {
    /* the tree */
    STATE ("status", "ranks", "status", "Ranks by their status, as idtree overlay status has it"),
    STATE ("silent_modules", "silent_modules", "module", "Ranks on which that module did not answer in time"),
    COUNT ("broker_requests", "broker_requests", "Requests that came to brokers, from clients and from brokers"),
    COUNT ("broker_responses", "broker_responses", "Responses that went through brokers"),
    COUNT ("broker_failed", "broker_failed", "Requests that brokers answered with an error themselves"),
    COUNT ("broker_unroutable", "broker_unroutable", "Responses whose asker was gone"),
    LEVEL (METRICS_SUM, "broker_pending", NULL, "Requests that were passed on and are not answered yet"),
    LEVEL (METRICS_SUM, "broker_clients", NULL, "Connections of local clients"),
    LEVEL (METRICS_SUM, "overlay_links", NULL,
           "Connections to parents, and to children, of brokers: each counts twice"),
    LEVEL (METRICS_SUM, "overlay_waiting_messages", NULL, "Messages that wait for room on a link"),
    LEVEL (METRICS_SUM, "overlay_waiting_bytes", "bytes", "Bytes that wait for room on a link"),
    LEVEL (METRICS_MAX, "overlay_longest_queue_bytes", "bytes", "Bytes that wait for the fullest of the links"),
    COUNT ("overlay_refused", "overlay_refused", "Requests that were refused, for too much waited for a link"),
    COUNT ("overlay_failed", "overlay_failed", "Answers that became errors, for too much waited for a link"),
    LEVEL (METRICS_SUM, "overlay_adopted", NULL, "Brokers that are attached to another one than their parent"),
    /* events */
    { "event_sequence", METRICS_MAX, METRICS_COUNTER, "events", NULL, NULL, NULL, "Events that were published" },
    COUNT ("event_delivered", "events_delivered", "Events that brokers handed on, each once"),
    COUNT ("event_gaps", "event_gaps", "Gaps that were seen in the sequence of events"),
    COUNT ("event_recovered", "events_recovered", "Events that were fetched after a gap"),
    COUNT ("event_lost", "events_lost", "Events that could not be had any more"),
    LEVEL (METRICS_SUM, "event_subscribers", NULL, "Clients and modules that have subscribed to events"),
    /* processes: the first rank of each tells of it */
    LEVEL (METRICS_SUM, "processes", NULL, "Processes of brokers"),
    LEVEL (METRICS_SUM, "process_resident_memory_bytes", "bytes", "Memory of all processes of brokers"),
    LEVEL (METRICS_MAX, "process_largest_memory_bytes", "bytes", "Memory of the largest process"),
    LEVEL (METRICS_SUM, "process_open_fds", NULL, "File descriptors of all processes of brokers"),
    LEVEL (METRICS_MAX, "process_fds_used_ratio", "ratio", "File descriptors by the limit, in the fullest process"),
    { "process_cpu_seconds", METRICS_SUM, METRICS_COUNTER, "process_cpu_seconds", NULL, NULL, "seconds",
      "Processor time of all processes of brokers" },
    /* ids */
    STATE ("fluid_state", "fluid_generators", "state", "Ranks by the state of their generator"),
    COUNT ("fluid_requests", "fluid_requests", "Requests for FLUIDs, of clients and of brokers below"),
    PART ("fluid_ids", "fluid_ids", "origin", "made", "FLUIDs that ranks made, or were given from above for others"),
    PART ("fluid_ids_from_above", "fluid_ids", "origin", "above", NULL),
    PART ("fluid_page_ids", "fluid_ids", "origin", "page", NULL),
    COUNT ("fluid_forwarded", "fluid_forwarded", "Requests for FLUIDs that were sent up"),
    COUNT ("fluid_combined", "fluid_combined", "Requests for FLUIDs that went up with another one"),
    COUNT ("fluid_forwards_lost", "fluid_forwards_lost", "Requests that were sent up, and no use: late, or an error"),
    COUNT ("fluid_spilled", "fluid_spilled", "Requests of children that a generator passed on for it had too many"),
    COUNT ("fluid_stalls", "fluid_stalls", "Requests for FLUIDs that had to wait"),
    COUNT ("fluid_refused", "fluid_refused", "Requests for FLUIDs that were refused: too much waited"),
    COUNT ("fluid_unreachable", "fluid_unreachable", "Requests for FLUIDs that failed: nobody could make them in time"),
    TIMES ("fluid_wait_seconds", "Time that requests for FLUIDs waited at a rank, those that did not too"),
    LEVEL (METRICS_MAX, "fluid_longest_wait_seconds", "seconds", "The longest of these"),
    LEVEL (METRICS_SUM, "fluid_waiting", NULL, "Requests for FLUIDs that wait now"),
    /* leases */
    COUNT ("fluid_renewals", "fluid_renewals", "Ranges of time that ranks were given"),
    COUNT ("fluid_lease_messages", "fluid_lease_messages", "Requests for leases"),
    LEVEL (METRICS_MAX, "fluid_lease_age_seconds", "seconds", "Since when the lease lasts that was given first"),
    LEVEL (METRICS_MIN, "fluid_lease_left_seconds", "seconds",
           "How long the lease lasts that ends first; below 0 it has"),
    LEVEL (METRICS_MAX, "fluid_lease_left_longest_seconds", "seconds", "The same of the one that ends last"),
    LEVEL (METRICS_MAX, "fluid_lease_seconds", "seconds", "How long a lease lasts when it is given (fluid.lease)"),
    LEVEL (METRICS_MAX, "fluid_skew_bound_seconds", "seconds", "How far the time of a rank may be from rank 0's"),
    COUNT ("fluid_borrowed", "fluid_borrowed", "Shares of generators that idle ranks took"),
    COUNT ("fluid_lent", "fluid_lent", "Shares of generators that ranks gave"),
    COUNT ("fluid_share_messages", "fluid_share_messages", "Requests for shares"),
    /* rank 0 */
    LEVEL (METRICS_MAX, "fluid_ahead_seconds", "seconds", "How far rank 0's time is ahead of its wall clock"),
    LEVEL (METRICS_MAX, "fluid_horizon_timestamp_seconds", "seconds", "Up to when leases may last, by what is stored"),
    LEVEL (METRICS_MAX, "fluid_watermark_timestamp_seconds", "seconds",
           "Below which time no FLUID will be made any more"),
    LEVEL (METRICS_MAX, "fluid_watermark_still_seconds", "seconds", "How long the watermark has not moved"),
    COUNT ("fluid_stores", "fluid_store_commits", "Horizons that rank 0 stored"),
    COUNT ("fluid_store_failures", "fluid_store_failures", "Horizons that rank 0 could not store"),
    TIMES ("fluid_store_seconds", "Time until a horizon was stored"),
    LEVEL (METRICS_MAX, "fluid_longest_store_seconds", "seconds", "The longest of these"),
    LEVEL (METRICS_MAX, "fluid_store_slow", NULL, "1: rank 0 has tried to store for long, or cannot"),
    LEVEL (METRICS_MAX, "fluid_store_failing", NULL, "1: rank 0 cannot store its horizon"),
    /* flax, sno, uid */
    COUNT ("flake_requests", "flake_requests",
           "Requests for ids of flax, sno and uid, of clients and of brokers below"),
    PART ("flake_flaxes", "flake_ids", "kind", "flax", "Ids of flax, sno and uid that ranks made"),
    PART ("flake_snos", "flake_ids", "kind", "sno", NULL),
    PART ("flake_uids", "flake_ids", "kind", "uid", NULL),
    COUNT ("flake_forwarded", "flake_forwarded", "Requests for these that were sent up"),
    COUNT ("flake_combined", "flake_combined", "Requests for these that went up with another one"),
    COUNT ("flake_refused", "flake_refused", "Requests for these that were refused: too many, or too late"),
    LEVEL (METRICS_SUM, "flake_waiting", NULL, "Requests for these that wait now"),
    /* documents of the id compressor */
    LEVEL (METRICS_SUM, "compressor_open", NULL, "Documents that are open, on each rank that has them"),
    COUNT ("compressor_generated", "compressor_ids", "Ids of documents that ranks made for clients"),
    COUNT ("compressor_applied", "compressor_applied", "Ranges of ids that ranks took into their documents"),
    COUNT ("compressor_fetches", "compressor_fetches", "Times that a rank asked for ranges that it had missed"),
    COUNT ("compressor_loads", "compressor_loads", "Stored documents that ranks took over"),
    COUNT ("compressor_orders", "compressor_orders", "Requests in which ranges went up"),
    COUNT ("compressor_orders_failed", "compressor_orders_failed", "Those of them that failed, and went up again"),
    LEVEL (METRICS_SUM, "compressor_waiting", NULL, "Parts of requests that wait on ranks for their way up"),
    LEVEL (METRICS_SUM, "compressor_asked", NULL, "Requests whose ranges are not ordered yet"),
    LEVEL (METRICS_SUM, "compressor_awaited", NULL, "Requests that wait for a document, or for ids to be final"),
    LEVEL (METRICS_SUM, "compressor_documents", NULL, "Documents that rank 0 keeps"),
    PART ("compressor_ranges", "compressor_ranges", "result", "ordered", "Ranges that came to rank 0"),
    PART ("compressor_ranges_repeated", "compressor_ranges", "result", "repeated", NULL),
    PART ("compressor_ranges_refused", "compressor_ranges", "result", "refused", NULL),
    LEVEL (METRICS_SUM, "compressor_queue", NULL, "Requests that wait for the next commit of rank 0"),
    TIMES ("compressor_store_seconds", "Time of rank 0's commits of documents"),
    LEVEL (METRICS_MAX, "compressor_longest_store_seconds", "seconds", "The longest of these"),
    COUNT ("compressor_store_failures", "compressor_store_failures", "Commits of documents that failed"),
    LEVEL (METRICS_MAX, "compressor_store_failing", NULL, "1: rank 0 cannot store documents"),
    /* jobs */
    COUNT ("ingest_submitted", "ingest_submissions", "Jobs that clients submitted"),
    PART ("ingest_stored", "ingest_jobs", "result", "stored", "Jobs by what came of their submission"),
    PART ("ingest_same", "ingest_jobs", "result", "same", NULL),
    PART ("ingest_bad", "ingest_jobs", "result", "bad", NULL),
    PART ("ingest_refused", "ingest_jobs", "result", "refused", NULL),
    PART ("ingest_forgotten", "ingest_jobs", "result", "forgotten", NULL),
    PART ("ingest_expired", "ingest_jobs", "result", "expired", NULL),
    COUNT ("ingest_late", "ingest_late", "Times that a job came too late for its id, and got another"),
    LEVEL (METRICS_SUM, "ingest_waiting_jobs", NULL, "Jobs that are not answered yet"),
    LEVEL (METRICS_SUM, "ingest_waiting_bytes", "bytes", "Bytes of these"),
    COUNT ("ingest_batches", "ingest_batches", "Batches of jobs that ranks sent up"),
    COUNT ("ingest_batches_failed", "ingest_batches_failed", "Those of them that failed, and went up again"),
    LEVEL (METRICS_SUM, "ingest_batches_under_way", NULL, "Batches of jobs that are on their way up"),
    LEVEL (METRICS_SUM, "ingest_relay_bytes", "bytes", "Bytes of jobs that are on their way up"),
    LEVEL (METRICS_SUM, "ingest_kept_jobs", NULL, "Jobs that rank 0 keeps until they are acknowledged"),
    LEVEL (METRICS_SUM, "ingest_kept_bytes", "bytes", "Bytes of these"),
    LEVEL (METRICS_SUM, "ingest_remembered", NULL, "Jobs that were acknowledged, and are remembered for their keys"),
    LEVEL (METRICS_SUM, "ingest_consumers", NULL, "Consumers of jobs that are connected"),
    TIMES ("ingest_store_seconds", "Time of rank 0's commits of jobs"),
    LEVEL (METRICS_MAX, "ingest_longest_store_seconds", "seconds", "The longest of these"),
    COUNT ("ingest_store_failures", "ingest_store_failures", "Commits of jobs that failed"),
    LEVEL (METRICS_MAX, "ingest_store_failing", NULL, "1: rank 0 cannot store jobs"),
};

const size_t metrics_catalog_size = sizeof (metrics_catalog) / sizeof (metrics_catalog[0]);

const struct metrics_row *metrics_row (enum metrics_merge merge, const char *name)
{
    for (size_t i = 0; i < metrics_catalog_size; i++)
        if (metrics_catalog[i].merge == merge && strcmp (metrics_catalog[i].name, name) == 0)
            return &metrics_catalog[i];
    return NULL;
}
