/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.c - the meaning of the names in a report, and reports as text that Prometheus reads
 *
 * The two formats differ in the name of a counter's family, in units, and in the last line.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "libmetrics/bounds.h"
#include "libmetrics/text.h"
#include "libutil/text.h"

#define PREFIX "idtree_"

/* --- the catalog -------------------------------------------------------------------------------------- */

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
    /* the overlay */
    STATE ("status", "ranks", "status", "Ranks by their status, as shown by idtree overlay status"),
    STATE ("silent_modules", "silent_modules", "module", "Ranks on which the module did not answer in time"),
    COUNT ("broker_requests", "broker_requests", "Requests that brokers received, from clients and from brokers"),
    COUNT ("broker_responses", "broker_responses", "Responses that went through brokers"),
    COUNT ("broker_failed", "broker_failed", "Requests that brokers answered with an error themselves"),
    COUNT ("broker_unroutable", "broker_unroutable", "Responses whose requester was disconnected"),
    LEVEL (METRICS_SUM, "broker_pending", NULL, "Requests that were forwarded and are not answered yet"),
    LEVEL (METRICS_SUM, "broker_clients", NULL, "Connections of local clients"),
    LEVEL (METRICS_SUM, "overlay_links", NULL, "Connections of brokers to parents and to children: each counts twice"),
    LEVEL (METRICS_SUM, "overlay_waiting_messages", NULL, "Messages that wait for credit on a link"),
    LEVEL (METRICS_SUM, "overlay_waiting_bytes", "bytes", "Bytes that wait for credit on a link"),
    LEVEL (METRICS_MAX, "overlay_longest_queue_bytes", "bytes", "Bytes in the longest queue of a link"),
    COUNT ("overlay_refused", "overlay_refused", "Requests that were refused because the queue of a link was full"),
    COUNT ("overlay_failed", "overlay_failed", "Responses that became errors because the queue of a link was full"),
    LEVEL (METRICS_SUM, "overlay_adopted", NULL, "Brokers that are connected to a broker that is not their parent"),
    /* events */
    { "event_sequence", METRICS_MAX, METRICS_COUNTER, "events", NULL, NULL, NULL, "Events that were published" },
    COUNT ("event_delivered", "events_delivered", "Events that brokers delivered, each once"),
    COUNT ("event_gaps", "event_gaps", "Gaps in the sequence of events that brokers detected"),
    COUNT ("event_recovered", "events_recovered", "Events that were fetched after a gap"),
    COUNT ("event_lost", "events_lost", "Events that could no longer be fetched"),
    LEVEL (METRICS_SUM, "event_subscribers", NULL, "Clients and modules that have subscribed to events"),
    /* processes; the first rank of each process reports it */
    LEVEL (METRICS_SUM, "processes", NULL, "Processes of brokers"),
    LEVEL (METRICS_SUM, "process_resident_memory_bytes", "bytes", "Memory of all processes of brokers"),
    LEVEL (METRICS_MAX, "process_largest_memory_bytes", "bytes", "Memory of the largest process"),
    LEVEL (METRICS_SUM, "process_open_fds", NULL, "File descriptors of all processes of brokers"),
    LEVEL (METRICS_MAX, "process_fds_used_ratio", "ratio",
           "File descriptors divided by the limit, in the process "
           "with the highest ratio"),
    { "process_cpu_seconds", METRICS_SUM, METRICS_COUNTER, "process_cpu_seconds", NULL, NULL, "seconds",
      "Processor time of all processes of brokers" },
    /* ids */
    STATE ("fluid_state", "fluid_generators", "state", "Ranks by the state of their generator"),
    COUNT ("fluid_requests", "fluid_requests", "Requests for FLUIDs, of clients and of child brokers"),
    PART ("fluid_ids", "fluid_ids", "origin", "made", "FLUIDs that ranks made, or got from an ancestor"),
    PART ("fluid_ids_from_above", "fluid_ids", "origin", "above", NULL),
    PART ("fluid_page_ids", "fluid_ids", "origin", "page", NULL),
    COUNT ("fluid_forwarded", "fluid_forwarded", "Requests for FLUIDs that were sent to a parent"),
    COUNT ("fluid_combined", "fluid_combined", "Requests for FLUIDs that were sent to a parent together with others"),
    COUNT ("fluid_forwards_lost", "fluid_forwards_lost", "Requests to a parent whose answer was late or an error"),
    COUNT ("fluid_stalls", "fluid_stalls", "Requests for FLUIDs that had to wait"),
    COUNT ("fluid_refused", "fluid_refused", "Requests for FLUIDs that were refused: too many waited"),
    COUNT ("fluid_unreachable", "fluid_unreachable",
           "Requests for FLUIDs that failed: no rank could make them in "
           "time"),
    TIMES ("fluid_wait_seconds", "Time that requests for FLUIDs waited at a rank, 0 if they did not wait"),
    LEVEL (METRICS_MAX, "fluid_longest_wait_seconds", "seconds", "The longest of these"),
    LEVEL (METRICS_SUM, "fluid_waiting", NULL, "Requests for FLUIDs that wait now"),
    /* leases */
    COUNT ("fluid_renewals", "fluid_renewals", "Leases that ranks were granted"),
    COUNT ("fluid_lease_messages", "fluid_lease_messages", "Requests for leases"),
    LEVEL (METRICS_MAX, "fluid_lease_age_seconds", "seconds", "Age of the oldest lease"),
    LEVEL (METRICS_MIN, "fluid_lease_left_seconds", "seconds",
           "Time left of the lease that ends first; negative after its end"),
    LEVEL (METRICS_MAX, "fluid_lease_left_longest_seconds", "seconds", "Time left of the lease that ends last"),
    LEVEL (METRICS_MAX, "fluid_lease_seconds", "seconds", "Length of a lease when it is granted (fluid.lease)"),
    LEVEL (METRICS_MAX, "fluid_skew_bound_seconds", "seconds",
           "Largest possible difference between a rank's time "
           "and rank 0's"),
    COUNT ("fluid_parts_received", "fluid_parts_received", "Parts of a generator's numbers that ranks were granted"),
    COUNT ("fluid_parts_granted", "fluid_parts_granted", "Parts of their numbers that ranks granted to ranks below"),
    COUNT ("fluid_part_messages", "fluid_part_messages", "Requests for parts, and returns of parts"),
    /* rank 0 */
    LEVEL (METRICS_MAX, "fluid_ahead_seconds", "seconds", "How far rank 0's time is ahead of its wall clock"),
    LEVEL (METRICS_MAX, "fluid_horizon_timestamp_seconds", "seconds", "The stored horizon, which no lease exceeds"),
    LEVEL (METRICS_MAX, "fluid_watermark_timestamp_seconds", "seconds",
           "The watermark: the time below which no FLUID will be made any longer"),
    LEVEL (METRICS_MAX, "fluid_watermark_still_seconds", "seconds", "For how long the watermark has not advanced"),
    COUNT ("fluid_stores", "fluid_store_commits", "Horizons that rank 0 stored"),
    COUNT ("fluid_store_failures", "fluid_store_failures", "Horizons that rank 0 could not store"),
    TIMES ("fluid_store_seconds", "Time until a horizon was stored"),
    LEVEL (METRICS_MAX, "fluid_longest_store_seconds", "seconds", "The longest of these"),
    LEVEL (METRICS_MAX, "fluid_store_slow", NULL, "1: a write of rank 0's horizon takes long, or fails"),
    LEVEL (METRICS_MAX, "fluid_store_failing", NULL, "1: rank 0 cannot store its horizon"),
    /* the role of rank 0, if its state is in PostgreSQL */
    STATE ("root_host", "root_host", "host", "The host that is rank 0"),
    LEVEL (METRICS_MAX, "root_term", NULL, "The term of rank 0: each process that becomes rank 0 begins a new one"),
    { "root_takeovers", METRICS_MAX, METRICS_COUNTER, "root_takeovers", NULL, NULL, NULL,
      "How often another process became rank 0: by a takeover, a release, or a restart" },
    LEVEL (METRICS_MAX, "root_candidates", NULL, "Hosts that can be rank 0 (cluster.root)"),
    LEVEL (METRICS_MAX, "root_standbys", NULL, "Hosts that wait to become rank 0"),
    LEVEL (METRICS_MAX, "root_store_failing", NULL,
           "1: root.store does not answer, or its commits are not on a second server"),
    LEVEL (METRICS_MAX, "root_store_silent_seconds", "seconds", "Time since the newest answer of root.store"),
    /* flax, sno, uid */
    COUNT ("flake_requests", "flake_requests",
           "Requests for ids of flax, sno and uid, of clients and of child brokers"),
    PART ("flake_flaxes", "flake_ids", "kind", "flax", "Ids of flax, sno and uid that ranks made"),
    PART ("flake_snos", "flake_ids", "kind", "sno", NULL),
    PART ("flake_uids", "flake_ids", "kind", "uid", NULL),
    COUNT ("flake_forwarded", "flake_forwarded", "Requests for ids of flax, sno and uid that were sent to a parent"),
    COUNT ("flake_combined", "flake_combined",
           "Requests for ids of flax, sno and uid that were sent to a parent "
           "together with others"),
    COUNT ("flake_refused", "flake_refused",
           "Requests for ids of flax, sno and uid that were refused: too many, or "
           "too late"),
    LEVEL (METRICS_SUM, "flake_waiting", NULL, "Requests for ids of flax, sno and uid that wait now"),
    /* documents of the id compressor */
    LEVEL (METRICS_SUM, "compressor_open", NULL, "Documents that are open, counted on each rank that has them"),
    COUNT ("compressor_generated", "compressor_ids", "Ids of documents that ranks made for clients"),
    COUNT ("compressor_applied", "compressor_applied", "Ranges of ids that ranks applied to their documents"),
    COUNT ("compressor_fetches", "compressor_fetches", "Requests of ranks for ranges that they had missed"),
    COUNT ("compressor_loads", "compressor_loads", "Stored documents that ranks loaded"),
    COUNT ("compressor_orders", "compressor_orders", "Requests to a parent with ranges to order"),
    COUNT ("compressor_orders_failed", "compressor_orders_failed",
           "Requests to a parent with ranges to order that "
           "failed and were repeated"),
    LEVEL (METRICS_SUM, "compressor_waiting", NULL, "Parts of requests that wait on ranks to be sent to the parent"),
    LEVEL (METRICS_SUM, "compressor_asked", NULL, "Requests whose ranges are not ordered yet"),
    LEVEL (METRICS_SUM, "compressor_awaited", NULL, "Requests that wait for a document, or for ids to be final"),
    LEVEL (METRICS_SUM, "compressor_documents", NULL, "Documents that rank 0 keeps"),
    PART ("compressor_ranges", "compressor_ranges", "result", "ordered", "Ranges that rank 0 received"),
    PART ("compressor_ranges_repeated", "compressor_ranges", "result", "repeated", NULL),
    PART ("compressor_ranges_refused", "compressor_ranges", "result", "refused", NULL),
    LEVEL (METRICS_SUM, "compressor_queue", NULL, "Requests that wait for the next commit of rank 0"),
    TIMES ("compressor_store_seconds", "Time of rank 0's commits of documents"),
    LEVEL (METRICS_MAX, "compressor_longest_store_seconds", "seconds", "The longest of these"),
    COUNT ("compressor_store_failures", "compressor_store_failures", "Commits of documents that failed"),
    LEVEL (METRICS_MAX, "compressor_store_failing", NULL, "1: rank 0 cannot store documents"),
    /* jobs */
    COUNT ("ingest_submitted", "ingest_submissions", "Jobs that clients submitted"),
    PART ("ingest_stored", "ingest_jobs", "result", "stored", "Jobs by the result of their submission"),
    PART ("ingest_same", "ingest_jobs", "result", "same", NULL),
    PART ("ingest_bad", "ingest_jobs", "result", "bad", NULL),
    PART ("ingest_refused", "ingest_jobs", "result", "refused", NULL),
    PART ("ingest_forgotten", "ingest_jobs", "result", "forgotten", NULL),
    PART ("ingest_expired", "ingest_jobs", "result", "expired", NULL),
    COUNT ("ingest_late", "ingest_late", "Jobs that arrived too late for their id and got another"),
    LEVEL (METRICS_SUM, "ingest_waiting_jobs", NULL, "Jobs that are not answered yet"),
    LEVEL (METRICS_SUM, "ingest_waiting_bytes", "bytes", "Bytes of jobs that are not answered yet"),
    COUNT ("ingest_batches", "ingest_batches", "Batches of jobs that ranks sent to a parent"),
    COUNT ("ingest_batches_failed", "ingest_batches_failed", "Batches of jobs that failed and were sent again"),
    LEVEL (METRICS_SUM, "ingest_batches_under_way", NULL, "Batches of jobs that are under way to a parent"),
    LEVEL (METRICS_SUM, "ingest_relay_bytes", "bytes", "Bytes of jobs that are under way to a parent"),
    LEVEL (METRICS_SUM, "ingest_kept_jobs", NULL, "Jobs that rank 0 keeps until they are acknowledged"),
    LEVEL (METRICS_SUM, "ingest_kept_bytes", "bytes", "Bytes of the jobs that rank 0 keeps"),
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

