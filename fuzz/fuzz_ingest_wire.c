/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_ingest_wire.c - batches of jobs and answers from untrusted sources
 *
 * If a batch is read without an error, its bytes must be the same when it is written again: job by job, as a whole, and
 * after packing.
 */
#include "fuzz.h"
#include "modules/ingest/job/wire.h"

static void must_be (struct jobwire_buf *b, const uint8_t *data, size_t size)
{
    must (b->size == size && memcmp (b->data, data, size) == 0);
    jobwire_buf_fini (b);
}

static void try_batch (const uint8_t *data, size_t size)
{
    struct jobwire_buf each = { 0 }, whole = { 0 };
    struct jobwire_reader r;
    struct job job;
    idt_error_t error;

    if (jobwire_read_batch (&r, data, size, &error) < 0)
        return;
    must (jobwire_add_body (&whole, r.body, r.size, r.count) == 0);
    while (jobwire_next_job (&r, &job)) {
        must (job.id > 0 && job.urgency <= JOBWIRE_URGENCY_MAX && job.key_size <= JOBWIRE_KEY_MAX);
        must (jobwire_add_job (&each, &job) == 0);
    }
    must_be (&each, data, size);
    must_be (&whole, data, size);
}

static void try_pack (const uint8_t *data, size_t size)
{
    struct pack_buf packed = { 0 }, opened = { 0 };
    const void *p = data;
    size_t n = size;
    idt_error_t error;

    if (pack_open (&opened, &p, &n, &error) < 0) {
        pack_buf_fini (&opened);
        return;
    }
    must (n <= JOBWIRE_BATCH_BYTES || p == data);
    try_batch (p, n);
    const void *plain = p;
    size_t plain_size = n;
    pack_batch (&packed, &p, &n);
    if (p != plain) {
        struct pack_buf again = { 0 };

        must (pack_open (&again, &p, &n, &error) == 0 && n == plain_size && memcmp (p, plain, n) == 0);
        pack_buf_fini (&again);
    }
    pack_buf_fini (&packed);
    pack_buf_fini (&opened);
}

/* Read two answers: the input is cut in two. */
static void try_answer (const uint8_t *data, size_t size)
{
    struct jobwire_buf each = { 0 }, parts = { 0 };
    struct jobwire_reader r, first;
    struct verdict v;
    idt_error_t error;

    if (jobwire_read_verdicts (&r, data, size, &error) < 0)
        return;
    struct jobwire_reader all = r;
    jobwire_split_verdicts (&r, size % (r.count + 1), &first);
    must (jobwire_add_verdicts (&parts, first.body, first.size, first.count) == 0
          && jobwire_add_verdicts (&parts, r.body, r.size, r.count) == 0);
    while (jobwire_next_verdict (&all, &v))
        must (jobwire_add_verdict (&each, &v) == 0);
    must_be (&each, data, size);
    must_be (&parts, data, size);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    try_pack (data, size);
    try_answer (data, size);
    return 0;
}
