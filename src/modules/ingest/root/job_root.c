/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_root.c - rank 0: gives the store one piece of work after another
 *
 * A piece of work has a batch to judge and store, an acknowledgement, and reads, or some of these. Batches are judged
 * by the line as it is when the work begins, and by the life of this module: a job that names another life is not
 * stored (doc/design/ingest.md).
 *
 * If a commit fails, the submitters of its jobs are refused, and the line is raised to the highest of their ids, so
 * that these jobs will never be stored. The next batch tries again. But if the end of the commit may be in the log, a
 * later life could find the jobs there. In that case no submitter is answered, and the same batch is stored again until
 * a commit succeeds.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/private.h"

#define LIFE_MS 100     /* between two requests for an id that names this life */
#define WATERMARK_MS 20 /* between two requests for the watermark while consumers wait for it */
#define OPEN_MS 2000    /* the longest wait for a server at the start */
#define FINISH_MS 5000  /* the longest wait for the disk at the end */
#define LEAVE_MS 1000   /* ... for a server, whose writes can be stopped: another rank 0 waits for this one to end */
#define SLOW_MS 5000    /* until it is reported that the disk does not answer; at most half of ingest.timeout */
#define AGAIN_MS 200    /* from failed work to the next try, unless a new batch arrives before */

/* --- the service ------------------------------------------------------------------------------------------------ */

static void service_added_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct ingest *sv = up->owner;

    if (idt_future_errnum (f))
        idt_log (sv->h, LOG_ERR, "cannot add the service ingest: %s", idt_future_error (f));
    upcall_destroy (up);
}

/* Until the store is open, clients of the service wait as at a start. */
static void add_service (struct job_root *root)
{
    struct ingest *sv = root->service;

    if (!upcall_create (&sv->ups, idt_service_add (sv->h, "ingest"), -1, service_added_cb, sv))
        idt_log (sv->h, LOG_ERR, "cannot add the service ingest: %s", strerror (errno));
}

/* --- storing a batch ------------------------------------------------------------------------------------------- */

static int make_room (struct job_root *root, size_t n)
{
    if (n <= root->room)
        return 0;
    struct job *jobs = realloc (root->jobs, n * sizeof (*jobs));
    if (!jobs)
        return -1;
    root->jobs = jobs;
    struct verdict *verdicts = realloc (root->verdicts, n * sizeof (*verdicts));
    if (!verdicts)
        return -1;
    root->verdicts = verdicts;
    root->room = n;
    return 0;
}

/* Read the first batch. Returns its number of jobs, or 0 if memory is short. */
static size_t read_batch (struct job_root *root)
{
    struct jobwire_reader r;
    struct job job;
    size_t n = 0;

    if (jobwire_read_batch (&r, root->batch[0].data, root->batch[0].size, NULL) < 0 || make_room (root, r.count) < 0)
        return 0;
    while (jobwire_next_job (&r, &job))
        root->jobs[n++] = job;
    return n;
}

static void count (struct job_root *root, const struct verdict *v)
{
    root->stored += v->kind == VERDICT_STORED;
    root->same += v->kind == VERDICT_SAME;
    root->late += v->kind == VERDICT_LATE;
    root->forgotten += v->kind == VERDICT_FORGOTTEN;
    root->refused += v->kind == VERDICT_REFUSED;
}

/* The highest id of the group that must never be stored. The line is raised to this id before the submitters are
 * answered.
 */
static uint64_t highest_unstored (const struct job_root *root)
{
    uint64_t id = 0;

    for (size_t i = 0; i < root->group.n; i++)
        if ((root->verdicts[i].kind == VERDICT_REFUSED || root->verdicts[i].kind == VERDICT_SAME)
            && root->jobs[i].id <= INT64_MAX) /* larger ids are never stored */
            id = max_u64 (id, root->jobs[i].id);
    return id;
}

/* Answer the first batch. Its place is freed before, because the next batch may arrive in consequence of the answer. */
static void answer_batch (struct job_root *root, struct jobwire_buf *b)
{
    uint32_t tag = root->batch[0].tag;

    assert (root->nbatches > 0);
    root->nbatches--;
    memmove (root->batch, root->batch + 1, root->nbatches * sizeof (root->batch[0]));
    root->storing = false;
    ingest_answered (root->service, tag, b->data, b->size);
    jobwire_buf_fini (b);
    ingest_wake (root->service);
}

/* The time of ids: the last time that was received, plus the time that has passed since then; 0: none was received yet.
 */
static uint64_t time_of_ids (const struct job_root *root)
{
    return root->told_ms > 0 ? root->ids_ms + (ingest_now_ms () - root->told_ms) : 0;
}

