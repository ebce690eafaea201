/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ingest.c - the job-ingest service: start, end, timers, the table of topics; ids, batches and verdicts; counters
 *
 * The module runs in a thread, because checking jobs takes longer than a broker's reactor may be blocked. Only the
 * module of rank 0 ever blocks: it waits for the disk when it starts and when it ends. So the modules of all brokers of
 * a process share one thread.
 *
 * At rank 0 the relay's batches go to the job_root object instead of to a parent, so all jobs are stored in the same
 * way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libidtree/json.h"
#include "libmodule/module.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/text.h"
#include "modules/ingest/ingest.h"

#define STOPPING "job-ingest of this broker is stopping: it is not known whether the job is stored"
#define ANSWER_MS 10000 /* timeout of a batch or a request for ids; the overlay reports a lost connection sooner */

uint64_t ingest_now_ms (void)
{
    return clock_ms (CLOCK_BOOTTIME);
}

void ingest_set_timer (idt_watcher_t *timer, uint64_t due_ms)
{
    uint64_t now_ms = ingest_now_ms ();

    idt_watcher_stop (timer);
    if (due_ms == UINT64_MAX)
        return;
    idt_timer_watcher_reset (timer, due_ms > now_ms ? (double)(due_ms - now_ms) : 0, 0);
    idt_watcher_start (timer);
}

void ingest_wake (struct ingest *sv)
{
    idt_watcher_start (sv->idle);
}

/* A batch of a child that is not answered yet. */
struct ingest_child {
    LIST_ENTRY (ingest_child) link;
    struct ingest *service;
    const idt_msg_t *msg;
};

static void child_destroy (struct ingest_child *c)
{
    LIST_REMOVE (c, link);
    idt_msg_unref (c->msg);
    free (c);
}

/* Store the error of a request in 'why'. Jobs that expire later are answered with this reason. */
static void note (char why[INGEST_WHY], const char *what, idt_future_t *f)
{
    snprintf (why, INGEST_WHY, "%s: %s", what, idt_future_error (f));
    utf8_clean (why, strlen (why)); /* snprintf () may have cut a character in two */
}

/* --- verdicts ------------------------------------------------------------------------------------------------- */

static void child_reply (void *arg, struct jobwire_reader *verdicts)
{
    struct ingest_child *c = arg;
    struct jobwire_buf b = { 0 };

    if (jobwire_add_verdicts (&b, verdicts->body, verdicts->size, verdicts->count) < 0)
        module_respond_error (c->service->h, c->msg, ENOMEM, NULL);
    else
        module_respond_raw (c->service->h, c->msg, b.data, b.size);
    jobwire_buf_fini (&b);
    child_destroy (c);
}

static void own_reply (void *arg, struct jobwire_reader *verdicts)
{
    entry_verdicts (arg, ingest_now_ms (), verdicts);
}

void ingest_answered (struct ingest *sv, uint32_t tag, const void *data, size_t size)
{
    struct jobwire_reader verdicts;
    idt_error_t error;

    if (jobwire_read_verdicts (&verdicts, data, size, &error) < 0) {
        idt_log (sv->h, LOG_ERR, "invalid answer to a batch: %s", error.text);
        job_relay_failed (sv->relay, ingest_now_ms (), tag);
    }
    else
        job_relay_answered (sv->relay, ingest_now_ms (), tag, &verdicts);
}

static void answered_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct ingest *sv = up->owner;
    const void *data;
    size_t size;

    if (idt_rpc_get_raw (f, &data, &size) == 0) {
        sv->no_way[0] = '\0';
        ingest_answered (sv, up->tag, data, size);
    }
    else {
        sv->unpacked = sv->unpacked || errno == EPROTO; /* perhaps an older version, which cannot unpack */
        note (sv->no_way, "the parent", f);
        job_relay_failed (sv->relay, ingest_now_ms (), up->tag);
    }
    upcall_destroy (up);
    ingest_wake (sv);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static void batch_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;
    struct jobwire_reader jobs;
    struct ingest_child *c;
    const void *data;
    size_t size;
    idt_error_t error = { "a batch must have a payload" };

    if (idt_msg_payload (msg, &data, &size) < 0 || pack_open (&sv->pack, &data, &size, &error) < 0
        || jobwire_read_batch (&jobs, data, size, &error) < 0) {
        module_respond_error (h, msg, errno == ENOMEM ? ENOMEM : EPROTO, error.text);
        return;
    }
    if (!(c = calloc (1, sizeof (*c)))) {
        module_respond_error (h, msg, ENOMEM, NULL);
        return;
    }
    c->service = sv;
    c->msg = idt_msg_ref (msg);
    LIST_INSERT_HEAD (&sv->children, c, link);
    if (job_relay_add (sv->relay, &jobs, child_reply, c) < 0) {
        module_respond_error (h, msg, errno, "the batches that wait at this rank exceed ingest.max-waiting-bytes");
        child_destroy (c);
    }
    ingest_wake (sv);
}

