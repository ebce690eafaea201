/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_idcomp_stored.c - stored forms, base64 and ranges from untrusted sources for the id compressor
 *
 * The first byte says what the rest is. If a form is accepted in strict mode, it must be written with the same bytes. A
 * compressor that was loaded in either mode must handle all calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idcomp.h>

#define NEW "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f"
#define OTHER "f0f0f0f0-f0f0-40f0-b0f0-f0f0f0f0f0f0"

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

static void must (int good)
{
    if (!good)
        abort ();
}

/* Convert the ids around 'id' in all ways. */
static void convert (const struct idcomp *c, int64_t id)
{
    struct idcomp_uuid uuid;
    int64_t result;

    for (int64_t x = id - 1; x <= id + 1; x++) {
        idcomp_to_op (c, x, &result);
        idcomp_to_session (c, x, OTHER, &result);
        idcomp_to_session (c, x, idcomp_session (c), &result);
        if (idcomp_decompress (c, x, &uuid) == 0)
            idcomp_recompress (c, &uuid, &result);
    }
}

/* Make ids, announce and finalize them, and let other sessions do the same. */
static void use (struct idcomp *c)
{
    struct idcomp_range other = { .session = OTHER, .has_ids = true, .first = 1, .count = 5, .cluster_size = 2 };
    struct idcomp_range range;
    struct idcomp_run runs[2];
    int64_t id = 0;

    convert (c, 0);
    convert (c, idcomp_stats (c).allocated_finals);
    convert (c, -idcomp_stats (c).generated);
    idcomp_generate (c, &id);
    convert (c, id);
    idcomp_generate_runs (c, 1000, runs);
    other.first = idcomp_expected (c, OTHER);
    idcomp_finalize (c, &other);
    if (idcomp_take_unfinalized (c, &range) == 0) {
        idcomp_finalize (c, &range);
        idcomp_range_fini (&range);
    }
    if (idcomp_ghost_begin (c, "33333333-3333-4333-b333-333333333333") == 0) {
        idcomp_generate (c, &id);
        idcomp_ghost_end (c);
    }
    convert (c, idcomp_stats (c).allocated_finals);
    convert (c, id);
}

static void feed_form (const unsigned char *data, size_t size, const char *session, int flags)
{
    enum idcomp_state state = session ? IDCOMP_WITHOUT_LOCAL : IDCOMP_WITH_LOCAL;
    struct idcomp *c = idcomp_load (data, size, session, flags);

    if (!c) {
        must (idcomp_error_name (errno) || errno == ENOMEM);
        return;
    }
    if (flags == IDCOMP_STRICT) {
        unsigned char *copy = malloc (size);
        must (idcomp_save_size (c, state) == size && idcomp_save (c, state, copy, size) == (ssize_t)size);
        /* only -0 has another representation, which is written as 0 */
        for (size_t i = 0; i < size; i++)
            must (copy[i] == data[i] || (copy[i] == 0 && data[i] == 0x80 && i % 8 == 7));
        free (copy);
    }
    use (c);
    idcomp_destroy (c);
}

static void feed_base64 (const char *text, size_t size)
{
    unsigned char *data = malloc (size + 1);
    size_t pos = SIZE_MAX;
    ssize_t n = idcomp_base64_parse (text, size, data, size, &pos);

    must (n >= 0 || pos <= size);
    if (n >= 0) {
        char *again = malloc (IDCOMP_BASE64_TEXT_SIZE (n));
        must (idcomp_base64_format (data, n, again, IDCOMP_BASE64_TEXT_SIZE (n)) == (ssize_t)size
              && memcmp (text, again, size) == 0);
        free (again);
        feed_form (data, n, NEW, IDCOMP_STRICT);
    }
    free (data);
}

static void feed_range (const char *text, size_t size)
{
    struct idcomp_range range;
    struct idcomp_range again;

    size_t pos = SIZE_MAX;

    if (idcomp_range_parse (text, size, &range, &pos) < 0) {
        must (pos <= size);
        return;
    }
    size_t room = idcomp_range_format_size (&range);
    char *copy = malloc (room);
    must (idcomp_range_format (&range, copy, room) == (ssize_t)room - 1);
    must (idcomp_range_parse (copy, room - 1, &again, NULL) == 0 && again.nruns == range.nruns
          && again.count == range.count);
    struct idcomp *c = idcomp_create (NEW, IDCOMP_STRICT);
    idcomp_finalize (c, &range);
    use (c);
    idcomp_destroy (c);
    free (copy);
    idcomp_range_fini (&range);
    idcomp_range_fini (&again);
}

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned int kind = *data++;
    size--;
    switch (kind % 6) {
    case 4:
        feed_base64 ((const char *)data, size);
        break;
    case 5:
        feed_range ((const char *)data, size);
        break;
    default:
        feed_form (data, size, kind & 1 ? NEW : NULL, kind & 2 ? IDCOMP_ORIGINAL : IDCOMP_STRICT);
    }
    return 0;
}
