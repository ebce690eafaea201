/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store.c - the jobs of an instance: the database file, and the thread that uses it
 *
 *   jobs   id, bytes (of jobspec and key), userid, urgency, flags, key: all known jobs, also acknowledged ones
 *   specs  id, spec: the jobspecs. A slice of those that are no longer needed is deleted with each commit
 *   acks   acked_s, upto: jobs up to 'upto', but above 'upto' of the row before, were acknowledged at acked_s
 *   meta   acked: jobs up to this id are acknowledged; floor; tries: commits that had to write something
 *
 * Jobs are acknowledged in order of their ids. So the acknowledgement of a million jobs is one row, which is durable
 * immediately, and the data of these jobs is deleted in slices: first jobspecs (all up to 'cleared' are deleted), then
 * the rows of jobs (all below 'floor' are deleted).
 *
 * A group is stored in one transaction: all of it, or nothing. The state in memory changes only when the transaction is
 * durable. If a commit fails, SQLite rolls it back, but the log may contain the whole commit. After a crash, the next
 * process that opens the file would find the commit there. This stays possible until the next successful transaction
 * writes over that part of the log. So that transaction must write something (meta.tries). Only a write that failed for
 * lack of space (database_is_full ()) has certainly stopped the log before the end of the commit, because the end is
 * the last thing that is written.
 *
 * While work is under way, the database and the state read from it belong to the worker's thread; otherwise to the
 * thread of the module. The counts are not stored in the file. They are computed when the file is opened, because the
 * whole file is read then anyway.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/worker.h"
#include "modules/ingest/root/job_store.h"

enum statement {
    LOAD,
    SUM,
    HAS_JOB,
    FIND_KEY,
    PUT_JOB,
    PUT_SPEC,
    SET_META,
    DROP_ACKS_SINCE,
    PUT_ACK,
    NEXT_SPECS,
    DROP_SPECS,
    FIND_OLD,
    NEXT_JOBS,
    DROP_JOBS,
    DROP_ACKS_BEFORE,
    READ_JOBS,
    STATEMENTS
};

/* The state of the file after its last commit. */
struct job_store_state {
    struct job_store_counts counts;
    uint64_t cleared; /* jobspecs up to this id are deleted; at most counts.acked */
};

struct job_store {
    struct database *d;
    sqlite3_stmt *stmt[STATEMENTS];
    struct worker *worker;
    struct job_store_state now;
    bool stale;  /* the file may differ from 'now' */
    bool unsure; /* the next life may find the group that failed */
    bool pads;   /* SQLite pads the log behind a commit, so a commit may be in the log although the disk is full */
    char no_room[2][JOBWIRE_TEXT_MAX], no_bytes[2][JOBWIRE_TEXT_MAX]; /* refusals: for the owner, for other users */
    /* The work that is under way: */
    struct job_store_group *group;
    struct job_store_read *reads;
    size_t nreads;
};

/* SQLite's integers are signed. */
static int64_t sql_id (uint64_t id)
{
    return id > INT64_MAX ? INT64_MAX : (int64_t)id;
}

static const char *const sql[STATEMENTS] = {
    [LOAD] = "SELECT (SELECT count(*) FROM meta), (SELECT acked FROM meta), (SELECT floor FROM meta),"
             " (SELECT min(id) FROM jobs), (SELECT max(id) FROM jobs), (SELECT min(id) FROM specs),"
             " (SELECT max(acked_s) FROM acks);",
    [SUM] = "SELECT count(*), sum(bytes) FROM jobs WHERE id > ? AND id <= ?;",
    [HAS_JOB] = "SELECT 1 FROM jobs WHERE id = ?;",
    [FIND_KEY] = "SELECT id FROM jobs WHERE userid = ? AND key = ?;",
    [PUT_JOB] = "INSERT INTO jobs (id, bytes, userid, urgency, flags, key) VALUES (?, ?, ?, ?, ?, ?);",
    [PUT_SPEC] = "INSERT INTO specs (id, spec) VALUES (?, ?);",
    [SET_META] = "UPDATE meta SET acked = ?, floor = ?, tries = tries + 1;",
    [DROP_ACKS_SINCE] = "DELETE FROM acks WHERE acked_s >= ?;",
    [PUT_ACK] = "INSERT INTO acks (acked_s, upto) VALUES (?, ?);",
    [NEXT_SPECS] = "SELECT id, bytes FROM jobs WHERE id > ? AND id <= ? ORDER BY id;",
    [DROP_SPECS] = "DELETE FROM specs WHERE id <= ?;",
    [FIND_OLD] = "SELECT max(upto) FROM acks WHERE acked_s < ?;",
    [NEXT_JOBS] = "SELECT max(id) FROM (SELECT id FROM jobs WHERE id <= ? ORDER BY id LIMIT ?);",
    [DROP_JOBS] = "DELETE FROM jobs WHERE id <= ?;",
    [DROP_ACKS_BEFORE] = "DELETE FROM acks WHERE acked_s < ?;",
    [READ_JOBS] = "SELECT id, userid, urgency, flags, key,"
                  " CASE WHEN ? THEN (SELECT spec FROM specs WHERE specs.id = jobs.id) END"
                  " FROM jobs WHERE id > ? AND id <= ? ORDER BY id LIMIT ?;",
};

