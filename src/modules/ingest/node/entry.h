/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* entry.h - jobs that came in on this rank, until they are answered
 *
 * A job waits for an id, then for a place in a batch, then for its verdict.  One that is late gets a new id.  Each is
 * answered exactly once, through the reply function.
 */
#ifndef INGEST_ENTRY_H
#define INGEST_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"
#include "modules/ingest/node/block.h"

/* Out at a time: while one is stored, others are on their way.  A client may have 1 MiB unanswered: it goes in so many
 * pieces that each hop works on one.  A single job may take more than that.
 */
#define ENTRY_BATCHES 16
#define ENTRY_BATCH_BYTES (60u << 10)

#define ENTRY_PAUSE_MS 10
#define ENTRY_PAUSE_MAX_MS 160

struct entry;
struct entry_batch;

/* 'errnum' 0: it is durable under 'id', 'text' NULL; or one with its key is, and 'text' says so.  Else why not (text
 * borrowed, may be NULL); ETIMEDOUT: nobody knows.  It may add jobs and forget others.
 */
typedef void (*entry_reply_f) (void *arg, void *cookie, uint64_t id, int errnum, const char *text);

/* 'max_jobs', 'max_bytes' of jobs that are there, but one is taken where none is; 'timeout_ms': until one is answered
 * ETIMEDOUT.  Returns NULL with errno ENOMEM.
 */
struct entry *entry_create (uint32_t max_jobs, size_t max_bytes, uint64_t timeout_ms, entry_reply_f reply, void *arg);

/* Nobody is answered: entry_stop () first.  NULL is fine. */
void entry_destroy (struct entry *e);

/* Take in a valid job, without an id; its spec (malloced, spec_size bytes) is stolen in any case, its key copied.
 * 'cookie' (not NULL) is whom to answer; several jobs may have the same.  Returns 0, or -1 with errno set, and it is
 * not answered: EAGAIN with the limit in 'errp', ENOMEM.
 */
int entry_add (struct entry *e, uint64_t now_ms, const struct job *job, char *spec, void *cookie, idt_error_t *errp);

/* Nobody is to be answered for 'cookie' any more.  A job that is in no batch yet is dropped; else it goes its way. */
void entry_forget (struct entry *e, void *cookie);

/* How many want an id now: none while a pause lasts, see entry_verdicts (). */
uint32_t entry_wants (const struct entry *e);

/* Give ids to those who want one, as many as go into a batch, whose jobs are 'jobs' (borrowed until this is called
 * again).  Returns the batch, which is out until entry_verdicts (); NULL: there is none, or so many are out.
 */
struct entry_batch *entry_batch (struct entry *e, uint64_t now_ms, struct block *ids, struct jobwire_reader *jobs);

/* The 'arg' that the entry was created with. */
void *entry_batch_owner (const struct entry_batch *b);

/* The verdicts of a batch that is out, as many as it has jobs; then it is gone.  Where the newest of its ids was late,
 * ids of this rank are behind: those that are there are thrown away by entry_batch (), and the next batch is made after
 * a pause: ENTRY_PAUSE_MS, then longer, until one is not.
 */
void entry_verdicts (struct entry_batch *b, uint64_t now_ms, struct jobwire_reader *verdicts);

/* Answer ETIMEDOUT to those whose time is over, with 'why' ("": not known); what becomes of them in a batch is not
 * heard any more.  End a pause that is over.  / When to call that, and to see then whether there is a batch;
 * UINT64_MAX: never.
 */
void entry_expire (struct entry *e, uint64_t now_ms, const char *why);
uint64_t entry_due (const struct entry *e);

/* Answer all: those that are in no batch that is out with 'errnum', the others ETIMEDOUT, both with 'text'. */
void entry_stop (struct entry *e, int errnum, const char *text);

struct entry_stats {
    uint32_t jobs;
    size_t bytes;
    uint64_t stored, same, late, refused, forgotten, expired;
};
struct entry_stats entry_stats (const struct entry *e);

#endif /* INGEST_ENTRY_H */
