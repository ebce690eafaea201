/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* form.c - the text forms of a FLUID: a table with the name, prefix, encoder and decoder of each form; and the codecs
 * of words and emoji
 */
#include <stdint.h>
#include <string.h>

#include "emoji_table.h"
#include "form.h"
#include "libutil/id_text.h"
#include "words_table.h"

/* --- words: six words of mnemonicode (RFC 19, "FLUID Mnemonic (words) Encoding") ---------------
 *
 * Each half of 32 bits, the low one first, is three digits of base 1626, the least significant first: "a-b-c--d-e-f".
 * Each digit is a word. 1626^3 is slightly more than 2^32, so three words may have a value above 2^32 - 1, which is out
 * of range.
 */

struct word_cursor {
    const char *p;
    const char *end;
};

/* The number of letters in a word. 'letters' is what get_word () returns for it, with zeros after the last letter. */
static inline unsigned count_letters (uint64_t letters)
{
    return 8 - __builtin_clzll (letters | 1) / 8;
}

static inline char *put_word (uint32_t value, char *p)
{
    memcpy (p, word_text[value], sizeof (word_text[value]));
    return p + count_letters (get_word (word_text[value]));
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
        if (get_word (word_text[word_slot[slot] - 1]) == letters)
            return word_slot[slot] - 1;
    return -1;
}

/* Convert capitals to lower case. Words are written in lower case, and read in any case, as in Flux. This function is
 * called only if the word was not found as it is.
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

/* Set bit 7 of the first byte that is a dash. Bits of bytes after it may also be set. */
static inline uint64_t find_dash (uint64_t letters)
{
    const uint64_t ones = UINT64_C (0x0101010101010101);
    uint64_t x = letters ^ ones * '-';

    return (x - ones) & ~x & ones << 7;
}

/* Take the word up to the next dash. Returns its value, or -1 if the word is unknown; then nothing is taken. */
static inline int take_word (struct word_cursor *c)
{
    char last[8] = { 0 };
    size_t left = c->end - c->p;
    const char *p = left < sizeof (last) ? memcpy (last, c->p, left) : c->p;
    uint64_t letters = get_word (p), dash = find_dash (letters);

    size_t len = dash ? (size_t)__builtin_ctzll (dash) / 8 : left;
    if (dash)
        letters &= (dash & -dash) / 128 - 1;
    if (len != count_letters (letters)) /* the word is too long, or it contains NULs */
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

/* --- emoji: base 576, each digit an emoji (RFC 19, "FLUID Emoji Encoding") ---------------------
 *
 * Each digit is one of the 4096 code points whose UTF-8 form is F0 9F xx yy, with six bits each in xx and yy. So one
 * look-up in a table converts a digit in either direction.
 */

#define EMOJI_BYTES 4
#define SAFE_BYTES (6 * EMOJI_BYTES) /* bytes of six digits, whose number is always less than 2^64 */
#define POW2 (UINT64_C (1) * EMOJI_COUNT * EMOJI_COUNT)
#define POW4 (POW2 * POW2)

/* Write a digit. Returns the position of the next digit. A leading zero ('counts' is false) is overwritten by the next
 * digit.
 */
static inline char *put_digit (uint32_t digit, bool counts, char *p)
{
    uint32_t text = htole32 (emoji_text[digit]);

    memcpy (p, &text, EMOJI_BYTES);
    return p + (counts ? EMOJI_BYTES : 0);
}

/* An id has up to seven digits, because 576^6 < 2^64 < 576^7. The digits are computed from three numbers, so that no
 * digit depends on all the others.
 */
size_t form_emoji_encode (fluid_t id, char *out)
{
    uint32_t upper = id / POW4, middle = id % POW4 / POW2, lower = id % POW4 % POW2;
    char *p = put_digit (upper / POW2, id >= POW4 * POW2, out);

    p = put_digit (upper % POW2 / EMOJI_COUNT, id >= POW4 * EMOJI_COUNT, p);
    p = put_digit (upper % EMOJI_COUNT, id >= POW4, p);
    p = put_digit (middle / EMOJI_COUNT, id >= POW2 * EMOJI_COUNT, p);
    p = put_digit (middle % EMOJI_COUNT, id >= POW2, p);
    p = put_digit (lower / EMOJI_COUNT, id >= EMOJI_COUNT, p);
    p = put_digit (lower % EMOJI_COUNT, true, p);
    return p - out;
}

/* The value of the emoji at 's', or -1. */
static inline int emoji_find (const char *s)
{
    uint32_t x;

    memcpy (&x, s, EMOJI_BYTES);
    x = le32toh (x) ^ UINT32_C (0x80809ff0);
    unsigned point = (x >> 16 & 0x3f) << 6 | x >> 24;
    if (x & 0xc0c0ffff || point >= EMOJI_SPAN)
        return -1;
    return emoji_value[point] - 1;
}

int form_emoji_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos)
{
    struct number n = { 0 };
    size_t i = at;

    do {
        int value = end - i < EMOJI_BYTES ? -1 : emoji_find (text + i);

        if (value < 0)
            return errset_at (EINVAL, i, errpos);
        if (i - at < SAFE_BYTES)
            n.value = n.value * EMOJI_COUNT + value;
        else
            number_push (&n, EMOJI_COUNT, value);
    } while ((i += EMOJI_BYTES) < end);
    return number_finish (&n, id, at, errpos);
}

/* --- the table, and the public functions ------------------------------------------------------ */

#define F_HOOK_UTF8 "\xc6\x92" /* U+0192, small f with hook */

