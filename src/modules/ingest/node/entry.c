/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* entry.c - jobs in order of arrival, and jobs that are out in batches
 *
 * A job is in 'waiting' until it is put into a batch. It gets its id only then, so that ids are as young as possible,
 * and increase in the order in which the jobs arrived. A job whose submitter was not answered yet is also in 'aged'. A
 * job that was answered while its batch is out is kept until the verdicts of the batch arrive.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/node/entry.h"

/* --- prefetched ids ------------------------------------------------------------------------------------------
 *
 * The ids are a queue of runs. Ids are taken from the oldest run. The next block is requested when jobs need more ids
 * than are left, or when at least half of a block was used and at most half of a block is left. If the request comes
 * within JOB_BLOCK_SOON_MS of the previous one, the size of a block is doubled. Otherwise the size is halved once for
 * each full JOB_BLOCK_SLOW_MS between the two requests.
 */

#define JOB_BLOCK_SOON_MS 25
#define JOB_BLOCK_SLOW_MS 100

void job_block_init (struct job_block *b)
{
    *b = (struct job_block){ .size = JOB_BLOCK_MIN_IDS };
}

void job_block_fini (struct job_block *b)
{
    int saved = errno;

    free (b->part);
    job_block_init (b);
    errno = saved;
}

void job_block_drop (struct job_block *b)
{
    b->nparts = b->at = 0;
    b->left = 0;
}

/* Drop parts that are too old. The parts are in order of age, the oldest first. */
static void drop_old (struct job_block *b, uint64_t now_ms)
{
    while (b->at < b->nparts && now_ms > b->part[b->at].asked_ms + JOB_BLOCK_MAX_AGE_MS)
        b->left -= b->part[b->at++].run.count;
    if (b->at == b->nparts)
        job_block_drop (b);
}

static void set_size (struct job_block *b, uint64_t since_ms)
{
    if (since_ms < JOB_BLOCK_SOON_MS)
        b->size *= 2;
    else
        b->size >>= min_u64 (since_ms / JOB_BLOCK_SLOW_MS, 12);
    b->size = (uint32_t)max_u64 (JOB_BLOCK_MIN_IDS, min_u64 (b->size, JOB_BLOCK_MAX_IDS));
}

uint32_t job_block_ask (struct job_block *b, uint64_t now_ms, uint32_t wanted)
{
    if (b->asking || now_ms < b->pause_ms)
        return 0;
    b->pause_ms = 0;
    drop_old (b, now_ms);
    bool soon = b->used >= b->size / 2 && b->left <= b->size / 2;
    if (wanted <= b->left && !soon)
        return 0;
    set_size (b, now_ms - b->asking_ms);
    b->asking = true;
    b->asking_ms = now_ms;
    b->used = 0;
    return (uint32_t)min_u64 (max_u64 (b->size, wanted), JOB_BLOCK_MAX_IDS);
}

uint64_t job_block_due (const struct job_block *b)
{
    return b->pause_ms > 0 ? b->pause_ms : UINT64_MAX;
}

static int make_room (struct job_block *b, size_t n)
{
    if (b->nparts > b->at)
        memmove (b->part, b->part + b->at, (b->nparts - b->at) * sizeof (b->part[0]));
    b->nparts -= b->at;
    b->at = 0;
    size_t room = b->nparts + n;
    if (room <= b->room)
        return 0;
    struct job_block_part *part = realloc (b->part, 2 * room * sizeof (part[0]));
    if (!part)
        return errset (ENOMEM);
    b->part = part;
    b->room = 2 * room;
    return 0;
}

/* The newest id of 'runs'. Returns 0 if a run does not begin above 'top' and above the run before it, has no ids, or
 * overflows.
 */
static uint64_t top_of (uint64_t top, const struct job_block_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (runs[i].first <= top || runs[i].count == 0 || runs[i].first > UINT64_MAX - runs[i].count)
            return 0;
        top = runs[i].first + runs[i].count - 1;
    }
    return top;
}

int job_block_filled (struct job_block *b, const struct job_block_run *runs, size_t n)
{
    uint64_t top = top_of (b->top, runs, n);

    job_block_failed (b); /* the request counts as failed, unless the checks below succeed */
    if (n == 0 || top == 0)
        return errset (EPROTO);
    if (make_room (b, n) < 0)
        return -1;
    b->pause_ms = 0;
    b->top = top;
    for (size_t i = 0; i < n; i++) {
        b->part[b->nparts++] = (struct job_block_part){ .run = runs[i], .asked_ms = b->asking_ms };
        b->left += runs[i].count;
    }
    return 0;
}

void job_block_failed (struct job_block *b)
{
    b->asking = false;
    b->pause_ms = b->asking_ms + JOB_BLOCK_PAUSE_MS;
}

