/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store.c - the jobs of an instance: the rules of verdicts, what is cleared away, and the thread that does it
 *
 * Jobs are acknowledged in order of their ids. So the acknowledgement of a million jobs is one row, which is durable
 * immediately, and the data of these jobs is deleted in slices: first jobspecs (all up to 'cleared' are deleted), then
 * the rows of jobs (all below 'floor' are deleted).
 *
 * A group is stored in one transaction of a backend (job_backend.h): all of it, or nothing. The state in memory changes
 * only when the transaction is durable.
 *
 * While work is under way, the backend and the state belong to the worker's thread; otherwise to the thread of the
 * module.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/worker.h"
#include "modules/ingest/root/job_backend.h"

struct job_store {
    struct job_backend *b;
    struct worker *worker;
    struct job_store_state now;
    bool stale;                                                       /* the store may differ from 'now' */
    bool unsure;                                                      /* the next life may find the group that failed */
    char no_room[2][JOBWIRE_TEXT_MAX], no_bytes[2][JOBWIRE_TEXT_MAX]; /* refusals: for the owner, for other users */
    /* The work that is under way: */
    struct job_store_group *group;
    struct job_store_read *reads;
    size_t nreads;
};

/* Read the state from the store if it is stale. */
static int refresh (struct job_store *st, idt_error_t *errp)
{
    struct job_store_state s = { 0 };

    if (!st->stale)
        return 0;
    if (st->b->ops->load (st->b, &s, errp) < 0)
        return -1;
    s.counts.untidy = s.cleared < s.counts.acked;
    st->now = s;
    st->stale = false;
    return 0;
}

/* --- a group ------------------------------------------------------------------------------------------------- */

struct pass {
    struct job_store *st;
    struct job_backend *b;
    const struct job_backend_ops *ops;
    struct job_store_group *group;
    struct job_store_state s; /* the state after the commit */
    uint64_t line;            /* the line of the group, or the newest acknowledged id if that is higher */
    bool denies;              /* a verdict says that a job is not stored */
    idt_error_t *errp;
};

/* --- acknowledging ------------------------------------------------------------------------------------------ */

/* Whether all jobs acknowledged so far get the present time: some are new, or the clock has gone back. */
static bool notes_time (const struct pass *p, uint64_t upto)
{
    const struct job_store_counts *c = &p->s.counts;

    return upto > c->acked || (p->group->forget_s != 0 && c->acked_s > p->group->now_s);
}

static int acknowledge (struct pass *p, uint64_t upto)
{
    struct job_store_counts *c = &p->s.counts;
    uint64_t jobs, bytes;

    if (!notes_time (p, upto))
        return 0;
    if (upto > c->acked) {
        if (p->ops->sum (p->b, c->acked, upto, &jobs, &bytes, p->errp) < 0)
            return -1;
        c->jobs -= jobs;
        c->bytes -= bytes;
        c->remembered += jobs;
        c->acked = upto;
    }
    c->acked_s = p->group->now_s;
    return p->ops->note_time (p->b, c->acked_s, c->acked, p->errp);
}

/* --- storing ------------------------------------------------------------------------------------------------ */

static void refuse (struct verdict *v, int errnum, const char *text)
{
    *v = (struct verdict){ .kind = VERDICT_REFUSED, .errnum = errnum, .text = text, .text_size = strlen (text) };
}

/* Whether a job of 'bytes' fits into the limits; if not, 'v' gets the refusal. */
static bool has_room (struct pass *p, const struct job *job, uint64_t bytes, struct verdict *v)
{
    const struct job_store_counts *c = &p->s.counts;
    const struct job_store_group *group = p->group;
    bool halved = group->owner_first && job->userid != group->owner;
    const char *share = halved ? ", of which users other than the owner may use half" : "";
    uint64_t max_bytes = halved ? group->max_bytes / 2 : group->max_bytes;

    if (c->jobs >= (halved ? group->max_jobs / 2 + group->max_jobs % 2 : group->max_jobs)) {
        snprintf (p->st->no_room[halved], JOBWIRE_TEXT_MAX,
                  "%" PRIu64 " stored jobs are not acknowledged by a consumer: ingest.max-jobs is %" PRIu64 "%s",
                  c->jobs, group->max_jobs, share);
        refuse (v, ENOSPC, p->st->no_room[halved]);
        return false;
    }
    if (bytes > max_bytes || c->bytes > max_bytes - bytes) {
        snprintf (p->st->no_bytes[halved], JOBWIRE_TEXT_MAX,
                  "jobs that are not acknowledged by a consumer would take more than %" PRIu64
                  " bytes: ingest.max-mib is the limit%s",
                  max_bytes, share);
        refuse (v, ENOSPC, p->st->no_bytes[halved]);
        return false;
    }
    return true;
}

