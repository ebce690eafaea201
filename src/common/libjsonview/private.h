/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - declarations that the files of this library share */
#ifndef JSONVIEW_PRIVATE_H
#define JSONVIEW_PRIVATE_H

#include <endian.h>
#include <string.h>

#include "libjsonview/jsonview.h"

static inline bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_letter (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Load 8 bytes in little-endian order. */
static inline uint64_t load (const char *p)
{
    uint64_t x;

    memcpy (&x, p, sizeof (x));
    return le64toh (x);
}

static inline bool same_plain (const struct jv *a, const struct jv *b)
{
    return a->size == b->size && memcmp (a->text, b->text, a->size) == 0;
}

/* Decode the escape at 'p' to '*n' bytes. Returns its size in the text; 0 if it is not a valid escape. */
size_t jv_read_escape (const char *p, const char *end, char out[4], size_t *n);

/* Compare two strings by their bytes after unescaping. */
int jv_compare (const struct jv *a, const struct jv *b);

/* Find a key that occurs before in the same object; NULL if there is no duplicate. 'room' has space for one struct jv
 * per member.
 */
const struct jv *jv_find_twice (const struct jv *object, void *room);

#endif /* JSONVIEW_PRIVATE_H */
