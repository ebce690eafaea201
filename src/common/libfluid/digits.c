/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* digits.c - the forms that are written with ASCII digits: decimal, hex, dotted hex and base58
 *
 * Each base is a constant where it is used, so that the compiler divides by multiplying.  Leading
 * zeros (in base58 a leading 1) do not count.
 */
#include <string.h>

#include "form.h"
#include "libutil/be.h"

#define DIGITS_MAX 20 /* of 2^64 - 1 in decimal, the smallest base */

/* RFC 19, "FLUID base58 (F58) Encoding": no 0, I, O, l */
static const char base58_digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const char hex_digits[] = "0123456789abcdef";

/* Value + 1 of each digit, so that 0 is: no digit. */
static const uint8_t hex_value[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static const uint8_t base58_value[256] = {
    ['1'] = 1,  ['2'] = 2,  ['3'] = 3,  ['4'] = 4,  ['5'] = 5,  ['6'] = 6,  ['7'] = 7,  ['8'] = 8,  ['9'] = 9,
    ['A'] = 10, ['B'] = 11, ['C'] = 12, ['D'] = 13, ['E'] = 14, ['F'] = 15, ['G'] = 16, ['H'] = 17, ['J'] = 18,
    ['K'] = 19, ['L'] = 20, ['M'] = 21, ['N'] = 22, ['P'] = 23, ['Q'] = 24, ['R'] = 25, ['S'] = 26, ['T'] = 27,
    ['U'] = 28, ['V'] = 29, ['W'] = 30, ['X'] = 31, ['Y'] = 32, ['Z'] = 33, ['a'] = 34, ['b'] = 35, ['c'] = 36,
    ['d'] = 37, ['e'] = 38, ['f'] = 39, ['g'] = 40, ['h'] = 41, ['i'] = 42, ['j'] = 43, ['k'] = 44, ['m'] = 45,
    ['n'] = 46, ['o'] = 47, ['p'] = 48, ['q'] = 49, ['r'] = 50, ['s'] = 51, ['t'] = 52, ['u'] = 53, ['v'] = 54,
    ['w'] = 55, ['x'] = 56, ['y'] = 57, ['z'] = 58,
};

static inline size_t encode (fluid_t id, unsigned base, const char *digits, char *out)
{
    char text[DIGITS_MAX];
    char *end = text + sizeof (text);
    char *p = end;

    do {
        *--p = digits[id % base];
        id /= base;
    } while (id > 0);
    memcpy (out, p, end - p);
    return end - p;
}

/* The first byte from 'at' that is no digit of the base, or 'end'. */
static size_t first_bad (const char *text, size_t at, size_t end, unsigned base, const uint8_t *value)
{
    while (at < end && value[(unsigned char)text[at]] - 1U < base)
        at++;
    return at;
}

static inline int decode (const char *text, size_t at, size_t end, unsigned base, const uint8_t *value, fluid_t *id,
                          size_t *errpos)
{
    struct number n = { 0 };
    unsigned bad = at == end;

    for (size_t i = at; i < end; i++) {
        unsigned digit = value[(unsigned char)text[i]] - 1U;

        bad |= digit >= base;
        number_push (&n, base, digit);
    }
    if (bad)
        return errset_at (EINVAL, first_bad (text, at, end, base, value), errpos);
    return number_finish (&n, id, at, errpos);
}

size_t form_dec_encode (fluid_t id, char *out)
{
    return encode (id, 10, hex_digits, out);
}

int form_dec_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    return decode (text, at, end, 10, hex_value, id, errpos);
}

size_t form_hex_encode (fluid_t id, char *out)
{
    return encode (id, 16, hex_digits, out);
}

int form_hex_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    return decode (text, at, end, 16, hex_value, id, errpos);
}

size_t form_f58_encode (fluid_t id, char *out)
{
    return encode (id, 58, base58_digits, out);
}

int form_f58_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    return decode (text, at, end, 58, base58_value, id, errpos);
}

/* Four groups of four digits, the most significant first.  The digits of a group become characters all at once: what a
 * loop over single digits takes depends on where the linker puts it.
 */
size_t form_dothex_encode (fluid_t id, char *out)
{
    for (int group = 0; group < 4; group++, id <<= 16, out += 5) {
        uint32_t x = id >> 48;

        x = (x | x << 8) & 0xff00ff;
        x = (x | x << 4) & 0xf0f0f0f;
        uint32_t letters = (x + 0x6060606) >> 4 & 0x1010101;
        put_be ((uint8_t *)out, 4, x + 0x30303030 + letters * ('a' - '0' - 10));
        out[4] = '.'; /* behind the last group it does not count */
    }
    return 19;
}

/* Four groups of one to four digits. */
int form_dothex_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    fluid_t value = 0;
    size_t i = at;

    for (int group = 0; group < 4; group++) {
        unsigned part = 0;
        size_t start = i += group > 0;

        for (; i < end && i < start + 4 && hex_value[(unsigned char)text[i]] > 0; i++)
            part = part << 4 | (hex_value[(unsigned char)text[i]] - 1U);
        if (i == start || (group < 3 ? i == end || text[i] != '.' : i < end))
            return errset_at (EINVAL, i, errpos);
        value = value << 16 | part;
    }
    *id = value;
    return 0;
}
