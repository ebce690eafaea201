/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pack.h - compresses batches of jobs (wire.h) for a link
 *
 * The jobs of one user resemble each other: each contains the user's environment. A link encrypts and copies each byte
 * that it carries, which takes longer than compressing the batch.
 */
#ifndef INGEST_PACK_H
#define INGEST_PACK_H

#include <stddef.h>

#include <idtree/error.h>

/* A buffer that is reused for the next batch. Zero-initialize it. */
struct pack_buf {
    char *data;
    size_t room;
};
void pack_buf_fini (struct pack_buf *b);

/* Pack the batch '*data' of '*size' bytes. On success '*data' and '*size' are the packed batch, which lies in 'b' until
 * 'b' is used again. If the batch would shrink by less than an eighth, has less than 512 bytes or more than
 * JOBWIRE_BATCH_BYTES, or if memory is short, '*data' and '*size' stay as they are.
 */
void pack_batch (struct pack_buf *b, const void **data, size_t *size);

/* Unpack a batch that was received, packed or not: '*data' and '*size' are then the unpacked batch, which lies in 'b'
 * if it was packed. An unpacked batch has at most JOBWIRE_BATCH_BYTES. The content of the batch is not checked. Returns
 * 0, or -1 with errno set:
 *   EPROTO   the packed data is damaged or too large; 'errp' has the reason
 *   ENOMEM   out of memory
 */
int pack_open (struct pack_buf *b, const void **data, size_t *size, idt_error_t *errp);

#endif /* INGEST_PACK_H */
