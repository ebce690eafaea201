/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pack.h - batches of jobs (wire.h), smaller on a link
 *
 * Jobs of one user are much alike: his environment is in each.  A link encrypts and copies each byte that it carries,
 * which takes longer than to make few of them.
 */
#ifndef INGEST_PACK_H
#define INGEST_PACK_H

#include <stddef.h>

#include <idtree/error.h>

/* Bytes that are used again. */
struct pack_buf {
    char *data;
    size_t room;
};
void pack_buf_fini (struct pack_buf *b);

/* Pack the batch '*data' of '*size' bytes: then they are in 'b', until it is used again.  Where that does not pay, or
 * there is no memory, nothing changes.
 */
void pack_batch (struct pack_buf *b, const void **data, size_t *size);

/* The same back, of what came from elsewhere, packed or not.  What is unpacked takes JOBWIRE_BATCH_BYTES at most;
 * whether it is a batch was not looked at.  Returns 0, or -1 with errno set: EPROTO ('errp' says why), ENOMEM.
 */
int pack_open (struct pack_buf *b, const void **data, size_t *size, idt_error_t *errp);

#endif /* INGEST_PACK_H */
