/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store_read.c - reads jobs for consumers; an acknowledged job is only found by its id */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/job_store_private.h"

/* Take a job from a row. It points to memory of SQLite, and is valid until the next step. Returns false if the row
 * cannot be from job_store_group.c, so the file is damaged.
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

/* Returns 1 if more rows may follow, 0 if the read is full, or -1. */
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
    sqlite3_bind_int64 (rows, 2, job_store_sql_id (after));
    sqlite3_bind_int64 (rows, 3, job_store_sql_id (read->upto));
    sqlite3_bind_int64 (rows, 4, (int64_t)read->max_jobs + 1);
    while ((rc = database_step (st->d, rows, &read->error)) > 0 && (rc = add_row (st, read, rows, specs)) > 0)
        ;
    int saved = errno;
    sqlite3_reset (rows);
    errno = saved;
    return rc;
}

/* A job is kept until it is forgotten, its jobspec until the job is acknowledged. */
static int read_one (struct job_store *st, struct job_store_read *read)
{
    if (read->upto == 0 || read->upto > INT64_MAX)
        return 0;
    read->max_jobs = 1;
    read->acked = read->upto <= st->now.counts.acked;
    return read_rows (st, read, read->upto - 1, read->specs && !read->acked);
}

static int read_all (struct job_store *st, struct job_store_read *read)
{
    return read_rows (st, read, max_u64 (read->after, st->now.counts.acked), read->specs);
}

void job_store_read_jobs (struct job_store *st, struct job_store_read *read)
{
    read->found = (struct jobwire_buf){ 0 };
    read->more = read->acked = false;
    read->errnum = 0;
    if (job_store_refresh (st, &read->error) == 0 && (read->one ? read_one (st, read) : read_all (st, read)) >= 0)
        return;
    read->errnum = errno ? errno : EIO;
    jobwire_buf_fini (&read->found);
    read->more = read->acked = false;
}
