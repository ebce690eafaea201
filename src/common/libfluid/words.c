/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* words.c - a FLUID as six words of mnemonicode (RFC 19, "FLUID Mnemonic (words) Encoding")
 *
 * Each half of 32 bits, the low one first, is three digits of base 1626, the least significant first: "a-b-c--d-e-f".
 * Each word has one value. 1626^3 is slightly more than 2^32; triplets of a larger value are out of range.
 */
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "form.h"
#include "words_table.h"

struct word_cursor {
    const char *p;
    const char *end;
};

/* Up to eight letters as a number whose lowest byte is the first letter; a word has at most seven. */
static inline uint64_t get_letters (const char *p)
{
    uint64_t letters;

    memcpy (&letters, p, sizeof (letters));
    return le64toh (letters);
}

/* The number of letters in such a number. */
static inline unsigned count_letters (uint64_t letters)
{
    return 8 - __builtin_clzll (letters | 1) / 8;
}

static inline char *put_word (uint32_t value, char *p)
{
    memcpy (p, word_text[value], sizeof (word_text[value]));
    return p + count_letters (get_letters (word_text[value]));
}

static inline char *put_triplet (uint32_t half, char *p)
{
    p = put_word (half % WORD_COUNT, p);
    *p++ = '-';
    p = put_word (half / WORD_COUNT % WORD_COUNT, p);
    *p++ = '-';
    return put_word (half / WORD_COUNT / WORD_COUNT, p);
}

size_t form_words_encode (fluid_t id, char *out)
{
    char *p = put_triplet ((uint32_t)id, out);

    *p++ = '-';
    *p++ = '-';
    return put_triplet ((uint32_t)(id >> 32), p) - out;
}

/* The value of a word, or -1. */
static inline int word_find (uint64_t letters)
{
    const uint32_t mask = (UINT32_C (1) << WORD_HASH_BITS) - 1;

    for (uint32_t slot = letters * WORD_HASH_FACTOR >> (64 - WORD_HASH_BITS); word_slot[slot] != 0;
         slot = (slot + 1) & mask)
        if (get_letters (word_text[word_slot[slot] - 1]) == letters)
            return word_slot[slot] - 1;
    return -1;
}

/* Words are written in lower case, and read in any case, as in Flux. Capitals are converted only if the word is not
 * found.
 */
static uint64_t to_lower (uint64_t letters)
{
    for (unsigned at = 0; at < 64; at += 8) {
        uint8_t c = letters >> at & 0xff;

        if (c >= 'A' && c <= 'Z')
            letters |= UINT64_C (0x20) << at;
    }
    return letters;
}

/* Bit 7 of each byte that is a dash, and possibly of a byte after it. */
static inline uint64_t find_dash (uint64_t letters)
{
    const uint64_t ones = UINT64_C (0x0101010101010101);
    uint64_t x = letters ^ ones * '-';

    return (x - ones) & ~x & ones << 7;
}

/* Take the word up to the next dash. Returns its value, or -1 with nothing taken if the word is unknown. */
static inline int take_word (struct word_cursor *c)
{
    char last[8] = { 0 };
    size_t left = c->end - c->p;
    const char *p = left < sizeof (last) ? memcpy (last, c->p, left) : c->p;
    uint64_t letters = get_letters (p), dash = find_dash (letters);

    size_t len = dash ? (size_t)__builtin_ctzll (dash) / 8 : left;
    if (dash)
        letters &= (dash & -dash) / 128 - 1;
    if (len != count_letters (letters)) /* too long, or it contains NULs */
        return -1;
    int value = word_find (letters);
    if (value < 0)
        value = word_find (to_lower (letters));
    if (value >= 0)
        c->p += len;
    return value;
}

static bool take_dash (struct word_cursor *c)
{
    bool dash = c->p < c->end && *c->p == '-';

    c->p += dash;
    return dash;
}

static bool take_triplet (struct word_cursor *c, uint64_t *half)
{
    uint64_t sum = 0;
    uint64_t weight = 1;

    for (int i = 0; i < 3; i++) {
        if (i > 0 && !take_dash (c))
            return false;
        int value = take_word (c);
        if (value < 0)
            return false;
        sum += value * weight;
        weight *= WORD_COUNT;
    }
    *half = sum;
    return true;
}

int form_words_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    struct word_cursor c = { text + at, text + end };
    uint64_t low, high;

    if (!take_triplet (&c, &low) || !take_dash (&c) || !take_dash (&c))
        return errset_at (EINVAL, c.p - text, errpos);
    const char *second = c.p;
    if (!take_triplet (&c, &high) || c.p != c.end)
        return errset_at (EINVAL, c.p - text, errpos);
    if (low > UINT32_MAX || high > UINT32_MAX)
        return errset_at (ERANGE, low > UINT32_MAX ? at : (size_t)(second - text), errpos);
    *id = high << 32 | low;
    return 0;
}