static int put_job (struct pass *p, size_t i, uint64_t bytes)
{
    struct job_store_counts *c = &p->s.counts;

    c->jobs++;
    c->bytes += bytes;
    c->newest = max_u64 (c->newest, p->group->job[i].id);
    return p->ops->put (p->b, i, bytes, p->errp);
}

/* Whether job 'i' is stored under its id. Most ids are above the newest stored id, and need no lookup. */
static int has_job (struct pass *p, size_t i)
{
    return p->group->job[i].id > p->s.counts.newest ? 0 : p->ops->has_id (p->b, i, p->errp);
}

/* Whether a job with the user and key of job 'i' is stored; 'id' gets its id. */
static int find_key (struct pass *p, size_t i, uint64_t *id)
{
    return p->group->job[i].key_size == 0 ? 0 : p->ops->find_key (p->b, i, id, p->errp);
}

/* Judge a job whose id is not stored. */
static int judge_new (struct pass *p, size_t i, struct verdict *v)
{
    const struct job *job = &p->group->job[i];
    uint64_t bytes = (uint64_t)job->spec_size + job->key_size;

    if (job->id < p->s.counts.floor) {
        v->kind = VERDICT_FORGOTTEN;
        return 0;
    }
    if (job->id <= p->line || job->life != p->group->life) {
        v->kind = VERDICT_LATE;
        return 0;
    }
    int rc = find_key (p, i, &v->id);
    if (rc != 0) {
        v->kind = VERDICT_SAME;
        return rc;
    }
    return has_room (p, job, bytes, v) ? put_job (p, i, bytes) : 0;
}

_Static_assert(sizeof (JOB_STORE_TOO_LATE) <= JOBWIRE_TEXT_MAX, "the message fits into a verdict");

static int judge (struct pass *p, size_t i)
{
    struct verdict *v = &p->group->verdict[i];
    uint64_t id = p->group->job[i].id;

    if (id == 0) {
        refuse (v, EINVAL, "id: must not be 0");
        return 0;
    }
    if (id > INT64_MAX) {
        refuse (v, EOVERFLOW, JOB_STORE_TOO_LATE);
        return 0;
    }
    *v = (struct verdict){ .kind = VERDICT_STORED };
    int rc = has_job (p, i);
    if (rc == 0)
        rc = judge_new (p, i, v);
    p->denies = p->denies || v->kind == VERDICT_LATE || v->kind == VERDICT_REFUSED;
    return rc;
}

static int store_jobs (struct pass *p)
{
    p->line = max_u64 (p->group->line, p->s.counts.acked);
    for (size_t i = 0; i < p->group->n; i++)
        if (judge (p, i) < 0)
            return -1;
    return 0;
}

/* --- clearing away, a slice at a time ----------------------------------------------------------------------- */

static int clear_specs (struct pass *p)
{
    if (p->s.cleared == p->s.counts.acked)
        return 0;
    return p->ops->clear_specs (p->b, p->s.cleared, p->s.counts.acked, &p->s.cleared, p->errp);
}

/* Delete a slice of the jobs up to 'old' whose jobspecs are deleted. Returns 1 if no job up to 'old' is left, 0 if more
 * are left, or -1.
 */
static int drop_jobs (struct pass *p, uint64_t old)
{
    struct job_store_counts *c = &p->s.counts;
    uint64_t last, n;

    if (p->ops->drop_jobs (p->b, min_u64 (old, p->s.cleared), &last, &n, p->errp) < 0)
        return -1;
    if (n > 0) {
        c->remembered -= n;
        c->floor = last + 1;
    }
    return n < JOB_SLICE_JOBS && old <= p->s.cleared;
}