/* --- printing ----------------------------------------------------------------------------------------- */

static const char *const types[] = { "gauge", "counter", "histogram" };

struct printer {
    FILE *f;
    enum metrics_format format;
    const struct metrics_source *sources;
    size_t n;
};

static const json_t *find (const struct metrics_source *source, enum metrics_merge merge, const char *name)
{
    return json_object_get (json_object_get (source->report, metrics_sections[merge]), name);
}

/* --- samples ------------------------------------------------------------------------------------------ */

struct label {
    const char *name, *value; /* 'name' is NULL: no label */
};

/* Print a text of unknown origin. Characters that would end the text are escaped; a newline becomes a blank. */
static void print_text (FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\' || *s == '"')
            fputc ('\\', f);
        fputc (*s == '\n' ? ' ' : *s, f);
    }
}

static void print_name (const struct printer *p, const char *family, const char *suffix, const struct label *label,
                        long rank)
{
    fprintf (p->f, PREFIX "%s%s", family, suffix);
    if (label->name || rank >= 0)
        fputc ('{', p->f);
    if (rank >= 0)
        fprintf (p->f, "rank=\"%ld\"%s", rank, label->name ? "," : "");
    if (label->name) {
        fprintf (p->f, "%s=\"", label->name);
        print_text (p->f, label->value);
        fputc ('"', p->f);
    }
    if (label->name || rank >= 0)
        fputc ('}', p->f);
    fputc (' ', p->f);
}

