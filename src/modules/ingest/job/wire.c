/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.c - the format of batches of jobs, and of answers with their verdicts
 *
 * All numbers are big-endian.  A batch:
 *
 *   0   4  "ijb1"
 *   4   4  number of jobs, at least 1
 *   8      the jobs; each is
 *            0   8  id
 *            8   4  userid
 *           12   4  flags
 *           16   4  bytes of the jobspec
 *           20   1  urgency
 *           21   1  bytes of the key
 *           22   8  life of rank 0's module
 *           30      key, jobspec
 *
 * An answer:
 *
 *   0   4  "ijv1"
 *   4   4  number of verdicts, at least 1
 *   8      the verdicts; each is one byte, the kind, followed by
 *            SAME     8 bytes: the id
 *            LATE     8 bytes: the life
 *            REFUSED  4 bytes: errnum; 1 byte: length of the text; the text, UTF-8
 *
 * A packed batch:
 *
 *   0   4  "ijz1"
 *   4   4  bytes of the batch
 *   8      the batch, as a block of LZ4
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"
#include "modules/ingest/job/wire.h"

#define HEAD 8
#define JOB_HEAD 30
#define ID_SIZE 9 /* bytes of a verdict with an id */
#define REFUSED_HEAD 6
#define BUF_FIRST 512 /* bytes of the first allocation */

static const char batch_magic[] = "ijb1", answer_magic[] = "ijv1", packed_magic[] = "ijz1"; /* used without NUL */

static uint64_t get (const char *p, int n)
{
    return get_be ((const uint8_t *)p, n);
}

static void put (char *p, int n, uint64_t v)
{
    put_be ((uint8_t *)p, n, v);
}

/* --- writing ------------------------------------------------------------------------------------------------- */

void jobwire_buf_fini (struct jobwire_buf *b)
{
    int saved = errno;

    free (b->data);
    *b = (struct jobwire_buf){ 0 };
    errno = saved;
}

void jobwire_buf_clear (struct jobwire_buf *b)
{
    b->size = 0;
    b->count = 0;
}

void jobwire_buf_reader (const struct jobwire_buf *b, struct jobwire_reader *r)
{
    *r = (struct jobwire_reader){ 0 };
    if (b->count > 0)
        *r = (struct jobwire_reader){ .body = b->data + HEAD, .size = b->size - HEAD, .count = b->count };
}

static int grow (struct jobwire_buf *b, size_t size)
{
    size_t room = max_u64 (b->room, BUF_FIRST);

    if (size <= b->room)
        return 0;
    while (room < size)
        room *= 2;
    char *data = realloc (b->data, room);
    if (!data)
        return errset (ENOMEM);
    b->data = data;
    b->room = room;
    return 0;
}

/* Make room for 'size' bytes with 'count' more jobs or verdicts. Writes the head with the new count. Returns where the
 * bytes go, or NULL with errno ENOMEM.
 */
static char *append (struct jobwire_buf *b, const char magic[4], size_t size, uint32_t count)
{
    size_t at = max_u64 (b->size, HEAD);

    if (grow (b, at + size) < 0)
        return NULL;
    memcpy (b->data, magic, 4);
    b->count += count;
    put (b->data + 4, 4, b->count);
    b->size = at + size;
    return b->data + at;
}

static int append_body (struct jobwire_buf *b, const char magic[4], const void *body, size_t size, uint32_t count)
{
    if (count == 0)
        return 0;
    char *p = append (b, magic, size, count);
    if (!p)
        return -1;
    memcpy (p, body, size);
    return 0;
}

size_t jobwire_job_size (const struct job *job)
{
    return JOB_HEAD + job->key_size + (size_t)job->spec_size;
}

int jobwire_add_job (struct jobwire_buf *b, const struct job *job)
{
    assert (job->urgency <= JOBWIRE_URGENCY_MAX && job->key_size <= JOBWIRE_KEY_MAX
            && job->spec_size <= JOBWIRE_SPEC_MAX);
    char *p = append (b, batch_magic, jobwire_job_size (job), 1);

    if (!p)
        return -1;
    put (p, 8, job->id);
    put (p + 8, 4, job->userid);
    put (p + 12, 4, job->flags);
    put (p + 16, 4, job->spec_size);
    put (p + 20, 1, job->urgency);
    put (p + 21, 1, job->key_size);
    put (p + 22, 8, job->life);
    if (job->key_size > 0)
        memcpy (p + JOB_HEAD, job->key, job->key_size);
    if (job->spec_size > 0)
        memcpy (p + JOB_HEAD + job->key_size, job->spec, job->spec_size);
    return 0;
}

