/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_disk.c - the jobs of an instance in a file: ingest.sqlite in the statedir
 *
 *   jobs   id, bytes (of jobspec and key), userid, urgency, flags, key: all known jobs, also acknowledged ones
 *   specs  id, spec: the jobspecs. A slice of those that are no longer needed is deleted with each commit
 *   acks   acked_s, upto: jobs up to 'upto', but above 'upto' of the row before, were acknowledged at acked_s
 *   meta   acked: jobs up to this id are acknowledged; floor; tries: commits that had to write something
 *
 * A group is one transaction. If a commit fails, SQLite rolls it back, but the log may contain the whole commit. After
 * a crash, the next process that opens the file would find the commit there. This stays possible until the next
 * successful transaction writes over that part of the log. So that transaction must write something (meta.tries). Only
 * a write that failed for lack of space (database_is_full ()) has certainly stopped the log before the end of the
 * commit, because the end is the last thing that is written.
 *
 * The counts are not stored in the file. They are computed when the file is opened, because the whole file is read then
 * anyway.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/job_backend.h"

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

struct job_disk {
    struct job_backend base; /* first */
    struct database *d;
    sqlite3_stmt *stmt[STATEMENTS];
    bool pads; /* SQLite pads the log behind a commit, so a commit may be in the log although the disk is full */
    const struct job_store_group *group; /* the group that has begun */
    uint64_t acked, floor;               /* in the file */
};

static struct job_disk *disk_of (struct job_backend *b)
{
    return (struct job_disk *)b;
}

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

static sqlite3_stmt *bind_ids (struct job_disk *k, enum statement s, uint64_t first, uint64_t second)
{
    sqlite3_stmt *stmt = k->stmt[s];

    sqlite3_bind_int64 (stmt, 1, sql_id (first));
    if (sqlite3_bind_parameter_count (stmt) > 1)
        sqlite3_bind_int64 (stmt, 2, sql_id (second));
    return stmt;
}

/* Run a statement whose values are bound, and store the first column of its first row in '*value' (may be NULL).
 * '*value' is unchanged if the statement has no row, or the column is NULL. Returns 1 if it has a row, 0 if not, or -1
 * with errno set and 'errp' filled.
 */
static int step (struct job_disk *k, enum statement s, int64_t *value, idt_error_t *errp)
{
    sqlite3_stmt *stmt = k->stmt[s];
    int rc = database_step (k->d, stmt, errp);

    if (rc > 0 && value && sqlite3_column_type (stmt, 0) != SQLITE_NULL)
        *value = sqlite3_column_int64 (stmt, 0);
    reset (stmt);
    return rc;
}

/* Count the jobs with after < id <= upto, and their bytes. */
static int sum (struct job_disk *k, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes, idt_error_t *errp)
{
    sqlite3_stmt *stmt = bind_ids (k, SUM, after, upto);
    int rc = database_step (k->d, stmt, errp);

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

static int load_state (struct job_disk *k, struct job_store_state *s, idt_error_t *errp)
{
    sqlite3_stmt *load = k->stmt[LOAD];
    int rc = database_step (k->d, load, errp);

    if (rc > 0 && !take_state (load, s))
        rc = database_damaged (k->d, "its numbers of acknowledged, forgotten and stored jobs contradict each other",
                               errp);
    reset (load);
    return rc < 0 ? -1 : 0;
}

static int disk_load (struct job_backend *b, struct job_store_state *s, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);
    uint64_t ignored;

    if (load_state (k, s, errp) < 0 || sum (k, s->counts.acked, INT64_MAX, &s->counts.jobs, &s->counts.bytes, errp) < 0)
        return -1;
    return sum (k, 0, s->counts.acked, &s->counts.remembered, &ignored, errp);
}

/* --- a group ------------------------------------------------------------------------------------------------- */

static int run (struct job_disk *k, enum statement s, idt_error_t *errp)
{
    return step (k, s, NULL, errp) < 0 ? -1 : 0;
}

static int disk_look (struct job_backend *b, const struct job_backend_group *g, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);

    k->group = g->group;
    k->acked = g->now.counts.acked;
    k->floor = g->now.counts.floor;
    return 0;
}

static int disk_begin (struct job_backend *b, const struct job_backend_group *g, idt_error_t *errp)
{
    disk_look (b, g, errp);
    return database_run (disk_of (b)->d, "BEGIN IMMEDIATE;", errp);
}

static int disk_sum (struct job_backend *b, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes,
                     idt_error_t *errp)
{
    return sum (disk_of (b), after, upto, jobs, bytes, errp);
}

/* If the clock has gone back, rows with a later time are replaced, because otherwise their jobs would not be forgotten
 * until the clock has reached that time again.
 */
