/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - jobs and their verdicts as bytes, on the way to rank 0 and back (doc/design/ingest.md)
 *
 * A batch is a head followed by the jobs. So a rank joins batches, and passes on parts of a batch, without decoding
 * each job. Verdicts are in the order of the jobs. All numbers are big-endian.
 */
#ifndef INGEST_WIRE_H
#define INGEST_WIRE_H

#include <idtree/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOBWIRE_KEY_MAX 64           /* bytes of a key */
#define JOBWIRE_SPEC_MAX (64u << 20) /* the most bytes of a jobspec in a batch; ingest.max-jobspec is at most 16 MiB */
#define JOBWIRE_BATCH_JOBS 4096      /* the most jobs of a batch */
#define JOBWIRE_BATCH_BYTES (2u << 20) /* the most bytes of a batch, unless it has only one job */
#define JOBWIRE_URGENCY_MAX 31
#define JOBWIRE_TEXT_MAX 200 /* bytes of a refusal's text; longer texts are cut */

/* A job. 'key' and 'spec' point to memory of the caller, or into the buffer that the job was read from. */
struct job {
    uint64_t id; /* FLUID, > 0 */
    uint32_t userid;
    uint32_t flags;   /* as in flux-core's job-ingest.submit */
    uint8_t urgency;  /* 0 ... 31 */
    uint8_t key_size; /* 0: the job has no key */
    const void *key;
    const char *spec; /* jobspec: JSON text, not terminated */
    uint32_t spec_size;
    uint64_t life; /* the life of rank 0's module that the job is meant for; 0: not known */
};

enum verdict_kind {
    VERDICT_STORED = 1, /* the job is durable under its id */
    VERDICT_SAME,       /* a job with the same key is durable under 'id' */
    VERDICT_LATE,       /* never stored under this id; send the job again with a new id, for the life 'id' */
    VERDICT_FORGOTTEN,  /* rank 0 no longer knows whether the job is stored */
    VERDICT_REFUSED,    /* never stored under this id; 'errnum' and 'text' say why */
};

struct verdict {
    enum verdict_kind kind;
    int errnum;       /* of VERDICT_REFUSED: > 0; else 0 */
    uint64_t id;      /* of VERDICT_SAME and VERDICT_LATE: > 0; else 0 */
    const char *text; /* of VERDICT_REFUSED: not terminated, may be NULL; borrowed from the buffer it was read from */
    size_t text_size;
};

/* --- writing ------------------------------------------------------------------------------------------------- */

/* A buffer that grows. A zero-initialized buffer is empty and has no head yet. */
struct jobwire_buf {
    char *data;
    size_t size, room;
    uint32_t count; /* number of jobs or verdicts */
};
void jobwire_buf_fini (struct jobwire_buf *b);

/* Empty the buffer, and keep its memory for reuse. */
void jobwire_buf_clear (struct jobwire_buf *b);

/* The number of bytes that 'job' takes in a batch. */
size_t jobwire_job_size (const struct job *job);

/* Append a job; or append 'count' encoded jobs of another batch (body, size and count of a jobwire_reader). The first
 * call writes the head. Return 0, or -1 with errno ENOMEM and the buffer unchanged.
 */
int jobwire_add_job (struct jobwire_buf *b, const struct job *job);
int jobwire_add_body (struct jobwire_buf *b, const void *body, size_t size, uint32_t count);

/* Append a verdict, or 'count' encoded verdicts of another answer. Invalid bytes in a text that is not UTF-8 are
 * replaced. Return 0, or -1 with errno ENOMEM and the buffer unchanged.
 */
int jobwire_add_verdict (struct jobwire_buf *b, const struct verdict *verdict);
int jobwire_add_verdicts (struct jobwire_buf *b, const void *body, size_t size, uint32_t count);

/* --- reading ------------------------------------------------------------------------------------------------- */

struct jobwire_reader {
    const char *body; /* the next job or verdict */
    size_t size;      /* bytes that are left */
    uint32_t count;   /* jobs or verdicts that are left */
};

/* Begin to read a batch, or an answer, that was received. These functions check all jobs or verdicts, so that reading
 * them cannot fail later. An empty batch or answer is refused. Return 0, or -1 with errno EPROTO and the reason in
 * 'errp'.
 */
int jobwire_read_batch (struct jobwire_reader *r, const void *data, size_t size, idt_error_t *errp);
int jobwire_read_verdicts (struct jobwire_reader *r, const void *data, size_t size, idt_error_t *errp);

/* Begin to read the batch or the answer in 'b', which may be empty. The reader points into 'b', and is valid until 'b'
 * changes.
 */
void jobwire_buf_reader (const struct jobwire_buf *b, struct jobwire_reader *r);

/* Read the next job, or verdict. Return false after the last one. */
bool jobwire_next_job (struct jobwire_reader *r, struct job *job);
bool jobwire_next_verdict (struct jobwire_reader *r, struct verdict *verdict);

/* Split off the first 'count' verdicts of 'r', or all if fewer are left. 'first' reads these, and 'r' continues behind
 * them.
 */
void jobwire_split_verdicts (struct jobwire_reader *r, uint32_t count, struct jobwire_reader *first);

/* --- compressing a batch for a link ------------------------------------------------------------------------------
 *
 * The jobs of one user resemble each other: each contains the user's environment. A link encrypts and copies each byte
 * that it carries, which takes longer than compressing the batch.
 */

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

/* Unpack a batch that was received. If the batch is packed, '*data' and '*size' become the unpacked batch, which lies
 * in 'b'. Otherwise they stay as they are. A packed batch may have at most JOBWIRE_BATCH_BYTES when it is unpacked. The
 * content of the batch is not checked. Returns 0, or -1 with errno set:
 *   EPROTO   the packed data is damaged or too large; 'errp' has the reason
 *   ENOMEM   out of memory
 */
int pack_open (struct pack_buf *b, const void **data, size_t *size, idt_error_t *errp);

#endif /* INGEST_WIRE_H */
