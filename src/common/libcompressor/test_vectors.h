/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* test_vectors.h - shared by the tests that replay idcomp.json
 *
 * The vectors were recorded from the npm package @fluidframework/id-compressor 3.1.0.
 */
#ifndef COMPRESSOR_TEST_VECTORS_H
#define COMPRESSOR_TEST_VECTORS_H

#include <stdio.h>
#include <stdlib.h>

#include "test/ids/vectors.h"
#include "uuid.h"

/* The text of element 'i' of an array. */
static inline const char *text_at (const json_t *array, size_t i)
{
    return json_string_value (json_array_get (array, i));
}

static inline json_int_t int_at (const json_t *array, size_t i)
{
    return json_integer_value (json_array_get (array, i));
}

/* Write the UUID of a number, modulo 2^122, to 'text'; returns 'text'. */
static inline const char *num_text (u128 num, char text[IDCOMP_UUID_TEXT_MAX])
{
    struct idcomp_uuid uuid = uuidnum_to_uuid (num);

    idcomp_uuid_format (&uuid, text, IDCOMP_UUID_TEXT_MAX);
    return text;
}

/* The number of a UUID text, which must be valid in the vectors. */
static inline u128 text_num (const char *text)
{
    u128 num = 0;

    if (uuidnum_of_text (text, true, &num) < 0)
        diag ("not a UUID: %s", text);
    return num;
}

/* In the vectors, numbers of more than 64 bits are decimal texts. */
static inline __int128 decimal (const char *text)
{
    bool negative = *text == '-';
    __int128 x = 0;

    for (const char *p = text + negative; *p; p++)
        x = x * 10 + (*p - '0');
    return negative ? -x : x;
}

#endif /* COMPRESSOR_TEST_VECTORS_H */
