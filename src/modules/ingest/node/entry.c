/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* entry.c - jobs in order of arrival, and jobs that are out in batches
 *
 * A job is in 'waiting' until it is put into a batch that is sent. It gets its id only then, so ids are as young as
 * possible, and increase in the order in which jobs arrived. A job whose submitter still needs an answer is also in
 * 'aged', and in a table by cookie. A job that is in neither was answered or forgotten; it stays only until the verdict
 * of its batch arrives.
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

#define SLOTS_FIRST 64

TAILQ_HEAD (waiting, waiter);
TAILQ_HEAD (aged, waiter);
LIST_HEAD (slot, waiter);

/* A job and its submitter. The key follows the struct. */
struct waiter {
    TAILQ_ENTRY (waiter) link; /* in 'waiting', or in 'jobs' of its batch */
    TAILQ_ENTRY (waiter) age;
    LIST_ENTRY (waiter) same; /* in its slot of the table */
    struct job job;
    char *spec;
    void *cookie; /* NULL: no submitter needs an answer */
    uint64_t came_ms;
    bool out;
    char key[];
};

struct entry_batch {
    struct entry *entry;
    struct waiting jobs; /* empty: this batch is free */
    uint32_t count;
    uint64_t life; /* life of rank 0 that the jobs name */
};

struct entry {
    uint32_t max_jobs;
    size_t max_bytes;
    uint64_t timeout_ms;
    entry_reply_f reply;
    void *arg;
    struct waiting waiting;
    uint32_t nwaiting;
    struct aged aged;  /* oldest first */
    struct slot *slot; /* nslots of them, a power of two */
    size_t nslots;
    struct jobwire_buf jobs; /* encoded jobs of the batch that was made last */
    struct entry_batch batch[ENTRY_BATCHES];
    bool behind;             /* the prefetched ids are too low */
    uint64_t life;           /* life of rank 0, from the last verdict LATE; 0: not known yet */
    uint64_t pause_until_ms; /* 0: no pause */
    uint64_t pause_ms;       /* length of the last pause */
    struct entry_stats stats;
};

/* --- the table by cookie ------------------------------------------------------------------------------------- */

static struct slot *slot_of (const struct entry *e, const void *cookie)
{
    uint64_t h = (uint64_t)(uintptr_t)cookie * UINT64_C (0x9e3779b97f4a7c15);

    return &e->slot[(h >> 32) & (e->nslots - 1)];
}

/* Grow the table so that it has at least as many slots as jobs. */
static int grow (struct entry *e)
{
    size_t n = e->nslots > 0 ? 2 * e->nslots : SLOTS_FIRST;
    struct waiter *w;

    if (e->stats.jobs < e->nslots)
        return 0;
    struct slot *slot = calloc (n, sizeof (*slot));
    if (!slot)
        return errset (ENOMEM);
    free (e->slot);
    e->slot = slot;
    e->nslots = n;
    TAILQ_FOREACH (w, &e->aged, age)
        LIST_INSERT_HEAD (slot_of (e, w->cookie), w, same);
    return 0;
}

/* --- jobs ---------------------------------------------------------------------------------------------------- */

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

/* Remove the submitter of a job. Returns its cookie, or NULL if the job had no submitter. */
static void *disown (struct waiter *w, struct entry *e)
{
    void *cookie = w->cookie;

    if (cookie) {
        TAILQ_REMOVE (&e->aged, w, age);
        LIST_REMOVE (w, same);
        w->cookie = NULL;
    }
    return cookie;
}

static void dequeue (struct entry *e, struct waiter *w)
{
    TAILQ_REMOVE (&e->waiting, w, link);
    e->nwaiting--;
}

/* Free a job that is in no list and not out. */
static void drop (struct entry *e, struct waiter *w)
{
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
    free (e->slot);
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

static struct waiter *waiter_create (struct entry *e, const struct job *job, char *spec)
{
    struct waiter *w = grow (e) < 0 ? NULL : calloc (1, sizeof (*w) + job->key_size);

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

    if (check_limits (e, job, errp) < 0 || !(w = waiter_create (e, job, spec))) {
        int saved = errno;

        free (spec);
        return errset (saved);
    }
    w->cookie = cookie;
    w->came_ms = now_ms;
    TAILQ_INSERT_TAIL (&e->waiting, w, link);
    e->nwaiting++;
    TAILQ_INSERT_TAIL (&e->aged, w, age);
    LIST_INSERT_HEAD (slot_of (e, cookie), w, same);
    e->stats.jobs++;
    e->stats.bytes += jobwire_job_size (&w->job);
    return 0;
}

static void forget (struct entry *e, struct waiter *w)
{
    disown (w, e);
    if (!w->out) {
        dequeue (e, w);
        drop (e, w);
    }
}

void entry_forget (struct entry *e, void *cookie)
{
    struct waiter *w, *next;

    if (!e->slot)
        return;
    for (w = LIST_FIRST (slot_of (e, cookie)); w; w = next) {
        next = LIST_NEXT (w, same);
        if (w->cookie == cookie)
            forget (e, w);
    }
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

/* A batch that is within ENTRY_BATCH_BYTES has fewer than JOBWIRE_BATCH_JOBS jobs, so the bytes alone are checked. */
static bool has_room (const struct entry *e, const struct waiter *w)
{
    return e->jobs.count == 0 || e->jobs.size + jobwire_job_size (&w->job) <= ENTRY_BATCH_BYTES;
}

/* Move a waiting job into a batch. If memory is short, the id that was taken for the job is lost, which is harmless, as
 * for the ids of a block that is too old.
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

/* Apply a verdict to a job. A late job stays 'out' until all verdicts of its batch are applied, because the reply
 * function may forget it meanwhile.
 */
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

/* Let late jobs wait for new ids, before jobs that arrived later. Drop those whose submitter no longer needs an answer.
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

/* Set the pause before the next batch. The pause ends if the newest id of the batch was not late, or if rank 0 has
 * another life, because its verdict says nothing about the age of ids. Several batches that are late together cause
 * only one pause.
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

/* Answer a job whose time is over. A job without an id has never been in a batch, so it is certainly not stored. */
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
