/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* form.c - the text forms of a FLUID in one table: name, prefix, encoder and decoder of each */
#include <string.h>

#include "form.h"
#include "libutil/id_text.h"

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
    if (size >= FLUID_TEXT_MAX) { /* any text fits, including the bytes that an encoder writes after it */
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

/* The most likely form of a text. If the text is valid in this form, form_detect () returns the same form: '.' and '-',
 * which take precedence over prefixes, occur only in texts of dothex and words.
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