/* Print a number. 15 digits hide the rounding of binary fractions. */
static void print_number (FILE *f, const json_t *value)
{
    if (json_is_integer (value))
        fprintf (f, "%" JSON_INTEGER_FORMAT "\n", json_integer_value (value));
    else
        fprintf (f, "%.15g\n", json_number_value (value));
}

static void print_sample (const struct printer *p, const struct metrics_row *row, const struct metrics_source *source,
                          const json_t *value)
{
    const struct label label = { row->label, row->value };

    print_name (p, row->family, row->type == METRICS_COUNTER ? "_total" : "", &label, source->rank);
    print_number (p->f, value);
}

static void print_sets (const struct printer *p, const struct metrics_row *row, const struct metrics_source *source,
                        const json_t *values)
{
    const char *value;
    json_t *ranks;

    json_object_foreach ((json_t *)values, value, ranks) {
        const struct label label = { row->label, value };

        print_name (p, row->family, "", &label, source->rank);
        fprintf (p->f, "%" PRIu64 "\n", ranges_count (json_string_value (ranks), UINT32_MAX));
    }
}

/* The upper end of a bucket in seconds, written with a decimal point, as OpenMetrics requires. */
static const char *print_end (size_t i, char buf[32])
{
    double s = i < METRICS_BOUNDS ? metrics_bounds_us[i] / 1e6 : 0;

    if (i == METRICS_BOUNDS)
        return "+Inf";
    snprintf (buf, 32, s < 1 ? "%.15g" : "%.1f", s);
    return buf;
}

