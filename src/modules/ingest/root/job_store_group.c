/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store_group.c - stores a group in one transaction: all of it, or nothing
 *
 * The state in memory changes only when the transaction is durable. If a commit fails, SQLite rolls it back, but its
 * log may contain all of it; the next process that opens the file after a crash would find it. That is possible until
 * other data is written over that part of the log, which the next successful transaction does. So that transaction must
 * write something (meta.tries). Only a write that failed for lack of space (database_is_full ()) has certainly stopped
 * the log before the end of the commit, because the end is the last thing that is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/job_store_private.h"

/* Clearing away a slice takes some 20 ms. */
#define SLICE_JOBS 10000
#define SLICE_BYTES (16 << 20)

struct pass {
    struct job_store *st;
    struct job_store_group *group;
    struct job_store_state s; /* the state after the commit */
    uint64_t line;            /* the line of the group, or the newest acknowledged id if that is higher */
    idt_error_t *errp;
};

static sqlite3_stmt *bind_ids (struct pass *p, enum statement s, uint64_t first, uint64_t second)
{
    sqlite3_stmt *stmt = p->st->stmt[s];

    sqlite3_bind_int64 (stmt, 1, job_store_sql_id (first));
    if (sqlite3_bind_parameter_count (stmt) > 1)
        sqlite3_bind_int64 (stmt, 2, job_store_sql_id (second));
    return stmt;
}

static int run (struct pass *p, enum statement s)
{
    return job_store_step (p->st, s, NULL, p->errp) < 0 ? -1 : 0;
}

/* --- acknowledging ------------------------------------------------------------------------------------------ */

/* Record that all jobs acknowledged so far were acknowledged at 'now_s' or before. If the clock has gone back, rows
 * with a later time are replaced: otherwise the jobs would not be forgotten until the clock has reached that time
 * again.
 */
static int note_time (struct pass *p)
{
    sqlite3_stmt *drop = p->st->stmt[DROP_ACKS_SINCE], *put = p->st->stmt[PUT_ACK];

    sqlite3_bind_int64 (drop, 1, p->group->now_s);
    sqlite3_bind_int64 (put, 1, p->group->now_s);
    sqlite3_bind_int64 (put, 2, job_store_sql_id (p->s.counts.acked));
    p->s.counts.acked_s = p->group->now_s;
    return run (p, DROP_ACKS_SINCE) < 0 || run (p, PUT_ACK) < 0 ? -1 : 0;
}

