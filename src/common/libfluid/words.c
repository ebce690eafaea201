/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* words.c - a FLUID as six words of mnemonicode (RFC 19, "FLUID Mnemonic (words) Encoding")
 *
 * Each half of 32 bits, the low one first, is three digits of base 1626, the least significant
 * first: "a-b-c--d-e-f".  A word has one value, and 1626^3 exceeds 2^32 by little: the triplets
 * above it are out of range.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "form.h"
#include "words_table.h"

struct cursor {
    const char *p;
    const char *end;
};

static char *put_triplet (uint32_t half, char *p)
{
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            *p++ = '-';
        p = stpcpy (p, word_text[half % WORD_COUNT]);
        half /= WORD_COUNT;
    }
    return p;
}

size_t form_words_encode (fluid_t id, char *out)
{
    char *p = put_triplet ((uint32_t)id, out);

    *p++ = '-';
    *p++ = '-';
    return put_triplet ((uint32_t)(id >> 32), p) - out;
}

/* The value of the word of 'len' letters at 's' that hashes to 'slot', or -1. */
static int word_find (const char *s, size_t len, uint32_t slot)
{
    const uint32_t mask = (UINT32_C (1) << WORD_HASH_BITS) - 1;

    if (len > WORD_MAX)
        return -1;
    for (; word_slot[slot] != 0; slot = (slot + 1) & mask) {
        const char *text = word_text[word_slot[slot] - 1];

        if (memcmp (text, s, len) == 0 && text[len] == '\0')
            return word_slot[slot] - 1;
    }
    return -1;
}

/* Take what is left up to the next dash.  Returns its value, or -1 with nothing taken when it is no word. */
static int take_word (struct cursor *c)
{
    const char *p = c->p;
    uint32_t hash = 0;

    while (p < c->end && *p != '-')
        hash = (hash + (unsigned char)*p++) * WORD_HASH_FACTOR;
    int value = word_find (c->p, p - c->p, hash >> (32 - WORD_HASH_BITS));
    if (value >= 0)
        c->p = p;
    return value;
}

static bool take_dash (struct cursor *c)
{
    bool dash = c->p < c->end && *c->p == '-';

    c->p += dash;
    return dash;
}

static bool take_triplet (struct cursor *c, uint64_t *half)
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
    struct cursor c = { text + at, text + end };
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
