/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_text.h - functions that the text forms of several kinds of id share: base 64 that sorts, and one id a line
 *
 * lex64, for flax and uid, is a base 64 text that sorts like its value. The character for the value 0 depends on the
 * scheme. Values 1 ... 63 are 0-9 A-Z _ a-z, which ascend in ASCII. Bits are taken six at a time from the top, without
 * padding.
 */
#ifndef UTIL_ID_TEXT_H
#define UTIL_ID_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libutil/errprintf.h"

typedef int8_t lex64_bytes __attribute__ ((vector_size (16)));
typedef uint8_t lex64_units __attribute__ ((vector_size (16)));
typedef uint32_t lex64_quads __attribute__ ((vector_size (16)));
typedef uint64_t lex64_halves __attribute__ ((vector_size (16)));

/* Split the lower 48 bits of 'upper', then the lower 48 bits of 'lower', into 16 values of 6 bits, one in each byte.
 * Each half becomes two lanes of 24 bits, and each lane four bytes. The uppermost bits are in the first byte.
 */
static inline lex64_bytes lex64_split (uint64_t upper, uint64_t lower)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    lex64_quads x = (lex64_quads)(lex64_halves){ upper << 32 | (uint32_t)(upper >> 24),
                                                 lower << 32 | (uint32_t)(lower >> 24) };
    return (lex64_bytes)((x >> 18 & 0x3f) | (x >> 4 & 0x3f00) | (x << 10 & 0x3f0000) | (x << 24 & 0x3f000000));
#else
    lex64_quads x = (lex64_quads)(lex64_halves){ upper >> 24 << 32 | (upper & 0xffffff),
                                                 lower >> 24 << 32 | (lower & 0xffffff) };
    return (lex64_bytes)((x << 6 & 0x3f000000) | (x << 4 & 0x3f0000) | (x << 2 & 0x3f00) | (x & 0x3f));
#endif
}

/* Write the lower 48 bits of 'upper', then the lower 48 bits of 'lower', as 16 characters; 'zero' is the character for
 * 0. All 16 bytes are converted in parallel. The characters of the alphabet are runs in ASCII with gaps between them:
 * the character of a value is the value plus all gaps before its run. Two independent sums shorten the chain of
 * dependencies.
 */
static inline void lex64_encode16 (uint64_t upper, uint64_t lower, char zero, char text[16])
{
    lex64_bytes v = lex64_split (upper, lower), c = v + zero;
    lex64_bytes more = (lex64_bytes)(v > 10) & (int8_t)('A' - '9' - 1);

    c += (lex64_bytes)(v > 0) & (int8_t)('0' - 1 - zero);
    more += (lex64_bytes)(v > 36) & (int8_t)('_' - 'Z' - 1);
    c += (lex64_bytes)(v > 37) & (int8_t)('a' - '_' - 1);
    c += more;
    memcpy (text, &c, 16);
}

/* The value of a character; 0 if the character is not one of those for 1 ... 63. */
static inline unsigned lex64_value (char c)
{
    static const uint8_t values[128] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,  ['8'] = 9,
        ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16, ['G'] = 17, ['H'] = 18,
        ['I'] = 19, ['J'] = 20, ['K'] = 21, ['L'] = 22, ['M'] = 23, ['N'] = 24, ['O'] = 25, ['P'] = 26, ['Q'] = 27,
        ['R'] = 28, ['S'] = 29, ['T'] = 30, ['U'] = 31, ['V'] = 32, ['W'] = 33, ['X'] = 34, ['Y'] = 35, ['Z'] = 36,
        ['_'] = 37, ['a'] = 38, ['b'] = 39, ['c'] = 40, ['d'] = 41, ['e'] = 42, ['f'] = 43, ['g'] = 44, ['h'] = 45,
        ['i'] = 46, ['j'] = 47, ['k'] = 48, ['l'] = 49, ['m'] = 50, ['n'] = 51, ['o'] = 52, ['p'] = 53, ['q'] = 54,
        ['r'] = 55, ['s'] = 56, ['t'] = 57, ['u'] = 58, ['v'] = 59, ['w'] = 60, ['x'] = 61, ['y'] = 62, ['z'] = 63,
    };
    return (unsigned char)c < 128 ? values[(unsigned char)c] : 0;
}

/* Read up to 10 characters as one number in '*bits'. Returns how many characters are in the alphabet, up to the first
 * that is not. A result below 'len' is the index of the first wrong character.
 */
static inline size_t lex64_decode (const char *text, size_t len, char zero, uint64_t *bits)
{
    uint64_t v = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        unsigned value = lex64_value (text[i]);
        if (!value && text[i] != zero)
            break;
        v = v << 6 | value;
    }
    *bits = v;
    return i;
}

