/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* digits.c - the forms that are written with ASCII digits: decimal, hex, dotted hex and base58
 *
 * Each base is a constant where it is used, so that the compiler replaces divisions by multiplications. Leading zeros
 * (in base58 a leading 1) do not count.
 *
 * Digits that are processed one after the other form a chain of operations that depend on each other. Therefore numbers
 * are written and read by halves, and several digits are processed at the same time, as the bytes of a word. The first
 * digit is the lowest byte.
 */
#include <string.h>

#include "form.h"

#define ALL(c) (UINT64_C (0x0101010101010101) * (c))

/* The value of each digit, with the bit GOOD set; 0: not a digit. */
#define GOOD 0x80
#define VALUE(c, value) [c] = GOOD | (value)

static const uint8_t hex_value[256] = {
    VALUE ('0', 0),  VALUE ('1', 1),  VALUE ('2', 2),  VALUE ('3', 3),  VALUE ('4', 4),  VALUE ('5', 5),
    VALUE ('6', 6),  VALUE ('7', 7),  VALUE ('8', 8),  VALUE ('9', 9),  VALUE ('a', 10), VALUE ('b', 11),
    VALUE ('c', 12), VALUE ('d', 13), VALUE ('e', 14), VALUE ('f', 15), VALUE ('A', 10), VALUE ('B', 11),
    VALUE ('C', 12), VALUE ('D', 13), VALUE ('E', 14), VALUE ('F', 15),
};

static const uint8_t decimal_value[256] = {
    VALUE ('0', 0), VALUE ('1', 1), VALUE ('2', 2), VALUE ('3', 3), VALUE ('4', 4),
    VALUE ('5', 5), VALUE ('6', 6), VALUE ('7', 7), VALUE ('8', 8), VALUE ('9', 9),
};

/* The digits of base58 (RFC 19, "FLUID base58 (F58) Encoding"); 0, I, O and l are not among them. */
static const uint8_t base58_value[256] = {
    VALUE ('1', 0),  VALUE ('2', 1),  VALUE ('3', 2),  VALUE ('4', 3),  VALUE ('5', 4),  VALUE ('6', 5),
    VALUE ('7', 6),  VALUE ('8', 7),  VALUE ('9', 8),  VALUE ('A', 9),  VALUE ('B', 10), VALUE ('C', 11),
    VALUE ('D', 12), VALUE ('E', 13), VALUE ('F', 14), VALUE ('G', 15), VALUE ('H', 16), VALUE ('J', 17),
    VALUE ('K', 18), VALUE ('L', 19), VALUE ('M', 20), VALUE ('N', 21), VALUE ('P', 22), VALUE ('Q', 23),
    VALUE ('R', 24), VALUE ('S', 25), VALUE ('T', 26), VALUE ('U', 27), VALUE ('V', 28), VALUE ('W', 29),
    VALUE ('X', 30), VALUE ('Y', 31), VALUE ('Z', 32), VALUE ('a', 33), VALUE ('b', 34), VALUE ('c', 35),
    VALUE ('d', 36), VALUE ('e', 37), VALUE ('f', 38), VALUE ('g', 39), VALUE ('h', 40), VALUE ('i', 41),
    VALUE ('j', 42), VALUE ('k', 43), VALUE ('m', 44), VALUE ('n', 45), VALUE ('o', 46), VALUE ('p', 47),
    VALUE ('q', 48), VALUE ('r', 49), VALUE ('s', 50), VALUE ('t', 51), VALUE ('u', 52), VALUE ('v', 53),
    VALUE ('w', 54), VALUE ('x', 55), VALUE ('y', 56), VALUE ('z', 57),
};

/* A number is split into words of eight digits, counted from its end, so the first word may have fewer. Returns the
 * number of digits in the first word.
 */
static inline size_t head_digits (size_t count)
{
    return (count - 1) % 8 + 1;
}

/* The first word of 'count' digits, with zeros in front so that it has eight digits. */
static inline uint64_t get_head (const char *text, size_t count)
{
    unsigned bits = 4 * head_digits (count); /* half of the bits to shift, because one shift by 64 would be undefined */

    return get_word (text) << (64 - 2 * bits) | ALL ('0') >> bits >> bits;
}

static inline void put_word (char *out, uint64_t word)
{
    word = htole64 (word);
    memcpy (out, &word, sizeof (word));
}

/* Write a word of digits without its leading zeros, but at least one digit. Returns the number of digits written. */
static inline size_t put_head (char *out, uint64_t word, char zero)
{
    unsigned skip = __builtin_ctzll ((word ^ ALL (zero)) | UINT64_C (1) << 63) / 8;

    put_word (out, word >> 8 * skip);
    return 8 - skip;
}