/* secure_delete: some builds of SQLite overwrite deleted data with zeros. These zeros would also be written to the log,
 * and take more space there than the jobs did.
 *
 * wal_autocheckpoint: the log is copied into the database when it has 32 MB. That delays one commit by some ten ms, and
 * saves a third of the work if jobs have keys, because keys are spread over the whole index.
 */
static const char settings[] = "PRAGMA secure_delete = OFF; PRAGMA wal_autocheckpoint = 4000;"
                               " PRAGMA cache_size = -16384;";

/* SQLite writes each page to the log and to the database, with one or two system calls each. Larger pages need less
 * work if jobs arrive in the order of their ids, and more if keys are spread over an index, because each key changes
 * another page.
 */
#define PAGE_SIZE 8192

static const struct database_kind kind = {
    .name = "ingest.sqlite",
    .page_size = PAGE_SIZE,
    .application_id = 1768191081, /* "idti" */
    .version = 1,
    .create = "CREATE TABLE jobs (id INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, userid INTEGER NOT NULL,"
              " urgency INTEGER NOT NULL, flags INTEGER NOT NULL, key BLOB);"
              "CREATE UNIQUE INDEX keys ON jobs (userid, key) WHERE key IS NOT NULL;"
              "CREATE TABLE specs (id INTEGER PRIMARY KEY, spec BLOB NOT NULL);"
              "CREATE TABLE acks (acked_s INTEGER PRIMARY KEY, upto INTEGER NOT NULL);"
              "CREATE TABLE meta (acked INTEGER NOT NULL, floor INTEGER NOT NULL, tries INTEGER NOT NULL);"
              "INSERT INTO meta VALUES (0, 0, 0)",
    .advice = "move it and its -wal away, then restore a copy or run idtree state forget, which loses jobs "
              "that were not consumed",
};

/* --- what is in the file ------------------------------------------------------------------------------------ */

/* Keeps errno. */
static void reset (sqlite3_stmt *stmt)
{
    int saved = errno;

    sqlite3_reset (stmt);
    errno = saved;
}

static sqlite3_stmt *bind_ids (struct job_store *st, enum statement s, uint64_t first, uint64_t second)
{
    sqlite3_stmt *stmt = st->stmt[s];

    sqlite3_bind_int64 (stmt, 1, sql_id (first));
    if (sqlite3_bind_parameter_count (stmt) > 1)
        sqlite3_bind_int64 (stmt, 2, sql_id (second));
    return stmt;
}

/* Run a statement whose values are bound, and store the first column of its first row in '*value' (may be NULL).
 * '*value' is unchanged if the statement has no row, or the column is NULL. Returns 1 if it has a row, 0 if not, or -1
 * with errno set and 'errp' filled.
 */
static int step (struct job_store *st, enum statement s, int64_t *value, idt_error_t *errp)
{
    sqlite3_stmt *stmt = st->stmt[s];
    int rc = database_step (st->d, stmt, errp);

    if (rc > 0 && value && sqlite3_column_type (stmt, 0) != SQLITE_NULL)
        *value = sqlite3_column_int64 (stmt, 0);
    reset (stmt);
    return rc;
}

/* Count the jobs with after < id <= upto, and their bytes. */
static int sum (struct job_store *st, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes, idt_error_t *errp)
{
    sqlite3_stmt *stmt = bind_ids (st, SUM, after, upto);
    int rc = database_step (st->d, stmt, errp);

    if (rc > 0) {
        *jobs = (uint64_t)sqlite3_column_int64 (stmt, 0);
        *bytes = (uint64_t)sqlite3_column_int64 (stmt, 1);
    }
    reset (stmt);
    return rc < 0 ? -1 : 0;
}