/* Pass this rank's own jobs to the relay. A batch that does not fit waits until the relay has room. */
static void add_own (struct ingest *sv)
{
    while (sv->out || (sv->out = entry_batch (sv->entry, ingest_now_ms (), &sv->ids, &sv->out_jobs))) {
        if (job_relay_add (sv->relay, &sv->out_jobs, own_reply, sv->out) < 0)
            break;
        sv->out = NULL;
    }
}

static void send (struct ingest *sv, const void *data, size_t size, uint32_t tag)
{
    if (sv->root) {
        job_root_batch (sv->root, tag, data, size);
        return;
    }
    if (!sv->unpacked)
        pack_batch (&sv->pack, &data, &size);
    struct upcall *up = upcall_create (&sv->ups,
                                       idt_rpc_raw (sv->h, "job-ingest.batch", data, size, IDT_NODEID_UPSTREAM, 0),
                                       ANSWER_MS, answered_cb, sv);
    if (up)
        up->tag = tag;
    else
        job_relay_failed (sv->relay, ingest_now_ms (), tag);
}

/* --- ids ---------------------------------------------------------------------------------------------------------- */

static void take_ids (struct ingest *sv, const fluid_t *ids, uint32_t n)
{
    struct job_block_run *runs = calloc (n, sizeof (*runs));
    size_t nruns = 0;

    for (uint32_t i = 0; runs && i < n; i++)
        if (nruns > 0 && runs[nruns - 1].first + runs[nruns - 1].count == ids[i])
            runs[nruns - 1].count++;
        else
            runs[nruns++] = (struct job_block_run){ ids[i], 1 };
    if (!runs || job_block_filled (&sv->ids, runs, nruns) < 0)
        job_block_failed (&sv->ids);
    free (runs);
}

static void ids_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct ingest *sv = up->owner;
    fluid_t *ids = malloc (up->tag * sizeof (*ids));

    if (ids && idt_fluid_generate_get (f, up->tag, ids) == 0) {
        sv->no_ids[0] = '\0';
        take_ids (sv, ids, up->tag);
    }
    else {
        note (sv->no_ids, "cannot get ids", f);
        job_block_failed (&sv->ids);
    }
    free (ids);
    upcall_destroy (up);
    ingest_wake (sv);
}

static void ask_for_ids (struct ingest *sv)
{
    uint32_t n = job_block_ask (&sv->ids, ingest_now_ms (), entry_wants (sv->entry));

    if (n == 0)
        return;
    struct upcall *up = upcall_create (&sv->ups, idt_fluid_generate_async (sv->h, n), ANSWER_MS, ids_cb, sv);
    if (up)
        up->tag = n;
    else
        job_block_failed (&sv->ids);
}

/* Answer the batches of children with EHOSTUNREACH. The children then send them again. */
static void stop_children (struct ingest *sv)
{
    struct ingest_child *c;

    while ((c = LIST_FIRST (&sv->children))) {
        module_respond_error (sv->h, c->msg, EHOSTUNREACH, STOPPING);
        child_destroy (c);
    }
}

/* --- turns --------------------------------------------------------------------------------------------- */

/* Runs when all messages that arrived have been handled, so that jobs that arrive together are sent together. */
static void turn_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct ingest *sv = arg;
    const void *data;
    size_t size;
    uint32_t tag;

    idt_watcher_stop (sv->idle);
    add_own (sv);
    ask_for_ids (sv);
    while (job_relay_next (sv->relay, ingest_now_ms (), &data, &size, &tag))
        send (sv, data, size, tag);
    ingest_set_timer (sv->timer,
                      min_u64 (job_relay_due (sv->relay), min_u64 (entry_due (sv->entry), job_block_due (&sv->ids))));
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct ingest *sv = arg;

    idt_watcher_stop (sv->timer);
    entry_expire (sv->entry, ingest_now_ms (), *sv->no_ids ? sv->no_ids : sv->no_way);
    ingest_wake (sv);
}

/* --- the counters of a rank --------------------------------------------------------------------------------------- */

static void stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
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

/* The counters of verdicts count jobs that were submitted at this rank, not jobs that it relays for children. */
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

static void metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;

    module_report (sv->h, msg, sv->options.rank, report, sv);
}

/* --- requests -------------------------------------------------------------------------------------------- */

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;

    submit_forget (sv->checks, msg);
    if (sv->root)
        job_root_forget (sv->root, msg);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "job-ingest.submit", submit_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.batch", batch_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.stats-get", stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.metrics", metrics_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "ingest.disconnect", disconnect_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- attributes -------------------------------------------------------------------------------------------- */

#define MIB (1u << 20)

