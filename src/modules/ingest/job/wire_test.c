/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_test.c - jobs and verdicts that are written can be read again, and any other bytes are refused */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/ingest/job/wire.h"

#define ID UINT64_C (0x1122334455667788)

static struct job job_of (uint64_t id, const char *key, const char *spec)
{
    return (struct job){
        .id = id,
        .userid = 5000,
        .flags = 9,
        .urgency = 31,
        .key = key,
        .key_size = (uint8_t)strlen (key),
        .spec = spec,
        .spec_size = (uint32_t)strlen (spec),
    };
}

static bool same_job (const struct job *a, const struct job *b)
{
    return a->id == b->id && a->userid == b->userid && a->flags == b->flags && a->urgency == b->urgency
           && a->key_size == b->key_size && (a->key_size == 0 || memcmp (a->key, b->key, a->key_size) == 0)
           && a->life == b->life && a->spec_size == b->spec_size && memcmp (a->spec, b->spec, a->spec_size) == 0;
}

static void test_bytes (void)
{
    static const unsigned char batch[] = { 'i',  'j',  'b', '1', 0,  0,   0, 1, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
                                           0x77, 0x88, 0,   0,   19, 136, 0, 0, 0,    9,    0,    0,    0,    2,
                                           31,   1,    0,   0,   0,  0,   0, 0, 0,    7,    'k',  '{',  '}' };
    static const unsigned char answer[] = { 'i',  'j',  'v',  '1', 0, 0, 0, 4,    1,    3,    0,    0,
                                            0,    0,    0,    0,   0, 7, 2, 0x11, 0x22, 0x33, 0x44, 0x55,
                                            0x66, 0x77, 0x88, 5,   0, 0, 0, 28,   2,    'n',  'o' };
    struct jobwire_buf b = { 0 };
    struct job job = job_of (ID, "k", "{}");

    job.life = 7;
    tap_must (jobwire_add_job (&b, &job) == 0);
    ok (b.size == sizeof (batch) && memcmp (b.data, batch, b.size) == 0, "a batch has the documented bytes");
    ok (b.size == 8 + jobwire_job_size (&job), "a job takes as many bytes as jobwire_job_size () returns");
    jobwire_buf_clear (&b);
    tap_must (jobwire_add_verdict (&b, &(struct verdict){ .kind = VERDICT_STORED }) == 0
              && jobwire_add_verdict (&b, &(struct verdict){ .kind = VERDICT_LATE, .id = 7 }) == 0
              && jobwire_add_verdict (&b, &(struct verdict){ .kind = VERDICT_SAME, .id = ID }) == 0);
    tap_must (
        jobwire_add_verdict (&b,
                             &(struct verdict){ .kind = VERDICT_REFUSED, .errnum = 28, .text = "no", .text_size = 2 })
        == 0);
    ok (b.size == sizeof (answer) && memcmp (b.data, answer, b.size) == 0, "an answer has the documented bytes");
    jobwire_buf_fini (&b);
}

static void test_jobs (void)
{
    struct job job[3] = { job_of (1, "", "{}"), job_of (UINT64_MAX, "a key", ""), job_of (3, "k", "{\"a\":1}") };
    struct jobwire_buf a = { 0 }, b = { 0 };
    struct jobwire_reader r, own;
    struct job j;

    for (int i = 0; i < 3; i++)
        tap_must (jobwire_add_job (&a, &job[i]) == 0);
    ok (jobwire_read_batch (&r, a.data, a.size, NULL) == 0 && r.count == 3, "a batch of three jobs is read");
    tap_must (jobwire_add_body (&b, r.body, r.size, r.count) == 0
              && jobwire_add_body (&b, r.body, r.size, r.count) == 0);
    ok (jobwire_add_body (&b, NULL, 0, 0) == 0 && b.count == 6,
        "the jobs of a batch are appended to another batch twice; appending zero jobs changes nothing");
    ok (jobwire_read_batch (&r, b.data, b.size, NULL) == 0 && r.count == 6,
        "a batch to which jobs were appended is read");
    jobwire_buf_reader (&b, &own);
    ok (own.body == r.body && own.size == r.size && own.count == r.count,
        "jobwire_buf_reader () reads the same jobs from the buffer");
    bool good = true;
    for (int i = 0; i < 6; i++)
        good = jobwire_next_job (&r, &j) && same_job (&j, &job[i % 3]) && good;
    ok (good && !jobwire_next_job (&r, &j) && r.size == 0,
        "a batch to which jobs were appended has all jobs in order, and no others");

    jobwire_buf_clear (&a);
    jobwire_buf_reader (&a, &own);
    ok (!jobwire_next_job (&own, &j) && own.count == 0, "an empty buffer has no jobs");
    jobwire_buf_fini (&a);
    jobwire_buf_fini (&b);
}