int jobwire_add_body (struct jobwire_buf *b, const void *body, size_t size, uint32_t count)
{
    return append_body (b, batch_magic, body, size, count);
}

/* The length to which a text of 'size' bytes is cut: at most JOBWIRE_TEXT_MAX, at the end of a UTF-8 character. */
static size_t cut (const char *text, size_t size)
{
    if (!text)
        return 0;
    if (size <= JOBWIRE_TEXT_MAX)
        return size;
    size = JOBWIRE_TEXT_MAX;
    while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
        size--;
    return size;
}

static int add_refused (struct jobwire_buf *b, const struct verdict *verdict)
{
    size_t size = cut (verdict->text, verdict->text_size);
    char *p = append (b, answer_magic, REFUSED_HEAD + size, 1);

    assert (verdict->errnum > 0);
    if (!p)
        return -1;
    p[0] = VERDICT_REFUSED;
    put (p + 1, 4, (uint64_t)verdict->errnum);
    put (p + 5, 1, size);
    if (size > 0) {
        memcpy (p + REFUSED_HEAD, verdict->text, size);
        utf8_clean (p + REFUSED_HEAD, size);
    }
    return 0;
}

static bool has_id (enum verdict_kind kind)
{
    return kind == VERDICT_SAME || kind == VERDICT_LATE;
}

int jobwire_add_verdict (struct jobwire_buf *b, const struct verdict *verdict)
{
    bool with_id = has_id (verdict->kind);

    assert (verdict->kind >= VERDICT_STORED && verdict->kind <= VERDICT_REFUSED);
    if (verdict->kind == VERDICT_REFUSED)
        return add_refused (b, verdict);
    char *p = append (b, answer_magic, with_id ? ID_SIZE : 1, 1);
    if (!p)
        return -1;
    p[0] = (char)verdict->kind;
    if (with_id)
        put (p + 1, 8, verdict->id);
    return 0;
}

int jobwire_add_verdicts (struct jobwire_buf *b, const void *body, size_t size, uint32_t count)
{
    return append_body (b, answer_magic, body, size, count);
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static int read_head (struct jobwire_reader *r, const char magic[4], const void *data, size_t size, idt_error_t *errp)
{
    const char *what = magic == batch_magic ? "batch" : "answer";
    const char *p = data;

    if (size < HEAD || memcmp (p, magic, 4) != 0)
        return errsetf (errp, EPROTO, "%s of %zu bytes: must begin with %.4s and a count", what, size, magic);
    uint64_t count = get (p + 4, 4);
    if (count == 0 || count > JOBWIRE_BATCH_JOBS)
        return errsetf (errp, EPROTO, "%s with a count of %llu: must be 1 to %d", what, (unsigned long long)count,
                        JOBWIRE_BATCH_JOBS);
    *r = (struct jobwire_reader){ .body = p + HEAD, .size = size - HEAD, .count = (uint32_t)count };
    return 0;
}

/* Check one job or verdict. Returns NULL and its length in '*size', or the reason why it is refused. */
typedef const char *(*measure_f) (const char *p, size_t left, size_t *size);

static const char *measure_job (const char *p, size_t left, size_t *size)
{
    if (left < JOB_HEAD)
        return "it is truncated";
    uint64_t spec_size = get (p + 16, 4), key_size = get (p + 21, 1);
    if (get (p, 8) == 0)
        return "its id must not be 0";
    if (get (p + 20, 1) > JOBWIRE_URGENCY_MAX)
        return "its urgency must be 0 to 31";
    if (key_size > JOBWIRE_KEY_MAX || spec_size > JOBWIRE_SPEC_MAX)
        return "its key or jobspec exceeds the limit";
    *size = JOB_HEAD + (size_t)key_size + (size_t)spec_size;
    return *size <= left ? NULL : "it is truncated";
}

static const char *measure_refused (const char *p, size_t left, size_t *size)
{
    if (left < REFUSED_HEAD)
        return "it is truncated";
    uint64_t errnum = get (p + 1, 4), text_size = get (p + 5, 1);
    if (errnum == 0 || errnum > INT_MAX)
        return "its errnum must be from 1 to 2147483647";
    if (text_size > JOBWIRE_TEXT_MAX)
        return "its text exceeds the limit";
    *size = REFUSED_HEAD + (size_t)text_size;
    if (*size > left)
        return "it is truncated";
    return utf8_span (p + REFUSED_HEAD, text_size) == text_size ? NULL : "its text is not UTF-8";
}

static const char *measure_verdict (const char *p, size_t left, size_t *size)
{
    if (left < 1)
        return "it is truncated";
    *size = 1;
    switch (p[0]) {
    case VERDICT_STORED:
    case VERDICT_FORGOTTEN:
        return NULL;
    case VERDICT_SAME:
    case VERDICT_LATE:
        *size = ID_SIZE;
        if (left < ID_SIZE)
            return "it is truncated";
        return get (p + 1, 8) > 0 ? NULL : "its id must not be 0";
    case VERDICT_REFUSED:
        return measure_refused (p, left, size);
    default:
        return "its kind is unknown";
    }
}

/* Check all jobs or verdicts. The last must end at the end of the bytes. */
static int check (const struct jobwire_reader *r, const char *what, measure_f measure, idt_error_t *errp)
{
    const char *p = r->body;
    size_t left = r->size, size = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        const char *wrong = measure (p, left, &size);

        if (wrong)
            return errsetf (errp, EPROTO, "%s %u of %u: %s", what, i + 1, r->count, wrong);
        p += size;
        left -= size;
    }
    if (left > 0)
        return errsetf (errp, EPROTO, "%zu bytes follow the last %s", left, what);
    return 0;
}

