/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pack.c - the format of a packed batch
 *
 * Numbers are big-endian.
 *
 *   0   4  "ijz1"
 *   4   4  bytes of the batch
 *   8      the batch, as a block of LZ4
 */
#include <errno.h>
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/be.h"
#include "libutil/errprintf.h"
#include "modules/ingest/job/pack.h"
#include "modules/ingest/job/wire.h"

#define HEAD 8
#define WORTH 512         /* bytes; smaller batches are not packed */
#define KEPT (256u << 10) /* bytes of a buffer that is kept between batches */

static const char magic[] = "ijz1"; /* used without its NUL */
#define MAGIC (sizeof (magic) - 1)

void pack_buf_fini (struct pack_buf *b)
{
    int saved = errno;

    free (b->data);
    *b = (struct pack_buf){ 0 };
    errno = saved;
}

static int need (struct pack_buf *b, size_t size)
{
    if (b->room > KEPT && size <= KEPT)
        pack_buf_fini (b);
    if (size <= b->room)
        return 0;
    pack_buf_fini (b);
    b->room = size > KEPT ? size : KEPT;
    if ((b->data = malloc (b->room)))
        return 0;
    b->room = 0;
    return errset (ENOMEM);
}

void pack_batch (struct pack_buf *b, const void **data, size_t *size)
{
    if (*size < WORTH || *size > JOBWIRE_BATCH_BYTES || need (b, *size) < 0)
        return;
    int n = LZ4_compress_default (*data, b->data + HEAD, (int)*size, (int)*size - HEAD - (int)*size / 8);
    if (n <= 0)
        return;
    memcpy (b->data, magic, MAGIC);
    put_be ((uint8_t *)b->data + 4, 4, *size);
    *data = b->data;
    *size = HEAD + (size_t)n;
}

int pack_open (struct pack_buf *b, const void **data, size_t *size, idt_error_t *errp)
{
    const char *p = *data;

    if (*size < HEAD || memcmp (p, magic, MAGIC) != 0)
        return 0;
    uint64_t plain = get_be ((const uint8_t *)p + 4, 4);
    if (plain > JOBWIRE_BATCH_BYTES)
        return errsetf (errp, EPROTO, "packed batch of %llu bytes: the limit is %u bytes unpacked",
                        (unsigned long long)plain, JOBWIRE_BATCH_BYTES);
    if (need (b, plain) < 0)
        return errsetf (errp, ENOMEM, "out of memory");
    if (LZ4_decompress_safe (p + HEAD, b->data, (int)(*size - HEAD), (int)plain) != (int)plain)
        return errsetf (errp, EPROTO, "packed batch of %llu bytes: its compressed data is damaged",
                        (unsigned long long)plain);
    *data = b->data;
    *size = plain;
    return 0;
}
