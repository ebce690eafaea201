/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* form.h - the codec of each text form of a FLUID; form.c puts them behind the public functions
 *
 * A codec knows neither prefix, blanks nor NUL:
 *   encode   writes 'id' to 'out', which holds FLUID_TEXT_MAX bytes less a prefix, and returns
 *            the length; what 'out' holds behind that is undefined
 *   decode   reads exactly what lies from 'at' up to 'end' in 'text' to '*id'.  Returns 0, or -1 with errno set,
 *            '*id' untouched, and in '*errpos' (may be NULL) the index of what is at fault:
 *              EINVAL  it is not in this form
 *              ERANGE  it is, but the value is too large
 */
#ifndef FLUID_FORM_H
#define FLUID_FORM_H

#include <stdbool.h>
#include <stddef.h>

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

/* The digits of a number that may exceed 64 bits.  What follows the digit that is too much must still be looked at:
 * text with a bad digit is no id (EINVAL) however large the number before it.
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

/* Store the number in '*id'.  Returns 0, or -1 with errno ERANGE and 'at' in '*errpos' when it is 2^64 or more. */
static inline int number_finish (const struct number *n, fluid_t *id, size_t at, size_t *errpos)
{
    if (n->overflow)
        return errset_at (ERANGE, at, errpos);
    *id = n->value;
    return 0;
}

#endif /* FLUID_FORM_H */