static void tell_verdicts (struct job_root *root)
{
    struct jobwire_buf b = { 0 };
    bool whole = true;

    visibility_end (&root->line, highest_unstored (root));
    for (size_t i = 0; i < root->group.n; i++) {
        count (root, &root->verdicts[i]);
        if (root->verdicts[i].kind == VERDICT_LATE) {
            if (root->jobs[i].life == root->life)
                visibility_late (&root->line, root->jobs[i].id, time_of_ids (root));
            root->verdicts[i].id = root->life;
        }
        whole = whole && jobwire_add_verdict (&b, &root->verdicts[i]) == 0;
    }
    if (!whole) /* memory is short: the empty answer is invalid, so the relay sends the batch again */
        b.size = 0;
    answer_batch (root, &b);
}

/* Give the reason of a failed commit to the jobs that it would have stored. Jobs that were stored before keep their
 * verdicts.
 */
static void give_reason (struct job_root *root, int errnum)
{
    for (size_t i = 0; i < root->group.n; i++)
        if (root->verdicts[i].kind == VERDICT_REFUSED)
            root->verdicts[i] = (struct verdict){ .kind = VERDICT_REFUSED,
                                                  .errnum = errnum,
                                                  .text = root->why.text,
                                                  .text_size = min_u64 (strlen (root->why.text), JOBWIRE_TEXT_MAX) };
}

/* --- a disk that does not answer --------------------------------------------------------------------------------- */

static void watch_disk (struct job_root *root)
{
    root->slow_ms = min_u64 (SLOW_MS, root->service->options.timeout_ms / 2);
    pace_want (&root->pace, PACE_SLOW, true, ingest_now_ms (), root->slow_ms);
    ingest_set_timer (root->timer, pace_due (&root->pace));
}

/* Report a slow disk. The result of the work is unknown until the work ends. Submitters wait for the result, up to
 * ingest.timeout.
 */
static void take_slow (struct job_root *root)
{
    idt_error_t why;

    root->slow = true;
    if (job_store_waits (root->store, &why))
        errprintf (&root->slow_why, "%s: not stored for %" PRIu64 " ms: %s", job_store_where (root->store),
                   root->slow_ms, why.text);
    else
        errprintf (&root->slow_why, "%s: the %s has not answered for %" PRIu64 " ms", job_store_where (root->store),
                   root->service->options.place.store ? "server" : "disk", root->slow_ms);
    idt_log (root->service->h, LOG_CRIT, "%s: jobs wait until it answers", root->slow_why.text);
}

static void disk_answered (struct job_root *root)
{
    if (root->slow)
        idt_log (root->service->h, LOG_NOTICE,
                 "%s: the %s answers again, after %" PRIu64 " ms: waiting jobs are stored now",
                 job_store_where (root->store), root->service->options.place.store ? "server" : "disk",
                 (clock_us (CLOCK_MONOTONIC) - root->begun_us) / 1000);
    root->slow = false;
    pace_want (&root->pace, PACE_SLOW, false, 0, 0);
}

const char *job_root_trouble (const struct job_root *root)
{
    if (root->slow)
        return root->slow_why.text;
    return root->failing ? root->why.text : NULL;
}

/* --- the work of the store --------------------------------------------------------------------------------------- */

static void take_failed (struct job_root *root, int errnum, const idt_error_t *why)
{
    if (!root->failing || strcmp (root->why.text, why->text) != 0) /* log each reason once */
        idt_log (root->service->h, LOG_CRIT, "%s: jobs %s until they can be stored", why->text,
                 root->group.unsure ? "wait" : "are refused");
    root->failing = true;
    root->failed++;
    root->why = *why;
    root->unsure = root->unsure || root->group.unsure;
    root->resting = true;
    pace_want (&root->pace, PACE_AGAIN, false, 0, 0); /* so that the pause begins at this failure */
    if (!root->unsure)
        give_reason (root, errnum);
}

static void take_good (struct job_root *root)
{
    if (root->failing)
        idt_log (root->service->h, LOG_NOTICE, "jobs are stored again");
    root->failing = false;
    root->unsure = false;
    root->resting = false;
    root->groups += root->group.n > 0;
    if (root->group.n > 0)
        metrics_time (&root->commits, clock_us (CLOCK_MONOTONIC) - root->begun_us);
}

static void end_reads (struct job_root *root)
{
    for (size_t i = 0; i < root->nreads; i++) {
        notify_read (root, i);
        jobwire_buf_fini (&root->reads[i].found);
    }
    root->nreads = 0;
}