uint64_t job_block_take (struct job_block *b, uint64_t now_ms)
{
    drop_old (b, now_ms);
    if (b->at == b->nparts)
        return 0;
    assert (b->left > 0);
    struct job_block_run *run = &b->part[b->at].run;
    uint64_t id = run->first++;
    if (--run->count == 0)
        b->at++;
    b->left--;
    b->used++;
    return id;
}

/* --- jobs ---------------------------------------------------------------------------------------------------- */

TAILQ_HEAD (waiting, waiter);
TAILQ_HEAD (aged, waiter);

/* A job and its submitter. The key follows the struct. */
struct waiter {
    TAILQ_ENTRY (waiter) link; /* in 'waiting', or in 'jobs' of its batch */
    TAILQ_ENTRY (waiter) age;
    struct job job;
    char *spec;
    void *cookie; /* NULL: the submitter was answered */
    uint64_t came_ms;
    bool out;
    char key[];
};

struct entry_batch {
    struct entry *entry;
    struct waiting jobs; /* empty: this batch is free */
    uint32_t count;
    uint64_t life; /* the life of rank 0 that all jobs of the batch name */
};

struct entry {
    uint32_t max_jobs;
    size_t max_bytes;
    uint64_t timeout_ms;
    entry_reply_f reply;
    void *arg;
    struct waiting waiting;
    uint32_t nwaiting;
    struct aged aged;        /* oldest first */
    struct jobwire_buf jobs; /* encoded jobs of the batch that was made last */
    struct entry_batch batch[ENTRY_BATCHES];
    bool behind;             /* the prefetched ids are too low */
    uint64_t life;           /* life of rank 0, from the last verdict LATE; 0: not known yet */
    uint64_t pause_until_ms; /* 0: no pause */
    uint64_t pause_ms;       /* length of the last pause */
    struct entry_stats stats;
};

struct entry *entry_create (uint32_t max_jobs, size_t max_bytes, uint64_t timeout_ms, entry_reply_f reply, void *arg)
{
    struct entry *e = calloc (1, sizeof (*e));

    if (!e)
        return NULL;
    e->max_jobs = max_jobs;
    e->max_bytes = max_bytes;
    e->timeout_ms = timeout_ms;
    e->reply = reply;
    e->arg = arg;
    TAILQ_INIT (&e->waiting);
    TAILQ_INIT (&e->aged);
    for (int i = 0; i < ENTRY_BATCHES; i++) {
        e->batch[i].entry = e;
        TAILQ_INIT (&e->batch[i].jobs);
    }
    return e;
}

/* Detach the submitter of a job. Returns the submitter's cookie, or NULL if the submitter was answered before. */
static void *disown (struct waiter *w, struct entry *e)
{
    void *cookie = w->cookie;

    if (cookie) {
        TAILQ_REMOVE (&e->aged, w, age);
        w->cookie = NULL;
    }
    return cookie;
}

static void dequeue (struct entry *e, struct waiter *w)
{
    assert (!w->out && e->nwaiting > 0);
    TAILQ_REMOVE (&e->waiting, w, link);
    e->nwaiting--;
}

/* Free a job that is in no list and not out. */
static void drop (struct entry *e, struct waiter *w)
{
    assert (e->stats.jobs > 0 && e->stats.bytes >= jobwire_job_size (&w->job));
    e->stats.jobs--;
    e->stats.bytes -= jobwire_job_size (&w->job);
    free (w->spec);
    free (w);
}

/* Remove the first job from a batch's list and return it. Returns NULL if the list is empty. */
static struct waiter *take_out (struct entry_batch *b)
{
    struct waiter *w = TAILQ_FIRST (&b->jobs);

    if (w)
        TAILQ_REMOVE (&b->jobs, w, link);
    return w;
}

/* Answer the submitter of a job. Frees the job unless it is out. */
static void end (struct entry *e, struct waiter *w, uint64_t id, int errnum, const char *text)
{
    void *cookie = disown (w, e);

    if (!w->out)
        drop (e, w);
    if (cookie)
        e->reply (e->arg, cookie, id, errnum, text);
}

void entry_destroy (struct entry *e)
{
    struct waiter *w;
    int saved = errno;

    if (!e)
        return;
    for (int i = 0; i < ENTRY_BATCHES; i++)
        while ((w = take_out (&e->batch[i])))
            drop (e, w);
    while ((w = TAILQ_FIRST (&e->waiting))) {
        dequeue (e, w);
        drop (e, w);
    }
    jobwire_buf_fini (&e->jobs);
    free (e);
    errno = saved;
}