/* Print a histogram. Its buckets are cumulative, as Prometheus requires: each counts all times up to its end. */
static void print_histogram (const struct printer *p, const struct metrics_row *row,
                             const struct metrics_source *source, const json_t *buckets)
{
    static const struct label none = { NULL, NULL };
    char sum[METRICS_MAX_NAME + 8], end[32];
    json_int_t count = 0;

    for (size_t i = 0; i <= METRICS_BOUNDS; i++) {
        const struct label label = { "le", print_end (i, end) };

        count += json_integer_value (json_array_get (buckets, i));
        print_name (p, row->family, "_bucket", &label, source->rank);
        fprintf (p->f, "%" JSON_INTEGER_FORMAT "\n", count);
    }
    print_name (p, row->family, "_count", &none, source->rank);
    fprintf (p->f, "%" JSON_INTEGER_FORMAT "\n", count);
    snprintf (sum, sizeof (sum), "%s_sum", row->name);
    print_name (p, row->family, "_sum", &none, source->rank);
    fprintf (p->f, "%.15g\n", json_number_value (find (source, METRICS_SUM, sum)));
}

/* --- families ------------------------------------------------------------------------------------------- */

static void print_head (const struct printer *p, const struct metrics_row *row)
{
    bool open = p->format == METRICS_OPENMETRICS;
    const char *suffix = !open && row->type == METRICS_COUNTER ? "_total" : "";

    fprintf (p->f, "# HELP " PREFIX "%s%s %s\n", row->family, suffix, row->help);
    fprintf (p->f, "# TYPE " PREFIX "%s%s %s\n", row->family, suffix, types[row->type]);
    if (open && row->unit)
        fprintf (p->f, "# UNIT " PREFIX "%s %s\n", row->family, row->unit);
}

