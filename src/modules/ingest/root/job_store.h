/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store.h - the jobs of an instance, at rank 0: ingest.sqlite in the statedir, or tables in root.store
 *
 * A thread of the store does one piece of work at a time: a commit of a group of jobs, with acknowledgement and
 * forgetting in the same transaction, and then reads for consumers and other clients. A descriptor notifies the reactor
 * when the work has ended.
 */
#ifndef INGEST_JOB_STORE_H
#define INGEST_JOB_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "libmodule/module.h"
#include "modules/ingest/job/wire.h"

/* Integers of SQLite and JSON have 63 bits. From 2^39 ms after the epoch on, ids need 64. */
#define JOB_STORE_TOO_LATE                                                                                            \
    "ids of jobs must fit into 63 bits, and ids of this instance need 64, because its epoch is more than 17.4 years " \
    "ago: jobs need an instance with a later epoch (idtree init --epoch)"

struct job_store;

/* The stored jobs, as of the last work that ended. */
struct job_store_counts {
    uint64_t jobs, bytes; /* jobs that are not acknowledged; bytes of their jobspecs and keys */
    uint64_t remembered;  /* acknowledged jobs, of which only id and key are kept */
    uint64_t acked;       /* jobs up to this id are acknowledged; 0: none */
    uint64_t newest;      /* the newest id that is or was stored; 0: none */
    uint64_t floor;       /* jobs below this id are forgotten; 0: no job is forgotten */
    int64_t acked_s;      /* the newest acknowledgement time that is remembered (job_store_group.now_s); 0: none */
    uint64_t line; /* where the line of a life begins that opened the store then: the newest id, or the horizon */
    bool untidy;   /* there is more to clear away or to forget in later groups */
};

/* Open the store. A missing file is created; 'holder' is shown to other processes that open it. Blocks on the disk. A
 * store in PostgreSQL is connected by the first work, which may be empty, and must be tried again if it failed; until
 * then 'counts' is empty. Returns NULL with errno set and 'errp' filled, as by database_open ().
 */
struct job_store *job_store_open (const struct module_place *place, const char *holder, struct job_store_counts *counts,
                                  idt_error_t *errp);

/* A group: 'job' and 'verdict' have 'n' members. Acknowledgement comes first, so that acknowledged jobs no longer count
 * against the limits. Then each job gets its verdict by the first of these rules that applies:
 *   id is 0                                      VERDICT_REFUSED, EINVAL
 *   id is above INT64_MAX                        VERDICT_REFUSED, EOVERFLOW, JOB_STORE_TOO_LATE
 *   id is stored, or remembered                  VERDICT_STORED
 *   id < floor                                   VERDICT_FORGOTTEN
 *   id <= line, id <= acked, or another life     VERDICT_LATE
 *   (userid, key) is stored under another id     VERDICT_SAME with that id
 *   max_jobs or max_bytes would be exceeded      VERDICT_REFUSED, ENOSPC, naming the limit
 *   otherwise                                    the job is stored: VERDICT_STORED
 * Finally a slice of acknowledged jobs is cleared away and forgotten, oldest first; slices are small, so that no group
 * takes long. The rest is left to later groups. job_store_counts.untidy is set if such a group is needed. Such a group
 * may have no jobs, but needs 'now_s' and 'forget_s'.
 */
struct job_store_group {
    const struct job *job;
    struct verdict *verdict; /* texts of refusals point into the store, and are valid until the next work begins */
    size_t n;
    uint64_t line;
    uint64_t life; /* of rank 0's module; later lives have higher ones */
    uint64_t max_jobs, max_bytes;
    bool owner_first; /* users other than 'owner' may use only half of these limits */
    uint32_t owner;
    uint64_t ack;     /* jobs up to this id are acknowledged: jobspecs are deleted, id and key stay; 0: none */
    int64_t now_s;    /* seconds on a clock of the caller's choice; needed with 'ack' and 'forget_s' only */
    int64_t forget_s; /* forget jobs acknowledged before this time, and raise the floor above them; 0: none */
    /* set if the group failed: */
    /* A later life may find it stored all the same; or the store cannot be read; or it does not accept writes, and
     * may do so soon; or another rank 0 has it. In all cases the caller must not report any job of the group as not
     * stored, until a later group with the same jobs is durable and has given them verdicts.
     */
    bool unsure;
};

/* A read of jobs in order of id, after < id <= upto. It finds at most 'max_jobs' jobs of at most 'max_bytes', but the
 * first job in any case.
 */
struct job_store_read {
    uint64_t after, upto;
    uint32_t max_jobs;
    size_t max_bytes;
    bool specs; /* whether to read jobspecs */
    bool one;   /* for ingest.get: the job 'upto' only, acknowledged or not */
    /* the result: */
    /* The jobs, in the form of a batch. If jobspecs are not read, spec_size is 0. The caller frees 'found' with
     * jobwire_buf_fini ().
     */
    struct jobwire_buf found;
    bool more;  /* there are further jobs up to 'upto' */
    bool acked; /* with 'one': the job is acknowledged, and has no jobspec any longer */
    int errnum; /* 0; or the read failed, 'error' has the reason, and 'found' is empty */
    idt_error_t error;
};

/* Let the thread store 'group' (NULL: none), completely or not at all, and then do 'reads'. Work without both only
 * connects the store, and reads its counts. All arguments are borrowed
 * until job_store_result () has returned 1 or -1. Only one piece of work may be under way. Never blocks on the disk.
 */
void job_store_begin (struct job_store *st, struct job_store_group *group, struct job_store_read *reads, size_t nreads);

/* A descriptor that is readable (level-triggered) when work has ended. */
int job_store_fd (const struct job_store *st);

/* Take the result of the work. Returns
 *   1   the group is durable, and the reads are done
 *   0   no work has ended
 *   -1  with errno set and 'errp' filled: the group stored no job; the reads are done all the same
 *
 * After -1, unless the group is unsure, the verdicts say what earlier groups have stored: STORED, SAME or FORGOTTEN.
 * All other jobs have REFUSED without errnum and text, because 'errp' has the reason. If work has ended, 'counts' (may
 * be NULL) gets the counts of stored jobs.
 */
int job_store_result (struct job_store *st, struct job_store_counts *counts, idt_error_t *errp);

/* Whether the work waits for a server that did not answer; 'why' (not NULL) gets the last failure. May be called while
 * work is under way.
 */
bool job_store_waits (struct job_store *st, idt_error_t *why);

/* The place of the store, for messages. */
const char *job_store_where (const struct job_store *st);

/* Wait for the thread, and close the store. Blocks. NULL is allowed; errno is kept. */
void job_store_close (struct job_store *st);

#endif /* INGEST_JOB_STORE_H */