static int check_limits (const struct entry *e, const struct job *job, idt_error_t *errp)
{
    size_t size = jobwire_job_size (job);

    if (e->stats.jobs == 0)
        return 0;
    if (e->stats.jobs >= e->max_jobs)
        return errsetf (errp, EAGAIN, "%" PRIu32 " submissions wait at this rank: ingest.max-waiting is %" PRIu32,
                        e->stats.jobs, e->max_jobs);
    if (e->stats.bytes + size > e->max_bytes)
        return errsetf (
            errp, EAGAIN,
            "%zu bytes of submissions wait at this rank: %zu more would exceed ingest.max-waiting-bytes, which is %zu",
            e->stats.bytes, size, e->max_bytes);
    return 0;
}

static struct waiter *waiter_create (const struct job *job, char *spec)
{
    struct waiter *w = calloc (1, sizeof (*w) + job->key_size);

    if (!w)
        return NULL;
    w->job = *job;
    w->spec = spec;
    if (job->key_size > 0)
        memcpy (w->key, job->key, job->key_size);
    w->job.key = w->key;
    w->job.spec = spec;
    return w;
}

int entry_add (struct entry *e, uint64_t now_ms, const struct job *job, char *spec, void *cookie, idt_error_t *errp)
{
    struct waiter *w;

    assert (cookie);
    if (check_limits (e, job, errp) < 0 || !(w = waiter_create (job, spec))) {
        int saved = errno;

        free (spec);
        return errset (saved);
    }
    w->cookie = cookie;
    w->came_ms = now_ms;
    TAILQ_INSERT_TAIL (&e->waiting, w, link);
    e->nwaiting++;
    TAILQ_INSERT_TAIL (&e->aged, w, age);
    e->stats.jobs++;
    e->stats.bytes += jobwire_job_size (&w->job);
    return 0;
}

/* --- batches ------------------------------------------------------------------------------------------------- */

uint32_t entry_wants (const struct entry *e)
{
    return e->pause_until_ms > 0 ? 0 : e->nwaiting;
}

static void end_pause (struct entry *e, uint64_t now_ms)
{
    if (now_ms >= e->pause_until_ms)
        e->pause_until_ms = 0;
}

static struct entry_batch *free_batch (struct entry *e)
{
    for (int i = 0; i < ENTRY_BATCHES; i++)
        if (e->batch[i].count == 0)
            return &e->batch[i];
    return NULL;
}

/* A batch within ENTRY_BATCH_BYTES has fewer than JOBWIRE_BATCH_JOBS jobs, so only the bytes are checked. */
static bool has_room (const struct entry *e, const struct waiter *w)
{
    return e->jobs.count == 0 || e->jobs.size + jobwire_job_size (&w->job) <= ENTRY_BATCH_BYTES;
}

/* Move a waiting job into a batch. If memory is short, the job stays in 'waiting', and the id that was taken for it is
 * lost. That is harmless, because ids of blocks that are too old are lost, too.
 */
static bool put_out (struct entry_batch *b, uint64_t now_ms, struct job_block *ids, struct waiter *w)
{
    struct entry *e = b->entry;

    w->job.life = e->life;
    if ((w->job.id = job_block_take (ids, now_ms)) == 0 || jobwire_add_job (&e->jobs, &w->job) < 0)
        return false;
    dequeue (e, w);
    w->out = true;
    TAILQ_INSERT_TAIL (&b->jobs, w, link);
    b->count++;
    return true;
}

struct entry_batch *entry_batch (struct entry *e, uint64_t now_ms, struct job_block *ids, struct jobwire_reader *jobs)
{
    struct entry_batch *b = free_batch (e);
    struct waiter *w;

    if (e->behind) {
        e->behind = false;
        job_block_drop (ids);
    }
    end_pause (e, now_ms);
    if (!b || e->pause_until_ms > 0)
        return NULL;
    jobwire_buf_clear (&e->jobs);
    b->life = e->life;
    while ((w = TAILQ_FIRST (&e->waiting)) && has_room (e, w) && put_out (b, now_ms, ids, w))
        ;
    jobwire_buf_reader (&e->jobs, jobs);
    return b->count > 0 ? b : NULL;
}

void *entry_batch_owner (const struct entry_batch *b)
{
    return b->entry->arg;
}

/* --- verdicts ------------------------------------------------------------------------------------------------ */

static void end_refused (struct entry *e, struct waiter *w, const struct verdict *v)
{
    char text[JOBWIRE_TEXT_MAX + 1] = "";

    if (v->text_size > 0)
        memcpy (text, v->text, v->text_size);
    text[v->text_size] = '\0';
    end (e, w, 0, v->errnum, v->text_size > 0 ? text : NULL);
}

