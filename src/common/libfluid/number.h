/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* number.h - gather the digits of a number that may exceed 64 bits
 *
 * What follows the digit that is too much must still be looked at: text with a bad digit is no id
 * (EINVAL) however large the number before it.
 */
#ifndef FLUID_NUMBER_H
#define FLUID_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "form.h"

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

/* Store the number in '*value'.  Returns 0, or -1 with errno ERANGE and 'at' in '*errpos' when it is 2^64 or more. */
static inline int number_finish (const struct number *n, uint64_t *value, size_t at, size_t *errpos)
{
    if (n->overflow)
        return form_fault (at, ERANGE, errpos);
    *value = n->value;
    return 0;
}

#endif /* FLUID_NUMBER_H */