static int disk_note_time (struct job_backend *b, int64_t now_s, uint64_t upto, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);
    sqlite3_stmt *drop = k->stmt[DROP_ACKS_SINCE], *put = k->stmt[PUT_ACK];

    sqlite3_bind_int64 (drop, 1, now_s);
    sqlite3_bind_int64 (put, 1, now_s);
    sqlite3_bind_int64 (put, 2, sql_id (upto));
    return run (k, DROP_ACKS_SINCE, errp) < 0 || run (k, PUT_ACK, errp) < 0 ? -1 : 0;
}

static void bind_key (sqlite3_stmt *stmt, int at, const struct job *job)
{
    if (job->key_size > 0)
        sqlite3_bind_blob (stmt, at, job->key, job->key_size, SQLITE_STATIC);
    else
        sqlite3_bind_null (stmt, at);
}

static int disk_put (struct job_backend *b, size_t i, uint64_t bytes, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);
    const struct job *job = &k->group->job[i];
    sqlite3_stmt *put = bind_ids (k, PUT_JOB, job->id, bytes), *spec = bind_ids (k, PUT_SPEC, job->id, 0);

    sqlite3_bind_int64 (put, 3, job->userid);
    sqlite3_bind_int64 (put, 4, job->urgency);
    sqlite3_bind_int64 (put, 5, job->flags);
    bind_key (put, 6, job);
    sqlite3_bind_blob64 (spec, 2, job->spec ? job->spec : "", job->spec_size, SQLITE_STATIC);
    return run (k, PUT_JOB, errp) < 0 || run (k, PUT_SPEC, errp) < 0 ? -1 : 0;
}

static int disk_has_id (struct job_backend *b, size_t i, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);

    bind_ids (k, HAS_JOB, k->group->job[i].id, 0);
    return step (k, HAS_JOB, NULL, errp);
}

static int disk_find_key (struct job_backend *b, size_t i, uint64_t *id, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);
    const struct job *job = &k->group->job[i];
    int64_t found = 0;

    bind_key (bind_ids (k, FIND_KEY, job->userid, 0), 2, job);
    int rc = step (k, FIND_KEY, &found, errp);
    *id = (uint64_t)found;
    return rc;
}

/* Find the end of the next slice of jobspecs to delete: the last job that fits into the slice, or the newest
 * acknowledged job if all fit.
 */
static int find_slice (struct job_disk *k, uint64_t cleared, uint64_t acked, uint64_t *upto, idt_error_t *errp)
{
    sqlite3_stmt *next = bind_ids (k, NEXT_SPECS, cleared, acked);
    int64_t jobs = 0, bytes = 0;
    int rc;

    *upto = cleared;
    while ((rc = database_step (k->d, next, errp)) > 0 && jobs < JOB_SLICE_JOBS && bytes < JOB_SLICE_BYTES) {
        *upto = (uint64_t)sqlite3_column_int64 (next, 0);
        bytes += sqlite3_column_int64 (next, 1);
        jobs++;
    }
    reset (next);
    if (rc == 0)
        *upto = acked;
    return rc < 0 ? -1 : 0;
}

static int disk_clear_specs (struct job_backend *b, uint64_t cleared, uint64_t acked, uint64_t *upto, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);

    if (find_slice (k, cleared, acked, upto, errp) < 0)
        return -1;
    bind_ids (k, DROP_SPECS, *upto, 0);
    return run (k, DROP_SPECS, errp);
}

static int disk_find_old (struct job_backend *b, int64_t forget_s, uint64_t *old, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);
    int64_t upto = 0;

    sqlite3_bind_int64 (k->stmt[FIND_OLD], 1, forget_s);
    if (step (k, FIND_OLD, &upto, errp) < 0)
        return -1;
    *old = (uint64_t)upto;
    return upto > 0;
}

static int disk_drop_jobs (struct job_backend *b, uint64_t upto, uint64_t *last, uint64_t *n, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);
    int64_t found = 0;

    *n = 0;
    bind_ids (k, NEXT_JOBS, upto, JOB_SLICE_JOBS);
    int rc = step (k, NEXT_JOBS, &found, errp);
    if (rc < 0 || found == 0)
        return rc < 0 ? -1 : 0;
    *last = (uint64_t)found;
    bind_ids (k, DROP_JOBS, *last, 0);
    if (run (k, DROP_JOBS, errp) < 0)
        return -1;
    *n = (uint64_t)sqlite3_changes (k->d->db);
    return 0;
}

static int disk_drop_times (struct job_backend *b, int64_t forget_s, idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);

    sqlite3_bind_int64 (k->stmt[DROP_ACKS_BEFORE], 1, forget_s);
    return run (k, DROP_ACKS_BEFORE, errp);
}

/* With 'writes' the row of meta is written in any case, so that this commit overwrites what an earlier group left in
 * the log (see the top of this file).
 */
