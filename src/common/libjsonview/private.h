/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the files of this library share */
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

/* 8 bytes, the first the lowest. */
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

/* What the escape at 'p' stands for, '*n' bytes.  Returns the bytes that it has in the text; 0: it is none. */
size_t jv_read_escape (const char *p, const char *end, char out[4], size_t *n);

/* The order of two strings by their bytes without escapes. */
int jv_compare (const struct jv *a, const struct jv *b);

/* A key that is in an object before, too; NULL: there is none.  In 'room' is one struct jv for each member. */
const struct jv *jv_find_twice (const struct jv *object, void *room);

#endif /* JSONVIEW_PRIVATE_H */
