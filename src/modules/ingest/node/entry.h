/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* entry.h - jobs that were submitted at this rank, until their submitters are answered
 *
 * A job waits for an id, then for a place in a batch, then for its verdict. A late job gets a new id. Each job is
 * answered exactly once, through the reply function.
 */
#ifndef INGEST_ENTRY_H
#define INGEST_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

/* --- prefetched ids for jobs, none older than JOB_BLOCK_MAX_AGE_MS -----------------------------------------------
 *
 * Ids are requested in blocks. The size of a block follows recent use, so that ids are usually available when a job
 * arrives. Ids are taken in increasing order. The rest of a block that is too old is thrown away.
 */

#define JOB_BLOCK_MAX_AGE_MS 50 /* age of an id, from the request for it */
#define JOB_BLOCK_MIN_IDS 16    /* the least and most ids of a request */
#define JOB_BLOCK_MAX_IDS 4096
#define JOB_BLOCK_PAUSE_MS 50 /* from a request that failed to the next request */

struct job_block_run {
    uint64_t first;
    uint32_t count;
};

struct job_block {
    struct job_block_part {
        struct job_block_run run;
        uint64_t asked_ms; /* when it was requested */
    } * part;
    size_t nparts, room, at; /* 'at': the part that ids are taken from */
    uint64_t left;           /* ids that are available */
    bool asking;
    uint64_t asking_ms;  /* when the last request was made */
    uint64_t pause_ms;   /* no request before this time; 0: no pause */
    uint32_t used, size; /* ids used since the last request; size of the next request */
    uint64_t top;        /* the newest id that was received */
};

void job_block_init (struct job_block *b);
void job_block_fini (struct job_block *b);

/* The number of ids to request now, for 'wanted' jobs that have no id. Returns 0 if enough ids are available, a request
 * is under way, or the last request failed and was made less than JOB_BLOCK_PAUSE_MS ago. If the result is not 0, the
 * caller must send a request for that many ids, and report its result with job_block_filled () or job_block_failed ().
 */
uint32_t job_block_ask (struct job_block *b, uint64_t now_ms, uint32_t wanted);

/* When to call job_block_ask () again after a request that failed. Returns UINT64_MAX if no request failed. */
uint64_t job_block_due (const struct job_block *b);

/* job_block_filled () adds the ids of a response: 'n' runs in increasing order, above all ids that were received
 * before. Returns 0, or -1 with errno EPROTO or ENOMEM; then no id is added, and the request counts as failed.
 * job_block_failed () reports that a request failed.
 */
int job_block_filled (struct job_block *b, const struct job_block_run *runs, size_t n);
void job_block_failed (struct job_block *b);

/* Take the next id. Returns 0 if no id that is young enough is available. */
uint64_t job_block_take (struct job_block *b, uint64_t now_ms);

/* Throw away all available ids, because they are too low. */
void job_block_drop (struct job_block *b);

/* --- jobs -------------------------------------------------------------------------------------------------------- */

/* ENTRY_BATCHES is the number of batches that may be out at a time: while one is stored, others are on their way. A
 * client may have 1 MiB of unanswered jobs; divided into batches of ENTRY_BATCH_BYTES, each hop can work on one of
 * them. A single job may be larger than a batch.
 */
#define ENTRY_BATCHES 16
#define ENTRY_BATCH_BYTES (60u << 10)

#define ENTRY_PAUSE_MS 10
#define ENTRY_PAUSE_MAX_MS 160

struct entry;
struct entry_batch;

/* Answers the submitter of a job. If 'errnum' is 0, the job is durable under 'id' and 'text' is NULL, or a job with the
 * same key is durable under 'id' and 'text' says so. Otherwise 'errnum' and 'text' (borrowed, may be NULL) say why the
 * job is not stored; ETIMEDOUT means that the result is not known. The function may add jobs.
 */
typedef void (*entry_reply_f) (void *arg, void *cookie, uint64_t id, int errnum, const char *text);

/* 'max_jobs' and 'max_bytes' limit the jobs that are held; one job is accepted in any case if no other is held. After
 * 'timeout_ms' a job is answered ETIMEDOUT. Returns NULL with errno ENOMEM.
 */
struct entry *entry_create (uint32_t max_jobs, size_t max_bytes, uint64_t timeout_ms, entry_reply_f reply, void *arg);

/* Does not answer any job: call entry_stop () before. NULL is allowed. */
void entry_destroy (struct entry *e);

/* Add a valid job that has no id yet. 'spec' (malloced, spec_size bytes) is taken over in any case, also on failure;
 * the key is copied. 'cookie' (not NULL) identifies the submitter. Returns 0, or -1
 * with errno set, and the reply function is not called:
 *   EAGAIN   a limit is reached; 'errp' has its name and value
 *   ENOMEM   out of memory
 */
int entry_add (struct entry *e, uint64_t now_ms, const struct job *job, char *spec, void *cookie, idt_error_t *errp);

/* The number of jobs that need an id now; 0 during a pause, see entry_verdicts (). */
uint32_t entry_wants (const struct entry *e);

/* Give ids to waiting jobs and put as many of them into a batch as fit. 'jobs' reads the jobs of the batch; it is
 * borrowed until the next call. Returns the batch, which is out until entry_verdicts (). Returns NULL if no job can be
 * sent now, or if ENTRY_BATCHES are out.
 */
struct entry_batch *entry_batch (struct entry *e, uint64_t now_ms, struct job_block *ids, struct jobwire_reader *jobs);

/* The 'arg' that entry_create () got; for tests. */
void *entry_batch_owner (const struct entry_batch *b);

/* Apply the verdicts of a batch that is out, exactly one for each of its jobs. The batch is invalid afterwards. If the
 * newest id of the batch was late, the ids of this rank are behind: the next entry_batch () throws away the prefetched
 * ids, and batches are made only after a pause. The first pause is ENTRY_PAUSE_MS long; each further one is twice as
 * long, up to ENTRY_PAUSE_MAX_MS, until a batch is not late.
 */
void entry_verdicts (struct entry_batch *b, uint64_t now_ms, struct jobwire_reader *verdicts);

/* entry_expire () answers ETIMEDOUT to jobs whose time is over, with the reason 'why' ("": not known), and ignores
 * later verdicts on them. It also ends a pause that is over. entry_due () returns when to call entry_expire () and
 * entry_batch () next; UINT64_MAX: never.
 */
void entry_expire (struct entry *e, uint64_t now_ms, const char *why);
uint64_t entry_due (const struct entry *e);

/* Answer all jobs with 'text': jobs that are out with ETIMEDOUT, the others with 'errnum'. */
void entry_stop (struct entry *e, int errnum, const char *text);

struct entry_stats {
    uint32_t jobs;
    size_t bytes;
    uint64_t stored, same, late, refused, forgotten, expired;
};
struct entry_stats entry_stats (const struct entry *e);

#endif /* INGEST_ENTRY_H */