static void test_verdicts (void)
{
    static const struct verdict sent[] = {
        { .kind = VERDICT_STORED },
        { .kind = VERDICT_SAME, .id = ID },
        { .kind = VERDICT_REFUSED, .errnum = EPERM },
        { .kind = VERDICT_FORGOTTEN },
        { .kind = VERDICT_REFUSED, .errnum = ENOSPC, .text = "full", .text_size = 4 },
        { .kind = VERDICT_LATE, .id = 9 },
    };
    struct jobwire_buf b = { 0 }, c = { 0 };
    struct jobwire_reader r, first;
    struct verdict v;
    bool good = true;

    for (size_t i = 0; i < 6; i++)
        tap_must (jobwire_add_verdict (&b, &sent[i]) == 0);
    tap_must (jobwire_read_verdicts (&r, b.data, b.size, NULL) == 0);
    jobwire_split_verdicts (&r, 4, &first);
    ok (first.count == 4 && r.count == 2, "an answer can be split after four of its verdicts");
    tap_must (jobwire_add_verdicts (&c, first.body, first.size, first.count) == 0
              && jobwire_add_verdicts (&c, r.body, r.size, r.count) == 0);
    ok (b.size == c.size && memcmp (b.data, c.data, b.size) == 0,
        "the two parts of a split answer are joined to the same bytes");
    for (size_t i = 0; i < 6; i++) {
        good = jobwire_next_verdict (i < 4 ? &first : &r, &v) && v.kind == sent[i].kind && v.id == sent[i].id
               && v.errnum == sent[i].errnum && v.text_size == sent[i].text_size && (!v.text) == (!sent[i].text)
               && good;
    }
    ok (good && !jobwire_next_verdict (&first, &v) && !jobwire_next_verdict (&r, &v),
        "verdicts are read as they were written");
    tap_must (jobwire_read_verdicts (&r, b.data, b.size, NULL) == 0);
    jobwire_split_verdicts (&r, 7, &first);
    ok (first.count == 6 && r.count == 0, "a split takes at most as many verdicts as the answer has left");
    jobwire_buf_fini (&b);
    jobwire_buf_fini (&c);
}

static size_t text_after (const char *text, size_t size, bool *same)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader r;
    struct verdict v = { .kind = VERDICT_REFUSED, .errnum = 1, .text = text, .text_size = size };

    tap_must (jobwire_add_verdict (&b, &v) == 0);
    tap_must (jobwire_read_verdicts (&r, b.data, b.size, NULL) == 0 && jobwire_next_verdict (&r, &v));
    *same = memcmp (v.text, text, v.text_size) == 0;
    size = v.text_size;
    jobwire_buf_fini (&b);
    return size;
}

static void test_text (void)
{
    char text[300];
    bool same;

    memset (text, 'x', sizeof (text));
    ok (text_after (text, 300, &same) == JOBWIRE_TEXT_MAX && same, "a verdict's text over the limit is cut");
    memcpy (text + 198, "\xe2\x82\xac", 3);
    ok (text_after (text, 300, &same) == 198 && same,
        "a verdict's text over the limit is cut at the end of a UTF-8 character");
    ok (text_after ("a\xff", 2, &same) == 2 && !same, "a byte that is not UTF-8 in a verdict's text is replaced");
}

/* Truncated at each byte the data is refused; so is an additional byte, and a count of 0. */
static void test_hurt (const char *what, const char *data, size_t size,
                       int (*begin) (struct jobwire_reader *, const void *, size_t, idt_error_t *))
{
    struct jobwire_reader r;
    idt_error_t err;
    int refused = 0;

    for (size_t n = 0; n < size; n++) {
        char *copy = malloc (n ? n : 1); /* of exactly n bytes: a sanitizer detects reads behind it */

        tap_must (copy != NULL);
        memcpy (copy, data, n);
        err.text[0] = '\0';
        refused += begin (&r, copy, n, &err) < 0 && errno == EPROTO && err.text[0];
        free (copy);
    }
    ok (refused == (int)size, "%s that is truncated at any byte is refused", what);
    char *copy = malloc (size + 1);
    tap_must (copy != NULL);
    memcpy (copy, data, size);
    copy[size] = 1;
    ok (begin (&r, copy, size + 1, &err) < 0 && errno == EPROTO,
        "a message with a further byte at its end is refused: %s", err.text);
    copy[7] = 0;
    ok (begin (&r, copy, 8, &err) < 0 && errno == EPROTO, "a message with a count of 0 is refused: %s", err.text);
    free (copy);
}

