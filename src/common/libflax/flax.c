/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax.c - the layout of an id, its text, and time, order and ranges
 *
 * Invariant: bytes 0-4 are the time, bytes 5-11 the random part, both big endian.
 */
#include <math.h>
#include <string.h>

#include "flax_layout.h"
#include "libsort/radix.h"
#include "libutil/errprintf.h"
#include "libutil/id_text.h"

#define ZERO '-'

struct flax_fields flax_split (const flax_t *id)
{
    return (struct flax_fields){ .ms = get_be (id->bytes, 5), .random = get_be (id->bytes + 5, 7) };
}

int flax_join (const struct flax_fields *fields, flax_t *id)
{
    if (fields->ms > FLAX_MS_MAX)
        return errset (EOVERFLOW);
    if (fields->random > FLAX_RANDOM_MAX)
        return errset (EINVAL);
    flax_store (id, fields);
    return 0;
}

int64_t flax_unix_ms (const flax_t *id)
{
    return (int64_t)flax_split (id).ms + FLAX_EPOCH_MS;
}

int flax_ms_at (int64_t unix_ms, uint64_t *ms)
{
    uint64_t since;

    if (!flax_ms_fits (unix_ms, &since))
        return errset (EOVERFLOW);
    *ms = since;
    return 0;
}

int flax_ms_at_seconds (double unix_s, uint64_t *ms)
{
    double product = unix_s * 1000;

    if (!isfinite (unix_s))
        return errset (EINVAL);
    if (product < 0 || product > (double)FLAX_EPOCH_MS + (double)FLAX_MS_MAX + 1)
        return errset (EOVERFLOW);
    return flax_ms_at ((int64_t)product, ms);
}

int flax_compare (const flax_t *a, const flax_t *b)
{
    int order = memcmp (a, b, sizeof (*a));
    return (order > 0) - (order < 0);
}

static inline uint64_t key_cb (const void *id, int word)
{
    const flax_t *flax = id;
    return word == 0 ? get_be (flax->bytes, 8) : get_be (flax->bytes + 8, 4);
}

static void sort_cb (void *ids, size_t count)
{
    radix_sort (ids, count, sizeof (flax_t), key_cb, sort_cb);
}

void flax_sort (flax_t *ids, size_t count)
{
    sort_cb (ids, count);
}

int flax_range (int64_t from_ms, int64_t to_ms, flax_t *lower, flax_t *upper)
{
    struct flax_fields from = { 0 }, to = { 0 };

    if (flax_ms_at (from_ms, &from.ms) < 0 || flax_ms_at (to_ms, &to.ms) < 0)
        return -1;
    if (from_ms > to_ms)
        return errset (EINVAL);
    flax_join (&from, lower);
    flax_join (&to, upper);
    return 0;
}

int flax_format (const flax_t *id, char *buf, size_t size)
{
    uint64_t upper = get_be (id->bytes, 8), lower = get_be (id->bytes + 8, 4);

    if (size < FLAX_TEXT_MAX)
        return errset (ENOSPC);
    lex64_encode16 (upper >> 16, upper << 32 | lower, ZERO, buf);
    buf[FLAX_TEXT_LEN] = '\0';
    return FLAX_TEXT_LEN;
}

/* The position of the first character outside the alphabet. */
static size_t first_bad (const char *text)
{
    uint64_t bits;
    size_t good = lex64_decode (text, 8, ZERO, &bits);

    return good < 8 ? good : 8 + lex64_decode (text + 8, 8, ZERO, &bits);
}

int flax_parse (const char *text, size_t len, flax_t *id, size_t *errpos)
{
    uint64_t upper, lower;

    if (len != FLAX_TEXT_LEN)
        return errset_at (EMSGSIZE, len < FLAX_TEXT_LEN ? len : FLAX_TEXT_LEN, errpos);
    if (!lex64_decode16 (text, ZERO, &upper, &lower))
        return errset_at (EINVAL, first_bad (text), errpos);
    put_be (id->bytes, 8, upper << 16 | lower >> 32);
    put_be (id->bytes + 8, 4, lower);
    return 0;
}

static int format_cb (const void *id, const void *how, char *buf, size_t size)
{
    return flax_format (id, buf, size);
}

static int parse_cb (const char *text, size_t len, const void *how, void *id, size_t *errpos)
{
    return flax_parse (text, len, id, errpos);
}

int flax_format_lines (const flax_t *ids, size_t *count, char *buf, size_t size, size_t *len)
{
    return lines_format (ids, sizeof (*ids), count, format_cb, NULL, buf, size, len);
}

int flax_parse_lines (const char *text, size_t len, flax_t *ids, size_t *count, size_t *pos)
{
    return lines_parse (text, len, FLAX_TEXT_LEN, ids, sizeof (*ids), count, parse_cb, NULL, pos);
}

int flax_from_bytes (const void *bytes, size_t len, flax_t *id)
{
    if (len != FLAX_SIZE)
        return errset (EMSGSIZE);
    memcpy (id->bytes, bytes, FLAX_SIZE);
    return 0;
}