static int forget (struct pass *p)
{
    uint64_t old = 0;

    p->s.counts.untidy = p->s.cleared < p->s.counts.acked;
    if (p->group->forget_s == 0)
        return 0;
    int rc = p->ops->find_old (p->b, p->group->forget_s, &old, p->errp);
    if (rc <= 0)
        return rc;
    rc = drop_jobs (p, old);
    if (rc == 0)
        p->s.counts.untidy = true;
    return rc <= 0 ? rc : p->ops->drop_times (p->b, p->group->forget_s, p->errp);
}

/* --- all of it ---------------------------------------------------------------------------------------------- */

/* What the backend has to know about the group in advance. */
static struct job_backend_group plan (const struct pass *p, uint64_t upto)
{
    return (struct job_backend_group){
        .group = p->group, .now = p->s, .acked = max_u64 (upto, p->s.counts.acked), .notes = notes_time (p, upto)
    };
}

static int change_all (struct pass *p)
{
    uint64_t upto = min_u64 (p->group->ack, INT64_MAX);
    struct job_backend_group g = plan (p, upto);

    if (p->ops->begin (p->b, &g, p->errp) < 0 || acknowledge (p, upto) < 0 || store_jobs (p) < 0 || clear_specs (p) < 0)
        return -1;
    return forget (p);
}

static int commit (struct pass *p)
{
    struct job_store *st = p->st;
    bool maybe = false;

    assert (p->s.cleared <= p->s.counts.acked && p->s.counts.floor <= p->s.counts.acked + 1);
    if (p->ops->commit (p->b, &p->s, st->unsure || (p->b->shared && p->denies), &maybe, p->errp) < 0) {
        st->stale = true;
        st->unsure = st->unsure || maybe;
        return -1;
    }
    st->now = p->s;
    st->unsure = false;
    return 0;
}

/* Set the verdicts of a failed group to what earlier groups have stored. All other jobs get VERDICT_REFUSED without a
 * reason, which the caller adds. Fails if this is not known. In a shared store, a job that names a later life may have
 * been stored by that life.
 */
static int judge_again (struct pass *p)
{
    p->s = p->st->now;
    struct job_backend_group g = plan (p, 0);
    if (p->ops->look (p->b, &g, p->errp) < 0)
        return -1;
    for (size_t i = 0; i < p->group->n; i++) {
        const struct job *job = &p->group->job[i];
        struct verdict *v = &p->group->verdict[i];

        *v = (struct verdict){ .kind = VERDICT_STORED };
        int rc = job->id == 0 || job->id > INT64_MAX ? 0 : has_job (p, i);
        if (rc == 0 && job->id < p->s.counts.floor)
            v->kind = VERDICT_FORGOTTEN;
        else if (rc == 0 && (rc = find_key (p, i, &v->id)) >= 0)
            v->kind = rc > 0 ? VERDICT_SAME : VERDICT_REFUSED;
        if (rc < 0 || (p->b->shared && v->kind == VERDICT_REFUSED && job->life > p->group->life))
            return -1;
    }
    return 0;
}

/* Whether the jobs of a group that failed must wait: it is not known whether they are stored, or they soon can be. */
static bool must_wait (struct job_store *st, struct job_store_group *group)
{
    idt_error_t ignored;
    struct pass p = { .st = st, .b = st->b, .ops = st->b->ops, .group = group, .errp = &ignored };

    return st->unsure || st->b->passing || refresh (st, &ignored) < 0 || judge_again (&p) < 0;
}

static int write_group (struct job_store *st, struct job_store_group *group, idt_error_t *errp)
{
    struct pass p = { .st = st, .b = st->b, .ops = st->b->ops, .group = group, .errp = errp };

    st->b->passing = false;
    int rc = refresh (st, errp);
    if (rc == 0) {
        p.s = st->now;
        rc = change_all (&p) < 0 || commit (&p) < 0 ? -1 : 0;
    }
    int saved = errno;
    if (rc < 0) {
        st->b->ops->rollback (st->b);
        group->unsure = must_wait (st, group);
    }
    errno = saved;
    return rc;
}

/* --- reads: an acknowledged job is only found by its id ----------------------------------------------------- */