/* The reverse of lex64_split. */
static inline void lex64_join (lex64_bytes values, uint64_t *upper, uint64_t *lower)
{
    /* of two neighbours of 6, then 12, then 24 bits, the first goes above the second */
    lex64_halves x = (lex64_halves)values;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    x = (x << 6 & UINT64_C (0x0fc00fc00fc00fc0)) | (x >> 8 & UINT64_C (0x003f003f003f003f));
    x = (x << 12 & UINT64_C (0x00fff00000fff000)) | (x >> 16 & UINT64_C (0x00000fff00000fff));
    x = (x << 24 & UINT64_C (0x0000ffffff000000)) | x >> 32;
#else
    x = (x >> 2 & UINT64_C (0x0fc00fc00fc00fc0)) | (x & UINT64_C (0x003f003f003f003f));
    x = (x >> 4 & UINT64_C (0x00fff00000fff000)) | (x & UINT64_C (0x00000fff00000fff));
    x = (x >> 8 & UINT64_C (0x0000ffffff000000)) | (x & UINT64_C (0x0000000000ffffff));
#endif
    *upper = x[0];
    *lower = x[1];
}

/* Read 16 characters: the first eight become 48 bits in '*upper', the others 48 bits in '*lower'. Returns false if a
 * character is not in the alphabet; lex64_decode () finds which one. All 16 bytes are converted in parallel: from each
 * character the gaps before its run are subtracted. A wrong character is detected because it is behind the end of one
 * run, but not at the beginning of the next.
 */
static inline bool lex64_decode16 (const char text[16], char zero, uint64_t *upper, uint64_t *lower)
{
    lex64_bytes c;

    memcpy (&c, text, 16);
    lex64_bytes below = '0' > c, letters = c > '9';
    lex64_bytes line = c > 'Z', small = c > '_';
    lex64_bytes bad = (below & (c != zero)) | (letters ^ (c > '@')) | (line ^ (c > '^')) | (small ^ (c > '`'))
                      | (c > 'z');

    lex64_units v = (lex64_units)c - ('0' - 1); /* unsigned: characters outside the alphabet may wrap below 0 */
    v -= (lex64_units)letters & ('A' - '9' - 1);
    v -= ((lex64_units)line & ('_' - 'Z' - 1)) + ((lex64_units)small & ('a' - '_' - 1));
    lex64_join ((lex64_bytes)(v & ~(lex64_units)below), upper, lower);
    lex64_halves any = (lex64_halves)bad;
    return (any[0] | any[1]) == 0;
}

/* --- many ids, one a line ----------------------------------------------------------------------------------------
 *
 * Both functions below are inlined into their caller, together with the function that converts one id. That function
 * gets 'how'.
 */

#define LINES_INLINE static inline __attribute__ ((always_inline))

/* Write an id with a NUL to 'buf'. Returns the length, or -1 with errno set: ENOSPC if 'size' is too small. */
typedef int (*lines_format_f) (const void *id, const void *how, char *buf, size_t size);

/* Read an id from 'len' characters. Returns 0, or -1 with errno set and the offset of the wrong character in '*errpos'.
 */
typedef int (*lines_parse_f) (const char *text, size_t len, const void *how, void *id, size_t *errpos);

/* Like fluid_format_lines (), for ids of 'id_size' bytes. */
LINES_INLINE int lines_format (const void *ids, size_t id_size, size_t *count, lines_format_f format, const void *how,
                               char *buf, size_t size, size_t *len)
{
    size_t at = 0, i = 0;
    int rc = 0;

    for (; i < *count; i++) {
        int n = format ((const char *)ids + i * id_size, how, buf + at, size - at);
        if (n >= 0 && (size_t)n + 1 >= size - at)
            n = errset (ENOSPC);
        if ((rc = n < 0 ? -1 : 0) < 0)
            break;
        at += n;
        buf[at++] = '\n';
    }
    if (size > 0)
        buf[at] = '\0';
    *count = i;
    *len = at;
    return rc;
}

/* Like fluid_parse_lines (). 'usual' is the length of most lines, or 0 if the lengths vary. */
LINES_INLINE int lines_parse (const char *text, size_t len, size_t usual, void *ids, size_t id_size, size_t *count,
                              lines_parse_f parse, const void *how, size_t *pos)
{
    size_t at = 0, i = 0, bad = 0;
    int rc = 0;

    for (; at < len; i++) {
        const char *line = text + at;
        char *id = (char *)ids + i * id_size;
        if (i == *count) {
            rc = errset (ENOSPC);
            break;
        }
        if (usual > 0 && len - at > usual && line[usual] == '\n' && parse (line, usual, how, id, &bad) == 0) {
            at += usual + 1;
            continue;
        }
        const char *end = memchr (line, '\n', len - at);
        size_t n = end ? (size_t)(end - line) : len - at;
        if ((rc = parse (line, n, how, id, &bad)) < 0) {
            at += bad;
            break;
        }
        at += n + (end != NULL);
    }
    *count = i;
    if (pos)
        *pos = at;
    return rc;
}

#endif /* UTIL_ID_TEXT_H */
