/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* utf8.c - check that text is UTF-8 (RFC 3629), and printable */
#include <stdint.h>

#include "libutil/utf8.h"

#define CONTROL_END 0x20 /* end of the C0 controls */
#define C1_BEGIN 0x7f    /* DEL and the C1 controls */
#define C1_END 0xa0

/* The size of the character at 's', which is stored in '*c'; 0 if it is not well-formed or not complete. */
static size_t character (const unsigned char *s, size_t size, uint32_t *c)
{
    static const uint32_t least[] = {
        0, 0, 0x80, 0x800, 0x10000
    }; /* smallest value of each length: shorter forms exist below (RFC 3629 3) */
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;

    if (len == 0 || len > size)
        return 0;
    *c = len == 1 ? s[0] : s[0] & (0x7f >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) ? 0 : len;
}

size_t utf8_span (const char *s, size_t size)
{
    size_t at = 0, len;
    uint32_t c;

    while (at < size && (len = character ((const unsigned char *)s + at, size - at, &c)) > 0)
        at += len;
    return at;
}

size_t utf8_span_printable (const char *s, size_t size)
{
    size_t at = 0, len;
    uint32_t c;

    while (at < size && (len = character ((const unsigned char *)s + at, size - at, &c)) > 0 && c >= CONTROL_END
           && (c < C1_BEGIN || c >= C1_END))
        at += len;
    return at;
}

void utf8_clean (char *s, size_t size)
{
    for (size_t at = utf8_span (s, size); at < size; at += utf8_span (s + at, size - at))
        s[at] = '?';
}

void utf8_clean_printable (char *s, size_t size)
{
    for (size_t at = utf8_span_printable (s, size); at < size; at += utf8_span_printable (s + at, size - at))
        s[at] = '?';
}
