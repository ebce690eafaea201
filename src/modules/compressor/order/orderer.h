/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* orderer.h - rank 0: the one order of the ranges of a document
 *
 * 1. A range gets the next number if and only if it continues its session: what was ordered before is dropped,
 *    gaps and overlaps are refused.  So a range may be sent any number of times.
 * 2. What is numbered is told to nobody before it is stored: whoever owns the orderer gives ranges above
 *    orderer_stored_seq () to the store, and says with orderer_stored () that they are there.
 * 3. The last ranges that are stored are kept for those who missed some (doc/design/compressor.md).
 */
#ifndef COMPRESSOR_ORDERER_H
#define COMPRESSOR_ORDERER_H

#include <idtree/error.h>
#include <idtree/idcomp.h>

struct orderer;

struct orderer_limits {
    uint32_t sessions; /* of a document */
    uint32_t clusters;
    uint32_t window; /* ranges kept, >= 1 */
};

/* The longest text of a range in bytes, with its NUL. */
#define ORDERER_RANGE_MAX 65536

/* Make the orderer of a document from a stored form of any session without local state (NULL: a new document), in
 * which ranges 1 ... 'seq' are finalized.  'limits' are borrowed, and may change.  Returns NULL with errno as
 * idcomp_load ().
 */
struct orderer *orderer_create (const struct orderer_limits *limits, const void *form, size_t size, int64_t seq);
void orderer_destroy (struct orderer *o); /* NULL is fine; keeps errno */

/* Order a range.  Returns 1 if it is new and has its number, 0 if it was ordered before, or -1 with errno set, 'errp'
 * filled and nothing changed:
 *   EINVAL  no range, a gap, an overlap or a collision: refused for good
 *   EDQUOT  the document is full
 *   ENOMEM
 */
int orderer_add (struct orderer *o, const struct idcomp_range *range, idt_error_t *errp);

/* The number of the newest range; of the newest one that is stored. */
int64_t orderer_seq (const struct orderer *o);
int64_t orderer_stored_seq (const struct orderer *o);

/* All ranges up to orderer_seq () are stored. */
void orderer_stored (struct orderer *o);

/* The JSON text of range number 'seq' where it is kept, else NULL.  Borrowed, valid until the next call that changes
 * 'o'.
 */
const char *orderer_range (const struct orderer *o, int64_t seq);

/* The digest (libcompressor/rewind.h) of the final space after range 'seq', in '*digest'.  Returns 0, or -1 where it is
 * not kept any more or 'seq' is beyond orderer_seq ().
 */
int orderer_digest (const struct orderer *o, int64_t seq, uint64_t *digest);

/* The compressor that finalized all ranges up to orderer_seq ().  Borrowed; look, but do not change. */
const struct idcomp *orderer_ids (const struct orderer *o);

/* The stored form at orderer_seq (), or at orderer_stored_seq (), in '*size' bytes, for the caller to free.  Returns
 * NULL with errno ENOMEM.
 */
void *orderer_save (const struct orderer *o, size_t *size);
void *orderer_save_stored (const struct orderer *o, size_t *size);

/* What idcomp_stats () of orderer_ids () were at orderer_stored_seq (). */
struct idcomp_stats orderer_stored_stats (const struct orderer *o);

#endif /* COMPRESSOR_ORDERER_H */