/* Take the state from the row of LOAD. Returns false if the row contradicts itself, because then the file is damaged.
 */
static bool take_state (sqlite3_stmt *load, struct job_store_state *s)
{
    int64_t acked = sqlite3_column_int64 (load, 1), floor = sqlite3_column_int64 (load, 2);
    int64_t newest = sqlite3_column_int64 (load, 4), specs = sqlite3_column_int64 (load, 5);
    bool has_jobs = sqlite3_column_type (load, 3) != SQLITE_NULL;
    bool has_specs = sqlite3_column_type (load, 5) != SQLITE_NULL;

    if (sqlite3_column_int64 (load, 0) != 1 || acked < 0 || floor < 0 || (floor > 0 && floor - 1 > acked))
        return false;
    if (has_jobs && (sqlite3_column_int64 (load, 3) < (int64_t)max_u64 (1, (uint64_t)floor)))
        return false;
    if (has_specs && (!has_jobs || specs < 1))
        return false;
    s->counts.acked = (uint64_t)acked;
    s->counts.floor = (uint64_t)floor;
    s->counts.newest = has_jobs ? (uint64_t)newest : floor > 0 ? (uint64_t)floor - 1 : 0;
    s->cleared = has_specs && specs <= acked ? (uint64_t)specs - 1 : (uint64_t)acked;
    s->counts.acked_s = sqlite3_column_int64 (load, 6);
    return true;
}

static int load_state (struct job_store *st, struct job_store_state *s, idt_error_t *errp)
{
    sqlite3_stmt *load = st->stmt[LOAD];
    int rc = database_step (st->d, load, errp);

    if (rc > 0 && !take_state (load, s))
        rc = database_damaged (st->d, "its numbers of acknowledged, forgotten and stored jobs contradict each other",
                               errp);
    reset (load);
    return rc < 0 ? -1 : 0;
}

/* Read the state from the file if it is stale. */
static int refresh (struct job_store *st, idt_error_t *errp)
{
    struct job_store_state s = { 0 };
    uint64_t ignored;

    if (!st->stale)
        return 0;
    if (load_state (st, &s, errp) < 0 || sum (st, s.counts.acked, INT64_MAX, &s.counts.jobs, &s.counts.bytes, errp) < 0
        || sum (st, 0, s.counts.acked, &s.counts.remembered, &ignored, errp) < 0)
        return -1;
    s.counts.untidy = s.cleared < s.counts.acked;
    st->now = s;
    st->stale = false;
    return 0;
}

/* --- a group ------------------------------------------------------------------------------------------------- */

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

static int run (struct pass *p, enum statement s)
{
    return step (p->st, s, NULL, p->errp) < 0 ? -1 : 0;
}

/* --- acknowledging ------------------------------------------------------------------------------------------ */

/* Record that all jobs acknowledged so far were acknowledged at 'now_s' or before. If the clock has gone back, rows
 * with a later time are replaced, because otherwise their jobs would not be forgotten until the clock has reached that
 * time again.
 */
static int note_time (struct pass *p)
{
    sqlite3_stmt *drop = p->st->stmt[DROP_ACKS_SINCE], *put = p->st->stmt[PUT_ACK];

    sqlite3_bind_int64 (drop, 1, p->group->now_s);
    sqlite3_bind_int64 (put, 1, p->group->now_s);
    sqlite3_bind_int64 (put, 2, sql_id (p->s.counts.acked));
    p->s.counts.acked_s = p->group->now_s;
    return run (p, DROP_ACKS_SINCE) < 0 || run (p, PUT_ACK) < 0 ? -1 : 0;
}

