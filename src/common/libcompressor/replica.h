/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* replica.h - one session's view of a document whose ranges an orderer puts in order
 *
 * The ranges of a document are numbered 1, 2, 3, ...; a replica has finalized those up to its own number. Ranges may
 * arrive late, twice, or out of order; the replica finalizes each of them once, in order.
 *
 * 1. A range is announced again, unchanged, until it is seen in the order. The orderer drops ranges that it already
 *    has, so that no range is lost or ordered twice.
 * 2. At most one announcement is in progress. Ids that are made meanwhile form the next one.
 * 3. Ids that were handed out never change, with any form that is loaded.
 * 4. A replica that receives a contradiction is broken: it makes no further ids, and can only be inspected.
 *
 * A replica has no clock and sends no messages. Its owner (libdocument/document.h) sends the range of
 * replica_announce (), requests ranges if replica_missing (), and reports the results.
 */
#ifndef COMPRESSOR_REPLICA_H
#define COMPRESSOR_REPLICA_H

#include <inttypes.h>

#include <idtree/idcomp.h>

struct replica;

#define REPLICA_DIGEST "%016" PRIx64 /* the text form of a digest (compressor.h) */
#define REPLICA_DIGEST_TEXT 17       /* with its NUL */

/* Make the replica of a new session from a stored form without local state, in which ranges 1 ... 'seq' are finalized.
 * The caller owns it. Returns NULL with errno as idcomp_load ().
 */
struct replica *replica_create (const char *session, const void *form, size_t size, int64_t seq);
void replica_destroy (struct replica *r); /* NULL is allowed; keeps errno */

/* The replica's compressor, to make and convert ids; only the replica may take or finalize ranges. Borrowed, valid
 * until replica_load ().
 */
struct idcomp *replica_ids (const struct replica *r);

/* The number of the last range that is finalized. */
int64_t replica_seq (const struct replica *r);

/* Write the digest of the replica's history to 'text', for messages. It distinguishes this history from others of the
 * same length, except with a probability of about 2^-64.
 */
void replica_digest (const struct replica *r, char text[REPLICA_DIGEST_TEXT]);

/* --- ranges received ------------------------------------------------------------------------ */

/* Process range number 'seq' (>= 1) of the order. A range that is already finalized is ignored. Returns 0, or -1 with
 * errno set:
 *   EAGAIN  ranges before it are missing; pass it again later
 *   ENOMEM  pass it again later
 *   EPIPE   the replica is broken, now or before
 */
int replica_apply (struct replica *r, int64_t seq, const struct idcomp_range *range);

/* Ranges up to number 'newest' are known to exist. */
void replica_heard (struct replica *r, int64_t newest);

/* Whether ranges after replica_seq () are missing. The owner must request them, and pass them to replica_apply (), or
 * if the orderer no longer has them, pass a stored form to replica_load ().
 */
bool replica_missing (const struct replica *r);

/* Continue from a stored form without local state, in which ranges 1 ... 'seq' are finalized. A form that is not newer
 * is ignored. Returns 0, or -1 with errno set:
 *   ENOMEM  pass it again later
 *   EPIPE   the replica is broken, now or before
 */
int replica_load (struct replica *r, const void *form, size_t size, int64_t seq);

/* --- announcements -------------------------------------------------------------------------- */

/* The range to announce now, whose announcement is then in progress. Borrowed, valid until the next call with this
 * replica. NULL: none, or out of memory (call again later).
 */
const struct idcomp_range *replica_announce (struct replica *r);

/* The announcement may be lost: replica_announce () returns the same range again. */
void replica_announce_again (struct replica *r);

/* Whether all ids that were made have been seen in the order. */
bool replica_settled (const struct replica *r);

/* --- a broken replica ------------------------------------------------------------------------- */

/* Declare the replica broken, for example because its announcement was permanently refused. The first reason is kept.
 */
void replica_break (struct replica *r, const char *why);

/* Why the replica is broken, as a sentence without a full stop; NULL: it is not broken. Borrowed. */
const char *replica_broken (const struct replica *r);

#endif /* COMPRESSOR_REPLICA_H */
