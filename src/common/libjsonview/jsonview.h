/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jsonview.h - parse JSON (RFC 8259) in place: values point into their text, and no string is copied
 *
 * The parser is strict. It refuses malformed UTF-8, \u0000, a key that occurs twice in an object, integers that do not
 * fit int64_t, and reals that do not fit double. The caller limits the depth and the number of values. For a text of n
 * bytes parsing takes at most n log n time.
 *
 * A reader keeps its memory for the next text, unless the memory is large. A result is valid until the next call of
 * jv_read () with its reader, and as long as the text exists unchanged. Readers are independent, so each thread may
 * have its own.
 *
 * Accessors accept NULL for a missing value.
 */
#ifndef JSONVIEW_JSONVIEW_H
#define JSONVIEW_JSONVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jv_type { JV_NULL, JV_FALSE, JV_TRUE, JV_INTEGER, JV_REAL, JV_STRING, JV_ARRAY, JV_OBJECT };

/* A value, or a key of an object. */
struct jv {
    const char *text; /* the value as written in the text; for a string, what is between its quotes */
    uint32_t size;    /* bytes of 'text' */
    uint32_t count;   /* elements of an array, members of an object */
    uint32_t span;    /* how many structs the value and its content occupy; for a key, including its value */
    uint8_t type;
    bool escaped; /* for a string: whether it contains escapes */
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
    size_t line, column; /* position of the last character read, from 1; column 0: no character of that line */
    char text[80]; /* the problem, as "invalid token near 'nul'"; the quoted part may contain control characters */
};

#define JV_VALUES_LIMIT (1u << 28)

/* Parse a text, which may be any value. 'depth' is how deep arrays and objects may be nested (0: no array or object).
 * 'values' is the maximum number of values, at most JV_VALUES_LIMIT; keys are not counted. Returns the value, or NULL
 * with errno set:
 *   EINVAL    '*e' says what is wrong and where
 *   EMSGSIZE  the text has 4 GiB or more
 *   ENOMEM
 */
const struct jv *jv_read (struct jv_reader *r, const char *text, size_t size, uint32_t depth, uint32_t values,
                          struct jv_error *e);

static inline bool jv_is (const struct jv *v, enum jv_type type)
{
    return v && v->type == type;
}

/* The number of elements of an array, or of members of an object; 0 for other values. */
static inline size_t jv_count (const struct jv *v)
{
    return v ? v->count : 0;
}

/* Iterate over the elements of an array, or the keys of an object, in the order of the text. */
#define jv_foreach(in, it) for ((it) = (in) + 1; (it) != (in) + (in)->span; (it) += (it)->span)

static inline const struct jv *jv_value (const struct jv *key)
{
    return key + 1;
}

/* The member of an object; NULL if it does not exist or 'object' is not an object. The search is linear. */
const struct jv *jv_member (const struct jv *object, const char *name);

/* Whether two strings have the same content, with or without escapes; false if one is not a string. */
bool jv_same (const struct jv *a, const struct jv *b);
bool jv_equals (const struct jv *string, const char *s);

/* Copy a string to 'buf' with a NUL; a string that is too long is cut. Returns the full length of the string, which may
 * be 'size' or more; 0 if the value is not a string.
 */
size_t jv_copy (const struct jv *string, char *buf, size_t size);

/* Allocate a copy of a string with a NUL behind it; '*size' (may be NULL) is its length. The caller frees the copy.
 * NULL with errno ENOMEM, or EINVAL if the value is not a string.
 */
char *jv_strdup (const struct jv *string, size_t *size);

/* The value of an integer; 0 for other values. */
int64_t jv_integer (const struct jv *v);

/* The value of an integer or a real; 0 for other values. */
double jv_number (const struct jv *v);

#endif /* JSONVIEW_JSONVIEW_H */
