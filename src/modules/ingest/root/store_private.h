/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store_private.h - for the files of the store alone
 *
 *   jobs   id, bytes (of jobspec and key), userid, urgency, flags, key: all that are known; what is acknowledged, too
 *   specs  id, spec: the jobspecs.  Those of acknowledged jobs go, some at each commit
 *   acks   acked_s, upto: jobs up to 'upto' that no row before it names were acknowledged then
 *   meta   acked: jobs up to this id are; floor; tries: see store_group.c
 *
 * Jobs are acknowledged in order of their ids.  So that of a million is one row, durable at once, and what that leaves
 * behind is cleared away in slices: specs up to 'cleared' are gone, then rows of jobs below 'floor'.
 */
#ifndef INGEST_STORE_PRIVATE_H
#define INGEST_STORE_PRIVATE_H

#include "libsqlite/database.h"
#include "libutil/worker.h"
#include "modules/ingest/root/store.h"

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

/* What the file says, as far as its last commit. */
struct store_state {
    struct store_counts counts;
    uint64_t cleared; /* no jobspec is there up to this id; at most counts.acked */
};

struct store {
    struct database *d;
    sqlite3_stmt *stmt[STATEMENTS];
    struct worker *worker;
    struct store_state now;
    bool stale;  /* the file may say otherwise */
    bool unsure; /* what failed may be found by the next life */
    bool pads;   /* SQLite writes on behind a commit's end: a full disk there does not undo it */
    char no_room[2][JOBWIRE_TEXT_MAX], no_bytes[2][JOBWIRE_TEXT_MAX]; /* the owner's, others' */
    /* of the work that is under way: */
    struct store_group *group;
    struct store_read *reads;
    size_t nreads;
};

/* SQLite's integers have a sign. */
static inline int64_t store_sql_id (uint64_t id)
{
    return id > INT64_MAX ? INT64_MAX : (int64_t)id;
}

/* Run a statement whose values are bound, and take the first column of its first row ('value' may be NULL; it is kept
 * where there is none, or NULL in it).  Returns 1: there is one, 0, or -1 with errno set and 'errp' filled.
 */
int store_step (struct store *st, enum statement s, int64_t *value, idt_error_t *errp);

/* Read what the file says, where that is not known.  Returns 0, or -1 with errno set and 'errp' filled. */
int store_refresh (struct store *st, idt_error_t *errp);

/* Count jobs with after < id <= upto, and their bytes. */
int store_sum (struct store *st, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes, idt_error_t *errp);

/* In the thread: the group / a read. */
int store_write_group (struct store *st, struct store_group *group, idt_error_t *errp);
void store_read_jobs (struct store *st, struct store_read *read);

#endif /* INGEST_STORE_PRIVATE_H */
