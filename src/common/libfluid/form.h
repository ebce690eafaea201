/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* form.h - the codec of each text form of a FLUID; form.c uses the codecs in the public functions
 *
 * A codec does not handle the prefix, blanks or the NUL:
 *   encode   writes 'id' to 'out', which has FLUID_TEXT_MAX bytes less the prefix, and returns
 *            the length; bytes of 'out' behind that length are undefined
 *   decode   reads exactly the bytes of 'text' from 'at' up to 'end' into '*id'.  Returns 0, or -1 with errno set,
 *            '*id' untouched, and in '*errpos' (may be NULL) the index of the error:
 *              EINVAL  the text is not in this form
 *              ERANGE  the text is in this form, but the value is too large
 */
#ifndef FLUID_FORM_H
#define FLUID_FORM_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "idtree/fluid.h"
#include "libutil/errprintf.h"

typedef size_t (*form_encode_f) (fluid_t id, char *out);
typedef int (*form_decode_f) (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

size_t form_dec_encode (fluid_t id, char *out);
int form_dec_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

size_t form_hex_encode (fluid_t id, char *out);
int form_hex_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

size_t form_dothex_encode (fluid_t id, char *out);
int form_dothex_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

size_t form_f58_encode (fluid_t id, char *out);
int form_f58_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

size_t form_words_encode (fluid_t id, char *out);
int form_words_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

size_t form_emoji_encode (fluid_t id, char *out);
int form_emoji_decode (const char *text, size_t at, size_t end, fluid_t *id, size_t *errpos);

/* Read the next eight bytes of a text as a number, whose lowest byte is the first byte of the text. */
static inline uint64_t get_word (const char *text)
{
    uint64_t word;

    memcpy (&word, text, sizeof (word));
    return le64toh (word);
}

/* A number that is read digit by digit and may exceed 64 bits. After an overflow the caller must still check the
 * remaining digits, because a text with a bad digit is EINVAL even if its number is too large.
 */
struct number {
    uint64_t value;
    bool overflow;
};

static inline void number_push (struct number *n, unsigned base, unsigned digit)
{
    if (__builtin_mul_overflow (n->value, (uint64_t)base, &n->value)
        || __builtin_add_overflow (n->value, (uint64_t)digit, &n->value))
        n->overflow = true;
}

/* Store the number in '*id'. If the number is 2^64 or more, '*errpos' gets 'at'. Returns 0, or -1 with errno ERANGE. */
static inline int number_finish (const struct number *n, fluid_t *id, size_t at, size_t *errpos)
{
    if (n->overflow)
        return errset_at (ERANGE, at, errpos);
    *id = n->value;
    return 0;
}

#endif /* FLUID_FORM_H */
