/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* string.c - the content of strings with and without escapes */
#include <stdlib.h>

#include "libjsonview/private.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

/* The number in four hexadecimal digits at 'p', or -1. */
static int32_t read_hex (const char *p, const char *end)
{
    int32_t n = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = is_digit (p[i]) ? p[i] - '0' : is_letter (p[i]) ? (p[i] | 0x20) - 'a' + 10 : 16;
        if (digit > 15)
            return -1;
        n = n << 4 | digit;
    }
    return n;
}

/* The character of an escape "\uXXXX" or of a surrogate pair; 0 if it is invalid. */
static uint32_t read_unicode (const char *p, const char *end, size_t *size)
{
    int32_t c = read_hex (p + 2, end), low;

    *size = 6;
    if (c < 0xd800 || c > 0xdfff)
        return c > 0 ? (uint32_t)c : 0;
    if (c > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    low = read_hex (p + 8, end);
    *size = 12;
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((uint32_t)(c - 0xd800) << 10 | (uint32_t)(low - 0xdc00)) : 0;
}

static size_t write_utf8 (uint32_t c, char out[4])
{
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = size; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[size] | c);
    return size;
}

size_t jv_read_escape (const char *p, const char *end, char out[4], size_t *n)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *name;
    size_t size;

    if (end - p < 2)
        return 0;
    if (p[1] == 'u') {
        uint32_t c = read_unicode (p, end, &size);
        *n = c ? write_utf8 (c, out) : 0;
        return c ? size : 0;
    }
    if (!(name = memchr (names, p[1], sizeof (names) - 1)))
        return 0;
    out[0] = means[name - names];
    *n = 1;
    return 2;
}

/* Iterates over the bytes of a string after unescaping. */
struct json_cursor {
    const char *p, *end;
    bool escaped;
    char out[4]; /* bytes of an escape */
    size_t n, i;
};

/* The next byte; -1 at the end. */
static int next_byte (struct json_cursor *c)
{
    if (c->i < c->n)
        return (unsigned char)c->out[c->i++];
    if (c->p == c->end)
        return -1;
    if (!c->escaped || *c->p != '\\')
        return (unsigned char)*c->p++;
    c->p += jv_read_escape (c->p, c->end, c->out, &c->n);
    c->i = 1;
    return (unsigned char)c->out[0];
}

static struct json_cursor cursor_of (const struct jv *v)
{
    return (struct json_cursor){ .p = v->text, .end = v->text + v->size, .escaped = v->escaped };
}

int jv_compare (const struct jv *a, const struct jv *b)
{
    struct json_cursor ca = cursor_of (a), cb = cursor_of (b);
    int x, y;

    do {
        x = next_byte (&ca);
        y = next_byte (&cb);
    } while (x == y && x >= 0);
    return x - y;
}

const struct jv *jv_member (const struct jv *object, const char *name)
{
    const struct jv *key;

    if (!jv_is (object, JV_OBJECT))
        return NULL;
    const struct jv wanted = { .text = name, .size = (uint32_t)strlen (name), .type = JV_STRING };
    jv_foreach (object, key)
        if (key->escaped ? jv_compare (key, &wanted) == 0 : same_plain (key, &wanted))
            return jv_value (key);
    return NULL;
}

bool jv_same (const struct jv *a, const struct jv *b)
{
    if (!jv_is (a, JV_STRING) || !jv_is (b, JV_STRING))
        return false;
    return a->escaped || b->escaped ? jv_compare (a, b) == 0 : same_plain (a, b);
}

bool jv_equals (const struct jv *string, const char *s)
{
    const struct jv wanted = { .text = s, .size = (uint32_t)strlen (s), .type = JV_STRING };

    return jv_same (string, &wanted);
}

size_t jv_copy (const struct jv *string, char *buf, size_t size)
{
    size_t n = 0;
    int c;

    if (!jv_is (string, JV_STRING))
        n = 0;
    else if (!string->escaped) {
        n = string->size;
        if (size > 0)
            memcpy (buf, string->text, min_u64 (n, size - 1));
    }
    else
        for (struct json_cursor at = cursor_of (string); (c = next_byte (&at)) >= 0; n++)
            if (n + 1 < size)
                buf[n] = (char)c;
    if (size > 0)
        buf[min_u64 (n, size - 1)] = '\0';
    return n;
}

/* The unescaped string is never longer. */
char *jv_strdup (const struct jv *string, size_t *size)
{
    char *copy;
    size_t n;

    if (!jv_is (string, JV_STRING))
        return errset_null (EINVAL);
    if (!(copy = malloc ((size_t)string->size + 1)))
        return errset_null (ENOMEM);
    n = jv_copy (string, copy, (size_t)string->size + 1);
    if (size)
        *size = n;
    return copy;
}