/* The first byte from 'at' on that is not a digit, or 'end'. */
static size_t first_bad (const char *text, size_t at, size_t end, const uint8_t *value)
{
    while (at < end && value[(unsigned char)text[at]])
        at++;
    return at;
}

/* Read any number of digits, one after the other. */
static int decode_any (const char *text, size_t at, size_t end, unsigned base, const uint8_t *value, fluid_t *id,
                       size_t *errpos)
{
    struct number n = { 0 };
    size_t bad = first_bad (text, at, end, value);

    if (at == end || bad < end)
        return errset_at (EINVAL, bad, errpos);
    for (size_t i = at; i < end; i++)
        number_push (&n, base, value[(unsigned char)text[i]] - GOOD);
    return number_finish (&n, id, at, errpos);
}

/* --- decimal --- */

/* The eight digits of a number below 10^8. The number is split into two numbers of four digits, then into four of two,
 * then into eight of one. Each split needs one division for all lanes of a word: a multiplication by slightly more than
 * 2^20 / 100 or 2^10 / 10 and a shift, which is exact for numbers of these sizes.
 */
static inline uint64_t decimal_word (uint32_t number)
{
    uint64_t x = number / 10000 | (uint64_t)(number % 10000) << 32;
    uint64_t q = (x * 10486 >> 20) & UINT64_C (0x0000007f0000007f);

    x = q | (x - q * 100) << 16;
    q = (x * 103 >> 10) & UINT64_C (0x000f000f000f000f);
    return (q | (x - q * 10) << 8) + ALL ('0');
}

size_t form_dec_encode (fluid_t id, char *out)
{
    const uint32_t word = 100000000;
    size_t len;

    if (id < word)
        return put_head (out, decimal_word (id), '0');
    if (id / word < word)
        len = put_head (out, decimal_word (id / word), '0');
    else {
        len = put_head (out, decimal_word (id / word / word), '0');
        put_word (out + len, decimal_word (id / word % word));
        len += 8;
    }
    put_word (out + len, decimal_word (id % word));
    return len + 8;
}

/* The number that eight digits stand for. A byte is a digit if its upper four bits are 3 and stay 3 when 6 is added;
 * any other byte sets bits of '*bad'. Neighbours are joined in parallel: eight digits to four numbers, to two, to one.
 */
static inline uint64_t take_decimal (uint64_t x, uint64_t *bad)
{
    *bad |= ((x & ALL (0xf0)) | ((x + ALL (6)) & ALL (0xf0)) >> 4) ^ ALL (0x33);
    x = (x & ALL (0x0f)) * (10 << 8 | 1) >> 8 & UINT64_C (0x00ff00ff00ff00ff);
    x = x * (100 << 16 | 1) >> 16 & UINT64_C (0x0000ffff0000ffff);
    return x * (UINT64_C (10000) << 32 | 1) >> 32;
}

/* Only numbers of up to 19 digits are read by words, because they always fit in 64 bits. */
int form_dec_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    size_t count = end - at;
    uint64_t bad = 0, number;

    if (count < 8 || count > 19)
        return decode_any (text, at, end, 10, decimal_value, id, errpos);
    number = take_decimal (get_head (text + at, count), &bad);
    for (size_t i = at + head_digits (count); i < end; i += 8)
        number = number * 100000000 + take_decimal (get_word (text + i), &bad);
    if (bad)
        return decode_any (text, at, end, 10, decimal_value, id, errpos);
    *id = number;
    return 0;
}

/* --- hex --- */

static inline uint64_t hex_characters (uint64_t values)
{
    uint64_t letters = (values + ALL (6)) >> 4 & ALL (1);

    return values + ALL ('0') + letters * ('a' - '0' - 10);
}

/* The eight hex digits of 32 bits. */
static inline uint64_t hex_word (uint32_t number)
{
    uint64_t x = number;

    x = (x << 32 | x >> 16) & UINT64_C (0x0000ffff0000ffff);
    x = (x << 16 | x >> 8) & UINT64_C (0x00ff00ff00ff00ff);
    x = (x << 8 | x >> 4) & ALL (0x0f);
    return hex_characters (x);
}

size_t form_hex_encode (fluid_t id, char *out)
{
    unsigned skip = __builtin_clzll (id | 1) / 4;

    id <<= 4 * skip;
    put_word (out, hex_word (id >> 32));
    put_word (out + 8, hex_word ((uint32_t)id));
    return 16 - skip;
}

