/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* replica.h - one session's view of a document whose ranges somebody else puts in order
 *
 * The ranges of a document are numbered 1, 2, 3, ...; a replica has finalized those up to its own number.
 * Ranges may be told to it late, twice, and out of order; it finalizes each once, in order.
 *
 * 1. What is announced is announced again, exactly as it was, until it is seen in the order.  Whoever orders
 *    drops what it has already, so that nothing is lost or ordered twice.
 * 2. At most one announcement is under way.  Ids made meanwhile form the next one.
 * 3. Ids that were handed out stay what they are, whatever is loaded.
 * 4. A replica that is told what can't be is broken: it makes no more ids, and is there to be looked at.
 *
 * It has no clock, and knows no messages: who owns it (libdocument/session.h) sends what replica_announce ()
 * gives, asks for what replica_missing () tells, and reports what came of it.
 */
#ifndef COMPRESSOR_REPLICA_H
#define COMPRESSOR_REPLICA_H

#include <inttypes.h>

#include <idtree/idcomp.h>

struct replica;

#define REPLICA_DIGEST "%016" PRIx64 /* how a digest (rewind.h) is written */
#define REPLICA_DIGEST_TEXT 17       /* with its NUL */

/* Make the replica of a new session from a stored form without local state, in which ranges 1 ... 'seq' are
 * finalized.  It belongs to the caller.  Returns NULL with errno as idcomp_load ().
 */
struct replica *replica_create (const char *session, const void *form, size_t size, int64_t seq);
void replica_destroy (struct replica *r); /* NULL is fine; keeps errno */

/* Its compressor, to make and convert ids with; what concerns ranges is the replica's.  Borrowed, valid until
 * replica_load ().
 */
struct idcomp *replica_ids (const struct replica *r);

/* The number of the last range that is finalized. */
int64_t replica_seq (const struct replica *r);

/* Tells its history from another one as long.  Write 'text' for messages. */
void replica_digest (const struct replica *r, char text[REPLICA_DIGEST_TEXT]);

/* --- what is heard -------------------------------------------------------------------------- */

/* Take range number 'seq' (>= 1) of the order.  One that is finalized already is ignored.  Returns 0, or -1
 * with errno set:
 *   EAGAIN  ranges before it are missing; it must be told again
 *   ENOMEM  the same
 *   EPIPE   the replica is broken, now or before
 */
int replica_apply (struct replica *r, int64_t seq, const struct idcomp_range *range);

/* Somebody knows of ranges up to number 'newest'. */
void replica_heard (struct replica *r, int64_t newest);

/* True if ranges after replica_seq () are missing.  They are to be asked for, and told with replica_apply () or, where
 * they are not kept any more, as a whole with replica_load ().
 */
bool replica_missing (const struct replica *r);

/* Go on from a stored form without local state, in which ranges 1 ... 'seq' are finalized.  One that is not
 * newer is ignored.  Returns 0, or -1 with errno set:
 *   ENOMEM  it must be told again
 *   EPIPE   the replica is broken, now or before
 */
int replica_load (struct replica *r, const void *form, size_t size, int64_t seq);

/* --- what is told --------------------------------------------------------------------------- */

/* The range to announce now; it counts as under way then.  Borrowed, valid until the next call with this
 * replica.  NULL: nothing, or no memory (ask again later).
 */
const struct idcomp_range *replica_announce (struct replica *r);

/* What was under way may be lost: replica_announce () gives it again. */
void replica_announce_again (struct replica *r);

/* True if all ids that were made are in the order, as seen here. */
bool replica_settled (const struct replica *r);

/* --- when it went wrong ----------------------------------------------------------------------- */

/* Declare it broken, for instance because its announcement was refused for good.  The first reason stays. */
void replica_break (struct replica *r, const char *why);

/* Why it is broken, as a sentence without full stop; NULL: it is not.  Borrowed. */
const char *replica_broken (const struct replica *r);

#endif /* COMPRESSOR_REPLICA_H */
