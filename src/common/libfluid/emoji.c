/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* emoji.c - a FLUID in base 576, each digit an emoji (RFC 19, "FLUID Emoji Encoding")
 *
 * Every digit is a code point of the 4096 that UTF-8 writes F0 9F xx yy, with six bits each in xx
 * and yy, so both ways are one look-up in a table.
 */
#include <stdint.h>
#include <string.h>

#include "emoji_table.h"
#include "form.h"

#define EMOJI_BYTES 4
#define DIGITS_MAX 7 /* 576^7 > 2^64 */

size_t form_emoji_encode (fluid_t id, char *out)
{
    unsigned char text[DIGITS_MAX * EMOJI_BYTES];
    unsigned char *end = text + sizeof (text);
    unsigned char *p = end;

    do {
        unsigned point = emoji_point[id % EMOJI_COUNT];

        *--p = 0x80 | (point & 0x3f);
        *--p = 0x80 | point >> 6;
        *--p = 0x9f;
        *--p = 0xf0;
        id /= EMOJI_COUNT;
    } while (id > 0);
    memcpy (out, p, end - p);
    return end - p;
}

/* The value of the emoji at 's', or -1. */
static int emoji_find (const unsigned char *s)
{
    unsigned high = s[2] ^ 0x80U;
    unsigned low = s[3] ^ 0x80U;
    unsigned point = high << 6 | low;

    if (s[0] != 0xf0 || s[1] != 0x9f || low > 0x3f || point >= EMOJI_SPAN)
        return -1;
    return emoji_value[point] - 1;
}

int form_emoji_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    struct number n = { 0 };
    size_t i = at;

    do {
        int value = end - i < EMOJI_BYTES ? -1 : emoji_find ((const unsigned char *)text + i);

        if (value < 0)
            return errset_at (EINVAL, i, errpos);
        number_push (&n, EMOJI_COUNT, value);
    } while ((i += EMOJI_BYTES) < end);
    return number_finish (&n, id, at, errpos);
}