/* The number that eight hex digits stand for. Letters have the bit 0x40 set, and their value is 9 more than their lower
 * four bits. A byte is a digit if writing its value again gives the same byte, apart from the case. Any other byte sets
 * bits of '*bad'.
 */
static inline uint64_t take_hex (uint64_t x, uint64_t *bad)
{
    uint64_t letters = x >> 6 & ALL (1);
    uint64_t v = (x & ALL (0x0f)) + letters * 9;

    *bad |= (v & ALL (0xf0)) | ((x | letters << 5) ^ hex_characters (v));
    v = (v << 4 | v >> 8) & UINT64_C (0x00ff00ff00ff00ff);
    v = (v << 8 | v >> 16) & UINT64_C (0x0000ffff0000ffff);
    return (v << 16 | v >> 32) & UINT32_MAX;
}

int form_hex_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    size_t count = end - at;
    uint64_t bad = 0, number;

    if (count < 8 || count > 16)
        return decode_any (text, at, end, 16, hex_value, id, errpos);
    number = take_hex (get_head (text + at, count), &bad);
    if (count > 8)
        number = number << 32 | take_hex (get_word (text + end - 8), &bad);
    if (bad)
        return decode_any (text, at, end, 16, hex_value, id, errpos);
    *id = number;
    return 0;
}

/* --- base58 --- */

#define POW2 3364U /* powers of 58 */
#define POW4 (POW2 * POW2)
#define POW6 (UINT64_C (1) * POW4 * POW2)
#define F58_DIGITS 11 /* 58^11 > 2^64 */

/* The two digits of each number below 58^2; the first digit is the lower byte. */
#define PAIR(a, b) ((a) | (b) << 8)
#define PAIRS(a)                                                                                                 \
    PAIR (a, '1'), PAIR (a, '2'), PAIR (a, '3'), PAIR (a, '4'), PAIR (a, '5'), PAIR (a, '6'), PAIR (a, '7'),     \
        PAIR (a, '8'), PAIR (a, '9'), PAIR (a, 'A'), PAIR (a, 'B'), PAIR (a, 'C'), PAIR (a, 'D'), PAIR (a, 'E'), \
        PAIR (a, 'F'), PAIR (a, 'G'), PAIR (a, 'H'), PAIR (a, 'J'), PAIR (a, 'K'), PAIR (a, 'L'), PAIR (a, 'M'), \
        PAIR (a, 'N'), PAIR (a, 'P'), PAIR (a, 'Q'), PAIR (a, 'R'), PAIR (a, 'S'), PAIR (a, 'T'), PAIR (a, 'U'), \
        PAIR (a, 'V'), PAIR (a, 'W'), PAIR (a, 'X'), PAIR (a, 'Y'), PAIR (a, 'Z'), PAIR (a, 'a'), PAIR (a, 'b'), \
        PAIR (a, 'c'), PAIR (a, 'd'), PAIR (a, 'e'), PAIR (a, 'f'), PAIR (a, 'g'), PAIR (a, 'h'), PAIR (a, 'i'), \
        PAIR (a, 'j'), PAIR (a, 'k'), PAIR (a, 'm'), PAIR (a, 'n'), PAIR (a, 'o'), PAIR (a, 'p'), PAIR (a, 'q'), \
        PAIR (a, 'r'), PAIR (a, 's'), PAIR (a, 't'), PAIR (a, 'u'), PAIR (a, 'v'), PAIR (a, 'w'), PAIR (a, 'x'), \
        PAIR (a, 'y'), PAIR (a, 'z')
static const uint16_t f58_pair[POW2] = {
    PAIRS ('1'), PAIRS ('2'), PAIRS ('3'), PAIRS ('4'), PAIRS ('5'), PAIRS ('6'), PAIRS ('7'), PAIRS ('8'), PAIRS ('9'),
    PAIRS ('A'), PAIRS ('B'), PAIRS ('C'), PAIRS ('D'), PAIRS ('E'), PAIRS ('F'), PAIRS ('G'), PAIRS ('H'), PAIRS ('J'),
    PAIRS ('K'), PAIRS ('L'), PAIRS ('M'), PAIRS ('N'), PAIRS ('P'), PAIRS ('Q'), PAIRS ('R'), PAIRS ('S'), PAIRS ('T'),
    PAIRS ('U'), PAIRS ('V'), PAIRS ('W'), PAIRS ('X'), PAIRS ('Y'), PAIRS ('Z'), PAIRS ('a'), PAIRS ('b'), PAIRS ('c'),
    PAIRS ('d'), PAIRS ('e'), PAIRS ('f'), PAIRS ('g'), PAIRS ('h'), PAIRS ('i'), PAIRS ('j'), PAIRS ('k'), PAIRS ('m'),
    PAIRS ('n'), PAIRS ('o'), PAIRS ('p'), PAIRS ('q'), PAIRS ('r'), PAIRS ('s'), PAIRS ('t'), PAIRS ('u'), PAIRS ('v'),
    PAIRS ('w'), PAIRS ('x'), PAIRS ('y'), PAIRS ('z')
};

