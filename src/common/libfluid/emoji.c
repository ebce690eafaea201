/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* emoji.c - a FLUID in base 576, each digit an emoji (RFC 19, "FLUID Emoji Encoding")
 *
 * Each digit is one of the 4096 code points whose UTF-8 form is F0 9F xx yy, with six bits each in xx and yy, so both
 * directions are one look-up in a table.
 */
#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "emoji_table.h"
#include "form.h"

#define EMOJI_BYTES 4
#define SAFE_BYTES (6 * EMOJI_BYTES) /* six digits are less than 2^64 */
#define POW2 (UINT64_C (1) * EMOJI_COUNT * EMOJI_COUNT)
#define POW4 (POW2 * POW2)

/* Write a digit. Returns the position of the next one, which is the same position if this is a leading zero. */
static inline char *put_digit (uint32_t digit, bool counts, char *p)
{
    uint32_t text = htole32 (emoji_text[digit]);

    memcpy (p, &text, EMOJI_BYTES);
    return p + (counts ? EMOJI_BYTES : 0);
}

/* 576^6 < 2^64 < 576^7. The digits are computed from three numbers, so that none depends on all the others. */
size_t form_emoji_encode (fluid_t id, char *out)
{
    uint32_t upper = id / POW4, middle = id % POW4 / POW2, lower = id % POW4 % POW2;
    char *p = put_digit (upper / POW2, id >= POW4 * POW2, out);

    p = put_digit (upper % POW2 / EMOJI_COUNT, id >= POW4 * EMOJI_COUNT, p);
    p = put_digit (upper % EMOJI_COUNT, id >= POW4, p);
    p = put_digit (middle / EMOJI_COUNT, id >= POW2 * EMOJI_COUNT, p);
    p = put_digit (middle % EMOJI_COUNT, id >= POW2, p);
    p = put_digit (lower / EMOJI_COUNT, id >= EMOJI_COUNT, p);
    p = put_digit (lower % EMOJI_COUNT, true, p);
    return p - out;
}

/* The value of the emoji at 's', or -1. */
static inline int emoji_find (const char *s)
{
    uint32_t x;

    memcpy (&x, s, EMOJI_BYTES);
    x = le32toh (x) ^ UINT32_C (0x80809ff0);
    unsigned point = (x >> 16 & 0x3f) << 6 | x >> 24;
    if (x & 0xc0c0ffff || point >= EMOJI_SPAN)
        return -1;
    return emoji_value[point] - 1;
}

int form_emoji_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    struct number n = { 0 };
    size_t i = at;

    do {
        int value = end - i < EMOJI_BYTES ? -1 : emoji_find (text + i);

        if (value < 0)
            return errset_at (EINVAL, i, errpos);
        if (i - at < SAFE_BYTES)
            n.value = n.value * EMOJI_COUNT + value;
        else
            number_push (&n, EMOJI_COUNT, value);
    } while ((i += EMOJI_BYTES) < end);
    return number_finish (&n, id, at, errpos);
}