static int acknowledge (struct pass *p)
{
    struct job_store_counts *c = &p->s.counts;
    uint64_t upto = min_u64 (p->group->ack, INT64_MAX), jobs, bytes;
    bool clock_went_back = p->group->forget_s != 0 && p->s.counts.acked_s > p->group->now_s;

    if (upto > c->acked) {
        if (sum (p->st, c->acked, upto, &jobs, &bytes, p->errp) < 0)
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
    sqlite3_stmt *put = bind_ids (p->st, PUT_JOB, job->id, bytes), *spec = bind_ids (p->st, PUT_SPEC, job->id, 0);

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

/* Whether a job with this id is stored. Most ids are above the newest stored id, and need no lookup. */
static int has_job (struct pass *p, const struct job *job)
{
    if (job->id > p->s.counts.newest)
        return 0;
    bind_ids (p->st, HAS_JOB, job->id, 0);
    return step (p->st, HAS_JOB, NULL, p->errp);
}

/* Whether a job with the same user and key is stored; 'id' gets its id. */
static int find_key (struct pass *p, const struct job *job, uint64_t *id)
{
    int64_t found = 0;

    if (job->key_size == 0)
        return 0;
    bind_key (bind_ids (p->st, FIND_KEY, job->userid, 0), 2, job);
    int rc = step (p->st, FIND_KEY, &found, p->errp);
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

/* Find the end of the next slice of jobspecs to delete: the last job that fits into the slice, or the newest
 * acknowledged job if all fit.
 */
static int find_slice (struct pass *p, uint64_t *upto)
{
    sqlite3_stmt *next = bind_ids (p->st, NEXT_SPECS, p->s.cleared, p->s.counts.acked);
    int64_t jobs = 0, bytes = 0;
    int rc;

    while ((rc = database_step (p->st->d, next, p->errp)) > 0 && jobs < SLICE_JOBS && bytes < SLICE_BYTES) {
        *upto = (uint64_t)sqlite3_column_int64 (next, 0);
        bytes += sqlite3_column_int64 (next, 1);
        jobs++;
    }
    reset (next);
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
    bind_ids (p->st, DROP_SPECS, upto, 0);
    p->s.cleared = upto;
    return run (p, DROP_SPECS);
}

/* Delete a slice of the jobs up to 'old' whose jobspecs are deleted. Returns 1 if no job up to 'old' is left, 0 if more
 * are left, or -1.
 */
static int drop_jobs (struct pass *p, uint64_t old)
{
    struct job_store_counts *c = &p->s.counts;
    int64_t last = 0;
    uint64_t n = 0;

    bind_ids (p->st, NEXT_JOBS, min_u64 (old, p->s.cleared), SLICE_JOBS);
    if (step (p->st, NEXT_JOBS, &last, p->errp) < 0)
        return -1;
    if (last > 0) {
        bind_ids (p->st, DROP_JOBS, (uint64_t)last, 0);
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
    if (step (p->st, FIND_OLD, &old, p->errp) < 0)
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
    bind_ids (p->st, SET_META, c->acked, c->floor);
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

    assert (p->s.cleared <= p->s.counts.acked && p->s.counts.floor <= p->s.counts.acked + 1);
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

static int write_group (struct job_store *st, struct job_store_group *group, idt_error_t *errp)
{
    struct pass p = { .st = st, .group = group, .errp = errp };
    int rc = refresh (st, errp);

    if (rc == 0) {
        p.s = st->now;
        rc = change_all (&p) < 0 || commit (&p) < 0 ? -1 : 0;
    }
    int saved = errno;
    if (rc < 0) {
        idt_error_t ignored;

        database_run (st->d, "ROLLBACK;", NULL);
        p.errp = &ignored;
        group->unsure = st->unsure || refresh (st, &ignored) < 0 || judge_again (&p) < 0;
    }
    errno = saved;
    return rc;
}

/* --- reads: an acknowledged job is only found by its id ----------------------------------------------------- */

/* Take a job from a row. The job points to memory of SQLite, and is valid until the next step. Returns false if put_job
 * () cannot have written the row, because then the file is damaged.
 */
static bool take_job (sqlite3_stmt *row, bool specs, struct job *job)
{
    int key_size = sqlite3_column_bytes (row, 4), spec_size = sqlite3_column_bytes (row, 5);
    int64_t urgency = sqlite3_column_int64 (row, 2);

    *job = (struct job){
        .id = (uint64_t)sqlite3_column_int64 (row, 0),
        .userid = (uint32_t)sqlite3_column_int64 (row, 1),
        .urgency = (uint8_t)urgency,
        .flags = (uint32_t)sqlite3_column_int64 (row, 3),
        .key_size = (uint8_t)key_size,
        .key = sqlite3_column_blob (row, 4),
        .spec = sqlite3_column_blob (row, 5),
        .spec_size = (uint32_t)spec_size,
    };
    return urgency >= 0 && urgency <= JOBWIRE_URGENCY_MAX && key_size <= JOBWIRE_KEY_MAX
           && spec_size <= (int)JOBWIRE_SPEC_MAX && (!specs || sqlite3_column_type (row, 5) != SQLITE_NULL);
}

static bool is_full (const struct job_store_read *read, const struct job *job)
{
    const struct jobwire_buf *found = &read->found;

    return found->count >= read->max_jobs
           || (found->count > 0 && found->size + jobwire_job_size (job) > read->max_bytes);
}

/* Add the job of a row to a read. Returns 1 if more rows may follow, 0 if the read is full, or -1. */
static int add_row (struct job_store *st, struct job_store_read *read, sqlite3_stmt *row, bool specs)
{
    struct job job;

    if (!take_job (row, specs, &job)) {
        char what[64];
        snprintf (what, sizeof (what), "its record of job %" PRIu64 " is invalid", job.id);
        return database_damaged (st->d, what, &read->error);
    }
    if (is_full (read, &job)) {
        read->more = true;
        return 0;
    }
    if (jobwire_add_job (&read->found, &job) < 0)
        return errprintf (&read->error, "%s: out of memory", st->d->path);
    return 1;
}

static int read_rows (struct job_store *st, struct job_store_read *read, uint64_t after, bool specs)
{
    sqlite3_stmt *rows = st->stmt[READ_JOBS];
    int rc;

    sqlite3_bind_int64 (rows, 1, specs);
    sqlite3_bind_int64 (rows, 2, sql_id (after));
    sqlite3_bind_int64 (rows, 3, sql_id (read->upto));
    sqlite3_bind_int64 (rows, 4, (int64_t)read->max_jobs + 1);
    while ((rc = database_step (st->d, rows, &read->error)) > 0 && (rc = add_row (st, read, rows, specs)) > 0)
        ;
    reset (rows);
    return rc;
}

/* Read a single job. A job is found until it is forgotten. After its acknowledgement it is found without its jobspec.
 */
static int read_one (struct job_store *st, struct job_store_read *read)
{
    if (read->upto == 0 || read->upto > INT64_MAX)
        return 0;
    read->max_jobs = 1;
    read->acked = read->upto <= st->now.counts.acked;
    return read_rows (st, read, read->upto - 1, read->specs && !read->acked);
}

static void read_jobs (struct job_store *st, struct job_store_read *read)
{
    read->found = (struct jobwire_buf){ 0 };
    read->more = read->acked = false;
    read->errnum = 0;
    if (refresh (st, &read->error) == 0
        && (read->one ? read_one (st, read)
                      : read_rows (st, read, max_u64 (read->after, st->now.counts.acked), read->specs))
               >= 0)
        return;
    read->errnum = errno ? errno : EIO;
    jobwire_buf_fini (&read->found);
    read->more = read->acked = false;
}

/* --- work --------------------------------------------------------------------------------------------------- */

static int work (void *arg, idt_error_t *errp)
{
    struct job_store *st = arg;
    int rc = st->group ? write_group (st, st->group, errp) : 0, saved = errno;

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

/* --- open and close ----------------------------------------------------------------------------------------- */

static int prepare (struct job_store *st, idt_error_t *errp)
{
    for (int i = 0; i < STATEMENTS; i++)
        if (!(st->stmt[i] = database_prepare (st->d, sql[i], errp)))
            return -1;
    return 0;
}

/* Whether SQLite pads a commit in the log to whole sectors with copies of its last frame. SQLite does so unless the
 * disk promises that a write does not damage the bytes beside it.
 */
static bool pads (struct job_store *st)
{
    sqlite3_file *file = NULL;

    return sqlite3_file_control (st->d->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file
           || !file->pMethods || !file->pMethods->xDeviceCharacteristics
           || !(file->pMethods->xDeviceCharacteristics (file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE);
}

void job_store_close (struct job_store *st)
{
    if (!st)
        return;
    int saved = errno;
    worker_destroy (st->worker);
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize (st->stmt[i]);
    database_close (st->d);
    free (st);
    errno = saved;
}

static int open_file (struct job_store *st, const char *dir, const char *holder, idt_error_t *errp)
{
    if (!(st->d = database_open (&kind, dir, holder, errp)) || prepare (st, errp) < 0
        || database_run (st->d, settings, errp) < 0)
        return -1;
    st->pads = pads (st);
    st->stale = true;
    return refresh (st, errp);
}

struct job_store *job_store_open (const char *dir, const char *holder, struct job_store_counts *counts,
                                  idt_error_t *errp)
{
    struct job_store *st = calloc (1, sizeof (*st));

    if (!st)
        return errsetf_null (errp, ENOMEM, "%s: out of memory", dir);
    if (open_file (st, dir, holder, errp) < 0)
        goto error;
    if (!(st->worker = worker_create (work, st))) {
        errprintf (errp, "%s: cannot start a thread: %s", st->d->path, strerror (errno));
        goto error;
    }
    *counts = st->now.counts;
    return st;
error:
    job_store_close (st);
    return NULL;
}
