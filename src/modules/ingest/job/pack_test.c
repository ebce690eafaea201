/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pack_test.c - a packed batch unpacks to the same bytes, and damaged data is refused */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/ingest/job/wire.h"

#define JOBS 50

/* Jobs of one user, which differ only in their ids. */
static struct jobwire_buf make_batch (uint32_t n, uint32_t spec_size)
{
    struct jobwire_buf b = { 0 };
    char *spec = malloc (spec_size);

    tap_must (spec != NULL);
    for (uint32_t i = 0; i < spec_size; i++)
        spec[i] = (char)('a' + i * i % 23);
    for (uint32_t i = 0; i < n; i++)
        tap_must (jobwire_add_job (&b, &(struct job){ .id = i + 1, .spec = spec, .spec_size = spec_size }) == 0);
    free (spec);
    return b;
}

static bool is_untouched (const void *from, size_t n)
{
    struct pack_buf b = { 0 };
    const void *data = from;
    size_t size = n;

    pack_batch (&b, &data, &size);
    pack_buf_fini (&b);
    return data == from && size == n;
}

static void test_round (void)
{
    struct jobwire_buf batch = make_batch (JOBS, 300);
    struct pack_buf small = { 0 }, large = { 0 };
    const void *data = batch.data;
    size_t size = batch.size;

    pack_batch (&small, &data, &size);
    ok (data != batch.data && size < batch.size / 4, "a batch of %zu bytes is packed into %zu", batch.size, size);
    ok (pack_open (&large, &data, &size, NULL) == 0 && size == batch.size && memcmp (data, batch.data, size) == 0,
        "the packed batch unpacks to the same bytes");
    const void *plain = data;
    ok (pack_open (&small, &data, &size, NULL) == 0 && data == plain && size == batch.size,
        "a batch that is not packed is unpacked to itself");
    pack_buf_fini (&small);
    pack_buf_fini (&large);
    jobwire_buf_fini (&batch);
}

static void test_not_packed (void)
{
    struct jobwire_buf one = make_batch (1, 40), long_one = make_batch (1, JOBWIRE_BATCH_BYTES);
    struct jobwire_buf full = make_batch (1, JOBWIRE_BATCH_BYTES - 100);
    static char chance[4096];
    uint32_t x = 1;

    for (size_t i = 0; i < sizeof (chance); i++)
        chance[i] = i < sizeof (chance) / 16 ? 'x' : (char)((x = x * 1664525 + 1013904223) >> 24);
    ok (is_untouched (one.data, one.size), "a batch of only %zu bytes is not packed", one.size);
    ok (is_untouched (chance, sizeof (chance)), "a batch that would shrink by less than an eighth is not packed");
    ok (is_untouched (long_one.data, long_one.size),
        "a batch with a job larger than JOBWIRE_BATCH_BYTES is not packed");
    ok (!is_untouched (full.data, full.size), "a batch with a job just below JOBWIRE_BATCH_BYTES is packed");
    jobwire_buf_fini (&one);
    jobwire_buf_fini (&long_one);
    jobwire_buf_fini (&full);
}

/* Open a copy of exactly 'n' bytes, so that a sanitizer detects reads behind its end. */
static int open_copy (const void *packed, size_t n, idt_error_t *errp)
{
    struct pack_buf b = { 0 };
    struct jobwire_reader r;
    char *copy = malloc (n ? n : 1);
    const void *data = copy;
    size_t size = n;

    tap_must (copy != NULL);
    memcpy (copy, packed, n);
    errp->text[0] = '\0';
    int rc = pack_open (&b, &data, &size, errp);
    if (rc == 0)
        rc = jobwire_read_batch (&r, data, size, errp);
    int errnum = errno;
    pack_buf_fini (&b);
    free (copy);
    errno = errnum;
    return rc;
}

static void test_bytes (void)
{
    /* LZ4 literals: a token with their number, followed by the bytes. */
    static const char packed[] = "ijz1\0\0\0\5\x50hello";
    struct pack_buf b = { 0 };
    const void *data = packed;
    size_t size = sizeof (packed) - 1;

    ok (pack_open (&b, &data, &size, NULL) == 0 && size == 5 && memcmp (data, "hello", 5) == 0,
        "a packed batch has the documented bytes");
    pack_buf_fini (&b);
}

static void test_hurt (void)
{
    struct jobwire_buf batch = make_batch (JOBS, 300);
    struct pack_buf b = { 0 };
    const void *data = batch.data;
    size_t size = batch.size;
    idt_error_t err;
    bool told = true;
    int refused = 0;

    pack_batch (&b, &data, &size);
    char *copy = malloc (size + 1);
    tap_must (copy != NULL);
    memcpy (copy, data, size);
    for (size_t n = 0; n < size; n++)
        refused += open_copy (copy, n, &err) < 0 && errno == EPROTO && err.text[0];
    ok (refused == (int)size, "a packed batch that is truncated at any byte is refused");
    copy[size] = 0;
    ok (open_copy (copy, size + 1, &err) < 0 && errno == EPROTO,
        "a packed batch with a further byte at its end is refused: %s", err.text);
    for (size_t at = 0; at < size; at++)
        for (int bit = 0; bit < 8; bit++) {
            copy[at] ^= (char)(1 << bit);
            told = told && (open_copy (copy, size, &err) == 0 || (errno == EPROTO && err.text[0]));
            copy[at] ^= (char)(1 << bit);
        }
    ok (told, "a packed batch with any one bit changed is refused with a reason, or is still a valid batch");
    memcpy (copy + 4, "\0\x20\0\1", 4);
    ok (open_copy (copy, size, &err) < 0 && errno == EPROTO && strstr (err.text, "the limit is 2097152"),
        "a packed batch whose unpacked size is over the limit is refused: %s", err.text);
    memcpy (copy + 4, "\0\x20\0\0", 4);
    data = copy;
    ok (pack_open (&b, &data, &size, &err) < 0 && errno == EPROTO,
        "a packed batch that is unpacked to fewer bytes than its head says is refused: %s", err.text);
    free (copy);
    pack_buf_fini (&b);
    jobwire_buf_fini (&batch);
}

int main (void)
{
    test_round ();
    test_not_packed ();
    test_bytes ();
    test_hurt ();
    return done_testing ();
}
