/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_relay.h - combines batches on their way up, and splits verdicts on their way down
 *
 * A parcel is a set of jobs from one child, or from this rank itself. Waiting parcels are combined into batches in the
 * order in which they arrived; a limited number of batches is under way. A batch that failed is sent again unchanged,
 * before later batches. Each parcel is answered exactly once, through its reply function, or dropped by
 * job_relay_destroy ().
 */
#ifndef INGEST_JOB_RELAY_H
#define INGEST_JOB_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

/* The most batches that may be under way to the parent, or to the store of rank 0. Many may be under way to a parent,
 * so that each hop works on another one. At rank 0 one batch is being stored and one waits. Jobs that arrive meanwhile
 * are combined, and stored in one commit.
 */
#define JOB_RELAY_UNDER_WAY 16
#define JOB_RELAY_ROOT_UNDER_WAY 2
#define JOB_RELAY_BATCH_BYTES \
    (240u << 10) /* parcels are combined up to this size, which is less than a link sends in one piece */
#define JOB_RELAY_STORE_BYTES \
    (1u << 20) /* at rank 0, if the store is a server: a commit takes milliseconds there, whatever it stores. With \
                  1,000 jobs of 1 KiB a commit it stores 1.8 times as many as with 200 */

#define JOB_RELAY_PAUSE_MS 10 /* pause after the first failure; doubled after each further one, up to the maximum */
#define JOB_RELAY_PAUSE_MAX_MS 1000

struct job_relay;

/* Gets the verdicts of a parcel's jobs, in the order of the jobs. 'verdicts' is borrowed. The function may add parcels.
 */
typedef void (*job_relay_reply_f) (void *arg, struct jobwire_reader *verdicts);

/* 'max_bytes' limits the parcels that are held, 'max_under_way' the batches under way. Returns NULL with errno ENOMEM.
 */
struct job_relay *job_relay_create (size_t max_bytes, uint32_t max_under_way);

/* Combine parcels up to 'bytes', at most JOBWIRE_BATCH_BYTES. Without this call it is JOB_RELAY_BATCH_BYTES. */
void job_relay_set_batch (struct job_relay *r, size_t bytes);

/* Does not answer any parcel. NULL is allowed; errno is kept. */
void job_relay_destroy (struct job_relay *r);

/* Add a parcel with the jobs of 'jobs' (copied), at least one. Returns 0, or -1 with errno set:
 *   EAGAIN  the parcels would exceed max_bytes; a parcel of any size is accepted if no other is held
 *   ENOMEM  out of memory
 */
int job_relay_add (struct job_relay *r, const struct jobwire_reader *jobs, job_relay_reply_f reply, void *arg);

/* Take the next batch to send. 'data' is borrowed until the batch is answered or has failed. '*tag' identifies the
 * batch while it is under way. Returns false if no batch waits, if max_under_way batches are under way, or during a
 * pause after a failure.
 */
bool job_relay_next (struct job_relay *r, uint64_t now_ms, const void **data, size_t *size, uint32_t *tag);

/* Report the answer to batch 'tag', which is under way. If the number of verdicts is not the number of jobs in the
 * batch, the batch has failed, and the function returns false. An unknown tag is ignored.
 */
bool job_relay_answered (struct job_relay *r, uint64_t now_ms, uint32_t tag, struct jobwire_reader *verdicts);

/* Report that batch 'tag' was not answered. The batch waits again. No batch is sent during a pause of
 * JOB_RELAY_PAUSE_MS. Each further failure after a pause doubles the next pause, up to JOB_RELAY_PAUSE_MAX_MS, until a
 * batch is answered.
 */
void job_relay_failed (struct job_relay *r, uint64_t now_ms, uint32_t tag);

/* When to call job_relay_next () next. A time that is over, such as 0, means now. UINT64_MAX means not before a parcel
 * is added, or a batch is answered or has failed.
 */
uint64_t job_relay_due (const struct job_relay *r);

struct job_relay_stats {
    uint32_t parcels, under_way; /* parcels that wait; batches under way */
    size_t bytes;
    uint64_t batches, jobs, failed; /* batches sent, counted each time; jobs in them; batches that failed */
};
struct job_relay_stats job_relay_stats (const struct job_relay *r);

#endif /* INGEST_JOB_RELAY_H */
