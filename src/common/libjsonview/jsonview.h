/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jsonview.h - JSON (RFC 8259) read where it lies: values point into their text, nothing is copied
 *
 * Strict: well-formed UTF-8, no \u0000, no key twice in an object, integers that int64_t holds, reals that double does.
 * How deep and how many values is bounded by who reads.  A text takes time n log n at most, whatever is in it.
 *
 * A reader keeps its memory from text to text, unless it is much.  What it has read is valid until it reads again, and
 * as long as the text is there unchanged.  Readers know nothing of each other: each thread has its own.
 *
 * Accessors take NULL for a value that is not there.
 */
#ifndef JSONVIEW_JSONVIEW_H
#define JSONVIEW_JSONVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jv_type { JV_NULL, JV_FALSE, JV_TRUE, JV_INTEGER, JV_REAL, JV_STRING, JV_ARRAY, JV_OBJECT };

/* A value, or a key of an object. */
struct jv {
    const char *text; /* as it lies there; of a string, between its quotes */
    uint32_t size;    /* bytes of that */
    uint32_t count;   /* of an array its elements, of an object its members */
    uint32_t span;    /* it and all in it, in units of struct jv; of a key, its value too */
    uint8_t type;
    bool escaped; /* a string in which there are escapes */
};

struct jv_reader {
    struct jv *nodes;
    uint32_t used, room;
};

#define JV_READER_INIT \
    {                  \
        NULL, 0, 0     \
    }

void jv_reader_fini (struct jv_reader *r);

enum jv_fault { JV_SYNTAX, JV_UTF8, JV_DEPTH, JV_VALUES };

struct jv_error {
    enum jv_fault fault;
    size_t line, column; /* of the last character that was read, from 1; column 0: of that line none was */
    char text[80];       /* what is wrong, as "invalid token near 'nul'": what is quoted may be control characters */
};

#define JV_VALUES_LIMIT (1u << 28)

/* Read a text, any value.  There may be 'depth' arrays and objects in each other (0: none at all), and 'values' values,
 * at most JV_VALUES_LIMIT; keys are not counted.  Returns the value, or NULL with errno set:
 *   EINVAL    '*e' says what is wrong and where
 *   EMSGSIZE  it has 4 GiB or more
 *   ENOMEM
 */
const struct jv *jv_read (struct jv_reader *r, const char *text, size_t size, uint32_t depth, uint32_t values,
                          struct jv_error *e);

static inline bool jv_is (const struct jv *v, enum jv_type type)
{
    return v && v->type == type;
}

/* Elements of an array, members of an object; 0: none, or it is neither. */
static inline size_t jv_count (const struct jv *v)
{
    return v ? v->count : 0;
}

/* Each element of an array, or each key of an object, in the order in which they are there. */
#define jv_foreach(in, it) for ((it) = (in) + 1; (it) != (in) + (in)->span; (it) += (it)->span)

static inline const struct jv *jv_value (const struct jv *key)
{
    return key + 1;
}

/* The member of an object; NULL: there is none, or it is no object.  Looks at one after the other. */
const struct jv *jv_member (const struct jv *object, const char *name);

/* Whether two strings are the same, however they are written; false where one is no string. */
bool jv_same (const struct jv *a, const struct jv *b);
bool jv_equals (const struct jv *string, const char *s);

/* Copy a string to 'buf', cut to what fits with a NUL.  Returns its length, which may be more; 0: it is no string. */
size_t jv_copy (const struct jv *string, char *buf, size_t size);

/* A copy of a string with a NUL behind it, malloced; '*size' (may be NULL) is its length.  NULL with errno ENOMEM, or
 * EINVAL: it is no string.
 */
char *jv_strdup (const struct jv *string, size_t *size);

/* 0: it is no integer. */
int64_t jv_integer (const struct jv *v);

/* What an integer or a real is; 0: it is neither. */
double jv_number (const struct jv *v);

#endif /* JSONVIEW_JSONVIEW_H */