static bool is_told (const struct printer *p, const struct metrics_row *row)
{
    for (size_t i = 0; i < p->n; i++)
        if (find (&p->sources[i], row->merge, row->name))
            return true;
    return false;
}

static void print_row (const struct printer *p, const struct metrics_row *row)
{
    for (size_t i = 0; i < p->n; i++) {
        const json_t *value = find (&p->sources[i], row->merge, row->name);

        if (json_is_object (value))
            print_sets (p, row, &p->sources[i], value);
        else if (json_is_array (value))
            print_histogram (p, row, &p->sources[i], value);
        else if (value)
            print_sample (p, row, &p->sources[i], value);
    }
}

/* Print the rows of the catalog. The rows of a family are adjacent. The head of a family is printed before the family's
 * first row that a report contains. It has the help of the family's first row in the catalog.
 */
static void print_catalog (const struct printer *p)
{
    const struct metrics_row *first = &metrics_catalog[0];
    bool begun = false;

    for (const struct metrics_row *row = first; row < metrics_catalog + metrics_catalog_size; row++) {
        if (strcmp (row->family, first->family) != 0) {
            first = row;
            begun = false;
        }
        if (!is_told (p, row))
            continue;
        if (!begun)
            print_head (p, first);
        begun = true;
        print_row (p, row);
    }
}

/* --- names that are not in the catalog ------------------------------------------------------------------ */

static bool is_name (const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *s && s[strspn (s, letters)] == '\0';
}

/* Whether a name is in the catalog. The sum of a histogram belongs to the histogram. */
static bool is_known (enum metrics_merge merge, const char *name)
{
    size_t len = strlen (name);
    char stem[METRICS_MAX_NAME + 1] = "";

    if (merge == METRICS_SUM && len > 4 && len < sizeof (stem) && strcmp (name + len - 4, "_sum") == 0)
        memcpy (stem, name, len - 4);
    return metrics_row (merge, name) || metrics_row (METRICS_BUCKETS, stem);
}

static bool was_printed (const struct printer *p, size_t source, enum metrics_merge merge, const char *name)
{
    for (size_t i = 0; i < source; i++)
        if (find (&p->sources[i], merge, name))
            return true;
    return false;
}

/* Print a name that is not in the catalog. Its section becomes part of the family's name, so the same name in two
 * sections gives two families.
 */
static void print_unknown (const struct printer *p, enum metrics_merge merge, const char *name)
{
    static const struct label none = { NULL, NULL };
    char suffix[8];

    snprintf (suffix, sizeof (suffix), "_%s", metrics_sections[merge]);
    fprintf (p->f, "# TYPE " PREFIX "other_%s%s %s\n", name, suffix,
             p->format == METRICS_OPENMETRICS ? "unknown" : "untyped");
    for (size_t i = 0; i < p->n; i++) {
        const json_t *value = find (&p->sources[i], merge, name);
        char family[METRICS_MAX_NAME + 8];

        if (!json_is_number (value))
            continue;
        snprintf (family, sizeof (family), "other_%s", name);
        print_name (p, family, suffix, &none, p->sources[i].rank);
        print_number (p->f, value);
    }
}

static void print_others (const struct printer *p)
{
    const char *name;
    json_t *value;

    for (int merge = 0; merge < METRICS_BUCKETS; merge++)
        for (size_t i = 0; i < p->n; i++)
            json_object_foreach (json_object_get (p->sources[i].report, metrics_sections[merge]), name, value)
                if (is_name (name) && strlen (name) <= METRICS_MAX_NAME && !is_known (merge, name)
                    && !was_printed (p, i, merge, name))
                    print_unknown (p, merge, name);
}

void metrics_print (FILE *f, enum metrics_format format, const struct metrics_source *sources, size_t n)
{
    const struct printer p = { f, format, sources, n };

    print_catalog (&p);
    print_others (&p);
    if (format == METRICS_OPENMETRICS)
        fputs ("# EOF\n", f);
}
