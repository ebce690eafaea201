/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* replica.h - one session's view of a document whose ranges an orderer puts in order
 *
 * The ranges of a document are numbered 1, 2, 3, ...; a replica has finalized those up to its own number. Ranges may
 * arrive late, twice, or out of order; the replica finalizes each of them once, in order.
 *
 * 1. A replica announces a range again, unchanged, until it sees the range in the order. The orderer drops ranges that
 *    it already has, so no range is lost or ordered twice.
 * 2. At most one announcement is in progress. Ids that are made meanwhile form the next range.
 * 3. Loading a stored form never changes an id that was handed out.
 * 4. A replica that receives a contradiction is broken: it makes no further ids, and can only be inspected.
 *
 * A replica has no clock and sends no messages. Its owner (libdocument/document.h) sends the range that
 * replica_announce () returns, requests ranges if replica_missing () returns true, and reports the results.
 */
#ifndef COMPRESSOR_REPLICA_H
#define COMPRESSOR_REPLICA_H

#include <inttypes.h>

#include <idtree/idcomp.h>

struct replica;

#define REPLICA_DIGEST "%016" PRIx64 /* the text form of a digest (compressor.h) */
#define REPLICA_DIGEST_TEXT 17       /* bytes of a digest's text with its NUL */

/* Make the replica of a new session from a stored form without local state, in which ranges 1 ... 'seq' are finalized.
 * The caller owns it. Returns NULL with errno as idcomp_load ().
 */
struct replica *replica_create (const char *session, const void *form, size_t size, int64_t seq);
void replica_destroy (struct replica *r); /* NULL is allowed; keeps errno */

/* The replica's compressor, to make and convert ids. The caller must not take or finalize ranges: only the replica
 * does. Borrowed, valid until replica_load ().
 */
struct idcomp *replica_ids (const struct replica *r);

/* The number of the last range that is finalized. */
int64_t replica_seq (const struct replica *r);

/* Write the digest of the replica's history to 'text', for messages. Two histories of the same length have different
 * digests, except with a probability of about 2^-64.
 */
void replica_digest (const struct replica *r, char text[REPLICA_DIGEST_TEXT]);

/* --- ranges received ------------------------------------------------------------------------ */

/* Process range number 'seq' (>= 1) of the order. A range that is already finalized is ignored. Returns 0, or -1 with
 * errno set:
 *   EAGAIN  ranges before it are missing; pass it again later
 *   ENOMEM  pass it again later
 *   EPIPE   the replica is broken, by this range or already before
 */
int replica_apply (struct replica *r, int64_t seq, const struct idcomp_range *range);

/* Report to the replica that ranges up to number 'newest' exist. */
void replica_heard (struct replica *r, int64_t newest);

/* Whether ranges after replica_seq () are missing. If so, the owner must request them and pass them to replica_apply
 * (). If the orderer no longer has these ranges, the owner must pass a stored form to replica_load ().
 */
bool replica_missing (const struct replica *r);

/* Continue from a stored form without local state, in which ranges 1 ... 'seq' are finalized. A form that is not newer
 * than the replica is ignored. Returns 0, or -1 with errno set:
 *   ENOMEM  pass it again later
 *   EPIPE   the replica is broken, by this form or already before
 */
int replica_load (struct replica *r, const void *form, size_t size, int64_t seq);

/* --- announcements -------------------------------------------------------------------------- */

/* Start an announcement: return the range to announce. Borrowed, valid until the next call with this replica. NULL if
 * there is no range to announce, an announcement is in progress, the replica is broken, or memory is exhausted (call
 * again later).
 */
const struct idcomp_range *replica_announce (struct replica *r);

/* Call this if the announcement may be lost: replica_announce () then returns the same range again. */
void replica_announce_again (struct replica *r);

/* Whether all ids that the session made are finalized, because the replica has seen them in the order. */
bool replica_settled (const struct replica *r);

/* --- a broken replica ------------------------------------------------------------------------- */

/* Declare the replica broken, for example because the orderer refused its announcement permanently. If the replica is
 * already broken, it keeps the first reason.
 */
void replica_break (struct replica *r, const char *why);

/* Why the replica is broken, as a sentence without a full stop; NULL: it is not broken. Borrowed. */
const char *replica_broken (const struct replica *r);

#endif /* COMPRESSOR_REPLICA_H */