static int acknowledge (struct pass *p)
{
    struct job_store_counts *c = &p->s.counts;
    uint64_t upto = min_u64 (p->group->ack, INT64_MAX), jobs, bytes;
    bool clock_went_back = p->group->forget_s != 0 && p->s.counts.acked_s > p->group->now_s;

    if (upto > c->acked) {
        if (job_store_sum (p->st, c->acked, upto, &jobs, &bytes, p->errp) < 0)
            return -1;
        c->jobs -= jobs;
        c->bytes -= bytes;
        c->remembered += jobs;
        c->acked = upto;
    }
    else if (!clock_went_back)
        return 0;
    return note_time (p);
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

static void bind_key (sqlite3_stmt *stmt, int at, const struct job *job)
{
    if (job->key_size > 0)
        sqlite3_bind_blob (stmt, at, job->key, job->key_size, SQLITE_STATIC);
    else
        sqlite3_bind_null (stmt, at);
}

static int put_job (struct pass *p, const struct job *job, uint64_t bytes)
{
    sqlite3_stmt *put = bind_ids (p, PUT_JOB, job->id, bytes), *spec = bind_ids (p, PUT_SPEC, job->id, 0);

    sqlite3_bind_int64 (put, 3, job->userid);
    sqlite3_bind_int64 (put, 4, job->urgency);
    sqlite3_bind_int64 (put, 5, job->flags);
    bind_key (put, 6, job);
    sqlite3_bind_blob64 (spec, 2, job->spec ? job->spec : "", job->spec_size, SQLITE_STATIC);
    if (run (p, PUT_JOB) < 0 || run (p, PUT_SPEC) < 0)
        return -1;
    p->s.counts.jobs++;
    p->s.counts.bytes += bytes;
    p->s.counts.newest = max_u64 (p->s.counts.newest, job->id);
    return 0;
}

/* Whether a job with this id is stored. The ids of most jobs are above the newest stored one, so no lookup is needed.
 */
static int has_job (struct pass *p, const struct job *job)
{
    if (job->id > p->s.counts.newest)
        return 0;
    bind_ids (p, HAS_JOB, job->id, 0);
    return job_store_step (p->st, HAS_JOB, NULL, p->errp);
}

/* Whether a job with the same user and key is stored; 'id' gets its id. */
static int find_key (struct pass *p, const struct job *job, uint64_t *id)
{
    int64_t found = 0;

    if (job->key_size == 0)
        return 0;
    bind_key (bind_ids (p, FIND_KEY, job->userid, 0), 2, job);
    int rc = job_store_step (p->st, FIND_KEY, &found, p->errp);
    *id = (uint64_t)found;
    return rc;
}

/* Judge a job whose id is not stored. */
static int judge_new (struct pass *p, const struct job *job, struct verdict *v)
{
    uint64_t bytes = (uint64_t)job->spec_size + job->key_size;

    if (job->id < p->s.counts.floor) {
        v->kind = VERDICT_FORGOTTEN;
        return 0;
    }
    if (job->id <= p->line || job->life != p->group->life) {
        v->kind = VERDICT_LATE;
        return 0;
    }
    int rc = find_key (p, job, &v->id);
    if (rc != 0) {
        v->kind = VERDICT_SAME;
        return rc;
    }
    return has_room (p, job, bytes, v) ? put_job (p, job, bytes) : 0;
}

_Static_assert(sizeof (JOB_STORE_TOO_LATE) <= JOBWIRE_TEXT_MAX, "the message fits into a verdict");

static int judge (struct pass *p, const struct job *job, struct verdict *v)
{
    if (job->id == 0) {
        refuse (v, EINVAL, "id: must not be 0");
        return 0;
    }
    if (job->id > INT64_MAX) {
        refuse (v, EOVERFLOW, JOB_STORE_TOO_LATE);
        return 0;
    }
    *v = (struct verdict){ .kind = VERDICT_STORED };
    int rc = has_job (p, job);
    return rc != 0 ? rc : judge_new (p, job, v);
}

static int store_jobs (struct pass *p)
{
    p->line = max_u64 (p->group->line, p->s.counts.acked);
    for (size_t i = 0; i < p->group->n; i++)
        if (judge (p, &p->group->job[i], &p->group->verdict[i]) < 0)
            return -1;
    return 0;
}

/* --- clearing away, a slice at a time ----------------------------------------------------------------------- */

/* Find the end of the next slice of jobspecs to delete: the last job that fits into a slice, or all acknowledged jobs.
 */
static int find_slice (struct pass *p, uint64_t *upto)
{
    sqlite3_stmt *next = bind_ids (p, NEXT_SPECS, p->s.cleared, p->s.counts.acked);
    int64_t jobs = 0, bytes = 0;
    int rc;

    while ((rc = database_step (p->st->d, next, p->errp)) > 0 && jobs < SLICE_JOBS && bytes < SLICE_BYTES) {
        *upto = (uint64_t)sqlite3_column_int64 (next, 0);
        bytes += sqlite3_column_int64 (next, 1);
        jobs++;
    }
    int saved = errno;
    sqlite3_reset (next);
    errno = saved;
    if (rc == 0)
        *upto = p->s.counts.acked;
    return rc < 0 ? -1 : 0;
}

static int clear_specs (struct pass *p)
{
    uint64_t upto = p->s.cleared;

    if (p->s.cleared == p->s.counts.acked)
        return 0;
    if (find_slice (p, &upto) < 0)
        return -1;
    bind_ids (p, DROP_SPECS, upto, 0);
    p->s.cleared = upto;
    return run (p, DROP_SPECS);
}

/* Delete a slice of the jobs that were acknowledged up to 'old' and have no jobspec any longer. Returns 1 if no such
 * job is left, 0 if more are left, or -1.
 */
static int drop_jobs (struct pass *p, uint64_t old)
{
    struct job_store_counts *c = &p->s.counts;
    int64_t last = 0;
    uint64_t n = 0;

    bind_ids (p, NEXT_JOBS, min_u64 (old, p->s.cleared), SLICE_JOBS);
    if (job_store_step (p->st, NEXT_JOBS, &last, p->errp) < 0)
        return -1;
    if (last > 0) {
        bind_ids (p, DROP_JOBS, (uint64_t)last, 0);
        if (run (p, DROP_JOBS) < 0)
            return -1;
        n = (uint64_t)sqlite3_changes (p->st->d->db);
        c->remembered -= n;
        c->floor = (uint64_t)last + 1;
    }
    return n < SLICE_JOBS && old <= p->s.cleared;
}

static int forget (struct pass *p)
{
    sqlite3_stmt *find = p->st->stmt[FIND_OLD], *drop = p->st->stmt[DROP_ACKS_BEFORE];
    int64_t old = 0;

    p->s.counts.untidy = p->s.cleared < p->s.counts.acked;
    if (p->group->forget_s == 0)
        return 0;
    sqlite3_bind_int64 (find, 1, p->group->forget_s);
    if (job_store_step (p->st, FIND_OLD, &old, p->errp) < 0)
        return -1;
    if (old == 0)
        return 0;
    int rc = drop_jobs (p, (uint64_t)old);
    if (rc == 0)
        p->s.counts.untidy = true;
    if (rc <= 0)
        return rc;
    sqlite3_bind_int64 (drop, 1, p->group->forget_s);
    return run (p, DROP_ACKS_BEFORE);
}

/* --- all of it ---------------------------------------------------------------------------------------------- */

/* Write the meta row if it changed. After an unsure group write it in any case, so that this commit overwrites what
 * that group left in the log (see the top of this file).
 */
static int set_meta (struct pass *p)
{
    const struct job_store_counts *c = &p->s.counts, *now = &p->st->now.counts;

    if (c->acked == now->acked && c->floor == now->floor && !p->st->unsure)
        return 0;
    bind_ids (p, SET_META, c->acked, c->floor);
    return run (p, SET_META);
}

static int change_all (struct pass *p)
{
    if (database_run (p->st->d, "BEGIN IMMEDIATE;", p->errp) < 0 || acknowledge (p) < 0 || store_jobs (p) < 0
        || clear_specs (p) < 0 || forget (p) < 0)
        return -1;
    return set_meta (p);
}

static int commit (struct pass *p)
{
    struct job_store *st = p->st;

    if (database_run (st->d, "COMMIT;", p->errp) < 0) {
        st->stale = true;
        st->unsure = st->unsure || errno == ESTALE || !database_is_full (st->d) || st->pads;
        return -1;
    }
    st->now = p->s;
    st->unsure = false;
    return 0;
}

/* Set the verdicts of a failed group to what earlier groups have stored. All other jobs get VERDICT_REFUSED without a
 * reason, which the caller adds.
 */
static int judge_again (struct pass *p)
{
    p->s = p->st->now;
    for (size_t i = 0; i < p->group->n; i++) {
        const struct job *job = &p->group->job[i];
        struct verdict *v = &p->group->verdict[i];

        *v = (struct verdict){ .kind = VERDICT_STORED };
        int rc = job->id == 0 || job->id > INT64_MAX ? 0 : has_job (p, job);
        if (rc == 0 && job->id < p->s.counts.floor)
            v->kind = VERDICT_FORGOTTEN;
        else if (rc == 0 && (rc = find_key (p, job, &v->id)) >= 0)
            v->kind = rc > 0 ? VERDICT_SAME : VERDICT_REFUSED;
        if (rc < 0)
            return -1;
    }
    return 0;
}

int job_store_write_group (struct job_store *st, struct job_store_group *group, idt_error_t *errp)
{
    struct pass p = { .st = st, .group = group, .errp = errp };
    int rc = job_store_refresh (st, errp);

    if (rc == 0) {
        p.s = st->now;
        rc = change_all (&p) < 0 || commit (&p) < 0 ? -1 : 0;
    }
    int saved = errno;
    if (rc < 0) {
        idt_error_t ignored;

        database_run (st->d, "ROLLBACK;", NULL);
        p.errp = &ignored;
        group->unsure = st->unsure || job_store_refresh (st, &ignored) < 0 || judge_again (&p) < 0;
    }
    errno = saved;
    return rc;
}