static bool is_full (const struct job_store_read *read, const struct job *job)
{
    const struct jobwire_buf *found = &read->found;

    return found->count >= read->max_jobs
           || (found->count > 0 && found->size + jobwire_job_size (job) > read->max_bytes);
}

int job_store_found (struct job_backend *b, struct job_store_read *read, const struct job *job)
{
    if (is_full (read, job)) {
        read->more = true;
        return 0;
    }
    if (jobwire_add_job (&read->found, job) < 0)
        return errprintf (&read->error, "%s: out of memory", b->where);
    return 1;
}

/* Read a single job. A job is found until it is forgotten. After its acknowledgement it is found without its jobspec.
 */
static int read_one (struct job_store *st, struct job_store_read *read)
{
    if (read->upto == 0 || read->upto > INT64_MAX)
        return 0;
    read->max_jobs = 1;
    read->acked = read->upto <= st->now.counts.acked;
    return st->b->ops->read (st->b, read, read->upto - 1, read->specs && !read->acked);
}

static int read_some (struct job_store *st, struct job_store_read *read)
{
    return st->b->ops->read (st->b, read, max_u64 (read->after, st->now.counts.acked), read->specs);
}

static void read_jobs (struct job_store *st, struct job_store_read *read)
{
    read->found = (struct jobwire_buf){ 0 };
    read->more = read->acked = false;
    read->errnum = 0;
    if (refresh (st, &read->error) == 0 && (read->one ? read_one (st, read) : read_some (st, read)) == 0)
        return;
    read->errnum = errno ? errno : EIO;
    jobwire_buf_fini (&read->found);
    read->more = read->acked = false;
}

/* --- work --------------------------------------------------------------------------------------------------- */

static int work (void *arg, idt_error_t *errp)
{
    struct job_store *st = arg;
    int rc = 0;

    if (st->group)
        rc = write_group (st, st->group, errp);
    else if (st->nreads == 0)
        rc = refresh (st, errp);
    int saved = errno;
    for (size_t i = 0; i < st->nreads; i++)
        read_jobs (st, &st->reads[i]);
    errno = saved;
    return rc;
}

void job_store_begin (struct job_store *st, struct job_store_group *group, struct job_store_read *reads, size_t nreads)
{
    assert (!group || group->n == 0 || (group->job && group->verdict));
    assert (nreads == 0 || reads);
    st->group = group;
    st->reads = reads;
    st->nreads = nreads;
    worker_begin (st->worker);
}

int job_store_fd (const struct job_store *st)
{
    return worker_fd (st->worker);
}

int job_store_result (struct job_store *st, struct job_store_counts *counts, idt_error_t *errp)
{
    int rc = worker_result (st->worker, errp);

    if (rc != 0 && counts)
        *counts = st->now.counts;
    return rc;
}

bool job_store_waits (struct job_store *st, idt_error_t *why)
{
    return st->b->ops->waits (st->b, why);
}

const char *job_store_where (const struct job_store *st)
{
    return st->b->where;
}

/* --- open and close ----------------------------------------------------------------------------------------- */

void job_store_close (struct job_store *st)
{
    if (!st)
        return;
    int saved = errno;
    if (st->b)
        st->b->ops->stop (st->b);
    worker_destroy (st->worker);
    if (st->b)
        st->b->ops->close (st->b);
    free (st);
    errno = saved;
}

static int open_backend (struct job_store *st, const struct module_place *place, const char *holder, idt_error_t *errp)
{
    st->stale = true;
    st->b = place->store ? job_pg_open (place, errp) : job_disk_open (place->dir, holder, errp);
    if (!st->b)
        return -1;
    return place->store ? 0 : refresh (st, errp);
}

struct job_store *job_store_open (const struct module_place *place, const char *holder, struct job_store_counts *counts,
                                  idt_error_t *errp)
{
    struct job_store *st = calloc (1, sizeof (*st));

    if (!st)
        return errsetf_null (errp, ENOMEM, "the store of jobs: out of memory");
    if (open_backend (st, place, holder, errp) < 0)
        goto error;
    if (!(st->worker = worker_create (work, st))) {
        errprintf (errp, "%s: cannot start a thread: %s", st->b->where, strerror (errno));
        goto error;
    }
    *counts = st->now.counts;
    return st;
error:
    job_store_close (st);
    return NULL;
}
