/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lex64.h - base 64 that sorts as its value: the text of flax and uid
 *
 * Values 0 ... 63 are a character of the scheme's own for 0, then 0-9 A-Z _ a-z, which ascend in
 * ASCII. Bits are taken six at a time from the top; there is no padding.
 */
#ifndef UTIL_LEX64_H
#define UTIL_LEX64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Spread the lower 48 bits of 'bits' over 8 bytes, the upper six in the first one: split in halves
 * three times.
 */
static inline uint64_t lex64_spread (uint64_t bits)
{
    bits = (bits & UINT64_C (0xffffff000000)) << 8 | (bits & UINT64_C (0xffffff));
    bits = (bits & UINT64_C (0x00fff00000fff000)) << 4 | (bits & UINT64_C (0x00000fff00000fff));
    bits = (bits & UINT64_C (0x0fc00fc00fc00fc0)) << 2 | (bits & UINT64_C (0x003f003f003f003f));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    bits = __builtin_bswap64 (bits);
#endif
    return bits;
}

/* Write the lower 48 bits of 'upper', then of 'lower', as 16 characters; 'zero' is the one for 0.
 * All at once, a byte each: a value becomes a character by adding the gaps in ASCII before all the
 * runs of the alphabet up to its own.
 */
static inline void lex64_encode16 (uint64_t upper, uint64_t lower, char zero, char text[16])
{
    typedef int8_t bytes __attribute__ ((vector_size (16)));
    typedef uint64_t halves __attribute__ ((vector_size (16)));
    bytes v = (bytes)(halves){lex64_spread (upper), lex64_spread (lower)};
    bytes c = v + zero;

    c += (bytes)(v > 0) & (int8_t)('0' - 1 - zero);
    c += (bytes)(v > 10) & (int8_t)('A' - '9' - 1);
    c += (bytes)(v > 36) & (int8_t)('_' - 'Z' - 1);
    c += (bytes)(v > 37) & (int8_t)('a' - '_' - 1);
    memcpy (text, &c, 16);
}

/* The value of a character other than the one for 0, or 0 when it has none. */
static inline unsigned lex64_value (char c)
{
    static const uint8_t values[128] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,
        ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14,
        ['E'] = 15, ['F'] = 16, ['G'] = 17, ['H'] = 18, ['I'] = 19, ['J'] = 20, ['K'] = 21,
        ['L'] = 22, ['M'] = 23, ['N'] = 24, ['O'] = 25, ['P'] = 26, ['Q'] = 27, ['R'] = 28,
        ['S'] = 29, ['T'] = 30, ['U'] = 31, ['V'] = 32, ['W'] = 33, ['X'] = 34, ['Y'] = 35,
        ['Z'] = 36, ['_'] = 37, ['a'] = 38, ['b'] = 39, ['c'] = 40, ['d'] = 41, ['e'] = 42,
        ['f'] = 43, ['g'] = 44, ['h'] = 45, ['i'] = 46, ['j'] = 47, ['k'] = 48, ['l'] = 49,
        ['m'] = 50, ['n'] = 51, ['o'] = 52, ['p'] = 53, ['q'] = 54, ['r'] = 55, ['s'] = 56,
        ['t'] = 57, ['u'] = 58, ['v'] = 59, ['w'] = 60, ['x'] = 61, ['y'] = 62, ['z'] = 63,
    };
    return (unsigned char)c < 128 ? values[(unsigned char)c] : 0;
}

/* Read up to 10 characters as one number in '*bits'.  Returns how many are of the alphabet: less
 * than 'len' is the index of the first at fault.
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