static void begin_work (struct job_root *root, struct job_store_group *group)
{
    root->busy = true;
    root->begun_us = clock_us (CLOCK_MONOTONIC);
    job_store_begin (root->store, group, root->reads, root->nreads);
    watch_disk (root);
}

/* The store is open. All jobs that were visible in earlier lives are stored. So the line starts at the newest stored
 * id, and no job can be stored among these jobs any longer. In PostgreSQL this id was read after the fence was set, so
 * an earlier rank 0 stores and shows no later job (J_LINE). Acknowledgement time continues from the newest time
 * that is stored. If no time is stored, it starts at the wall clock's time, which earlier versions used for all
 * acknowledgements.
 */
static void begin_life (struct job_root *root)
{
    struct ingest *sv = root->service;

    root->opening = root->failing = false;
    root->opened_ms = ingest_now_ms ();
    root->opened_s = root->counts.acked_s > 0 ? root->counts.acked_s : (int64_t)clock_s (CLOCK_REALTIME);
    visibility_init (&root->line, root->counts.newest, sv->options.settle_ms);
    add_service (root);
}

/* The store was connected, or could not be. In the second case it is tried again, and jobs wait. */
static void take_opened (struct job_root *root, int rc, const idt_error_t *why)
{
    if (rc > 0)
        begin_life (root);
    else {
        if (!root->failing || strcmp (root->why.text, why->text) != 0)
            idt_log (root->service->h, LOG_CRIT, "%s: jobs wait until the store can be opened", why->text);
        root->failing = true;
        root->why = *why;
    }
    job_root_look (root);
    job_root_turn (root);
}

static void store_done_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct job_root *root = arg;
    idt_error_t why = { "" };
    int rc = job_store_result (root->store, &root->counts, &why), errnum = errno;

    if (rc == 0)
        return;
    root->busy = false;
    disk_answered (root);
    if (root->opening) {
        take_opened (root, rc, &why);
        return;
    }
    if (rc < 0)
        take_failed (root, errnum, &why);
    else
        take_good (root);
    if (root->acking.count > 0)
        notify_acked (root, rc < 0 ? errnum : 0, why.text);
    if (root->storing && !root->unsure)
        tell_verdicts (root);
    end_reads (root);
    job_root_look (root);
    if (!root->unsure)
        job_root_turn (root);
}

static void begin_batch (struct job_root *root)
{
    if (root->nbatches == 0 || root->life == 0)
        return;
    if (root->storing) /* the same batch is tried again: it does not raise the line */
        visibility_end (&root->line, 0);
    root->group.n = read_batch (root);
    root->group.job = root->jobs;
    root->group.verdict = root->verdicts;
    root->group.life = root->life;
    root->group.line = visibility_begin (&root->line);
    root->storing = true;
}

static void begin_ack (struct job_root *root)
{
    struct fifo none = root->acking;

    root->group.ack = root->ack;
    root->acking = root->acks;
    root->acks = none; /* an empty queue */
    root->ack = 0;
}

/* Whether memory was too short to read the batch. Such a batch gets no verdicts, and the relay sends it again. */
static bool is_unread (const struct job_root *root)
{
    return root->storing && root->group.n == 0;
}

static bool wants_tidying (const struct job_root *root)
{
    return root->counts.untidy && !root->resting;
}

/* Acknowledgement time in seconds. It advances only while the module of rank 0 runs. So if the wall clock is set
 * forward, rank 0 forgets no keys because of that.
 */
static int64_t age_s (const struct job_root *root)
{
    return root->opened_s + (int64_t)((ingest_now_ms () - root->opened_ms) / 1000);
}

void job_root_turn (struct job_root *root)
{
    const struct ingest_options *o = &root->service->options;
    int64_t now_s = age_s (root);

    if (root->busy || root->stopping || root->opening || !root->store)
        return;
    root->group = (struct job_store_group){
        .max_jobs = o->max_jobs, .max_bytes = o->max_bytes, .owner_first = true, .owner = geteuid (), .now_s = now_s
    };
    if (root->counts.remembered > o->max_remembered)
        root->group.forget_s = now_s;
    else if (root->counts.remembered > 0)
        root->group.forget_s = now_s - (int64_t)(o->remember_ms / 1000);
    begin_batch (root);
    if (is_unread (root)) {
        tell_verdicts (root);
        return;
    }
    begin_ack (root);
    root->nreads = notify_collect (root, root->reads, JOB_ROOT_READS);
    bool writes = root->group.n > 0 || root->group.ack > 0 || wants_tidying (root);
    if (!writes && root->nreads == 0)
        return;
    assert (root->nreads <= JOB_ROOT_READS);
    begin_work (root, writes ? &root->group : NULL);
}