int jobwire_read_batch (struct jobwire_reader *r, const void *data, size_t size, idt_error_t *errp)
{
    struct jobwire_reader all;

    if (read_head (&all, batch_magic, data, size, errp) < 0)
        return -1;
    if (size > JOBWIRE_BATCH_BYTES && all.count > 1)
        return errsetf (errp, EPROTO,
                        "batch of %u jobs in %zu bytes: only a batch of a single job may have more than %u", all.count,
                        size, JOBWIRE_BATCH_BYTES);
    if (check (&all, "job", measure_job, errp) < 0)
        return -1;
    *r = all;
    return 0;
}

int jobwire_read_verdicts (struct jobwire_reader *r, const void *data, size_t size, idt_error_t *errp)
{
    struct jobwire_reader all;

    if (read_head (&all, answer_magic, data, size, errp) < 0 || check (&all, "verdict", measure_verdict, errp) < 0)
        return -1;
    *r = all;
    return 0;
}

static void skip (struct jobwire_reader *r, size_t size)
{
    r->body += size;
    r->size -= size;
    r->count--;
}

bool jobwire_next_job (struct jobwire_reader *r, struct job *job)
{
    const char *p = r->body;

    if (r->count == 0)
        return false;
    *job = (struct job){
        .id = get (p, 8),
        .userid = (uint32_t)get (p + 8, 4),
        .flags = (uint32_t)get (p + 12, 4),
        .spec_size = (uint32_t)get (p + 16, 4),
        .urgency = (uint8_t)get (p + 20, 1),
        .key_size = (uint8_t)get (p + 21, 1),
        .life = get (p + 22, 8),
    };
    job->key = job->key_size > 0 ? p + JOB_HEAD : NULL;
    job->spec = p + JOB_HEAD + job->key_size;
    skip (r, jobwire_job_size (job));
    return true;
}

bool jobwire_next_verdict (struct jobwire_reader *r, struct verdict *verdict)
{
    const char *p = r->body;
    size_t size = 1;

    if (r->count == 0)
        return false;
    *verdict = (struct verdict){ .kind = (enum verdict_kind)p[0] };
    if (has_id (verdict->kind)) {
        verdict->id = get (p + 1, 8);
        size = ID_SIZE;
    }
    else if (verdict->kind == VERDICT_REFUSED) {
        verdict->errnum = (int)get (p + 1, 4);
        verdict->text_size = (size_t)get (p + 5, 1);
        verdict->text = verdict->text_size > 0 ? p + REFUSED_HEAD : NULL;
        size = REFUSED_HEAD + verdict->text_size;
    }
    skip (r, size);
    return true;
}

void jobwire_split_verdicts (struct jobwire_reader *r, uint32_t count, struct jobwire_reader *first)
{
    struct jobwire_reader begin = *r;
    struct verdict v;

    for (uint32_t i = 0; i < count && jobwire_next_verdict (r, &v); i++)
        ;
    *first = (struct jobwire_reader){
        .body = begin.body,
        .size = begin.size - r->size,
        .count = begin.count - r->count,
    };
}

/* --- compressing ------------------------------------------------------------------------------------------------- */

#define WORTH 512         /* bytes; smaller batches are not packed */
#define KEPT (256u << 10) /* bytes of a buffer that is kept between batches */

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
    memcpy (b->data, packed_magic, 4);
    put (b->data + 4, 4, *size);
    *data = b->data;
    *size = HEAD + (size_t)n;
}

int pack_open (struct pack_buf *b, const void **data, size_t *size, idt_error_t *errp)
{
    const char *p = *data;

    if (*size < HEAD || memcmp (p, packed_magic, 4) != 0)
        return 0;
    uint64_t plain = get (p + 4, 4);
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