/* Read the attributes of the handle's broker. Returns 0, or -1 with errno set and a message in 'errp'. */
static int read_options (idt_t *h, struct ingest_options *o, idt_error_t *errp)
{
    uint32_t mib = 0;

    *o = (struct ingest_options){ 0 };
    if (idt_get_rank (h, &o->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if ((o->rank == 0 && module_option_place (h, "jobs", &o->place, errp) < 0)
        || module_option_switch (h, "ingest.require-signature", "true", &o->require_signature, errp) < 0
        || module_option_switch (h, "ingest.allow-guests", "false", &o->allow_guests, errp) < 0
        || module_option_number (h, "ingest.max-jobspec", "1048576", 1024, 16 * MIB, &o->max_jobspec, errp) < 0
        || module_option_number (h, "ingest.max-waiting", "65536", 1, 1 << 24, &o->max_waiting, errp) < 0
        || module_option_number (h, "ingest.max-waiting-bytes", "67108864", MIB, 1u << 31, &o->max_waiting_bytes, errp)
               < 0
        || module_option_number (h, "ingest.max-jobs", "1000000", 1, 1u << 30, &o->max_jobs, errp) < 0
        || module_option_number (h, "ingest.max-mib", "4096", 1, 1u << 24, &mib, errp) < 0
        || module_option_number (h, "ingest.max-remembered", "10000000", 1, 1u << 30, &o->max_remembered, errp) < 0
        || module_option_duration (h, "ingest.remember", "1h", 1000, UINT64_C (7) * 86400000, "1s to 7d, such as 1h",
                                   &o->remember_ms, errp)
               < 0
        || module_option_duration (h, "ingest.settle", "100ms", 10, 3600000, "10ms to 1h, such as 100ms", &o->settle_ms,
                                   errp)
               < 0
        || module_option_duration (h, "ingest.timeout", "30s", 100, 3600000, "100ms to 1h, such as 30s", &o->timeout_ms,
                                   errp)
               < 0)
        return -1;
    o->max_bytes = (uint64_t)mib * MIB;
    return 0;
}

/* --- start and end ------------------------------------------------------------------------------------------- */

static void service_destroy (struct ingest *sv)
{
    int saved = errno;

    idt_handlers_remove (sv->h, handlers);
    submit_destroy (sv->checks);
    job_root_destroy (sv->root);
    if (sv->entry)
        entry_stop (sv->entry, EAGAIN, "job-ingest of this broker ends");
    stop_children (sv);
    upcalls_stop (&sv->ups, sv->h, STOPPING);
    job_relay_destroy (sv->relay);
    pack_buf_fini (&sv->pack);
    entry_destroy (sv->entry);
    job_block_fini (&sv->ids);
    jv_reader_fini (&sv->reader);
    quota_fini (&sv->submissions);
    idt_watcher_destroy (sv->timer);
    idt_watcher_destroy (sv->idle);
    free (sv);
    errno = saved;
}

/* Ask the broker to let submissions wait until this module is loaded again. The module hands over no other data. */
static void ingest_fini (idt_t *h, void *ctx)
{
    if (idt_module_keep (h, "", 1) < 0)
        idt_log (h, LOG_DEBUG, "submissions do not wait for the next load of job-ingest: %s", strerror (errno));
    service_destroy (ctx);
}

static int start (struct ingest *sv, idt_error_t *errp)
{
    const struct ingest_options *o = &sv->options;
    idt_reactor_t *r = idt_get_reactor (sv->h);

    sv->submissions_rule = (struct quota_rule){
        "submissions", QUOTA_NO_LIMIT, (o->max_waiting + 1) / 2, (o->max_waiting + 7) / 8, (o->max_waiting + 7) / 8,
        EAGAIN
    };
    quota_init_by (&sv->submissions, &sv->submissions_rule);
    if ((sv->entry = entry_create (o->max_waiting, o->max_waiting_bytes, o->timeout_ms, submit_reply, sv))
        && (sv->relay = job_relay_create (o->max_waiting_bytes,
                                          o->rank > 0 ? JOB_RELAY_UNDER_WAY : JOB_RELAY_ROOT_UNDER_WAY))
        && (sv->checks = submit_create (sv)) && (sv->timer = idt_timer_watcher_create (r, 0, 0, timer_cb, sv))
        && (sv->idle = idt_idle_watcher_create (r, turn_cb, sv))
        && (o->rank > 0 || (sv->root = job_root_create (sv, errp))) && idt_handlers_add (sv->h, handlers, sv) == 0) {
        if (o->rank == 0 && o->place.store)
            job_relay_set_batch (sv->relay, JOB_RELAY_STORE_BYTES);
        return 0;
    }
    return *errp->text ? -1 : errprintf (errp, "cannot start: %s", strerror (errno));
}

static int ingest_init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct ingest *sv;

    if (module_option_none (argc, argv, errp) < 0)
        return -1;
    if (!(sv = calloc (1, sizeof (*sv))))
        return errprintf (errp, "out of memory");
    sv->h = h;
    job_block_init (&sv->ids);
    if (read_options (h, &sv->options, errp) < 0 || start (sv, errp) < 0) {
        service_destroy (sv);
        return -1;
    }
    *ctx = sv;
    return 0;
}

IDT_MODULE_SHARED ("job-ingest", ingest_init, ingest_fini)