/* --- batches that come ------------------------------------------------------------------------------------------- */

/* The store cannot be used, so it is not known which jobs are stored: answer FORGOTTEN for all of them. */
static void forget_batch (struct job_root *root)
{
    root->group = (struct job_store_group){ .n = read_batch (root) };
    visibility_begin (&root->line);
    for (size_t i = 0; i < root->group.n; i++)
        root->verdicts[i] = (struct verdict){ .kind = VERDICT_FORGOTTEN };
    tell_verdicts (root);
}

void job_root_batch (struct job_root *root, uint32_t tag, const void *data, size_t size)
{
    assert (root->nbatches < JOB_RELAY_ROOT_UNDER_WAY);
    root->batch[root->nbatches++] = (struct job_root_batch){ tag, data, size };
    if (root->store)
        job_root_turn (root);
    else if (root->nbatches == 1)
        forget_batch (root);
}

/* --- the life, and the watermark --------------------------------------------------------------------------------- */

void job_root_look (struct job_root *root)
{
    bool wanted = root->life == 0 || notify_wants_line (root);
    bool again = root->unsure || (root->resting && root->counts.untidy) || (root->opening && !root->busy);
    uint64_t now_ms = ingest_now_ms ();

    pace_want (&root->pace, PACE_ASK, wanted && !root->asking, now_ms, root->life == 0 ? LIFE_MS : WATERMARK_MS);
    pace_want (&root->pace, PACE_AGAIN, again, now_ms, AGAIN_MS);
    ingest_set_timer (root->timer, pace_due (&root->pace));
}

/* Use a new id as the name of this life. Ids are never issued twice, so no earlier life has the same name. */
static void life_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct job_root *root = ((struct ingest *)up->owner)->root;
    fluid_t id;

    root->asking = false;
    if (idt_fluid_generate_get (f, 1, &id) == 0)
        root->life = id;
    else if (!root->told)
        idt_log (root->service->h, LOG_ERR, "jobs wait until fluid of rank 0 makes ids: %s", idt_future_error (f));
    if (root->life > INT64_MAX)
        idt_log (root->service->h, LOG_CRIT, "all jobs are refused: %s", JOB_STORE_TOO_LATE);
    root->told = root->life == 0;
    upcall_destroy (up);
    job_root_look (root);
    if (root->life > 0)
        job_root_turn (root);
}

static void watermark_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct job_root *root = ((struct ingest *)up->owner)->root;
    const char *text;
    json_int_t behind_ms = 0;
    fluid_t id;

    root->asking = false;
    if (idt_rpc_get_unpack (f, "{s:s s:I}", "id", &text, "behind_ms", &behind_ms) == 0 && behind_ms >= 0
        && fluid_parse (text, strlen (text), &id, NULL) == 0) {
        root->told_ms = ingest_now_ms ();
        root->ids_ms = (id >> 24) + (uint64_t)behind_ms;
        visibility_watermark (&root->line, id);
        visibility_time (&root->line, root->ids_ms);
    }
    upcall_destroy (up);
    job_root_look (root);
    job_root_turn (root);
}

static void ask (struct job_root *root)
{
    struct ingest *sv = root->service;
    struct upcall *up;

    if (root->life == 0)
        up = upcall_create (&sv->ups, idt_fluid_generate_async (sv->h, 1), 5000, life_cb, sv);
    else
        up = upcall_create (&sv->ups, idt_rpc (sv->h, "fluid.watermark", NULL, 0, 0), 5000, watermark_cb, sv);
    root->asking = up != NULL;
    job_root_look (root);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct job_root *root = arg;
    uint64_t now_ms = ingest_now_ms ();
    bool must_ask = pace_take (&root->pace, PACE_ASK, now_ms);

    if (pace_take (&root->pace, PACE_SLOW, now_ms) && root->busy)
        take_slow (root);
    if (pace_take (&root->pace, PACE_AGAIN, now_ms)) {
        root->resting = false;
        if (root->opening)
            begin_work (root, NULL);
        job_root_turn (root);
    }
    if (must_ask)
        ask (root); /* ask () schedules the next request */
    else
        job_root_look (root);
}

/* --- start and end ----------------------------------------------------------------------------------------------- */

json_t *job_root_stats (const struct job_root *root)
{
    return json_pack ("{s:I s:I s:I s:I s:I s:I s:I s:I s:I s:s}", "groups", (json_int_t)root->groups, "failed",
                      (json_int_t)root->failed, "stored", (json_int_t)root->stored, "same", (json_int_t)root->same,
                      "late", (json_int_t)root->late, "forgotten", (json_int_t)root->forgotten, "refused",
                      (json_int_t)root->refused, "jobs", (json_int_t)root->counts.jobs, "consumers",
                      (json_int_t)root->nconsumers, "store",
                      job_root_trouble (root) ? job_root_trouble (root) : "good");
}

