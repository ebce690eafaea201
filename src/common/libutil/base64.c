/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64.c - encode bytes as text: each 3 bytes become 4 characters of 6 bits
 *
 * The decoder accepts only what the encoder writes, so each sequence of bytes has exactly one text.
 */

#include <errno.h>
#include <stdint.h>

#include "libutil/errprintf.h"
#include "libutil/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode (const void *data, size_t size, char *text)
{
    const unsigned char *p = data;
    char *out = text;

    for (; size >= 3; size -= 3, p += 3, out += 4) {
        uint32_t x = (uint32_t)p[0] << 16 | p[1] << 8 | p[2];
        out[0] = digits[x >> 18];
        out[1] = digits[x >> 12 & 63];
        out[2] = digits[x >> 6 & 63];
        out[3] = digits[x & 63];
    }
    if (size > 0) { /* one or two bytes are left */
        uint32_t x = (uint32_t)p[0] << 16 | (size > 1 ? p[1] << 8 : 0);
        out[0] = digits[x >> 18];
        out[1] = digits[x >> 12 & 63];
        out[2] = size > 1 ? digits[x >> 6 & 63] : '=';
        out[3] = '=';
        out += 4;
    }
    *out = '\0';
    return out - text;
}

/* The value of each digit, plus 1; 0 for characters that are not digits. */
static const unsigned char digit_values[256] = {
    ['A'] = 1, 2,  3,  4,  5,          6,  7,  8,  9,  10, 11,         12, 13, 14, 15,         16,
    17,        18, 19, 20, 21,         22, 23, 24, 25, 26, ['a'] = 27, 28, 29, 30, 31,         32,
    33,        34, 35, 36, 37,         38, 39, 40, 41, 42, 43,         44, 45, 46, 47,         48,
    49,        50, 51, 52, ['0'] = 53, 54, 55, 56, 57, 58, 59,         60, 61, 62, ['+'] = 63, ['/'] = 64,
};

/* The 24 bits of four digits; -1 if a character is not a digit. */
static int32_t quad (const unsigned char *p)
{
    int32_t a = digit_values[p[0]] - 1;
    int32_t b = digit_values[p[1]] - 1;
    int32_t c = digit_values[p[2]] - 1;
    int32_t d = digit_values[p[3]] - 1;

    if ((a | b | c | d) < 0)
        return -1;
    return a << 18 | b << 12 | c << 6 | d;
}

/* The number of padding characters at the end of a text whose length is a multiple of 4. */
static size_t padding (const char *text, size_t len)
{
    if (len == 0 || text[len - 1] != '=')
        return 0;
    return text[len - 2] == '=' ? 2 : 1;
}

/* Decode the last group of four characters, of which 'pad' are padding. Bits that belong to no byte must be 0. */
static int decode_tail (const unsigned char *p, size_t pad, unsigned char *out)
{
    const unsigned char group[4] = { p[0], p[1], pad > 1 ? 'A' : p[2], 'A' };
    int32_t x = quad (group);

    if (x < 0 || (x & (pad > 1 ? 0xffff : 0xff)))
        return -1;
    out[0] = x >> 16;
    if (pad == 1)
        out[1] = x >> 8 & 0xff;
    return 0;
}

ssize_t base64_decode (const char *text, size_t len, void *buf, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char *out = buf;
    size_t pad = padding (text, len % 4 == 0 ? len : 0);
    size_t bytes = len / 4 * 3 - pad;

    if (len % 4 != 0)
        return errset (EINVAL);
    if (bytes > size)
        return errset (ENOSPC);
    for (size_t whole = pad > 0 ? len - 4 : len; whole > 0; whole -= 4, p += 4, out += 3) {
        int32_t x = quad (p);
        if (x < 0)
            return errset (EINVAL);
        out[0] = x >> 16;
        out[1] = x >> 8 & 0xff;
        out[2] = x & 0xff;
    }
    return pad > 0 && decode_tail (p, pad, out) < 0 ? errset (EINVAL) : (ssize_t)bytes;
}
