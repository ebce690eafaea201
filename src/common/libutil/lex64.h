/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lex64.h - base 64 that sorts as its value: the text of flax and uid
 *
 * Values 0 ... 63 are a character of the scheme's own for 0, then 0-9 A-Z _ a-z, which ascend in ASCII.
 * Bits are taken six at a time from the top; there is no padding.
 */
#ifndef UTIL_LEX64_H
#define UTIL_LEX64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LEX64_ONES UINT64_C (0x0101010101010101)

/* In each byte of 'values' (below 64): 'weight' where it is at least 'limit', else 0. */
static inline uint64_t lex64_step (uint64_t values, unsigned limit, unsigned weight)
{
    return ((values + (128 - limit) * LEX64_ONES) >> 7 & LEX64_ONES) * weight;
}

/* Write the lower 48 bits of 'bits' as 8 characters; 'zero' is the one for 0, at most '/'.
 * All 8 at once, a byte each: bits are spread in halves, and a value becomes a character by adding what
 * the runs of the alphabet that it lies behind are apart in ASCII.
 */
static inline void lex64_encode8 (uint64_t bits, char zero, char text[8])
{
    uint64_t v = (bits & UINT64_C (0xffffff000000)) << 8 | (bits & UINT64_C (0xffffff));
    v = (v & UINT64_C (0x00fff00000fff000)) << 4 | (v & UINT64_C (0x00000fff00000fff));
    v = (v & UINT64_C (0x0fc00fc00fc00fc0)) << 2 | (v & UINT64_C (0x003f003f003f003f));
    v += LEX64_ONES * (unsigned)zero + lex64_step (v, 1, '0' - 1 - (unsigned)zero)
         + lex64_step (v, 11, 'A' - '9' - 1) + lex64_step (v, 37, '_' - 'Z' - 1) + lex64_step (v, 38, 'a' - '_' - 1);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64 (v);
#endif
    memcpy (text, &v, 8);
}

/* The value of a character other than the one for 0, or 0 when it has none. */
static inline unsigned lex64_value (char c)
{
    static const uint8_t values[128] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
        ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
        ['G'] = 17, ['H'] = 18, ['I'] = 19, ['J'] = 20, ['K'] = 21, ['L'] = 22, ['M'] = 23, ['N'] = 24,
        ['O'] = 25, ['P'] = 26, ['Q'] = 27, ['R'] = 28, ['S'] = 29, ['T'] = 30, ['U'] = 31, ['V'] = 32,
        ['W'] = 33, ['X'] = 34, ['Y'] = 35, ['Z'] = 36, ['_'] = 37, ['a'] = 38, ['b'] = 39, ['c'] = 40,
        ['d'] = 41, ['e'] = 42, ['f'] = 43, ['g'] = 44, ['h'] = 45, ['i'] = 46, ['j'] = 47, ['k'] = 48,
        ['l'] = 49, ['m'] = 50, ['n'] = 51, ['o'] = 52, ['p'] = 53, ['q'] = 54, ['r'] = 55, ['s'] = 56,
        ['t'] = 57, ['u'] = 58, ['v'] = 59, ['w'] = 60, ['x'] = 61, ['y'] = 62, ['z'] = 63,
    };
    return (unsigned char)c < 128 ? values[(unsigned char)c] : 0;
}

/* Read up to 10 characters as one number in '*bits'.  Returns how many are of the alphabet: less than 'len' is
 * the index of the first at fault.
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

#endif /* UTIL_LEX64_H */