/* The four digits of a number below 58^4. */
static inline uint64_t f58_four (uint32_t number)
{
    return f58_pair[number / POW2] | (uint64_t)f58_pair[number % POW2] << 16;
}

/* Write up to twelve digits without leading zeros. The first eight digits, which contain all leading zeros, are in one
 * word, and the last four in another. The upper and the lower six digits are two numbers below 58^6.
 */
size_t form_f58_encode (fluid_t id, char *out)
{
    uint32_t upper = id / POW6;
    uint64_t lower = id % POW6;
    uint64_t word = f58_pair[upper / POW4] | f58_four (upper % POW4) << 16 | (uint64_t)f58_pair[lower / POW4] << 48;
    uint64_t rest = f58_four (lower % POW4);

    if (word == ALL ('1'))
        return put_head (out, (ALL ('1') & UINT32_MAX) | rest << 32, '1');
    size_t len = put_head (out, word, '1');
    put_word (out + len, rest);
    return len + 4;
}

/* The last six digits are one number, and the digits before them are another. So both can be computed in parallel. */
int form_f58_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    const unsigned char *p = (const unsigned char *)text + at, *middle = (const unsigned char *)text + end - 6;
    uint64_t upper = 0, lower = 0;
    unsigned good = GOOD;

    if (end - at < 6 || end - at > F58_DIGITS)
        return decode_any (text, at, end, 58, base58_value, id, errpos);
    for (; p < middle; p++) {
        good &= base58_value[*p];
        upper = upper * 58 + (base58_value[*p] & ~GOOD);
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; i++) {
        good &= base58_value[p[i]];
        lower = lower * 58 + (base58_value[p[i]] & ~GOOD);
    }
    if (!good || __builtin_mul_overflow (upper, POW6, &upper) || __builtin_add_overflow (upper, lower, &upper))
        return decode_any (text, at, end, 58, base58_value, id, errpos);
    *id = upper;
    return 0;
}

/* --- dotted hex --- */

/* Write four groups of four digits, the most significant first. */
size_t form_dothex_encode (fluid_t id, char *out)
{
    uint64_t upper = hex_word (id >> 32), lower = hex_word ((uint32_t)id);

    put_word (out, (upper & UINT32_MAX) | (uint64_t)'.' << 32);
    put_word (out + 5, upper >> 32 | (uint64_t)'.' << 32);
    put_word (out + 10, (lower & UINT32_MAX) | (uint64_t)'.' << 32);
    put_word (out + 15, lower >> 32);
    return 19;
}

/* Read a text with four digits in each group, as form_dothex_encode () writes it. */
static bool dothex_decode_full (const char *p, fluid_t *id)
{
    uint64_t a = get_word (p), b = get_word (p + 5), c = get_word (p + 10), d = get_word (p + 11);
    uint64_t bad = (a ^ ALL ('.')) >> 32 & 0xff;

    bad |= ((b ^ ALL ('.')) | (c ^ ALL ('.'))) >> 32 & 0xff;
    uint64_t upper = take_hex ((a & UINT32_MAX) | b << 32, &bad);
    uint64_t lower = take_hex ((c & UINT32_MAX) | d >> 32 << 32, &bad);
    if (!bad)
        *id = upper << 32 | lower;
    return !bad;
}

/* Read four groups of one to four digits. */
int form_dothex_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    fluid_t value = 0;
    size_t i = at;

    if (end - at == 19 && dothex_decode_full (text + at, id))
        return 0;

    for (int group = 0; group < 4; group++) {
        unsigned part = 0;
        size_t start = i += group > 0;

        for (; i < end && i < start + 4 && hex_value[(unsigned char)text[i]]; i++)
            part = part << 4 | (hex_value[(unsigned char)text[i]] - GOOD);
        if (i == start || (group < 3 ? i == end || text[i] != '.' : i < end))
            return errset_at (EINVAL, i, errpos);
        value = value << 16 | part;
    }
    *id = value;
    return 0;
}