static int try_job_byte (size_t at, int byte)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader r;
    struct job job = job_of (1, "k", "{}");

    tap_must (jobwire_add_job (&b, &job) == 0);
    b.data[at] = (char)byte;
    int rc = jobwire_read_batch (&r, b.data, b.size, NULL);
    jobwire_buf_fini (&b);
    return rc;
}

static int try_answer (const char *data, size_t size)
{
    struct jobwire_reader r;

    return jobwire_read_verdicts (&r, data, size, NULL);
}

static void test_refused (void)
{
    struct jobwire_buf b = { 0 };
    struct job job = job_of (ID, "key", "{}");
    struct jobwire_reader r;

    tap_must (jobwire_add_job (&b, &job) == 0 && jobwire_add_job (&b, &job) == 0);
    test_hurt ("a batch", b.data, b.size, jobwire_read_batch);
    ok (jobwire_read_verdicts (&r, b.data, b.size, NULL) < 0 && errno == EPROTO, "a batch is not read as an answer");
    jobwire_buf_clear (&b);
    tap_must (jobwire_add_verdict (&b, &(struct verdict){ .kind = VERDICT_SAME, .id = ID }) == 0
              && jobwire_add_verdict (
                     &b, &(struct verdict){ .kind = VERDICT_REFUSED, .errnum = 1, .text = "abc", .text_size = 3 })
                     == 0);
    test_hurt ("an answer", b.data, b.size, jobwire_read_verdicts);
    jobwire_buf_fini (&b);

    ok (try_job_byte (15, 2) == 0, "a job of a batch is read with another id");
    ok (try_job_byte (15, 0) < 0 && errno == EPROTO, "a job with id 0 is refused");
    ok (try_job_byte (28, 32) < 0 && errno == EPROTO, "a job with an urgency of 32 is refused");
    ok (try_job_byte (29, 65) < 0 && errno == EPROTO, "a job with a key of 65 bytes is refused");
    ok (try_job_byte (24, 5) < 0 && errno == EPROTO, "a job with a jobspec of 80 MB is refused");
    ok (try_answer ("ijv1\0\0\0\1\6", 9) < 0 && try_answer ("ijv1\0\0\0\1\0", 9) < 0,
        "a verdict of an unknown kind is refused");
    ok (try_answer ("ijv1\0\0\0\1\2\0\0\0\0\0\0\0\0", 17) < 0, "the verdict SAME with id 0 is refused");
    ok (try_answer ("ijv1\0\0\0\1\5\0\0\0\0\0", 14) < 0, "the verdict REFUSED with errnum 0 is refused");
    ok (try_answer ("ijv1\0\0\0\1\5\x80\0\0\0\0", 14) < 0,
        "the verdict REFUSED with an errnum above INT_MAX is refused");
    ok (try_answer ("ijv1\0\0\0\1\5\0\0\0\1\2\xc3\x28", 16) < 0,
        "the verdict REFUSED with a text that is not UTF-8 is refused");
}

static void test_limits (void)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader r;
    struct job small = job_of (1, "", ""), big = small;
    char *spec = calloc (1, JOBWIRE_BATCH_BYTES);
    idt_error_t err;

    tap_must (spec != NULL);
    for (int i = 0; i < JOBWIRE_BATCH_JOBS; i++)
        tap_must (jobwire_add_job (&b, &small) == 0);
    ok (jobwire_read_batch (&r, b.data, b.size, NULL) == 0, "a batch of %d jobs is read", JOBWIRE_BATCH_JOBS);
    tap_must (jobwire_add_job (&b, &small) == 0);
    ok (jobwire_read_batch (&r, b.data, b.size, &err) < 0 && errno == EPROTO,
        "a batch of one job above the limit is refused: %s", err.text);
    jobwire_buf_clear (&b);
    big.spec = spec;
    big.spec_size = JOBWIRE_BATCH_BYTES;
    tap_must (jobwire_add_job (&b, &big) == 0);
    ok (jobwire_read_batch (&r, b.data, b.size, NULL) == 0,
        "a batch of a single job larger than JOBWIRE_BATCH_BYTES is read");
    tap_must (jobwire_add_job (&b, &small) == 0);
    ok (jobwire_read_batch (&r, b.data, b.size, &err) < 0 && errno == EPROTO,
        "a batch with a second job beside one larger than JOBWIRE_BATCH_BYTES is refused: %s", err.text);
    free (spec);
    jobwire_buf_fini (&b);
}

int main (void)
{
    test_bytes ();
    test_jobs ();
    test_verdicts ();
    test_text ();
    test_refused ();
    test_limits ();
    return done_testing ();
}
