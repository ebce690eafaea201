/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* entry.h - jobs that were submitted at this rank, until their submitters are answered
 *
 * A job waits until it gets an id and a place in a batch, and then for its verdict. A late job waits again, for a new
 * id. Each job is answered exactly once, through the reply function.
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
 * arrives. Ids are taken in increasing order. Ids that are too old are thrown away.
 */

#define JOB_BLOCK_MAX_AGE_MS 50 /* the greatest age of an id, from the request for it */
#define JOB_BLOCK_MIN_IDS 16    /* a request is for JOB_BLOCK_MIN_IDS to JOB_BLOCK_MAX_IDS ids */
#define JOB_BLOCK_MAX_IDS 4096
#define JOB_BLOCK_PAUSE_MS 50 /* the least time from a request that failed to the next request */

struct job_block_run {
    uint64_t first;
    uint32_t count;
};

struct job_block {
    struct job_block_part {
        struct job_block_run run;
        uint64_t asked_ms; /* when these ids were requested */
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

/* When to call job_block_ask () again after a request that failed. Returns UINT64_MAX if the last request did not fail.
 */
uint64_t job_block_due (const struct job_block *b);

/* job_block_filled () adds the ids of a response: 'n' runs in increasing order, above all ids that were received
 * before. Returns 0, or -1 with errno EPROTO (the runs do not increase) or ENOMEM. If it returns -1, no id is added,
 * and the request counts as failed. job_block_failed () reports that a request failed.
 */
int job_block_filled (struct job_block *b, const struct job_block_run *runs, size_t n);
void job_block_failed (struct job_block *b);

/* Take the next id. Returns 0 if no id that is young enough is available. */
uint64_t job_block_take (struct job_block *b, uint64_t now_ms);

/* Throw away all available ids, because they are too low. */
void job_block_drop (struct job_block *b);

/* --- jobs -------------------------------------------------------------------------------------------------------- */

/* ENTRY_BATCHES is the most batches that may be out at a time. Several may be out, so that the next ones are on their
 * way while rank 0 stores one. A client may have 1 MiB of unanswered jobs. Batches of ENTRY_BATCH_BYTES divide these
 * jobs, so that each hop can work on another batch. A job that is larger than ENTRY_BATCH_BYTES has a batch of its own.
 */
#define ENTRY_BATCHES 16
#define ENTRY_BATCH_BYTES (60u << 10)

#define ENTRY_PAUSE_MS 10
#define ENTRY_PAUSE_MAX_MS 160

struct entry;
struct entry_batch;

/* Answers the submitter of a job. If 'errnum' is 0 and 'text' is NULL, the job is durable under 'id'. If 'errnum' is 0
 * and 'text' is not NULL, an earlier job with the same key is durable under 'id'. Otherwise 'errnum' and 'text'
 * (borrowed, may be NULL) say why the job is not stored. ETIMEDOUT means that it is not known whether the job is
 * stored. The function may add jobs.
 */
typedef void (*entry_reply_f) (void *arg, void *cookie, uint64_t id, int errnum, const char *text);

/* 'max_jobs' and 'max_bytes' limit the jobs that are held. If no job is held, a job of any size is accepted. A job that
 * has no verdict after 'timeout_ms' is answered with ETIMEDOUT (entry_expire ()). Returns NULL with errno ENOMEM.
 */
struct entry *entry_create (uint32_t max_jobs, size_t max_bytes, uint64_t timeout_ms, entry_reply_f reply, void *arg);

/* Free 'e' without answering its jobs: call entry_stop () before. NULL is allowed. */
void entry_destroy (struct entry *e);

/* Add a valid job that has no id yet. 'spec' (malloced, spec_size bytes) is taken over in any case, also on failure;
 * the key is copied. 'cookie' (not NULL) identifies the submitter. If entry_add () fails, the reply function is not
 * called. Returns 0, or -1 with errno set:
 *   EAGAIN   a limit is reached; 'errp' has its name and value
 *   ENOMEM   out of memory
 */
int entry_add (struct entry *e, uint64_t now_ms, const struct job *job, char *spec, void *cookie, idt_error_t *errp);

/* The number of jobs that need an id now; 0 during a pause, see entry_verdicts (). */
uint32_t entry_wants (const struct entry *e);

/* Give ids to waiting jobs, and put as many of them into a batch as fit. 'jobs' becomes a reader of the batch's jobs,
 * which is valid until the next call of entry_batch (). The batch is out until entry_verdicts () is called for it.
 * Returns NULL if no job can be sent now, or if ENTRY_BATCHES are out.
 */
struct entry_batch *entry_batch (struct entry *e, uint64_t now_ms, struct job_block *ids, struct jobwire_reader *jobs);

/* The 'arg' of entry_create (); for tests. */
void *entry_batch_owner (const struct entry_batch *b);

/* Apply the verdicts of a batch that is out, exactly one for each of its jobs. The batch is invalid afterwards.
 *
 * If the newest id of the batch was late in the life of rank 0 that the batch names, the prefetched ids of this rank
 * are too low. Then the next entry_batch () throws these ids away, and no batch is made during a pause. The first pause
 * is ENTRY_PAUSE_MS long. Each further pause is twice as long as the one before, up to ENTRY_PAUSE_MAX_MS. After a
 * batch whose newest id was not late, or was late in a new life of rank 0, the next pause has ENTRY_PAUSE_MS again.
 */
void entry_verdicts (struct entry_batch *b, uint64_t now_ms, struct jobwire_reader *verdicts);

/* entry_expire () answers ETIMEDOUT to jobs that have waited for 'timeout_ms', with the reason 'why' ("": not known).
 * Later verdicts on these jobs are ignored. entry_expire () also ends a pause whose time is over. entry_due () returns
 * when to call entry_expire () and entry_batch () next; UINT64_MAX: never.
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