static int set_meta (struct job_disk *k, const struct job_store_state *s, bool writes, idt_error_t *errp)
{
    if (s->counts.acked == k->acked && s->counts.floor == k->floor && !writes)
        return 0;
    bind_ids (k, SET_META, s->counts.acked, s->counts.floor);
    return run (k, SET_META, errp);
}

static int disk_commit (struct job_backend *b, const struct job_store_state *s, bool writes, bool *maybe,
                        idt_error_t *errp)
{
    struct job_disk *k = disk_of (b);

    *maybe = false;
    if (set_meta (k, s, writes, errp) < 0)
        return -1;
    if (database_run (k->d, "COMMIT;", errp) == 0)
        return 0;
    *maybe = errno == ESTALE || !database_is_full (k->d) || k->pads;
    return -1;
}

static void disk_rollback (struct job_backend *b)
{
    int saved = errno;

    database_run (disk_of (b)->d, "ROLLBACK;", NULL);
    errno = saved;
}

/* --- reads ----------------------------------------------------------------------------------------------------- */

/* Take a job from a row. The job points to memory of SQLite, and is valid until the next step. Returns false if
 * disk_put () cannot have written the row, because then the file is damaged.
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

/* Add the job of a row to a read. Returns like job_store_found (). */
static int add_row (struct job_disk *k, struct job_store_read *read, sqlite3_stmt *row, bool specs)
{
    struct job job;
    char what[64];

    if (take_job (row, specs, &job))
        return job_store_found (&k->base, read, &job);
    snprintf (what, sizeof (what), "its record of job %" PRIu64 " is invalid", job.id);
    return database_damaged (k->d, what, &read->error);
}

static int disk_read (struct job_backend *b, struct job_store_read *read, uint64_t after, bool specs)
{
    struct job_disk *k = disk_of (b);
    sqlite3_stmt *rows = k->stmt[READ_JOBS];
    int rc;

    sqlite3_bind_int64 (rows, 1, specs);
    sqlite3_bind_int64 (rows, 2, sql_id (after));
    sqlite3_bind_int64 (rows, 3, sql_id (read->upto));
    sqlite3_bind_int64 (rows, 4, (int64_t)read->max_jobs + 1);
    while ((rc = database_step (k->d, rows, &read->error)) > 0 && (rc = add_row (k, read, rows, specs)) > 0)
        ;
    reset (rows);
    return rc < 0 ? -1 : 0;
}

/* --- open and close ----------------------------------------------------------------------------------------- */

/* Nothing here waits for a server. A disk that does not answer cannot be interrupted. */
static void disk_stop (struct job_backend *b)
{
}

static bool disk_waits (struct job_backend *b, idt_error_t *why)
{
    return false;
}

static void disk_close (struct job_backend *b)
{
    struct job_disk *k = disk_of (b);

    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize (k->stmt[i]);
    database_close (k->d);
    free (k);
}

static const struct job_backend_ops ops = {
    .load = disk_load,
    .look = disk_look,
    .begin = disk_begin,
    .sum = disk_sum,
    .note_time = disk_note_time,
    .has_id = disk_has_id,
    .find_key = disk_find_key,
    .put = disk_put,
    .clear_specs = disk_clear_specs,
    .find_old = disk_find_old,
    .drop_jobs = disk_drop_jobs,
    .drop_times = disk_drop_times,
    .commit = disk_commit,
    .rollback = disk_rollback,
    .read = disk_read,
    .stop = disk_stop,
    .waits = disk_waits,
    .close = disk_close,
};

static int prepare (struct job_disk *k, idt_error_t *errp)
{
    for (int i = 0; i < STATEMENTS; i++)
        if (!(k->stmt[i] = database_prepare (k->d, sql[i], errp)))
            return -1;
    return 0;
}

/* Whether SQLite pads a commit in the log to whole sectors with copies of its last frame. SQLite does so unless the
 * disk promises that a write does not damage the bytes beside it.
 */
static bool pads (struct job_disk *k)
{
    sqlite3_file *file = NULL;

    return sqlite3_file_control (k->d->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file
           || !file->pMethods || !file->pMethods->xDeviceCharacteristics
           || !(file->pMethods->xDeviceCharacteristics (file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE);
}

struct job_backend *job_disk_open (const char *dir, const char *holder, idt_error_t *errp)
{
    struct job_disk *k = calloc (1, sizeof (*k));

    if (!k)
        return errsetf_null (errp, ENOMEM, "%s: out of memory", dir);
    k->base.ops = &ops;
    if (!(k->d = database_open (&kind, dir, holder, errp)) || prepare (k, errp) < 0
        || database_run (k->d, settings, errp) < 0) {
        int saved = errno;
        disk_close (&k->base);
        errno = saved;
        return NULL;
    }
    k->base.where = k->d->path;
    k->pads = pads (k);
    return &k->base;
}
