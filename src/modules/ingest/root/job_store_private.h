/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store_private.h - shared by the files of the store; the tables
 *
 *   jobs   id, bytes (of jobspec and key), userid, urgency, flags, key: all known jobs, also acknowledged ones
 *   specs  id, spec: the jobspecs. Those of acknowledged jobs are deleted, a slice with each commit
 *   acks   acked_s, upto: jobs up to 'upto', from the previous row's on, were acknowledged at acked_s
 *   meta   acked: jobs up to this id are acknowledged; floor; tries: see job_store_group.c
 *
 * Jobs are acknowledged in order of their ids. So the acknowledgement of a million jobs is one row, which is durable
 * immediately, and the data of these jobs is deleted in slices: first jobspecs (all up to 'cleared' are deleted), then
 * the rows of jobs (all below 'floor' are deleted).
 */
#ifndef INGEST_JOB_STORE_PRIVATE_H
#define INGEST_JOB_STORE_PRIVATE_H

#include "libsqlite/database.h"
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
    bool pads;   /* SQLite pads the log behind a commit: if the disk is full there, the commit is in the log */
    char no_room[2][JOBWIRE_TEXT_MAX], no_bytes[2][JOBWIRE_TEXT_MAX]; /* refusals: for the owner, for other users */
    /* The work that is under way: */
    struct job_store_group *group;
    struct job_store_read *reads;
    size_t nreads;
};

/* SQLite's integers are signed. */
static inline int64_t job_store_sql_id (uint64_t id)
{
    return id > INT64_MAX ? INT64_MAX : (int64_t)id;
}

/* Run a statement whose values are bound, and store the first column of its first row in '*value' (may be NULL).
 * '*value' is unchanged if the statement has no row, or the column is NULL. Returns 1 if it has a row, 0 if not, or -1
 * with errno set and 'errp' filled.
 */
int job_store_step (struct job_store *st, enum statement s, int64_t *value, idt_error_t *errp);

/* Read the state from the file if it is stale. Returns 0, or -1 with errno set and 'errp' filled. */
int job_store_refresh (struct job_store *st, idt_error_t *errp);

/* Count the jobs with after < id <= upto, and their bytes. */
int job_store_sum (struct job_store *st, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes,
                   idt_error_t *errp);

/* Called in the thread: store a group; do a read. */
int job_store_write_group (struct job_store *st, struct job_store_group *group, idt_error_t *errp);
void job_store_read_jobs (struct job_store *st, struct job_store_read *read);

#endif /* INGEST_JOB_STORE_PRIVATE_H */
