/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - jobs on their way to rank 0, and what becomes of them, as bytes (doc/design/ingest.md)
 *
 * A batch is a head and jobs, one after the other: so batches are put together, and parts of one sent on, without a
 * look at each job.  Verdicts come in the order of the jobs.  All numbers are big-endian.
 */
#ifndef INGEST_WIRE_H
#define INGEST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#define JOBWIRE_KEY_MAX 64             /* bytes of a key */
#define JOBWIRE_SPEC_MAX (64u << 20)   /* bytes of a jobspec, whatever ingest.max-jobspec says */
#define JOBWIRE_BATCH_JOBS 4096        /* jobs of a batch at most */
#define JOBWIRE_BATCH_BYTES (2u << 20) /* ... and bytes, but a single job may take more */
#define JOBWIRE_URGENCY_MAX 31
#define JOBWIRE_TEXT_MAX 200 /* bytes of a refusal's text; longer ones are cut */

/* A job.  What it points to is the caller's, or lies in what it was read from. */
struct job {
    uint64_t id; /* FLUID, > 0 */
    uint32_t userid;
    uint32_t flags;   /* of flux-core's job-ingest.submit */
    uint8_t urgency;  /* 0 ... 31 */
    uint8_t key_size; /* 0: it has none */
    const void *key;
    const char *spec; /* jobspec: JSON text, not terminated */
    uint32_t spec_size;
    uint64_t life; /* of rank 0's module, to which it is sent; 0: not known */
};

enum verdict_kind {
    VERDICT_STORED = 1, /* it is durable under its id */
    VERDICT_SAME,       /* one with its key is, under 'id' */
    VERDICT_LATE,       /* it is not, and never will be under this id: it wants another, for life 'id' */
    VERDICT_FORGOTTEN,  /* nobody knows any more */
    VERDICT_REFUSED,    /* it is not, and never will be under this id: errnum, text */
};

struct verdict {
    enum verdict_kind kind;
    int errnum;       /* VERDICT_REFUSED: > 0; else 0 */
    uint64_t id;      /* VERDICT_SAME, VERDICT_LATE: > 0; else 0 */
    const char *text; /* VERDICT_REFUSED: not terminated, may be NULL; lies in what it was read from */
    size_t text_size;
};

/* --- writing ------------------------------------------------------------------------------------------------- */

/* Bytes that grow.  Zero is an empty one: it has no head yet. */
struct jobwire_buf {
    char *data;
    size_t size, room;
    uint32_t count; /* jobs, or verdicts */
};
void jobwire_buf_fini (struct jobwire_buf *b);

/* Empty it, and keep what it holds for the next. */
void jobwire_buf_clear (struct jobwire_buf *b);

/* How many bytes 'job' takes in a batch. */
size_t jobwire_job_size (const struct job *job);

/* Append a job / jobs as they are in another batch (body and count of jobwire_reader).  The head is made at the first.
 * Return 0, or -1 with errno ENOMEM and nothing changed.
 */
int jobwire_add_job (struct jobwire_buf *b, const struct job *job);
int jobwire_add_body (struct jobwire_buf *b, const void *body, size_t size, uint32_t count);

/* Append a verdict / 'count' verdicts as they are in another answer.  A text that is not UTF-8 is made so. */
int jobwire_add_verdict (struct jobwire_buf *b, const struct verdict *verdict);
int jobwire_add_verdicts (struct jobwire_buf *b, const void *body, size_t size, uint32_t count);

/* Take out 'size' bytes at 'at' that are 'count' jobs.  What is behind them moves up. */
void jobwire_cut (struct jobwire_buf *b, size_t at, size_t size, uint32_t count);

/* --- reading ------------------------------------------------------------------------------------------------- */

struct jobwire_reader {
    const char *body; /* behind the head, or behind what was read */
    size_t size;      /* bytes from there on */
    uint32_t count;   /* jobs or verdicts from there on */
};

/* Begin to read a batch / an answer that came from elsewhere.  All of it is checked first: what follows cannot fail.
 * An empty one is none.  Returns 0, or -1 with errno EPROTO and what is wrong in 'errp'.
 */
int jobwire_read_batch (struct jobwire_reader *r, const void *data, size_t size, idt_error_t *errp);
int jobwire_read_verdicts (struct jobwire_reader *r, const void *data, size_t size, idt_error_t *errp);

/* Begin to read what was written here, which may be empty; borrowed until 'b' changes. */
void jobwire_buf_reader (const struct jobwire_buf *b, struct jobwire_reader *r);

/* Take the next.  Returns false after the last. */
bool jobwire_next_job (struct jobwire_reader *r, struct job *job);
bool jobwire_next_verdict (struct jobwire_reader *r, struct verdict *verdict);

/* Split off the first 'count' verdicts (at most those that are there) into 'first'. */
void jobwire_split_verdicts (struct jobwire_reader *r, uint32_t count, struct jobwire_reader *first);

#endif /* INGEST_WIRE_H */
