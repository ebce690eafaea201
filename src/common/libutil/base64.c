/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64.c - bytes as text: each 3 bytes become 4 characters of 6 bits
 *
 * Decoding takes exactly what encoding makes, so each sequence of bytes has one text.
 */
#include <errno.h>
#include <stdint.h>

#include "libutil/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value (char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

void base64_encode (const void *data, size_t size, char *text)
{
    const uint8_t *p = data;

    for (; size > 0; p += 3, text += 4) {
        size_t n = size < 3 ? size : 3;
        uint32_t group = (uint32_t)p[0] << 16 | (n > 1 ? p[1] : 0) << 8 | (n > 2 ? p[2] : 0);
        text[0] = digits[group >> 18];
        text[1] = digits[group >> 12 & 63];
        text[2] = n > 1 ? digits[group >> 6 & 63] : '=';
        text[3] = n > 2 ? digits[group & 63] : '=';
        size -= n;
    }
    *text = '\0';
}

/* Decode 'count' (2 ... 4) digits to count - 1 bytes.  Returns the bytes, or -1: bad digit, or bits left. */
static int decode_group (const char *text, int count, uint8_t *out)
{
    uint32_t group = 0;

    for (int i = 0; i < 4; i++) {
        int value = i < count ? digit_value (text[i]) : 0;
        if (value < 0)
            return -1;
        group = group << 6 | (uint32_t)value;
    }
    for (int i = 0; i < count - 1; i++)
        out[i] = group >> (16 - 8 * i) & 0xff;
    uint32_t unused = 0xffffffU >> 8 * (count - 1);
    return count < 4 && (group & unused) ? -1 : count - 1;
}

ssize_t base64_decode (const char *text, size_t length, void *data)
{
    uint8_t *p = data;

    if (length % 4 != 0)
        goto error;
    for (size_t i = 0; i < length; i += 4) {
        int count = 4;
        if (i + 4 == length && text[i + 3] == '=')
            count = text[i + 2] == '=' ? 2 : 3;
        int n = decode_group (text + i, count, p);
        if (n < 0)
            goto error;
        p += n;
    }
    return p - (uint8_t *)data;
error:
    errno = EINVAL;
    return -1;
}