void job_root_report (const struct job_root *root, struct metrics *m)
{
    metrics_put_count (m, "ingest_kept_jobs", root->counts.jobs);
    metrics_put_count (m, "ingest_kept_bytes", root->counts.bytes);
    metrics_put_count (m, "ingest_remembered", root->counts.remembered);
    metrics_put_count (m, "ingest_consumers", root->nconsumers);
    metrics_put_times (m, "ingest_store_seconds", "ingest_longest_store_seconds", &root->commits);
    metrics_put_count (m, "ingest_store_failures", root->failed);
    metrics_put_new (m, METRICS_MAX, "ingest_store_failing", json_integer (job_root_trouble (root) != NULL));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "ingest.watch", job_root_watch_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "ingest.ack", job_root_ack_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "ingest.get", job_root_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "ingest.list", job_root_list_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "ingest.stats", job_root_stats_cb, 0 },
    IDT_HANDLERS_END,
};

static void open_store (struct job_root *root)
{
    const struct module_place *place = &root->service->options.place;
    char holder[DATABASE_HOLDER_MAX];

    database_holder (holder, NULL);
    root->store = job_store_open (place, holder, &root->counts, &root->why);
    if (root->store && place->store)
        root->opening = true;
    else
        begin_life (root);
    if (root->store)
        return;
    root->failing = true;
    idt_log (root->service->h, LOG_CRIT, "%s: no jobs are accepted until job-ingest of rank 0 is reloaded",
             root->why.text);
}

/* Connect a store in PostgreSQL. Wait a little, so that the service exists when the module runs, as with a file. */
static void open_now (struct job_root *root)
{
    begin_work (root, NULL);
    if (poll (&(struct pollfd){ .fd = job_store_fd (root->store), .events = POLLIN }, 1, OPEN_MS) == 1)
        store_done_cb (NULL, IDT_POLLIN, root);
}

static int start (struct job_root *root)
{
    idt_reactor_t *r = idt_get_reactor (root->service->h);

    quota_init (&root->reads_quota, QUOTA_READS);
    if (!(root->watch = job_watch_create ()) || !(root->asks = drr_queue_create (1, 0, 0))
        || !(root->timer = idt_timer_watcher_create (r, 0, 0, timer_cb, root))
        || idt_handlers_add (root->service->h, handlers, root) < 0)
        return -1;
    open_store (root);
    if (!root->store)
        return 0;
    root->store_watcher = idt_fd_watcher_create (r, job_store_fd (root->store), IDT_POLLIN, store_done_cb, root);
    if (!root->store_watcher)
        return -1;
    idt_watcher_start (root->store_watcher);
    if (root->opening)
        open_now (root);
    pace_want (&root->pace, PACE_ASK, true, ingest_now_ms (), 0);
    ingest_set_timer (root->timer, pace_due (&root->pace));
    return 0;
}

/* Wait for the end of the work under way, for a limited time. If the work ends in time, answer its requesters. */
static void finish (struct job_root *root)
{
    struct pollfd pfd = { .fd = root->store ? job_store_fd (root->store) : -1, .events = POLLIN };

    root->stopping = true;
    if (root->busy && poll (&pfd, 1, root->service->options.place.store ? LEAVE_MS : FINISH_MS) == 1)
        store_done_cb (NULL, IDT_POLLIN, root);
}

void job_root_destroy (struct job_root *root)
{
    if (!root)
        return;
    int saved = errno;
    finish (root);
    idt_handlers_remove (root->service->h, handlers);
    idt_watcher_destroy (root->store_watcher);
    idt_watcher_destroy (root->timer);
    job_store_close (root->store);
    notify_stop (root);
    job_watch_destroy (root->watch);
    for (size_t i = 0; i < root->nreads; i++)
        jobwire_buf_fini (&root->reads[i].found);
    free (root->jobs);
    free (root->verdicts);
    free (root);
    errno = saved;
}

struct job_root *job_root_create (struct ingest *sv, idt_error_t *errp)
{
    struct job_root *root = calloc (1, sizeof (*root));

    if (!root)
        return errsetf_null (errp, ENOMEM, "out of memory");
    root->service = sv;
    if (start (root) < 0) {
        errprintf (errp, "cannot start: %s", strerror (errno));
        job_root_destroy (root);
        return NULL;
    }
    return root;
}
