/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* relay.h - batches on their way up, verdicts on their way down
 *
 * A parcel is what one child, or this rank itself, wants to be stored.  Parcels that wait go up together, few batches
 * at a time, in the order in which they came.  A batch that failed is sent again as it was,
 * before those that came later.  Each parcel that was taken in is answered exactly once, through its reply function, or
 * dropped with relay_forget () or relay_destroy ().
 */
#ifndef INGEST_RELAY_H
#define INGEST_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

/* Batches that are under way at most.  On a link many, so that each hop works on another one; at rank 0 one is stored
 * and one waits: what comes meanwhile is stored together, in one commit.
 */
#define RELAY_UNDER_WAY 16
#define RELAY_ROOT_UNDER_WAY 2
#define RELAY_BATCH_BYTES (240u << 10) /* that parcels are put together to; less than a link sends in one piece */

#define RELAY_PAUSE_MS 10 /* after the first failure; twice as long after each that follows */
#define RELAY_PAUSE_MAX_MS 1000

struct relay;
struct relay_parcel;

/* The verdicts of a parcel's jobs, in order; borrowed.  It may add parcels. */
typedef void (*relay_reply_f) (void *arg, struct jobwire_reader *verdicts);

/* 'max_bytes': of the parcels that are there; 'max_under_way': batches.  NULL with errno ENOMEM. */
struct relay *relay_create (size_t max_bytes, uint32_t max_under_way);

/* Nobody is answered.  NULL is fine; keeps errno. */
void relay_destroy (struct relay *r);

/* Take in the jobs of 'jobs' (copied), at least one.  Returns the parcel, borrowed until it is answered or forgotten,
 * or NULL with errno set:
 *   EAGAIN  with it there would be more than max_bytes; a parcel is taken where none is there, however long
 *   ENOMEM
 */
struct relay_parcel *relay_add (struct relay *r, const struct jobwire_reader *jobs, relay_reply_f reply, void *arg);

/* Who would be answered is gone.  A parcel that waits is not sent, not even again; what is under way goes on. */
void relay_forget (struct relay *r, struct relay_parcel *parcel);

/* The next batch to send: borrowed until it is answered, or has failed, and then under way as '*tag'.  false: nothing
 * waits, so many are under way, or a failed one pauses.
 */
bool relay_next (struct relay *r, uint64_t now_ms, const void **data, size_t *size, uint32_t *tag);

/* Batch 'tag', which is under way, was answered: false where the answer does not have as many verdicts as the batch
 * has jobs, and the batch failed.
 */
bool relay_answered (struct relay *r, uint64_t now_ms, uint32_t tag, struct jobwire_reader *verdicts);

/* It was not: it waits again, for RELAY_PAUSE_MS, then longer, until one is answered.  Others wait with it. */
void relay_failed (struct relay *r, uint64_t now_ms, uint32_t tag);

/* When relay_next () should be called, if nothing else happens; 0: now; UINT64_MAX: not. */
uint64_t relay_due (const struct relay *r);

struct relay_stats {
    uint32_t parcels, under_way; /* waiting; batches */
    size_t bytes;
    uint64_t batches, jobs, failed; /* sent, each time; in them; batches that failed */
};
struct relay_stats relay_stats (const struct relay *r);

#endif /* INGEST_RELAY_H */
