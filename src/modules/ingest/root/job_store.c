/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store.c - the jobs of an instance: the database file, and the thread that uses it
 *
 * While work is under way, the database and the state read from it belong to the worker's thread; otherwise to the
 * thread of the module. The counts are not stored in the file: they are computed when it is opened, because it is read
 * as a whole then anyway.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/job_store_private.h"

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

int job_store_step (struct job_store *st, enum statement s, int64_t *value, idt_error_t *errp)
{
    sqlite3_stmt *stmt = st->stmt[s];
    int rc = database_step (st->d, stmt, errp), saved = errno;

    if (rc > 0 && value && sqlite3_column_type (stmt, 0) != SQLITE_NULL)
        *value = sqlite3_column_int64 (stmt, 0);
    sqlite3_reset (stmt);
    errno = saved;
    return rc;
}

int job_store_sum (struct job_store *st, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes,
                   idt_error_t *errp)
{
    sqlite3_stmt *sum = st->stmt[SUM];

    sqlite3_bind_int64 (sum, 1, job_store_sql_id (after));
    sqlite3_bind_int64 (sum, 2, job_store_sql_id (upto));
    int rc = database_step (st->d, sum, errp), saved = errno;
    if (rc > 0) {
        *jobs = (uint64_t)sqlite3_column_int64 (sum, 0);
        *bytes = (uint64_t)sqlite3_column_int64 (sum, 1);
    }
    sqlite3_reset (sum);
    errno = saved;
    return rc < 0 ? -1 : 0;
}

/* Take the state from the row of LOAD. Returns false if the row contradicts itself, so the file is damaged. */
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
    int saved = errno;
    sqlite3_reset (load);
    errno = saved;
    return rc < 0 ? -1 : 0;
}

int job_store_refresh (struct job_store *st, idt_error_t *errp)
{
    struct job_store_state s = { 0 };
    uint64_t ignored;

    if (!st->stale)
        return 0;
    if (load_state (st, &s, errp) < 0
        || job_store_sum (st, s.counts.acked, INT64_MAX, &s.counts.jobs, &s.counts.bytes, errp) < 0
        || job_store_sum (st, 0, s.counts.acked, &s.counts.remembered, &ignored, errp) < 0)
        return -1;
    s.counts.untidy = s.cleared < s.counts.acked;
    st->now = s;
    st->stale = false;
    return 0;
}

/* --- work --------------------------------------------------------------------------------------------------- */

static int work (void *arg, idt_error_t *errp)
{
    struct job_store *st = arg;
    int rc = st->group ? job_store_write_group (st, st->group, errp) : 0, saved = errno;

    for (size_t i = 0; i < st->nreads; i++)
        job_store_read_jobs (st, &st->reads[i]);
    errno = saved;
    return rc;
}

void job_store_begin (struct job_store *st, struct job_store_group *group, struct job_store_read *reads, size_t nreads)
{
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

/* Whether SQLite pads a commit in the log to whole sectors with copies of its last frame. It does so unless the disk
 * promises that a write does not damage the bytes beside it.
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
    return job_store_refresh (st, errp);
}

struct job_store *job_store_open (const char *dir, const char *holder, struct job_store_counts *counts,
                                  idt_error_t *errp)
{
    struct job_store *st = calloc (1, sizeof (*st));

    if (!st) {
        errprintf (errp, "%s: out of memory", dir);
        return NULL;
    }
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