struct form {
    const char *name;
    char prefix[4];
    size_t prefix_len;
    form_encode_f encode;
    form_decode_f decode;
};

static const struct form forms[FLUID_FORM_COUNT] = {
    [FLUID_DEC] = { "dec", "", 0, form_dec_encode, form_dec_decode },
    [FLUID_HEX] = { "hex", "0x", 2, form_hex_encode, form_hex_decode },
    [FLUID_DOTHEX] = { "dothex", "", 0, form_dothex_encode, form_dothex_decode },
    [FLUID_F58] = { "f58", "f", 1, form_f58_encode, form_f58_decode },
    [FLUID_F58_UTF8] = { F_HOOK_UTF8 "58", F_HOOK_UTF8, 2, form_f58_encode, form_f58_decode },
    [FLUID_WORDS] = { "words", "", 0, form_words_encode, form_words_decode },
    [FLUID_EMOJI] = { "emoji", "", 0, form_emoji_encode, form_emoji_decode },
};

static const struct form *form_get (enum fluid_form form)
{
    return (unsigned)form < FLUID_FORM_COUNT ? &forms[form] : NULL;
}

int fluid_format (fluid_t id, enum fluid_form form, char *buf, size_t size)
{
    const struct form *f = form_get (form);
    char text[FLUID_TEXT_MAX];

    if (!f)
        return errset (EINVAL);
    if (size >= FLUID_TEXT_MAX) { /* any text fits, together with the bytes that an encoder writes behind it */
        memcpy (buf, f->prefix, sizeof (f->prefix));
        size_t len = f->prefix_len + f->encode (id, buf + f->prefix_len);
        buf[len] = '\0';
        return (int)len;
    }
    memcpy (text, f->prefix, f->prefix_len);
    size_t len = f->prefix_len + f->encode (id, text + f->prefix_len);
    if (len >= size)
        return errset (ENOSPC);
    memcpy (buf, text, len);
    buf[len] = '\0';
    return (int)len;
}

static bool starts_with (const char *s, size_t len, const char *prefix)
{
    size_t n = strlen (prefix);

    return len >= n && memcmp (s, prefix, n) == 0;
}

/* RFC 19, "Decoding Alternate FLUID Representations": the first rule that matches decides. */
static enum fluid_form form_detect (const char *s, size_t len)
{
    if (memchr (s, '.', len))
        return FLUID_DOTHEX;
    if (memchr (s, '-', len))
        return FLUID_WORDS;
    if (starts_with (s, len, F_HOOK_UTF8))
        return FLUID_F58_UTF8;
    if (starts_with (s, len, "f"))
        return FLUID_F58;
    if (starts_with (s, len, "\xf0\x9f"))
        return FLUID_EMOJI;
    if (starts_with (s, len, "0x"))
        return FLUID_HEX;
    return FLUID_DEC;
}

/* White space of the C locale, regardless of the current locale. */
static bool is_blank (char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Guess the form of a text. If the text is valid in the guessed form, form_detect () returns the same form, because '.'
 * and '-', which it checks before the prefixes, occur only in texts of dothex and words.
 */
static enum fluid_form form_guess (const char *s, size_t len)
{
    if (len > 4 && s[4] == '.')
        return FLUID_DOTHEX;
    switch (len > 1 ? s[0] : '0') {
    case 'f':
        return FLUID_F58;
    case '\xc6':
        return s[1] == F_HOOK_UTF8[1] ? FLUID_F58_UTF8 : FLUID_DEC;
    case '\xf0':
        return FLUID_EMOJI;
    case '0':
        return len > 1 && s[1] == 'x' ? FLUID_HEX : FLUID_DEC;
    default:
        return s[0] >= 'a' ? FLUID_WORDS : FLUID_DEC;
    }
}

int fluid_parse (const char *text, size_t len, fluid_t *id, size_t *errpos)
{
    size_t start = 0;

    while (len > 0 && is_blank (text[len - 1]))
        len--;
    while (start < len && is_blank (text[start]))
        start++;

    const struct form *f = &forms[form_guess (text + start, len - start)];
    if (f->decode (text, start + f->prefix_len, len, id, NULL) == 0)
        return 0;
    f = &forms[form_detect (text + start, len - start)];
    return f->decode (text, start + f->prefix_len, len, id, errpos);
}

static int format_cb (const void *id, const void *how, char *buf, size_t size)
{
    return fluid_format (*(const fluid_t *)id, *(const enum fluid_form *)how, buf, size);
}

static int parse_cb (const char *text, size_t len, const void *how, void *id, size_t *errpos)
{
    return fluid_parse (text, len, id, errpos);
}

int fluid_format_lines (const fluid_t *ids, size_t *count, enum fluid_form form, char *buf, size_t size, size_t *len)
{
    return lines_format (ids, sizeof (*ids), count, format_cb, &form, buf, size, len);
}

int fluid_parse_lines (const char *text, size_t len, fluid_t *ids, size_t *count, size_t *pos)
{
    return lines_parse (text, len, 0, ids, sizeof (*ids), count, parse_cb, NULL, pos);
}

const char *fluid_form_name (enum fluid_form form)
{
    const struct form *f = form_get (form);

    return f ? f->name : NULL;
}

int fluid_form_find (const char *name, enum fluid_form *form)
{
    for (int i = 0; i < FLUID_FORM_COUNT; i++) {
        if (strcmp (name, forms[i].name) == 0) {
            *form = i;
            return 0;
        }
    }
    return errset (EINVAL);
}