/* Apply a verdict to a job. A late job stays 'out' until all verdicts of its batch are applied. */
static void judge (struct entry *e, struct waiter *w, const struct verdict *v, struct waiting *late)
{
    w->out = v->kind == VERDICT_LATE;
    switch (v->kind) {
    case VERDICT_STORED:
        e->stats.stored++;
        end (e, w, w->job.id, 0, NULL);
        break;
    case VERDICT_SAME:
        e->stats.same++;
        end (e, w, v->id, 0, "an earlier submission has this key");
        break;
    case VERDICT_LATE:
        e->stats.late++;
        TAILQ_INSERT_TAIL (late, w, link);
        break;
    case VERDICT_FORGOTTEN:
        e->stats.forgotten++;
        end (e, w, 0, ETIMEDOUT, "rank 0 does not know whether the job is stored: see the log of rank 0");
        break;
    case VERDICT_REFUSED:
        e->stats.refused++;
        end_refused (e, w, v);
        break;
    }
}

/* Put late jobs back at the head of 'waiting', so that they get new ids before jobs that arrived later. Free those late
 * jobs whose submitters were answered meanwhile.
 */
static void wait_again (struct entry *e, struct waiting *late)
{
    struct waiter *w;

    while ((w = TAILQ_LAST (late, waiting))) {
        TAILQ_REMOVE (late, w, link);
        w->out = false;
        if (w->cookie) {
            TAILQ_INSERT_HEAD (&e->waiting, w, link);
            e->nwaiting++;
        }
        else
            drop (e, w);
    }
}

/* Begin a pause if the newest id of the batch was late, unless a pause is running. So several batches that are late
 * together cause only one pause. If the newest id was not late, no pause begins, and the next pause has the least
 * length again. The same is done if rank 0 has a new life, because a verdict of a new life says nothing about the age
 * of ids. A pause that is running is never changed here.
 */
static void set_pause (struct entry *e, uint64_t now_ms, bool newest_is_late, bool new_life)
{
    if (!newest_is_late || new_life) {
        e->pause_ms = 0;
        return;
    }
    e->behind = true;
    if (now_ms < e->pause_until_ms)
        return;
    e->pause_ms = e->pause_ms > 0 ? min_u64 (2 * e->pause_ms, ENTRY_PAUSE_MAX_MS) : ENTRY_PAUSE_MS;
    e->pause_until_ms = now_ms + e->pause_ms;
}

void entry_verdicts (struct entry_batch *b, uint64_t now_ms, struct jobwire_reader *verdicts)
{
    struct waiting late = TAILQ_HEAD_INITIALIZER (late);
    struct entry *e = b->entry;
    struct waiter *w;
    struct verdict v = { .kind = VERDICT_STORED };

    assert (verdicts->count == b->count);
    while (jobwire_next_verdict (verdicts, &v) && (w = take_out (b)))
        judge (e, w, &v, &late);
    b->count = 0;
    bool newest_is_late = v.kind == VERDICT_LATE, new_life = newest_is_late && v.id != b->life;
    if (new_life)
        e->life = v.id;
    set_pause (e, now_ms, newest_is_late, new_life);
    wait_again (e, &late);
}

/* --- time, and the end --------------------------------------------------------------------------------------- */

/* Answer a job that has a submitter. */
static void give_up (struct entry *e, struct waiter *w, int errnum, const char *text)
{
    if (!w->out)
        dequeue (e, w);
    end (e, w, 0, errnum, text);
}

/* Answer a job whose time is over. If the job has no id, it has never been in a batch, so it is certainly not stored.
 */
static void expire (struct entry *e, struct waiter *w, const char *why)
{
    const char *fate = w->job.id == 0 ? "the job waited at this rank for an id, or behind other jobs, and is not stored"
                                      : "not stored in time, as far as this rank knows: the job may be stored later";
    idt_error_t error;

    errprintf (&error, "%s%s%s", fate, *why ? ": " : "", why);
    e->stats.expired++;
    give_up (e, w, ETIMEDOUT, error.text);
}

void entry_expire (struct entry *e, uint64_t now_ms, const char *why)
{
    struct waiter *w;

    end_pause (e, now_ms);
    while ((w = TAILQ_FIRST (&e->aged)) && now_ms >= w->came_ms + e->timeout_ms)
        expire (e, w, why);
}

uint64_t entry_due (const struct entry *e)
{
    const struct waiter *w = TAILQ_FIRST (&e->aged);
    uint64_t due = w ? w->came_ms + e->timeout_ms : UINT64_MAX;

    return e->pause_until_ms > 0 ? min_u64 (due, e->pause_until_ms) : due;
}

void entry_stop (struct entry *e, int errnum, const char *text)
{
    struct waiter *w;

    while ((w = TAILQ_FIRST (&e->aged)))
        give_up (e, w, w->out ? ETIMEDOUT : errnum, text);
}

struct entry_stats entry_stats (const struct entry *e)
{
    return e->stats;
}
