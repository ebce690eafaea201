/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* orderer.h - rank 0: orders the ranges of a document
 *
 * 1. A range gets the next number if and only if it begins where the last range of its session ended. A range that was
 *    ordered before is dropped; gaps and overlaps are refused. So a client may send a range any number of times.
 * 2. A numbered range must not be published before it is stored: the owner of the orderer stores the ranges above
 *    orderer_stored_seq (), and then calls orderer_stored ().
 * 3. The last stored ranges are kept for ranks that missed some (doc/design/compressor.md).
 */
#ifndef COMPRESSOR_ORDERER_H
#define COMPRESSOR_ORDERER_H

#include <idtree/error.h>
#include <idtree/idcomp.h>

struct orderer;

struct orderer_limits {
    uint32_t sessions; /* the most sessions of a document */
    uint32_t clusters;
    uint32_t window; /* number of stored ranges that are kept, at least 1 */
};

/* The most bytes of a range's text, with its NUL. */
#define ORDERER_RANGE_MAX 65536

/* Create the orderer of a document. 'form' is a stored form in which ranges 1 ... 'seq' are finalized; NULL: the
 * document is new. Any session may have saved the form, and the form has no local state. 'limits' is borrowed, and may
 * change later. Returns NULL with errno as idcomp_load () sets it.
 */
struct orderer *orderer_create (const struct orderer_limits *limits, const void *form, size_t size, int64_t seq);
void orderer_destroy (struct orderer *o); /* NULL is allowed; errno is kept */

/* Order a range. Returns 1 if the range is new and got its number, or 0 if it was ordered before. On failure nothing
 * changes; the function returns -1 with errno set and 'errp' filled:
 *   EINVAL  not a range, a gap, an overlap or a collision: the range will never be accepted
 *   EDQUOT  the document is full
 *   ENOMEM  out of memory
 */
int orderer_add (struct orderer *o, const struct idcomp_range *range, idt_error_t *errp);

/* orderer_seq () is the number of the newest range; orderer_stored_seq () is the number of the newest stored range. */
int64_t orderer_seq (const struct orderer *o);
int64_t orderer_stored_seq (const struct orderer *o);

/* Report that all ranges up to orderer_seq () are stored. */
void orderer_stored (struct orderer *o);

/* The JSON text of range 'seq', or NULL if it is not kept. Borrowed, valid until the next call that changes 'o'. */
const char *orderer_range (const struct orderer *o, int64_t seq);

/* Store the digest (compressor_digest ()) of the final space after range 'seq' in '*digest'. Returns 0, or -1 if that
 * digest is no longer kept or 'seq' is above orderer_seq ().
 */
int orderer_digest (const struct orderer *o, int64_t seq, uint64_t *digest);

/* The compressor that finalized all ranges up to orderer_seq (). Borrowed; the caller must not change it. */
const struct idcomp *orderer_ids (const struct orderer *o);

/* The stored form, of '*size' bytes. It has all ranges up to orderer_seq () or, from orderer_save_stored (), up to
 * orderer_stored_seq (). The caller frees it. Return NULL with errno ENOMEM.
 */
void *orderer_save (const struct orderer *o, size_t *size);
void *orderer_save_stored (const struct orderer *o, size_t *size);

/* idcomp_stats () of orderer_ids (), as it was when range orderer_stored_seq () was the newest one. */
struct idcomp_stats orderer_stored_stats (const struct orderer *o);

#endif /* COMPRESSOR_ORDERER_H */
