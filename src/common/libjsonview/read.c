/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* read.c - parse JSON in place
 *
 * Nodes are stored in the order of the text: an array, its elements; an object, a key, its value, the next key. The
 * 'span' of a node is the distance to its next sibling. While an array or object is open, its 'span' is the index of
 * the enclosing one, so the parser needs no stack.
 *
 * Texts are not trusted: the time to parse one grows no faster than n log n, for all keys.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libjsonview/private.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/utf8.h"

#define ROOM_FIRST 128
#define ROOM_KEPT 4096 /* nodes; a larger array is freed before the next text */
#define NONE UINT32_MAX
#define NEAR_MAX 20 /* bytes of a token that an error message shows */
#define FINITE 300  /* a real without exponent and with at most so many digits is finite */

#define ONES UINT64_C (0x0101010101010101)

struct scan {
    struct jv_reader *r;
    const char *text, *p, *end; /* 'p': the next unread character */
    uint32_t open;              /* the innermost open array or object */
    uint32_t depth, depth_max;
    uint32_t values, values_max;
    struct jv_error *e;
};

/* --- plain text ---------------------------------------------------------------------------------------- */

/* The lowest set bit belongs to the first byte that is special: '"', '\', a control character or a byte that is not
 * ASCII. (A subtraction borrows only from higher bytes, so all bits below are right.)
 */
static inline uint64_t find_special (uint64_t x)
{
    return (((x ^ ONES * '"') - ONES) | ((x ^ ONES * '\\') - ONES) | (x - ONES * 0x20) | x) & ONES * 0x80;
}

static const char *skip_plain (const char *p, const char *end)
{
    uint64_t special;

    for (; end - p >= 8; p += 8)
        if ((special = find_special (load (p))))
            return p + __builtin_ctzll (special) / 8;
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* --- what is wrong ------------------------------------------------------------------------------------- */

/* Compute the position of 'at', which is behind the last byte read. */
static void locate (const struct scan *s, const char *at)
{
    s->e->line = 1;
    s->e->column = 0;
    for (const char *p = s->text; p < at; p++)
        if (*p == '\n') {
            s->e->line++;
            s->e->column = 0;
        }
        else if (((unsigned char)*p & 0xc0) != 0x80)
            s->e->column++;
}

/* Report that the token from 'from' to 'at' is wrong, or that the text ends. */
static int refuse (const struct scan *s, enum jv_fault fault, const char *from, const char *at, const char *why)
{
    char *text = s->e->text;
    const size_t size = sizeof (s->e->text);

    s->e->fault = fault;
    locate (s, at);
    if (from == s->end)
        snprintf (text, size, "%s near end of file", why);
    else if (at - from <= NEAR_MAX && at > from && *from)
        snprintf (text, size, "%s near '%.*s'", why, (int)(at - from), from);
    else
        snprintf (text, size, "%s", why);
    return errset (EINVAL);
}

static int refuse_byte (const struct scan *s, const char *from, const char *at)
{
    char why[40];

    snprintf (why, sizeof (why), "unable to decode byte 0x%x", (unsigned char)*at);
    return refuse (s, JV_UTF8, from, at, why);
}

/* The end of a word or plain string that begins at 's->p', or of one character; NULL if there is no such token. */
static const char *token_end (const struct scan *s)
{
    const char *p = s->p;

    if (p < s->end && *p == '"' && (p = skip_plain (p + 1, s->end)) < s->end && *p == '"')
        return p + 1;
    p = s->p;
    while (p < s->end && (is_letter (*p) || is_digit (*p)))
        p++;
    if (p > s->p || p == s->end)
        return p;
    for (size_t size = 1; size <= 4 && p + size <= s->end; size++)
        if (utf8_span (p, size) == size)
            return p + size;
    return NULL;
}

static int refuse_token (const struct scan *s, const char *why)
{
    const char *at = token_end (s);

    return at ? refuse (s, JV_SYNTAX, s->p, at, why) : refuse_byte (s, s->p, s->p);
}

/* --- nodes --------------------------------------------------------------------------------------------- */

/* Allocate space for 'n' more nodes. */
static int reserve (struct jv_reader *r, uint32_t n)
{
    size_t room = r->room ? r->room : ROOM_FIRST;

    if (r->room - r->used >= n)
        return 0;
    while (room - r->used < n)
        room *= 2;
    struct jv *nodes = realloc (r->nodes, room * sizeof (*nodes));
    if (!nodes)
        return errset (ENOMEM);
    r->nodes = nodes;
    r->room = (uint32_t)room;
    return 0;
}

static int add (struct scan *s, enum jv_type type, const char *text, const char *end, bool escaped)
{
    struct jv_reader *r = s->r;

    if (r->used == r->room && reserve (r, 1) < 0)
        return -1;
    r->nodes[r->used++] = (struct jv){
        .text = text, .size = (uint32_t)(end - text), .span = 1, .type = (uint8_t)type, .escaped = escaped
    };
    return 0;
}

/* --- strings ------------------------------------------------------------------------------------------- */

/* Read the special byte at '*p' in the string that begins at 'from', and move '*p' behind it. */
static int read_special (struct scan *s, const char *from, const char **p)
{
    char out[4];
    size_t n, size = 0;

    if (*p == s->end)
        return refuse (s, JV_SYNTAX, s->end, *p, "premature end of input");
    if (**p == '\\') {
        size = jv_read_escape (*p, s->end, out, &n);
        *p += size;
        return size > 0 ? 0 : refuse (s, JV_SYNTAX, from, *p + 1, "invalid escape");
    }
    if ((unsigned char)**p < 0x20) {
        char why[40];
        snprintf (why, sizeof (why), "control character 0x%x", (unsigned char)**p);
        return refuse (s, JV_SYNTAX, from, *p, **p == '\n' ? "unexpected newline" : why);
    }
    while (*p + size < s->end && ((unsigned char)(*p)[size] & 0x80))
        size++;
    n = utf8_span (*p, size);
    *p += n;
    return n == size ? 0 : refuse_byte (s, from, *p);
}

static int read_string (struct scan *s)
{
    const char *from = s->p, *p = skip_plain (from + 1, s->end);
    bool escaped = false;

    while (p == s->end || *p != '"') {
        escaped |= p < s->end && *p == '\\';
        if (read_special (s, from, &p) < 0)
            return -1;
        p = skip_plain (p, s->end);
    }
    s->p = p + 1;
    return add (s, JV_STRING, from + 1, p, escaped);
}

/* --- numbers ------------------------------------------------------------------------------------------- */

static const char *skip_digits (const char *p, const char *end)
{
    while (p < end && is_digit (*p))
        p++;
    return p;
}

static int add_integer (struct scan *s, const char *from, const char *digits, const char *end)
{
    const char *most = *from == '-' ? "9223372036854775808" : "9223372036854775807";

    if (end - digits > 19 || (end - digits == 19 && memcmp (digits, most, 19) > 0))
        return refuse (s, JV_SYNTAX, from, end, *from == '-' ? "too big negative integer" : "too big integer");
    s->p = end;
    return add (s, JV_INTEGER, from, end, false);
}

static int add_real (struct scan *s, const char *from, const char *end, bool finite)
{
    const struct jv v = { .text = from, .size = (uint32_t)(end - from), .type = JV_REAL };

    if (!finite && isinf (jv_number (&v)))
        return refuse (s, JV_SYNTAX, from, end, "real number overflow");
    s->p = end;
    return add (s, JV_REAL, from, end, false);
}

/* Read digits at 'p', at least one. Returns their end, or NULL after an error. */
static const char *need_digits (struct scan *s, const char *p)
{
    const char *end = skip_digits (p, s->end);

    if (end > p)
        return end;
    refuse (s, JV_SYNTAX, s->p, end, "invalid token");
    return NULL;
}

static int read_number (struct scan *s)
{
    const char *from = s->p, *digits = from + (*from == '-'), *p;

    if (!(p = need_digits (s, digits)))
        return -1;
    if (*digits == '0' && p > digits + 1)
        return refuse (s, JV_SYNTAX, from, p, "invalid token");
    bool fraction = p < s->end && *p == '.', finite = p - digits < FINITE;
    if (fraction && !(p = need_digits (s, p + 1)))
        return -1;
    if (p < s->end && (*p | 0x20) == 'e') {
        p++;
        p += p < s->end && (*p == '+' || *p == '-');
        if (!(p = need_digits (s, p)))
            return -1;
        return add_real (s, from, p, false);
    }
    return fraction ? add_real (s, from, p, finite) : add_integer (s, from, digits, p);
}

/* --- values -------------------------------------------------------------------------------------------- */

static inline void skip_space (struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

static int open_one (struct scan *s, enum jv_type type)
{
    if (s->depth == s->depth_max)
        return refuse (s, JV_DEPTH, s->p, s->p + 1, "too deep");
    if (add (s, type, s->p, s->p, false) < 0)
        return -1;
    s->r->nodes[s->r->used - 1].span = s->open;
    s->open = s->r->used - 1;
    s->depth++;
    s->p++;
    return 0;
}

/* Uses the free nodes as scratch memory. */
static int check_keys (struct scan *s, uint32_t index)
{
    struct jv_reader *r = s->r;

    if (reserve (r, r->nodes[index].count) < 0)
        return -1;
    const struct jv *twice = jv_find_twice (r->nodes + index, r->nodes + r->used);
    if (!twice)
        return 0;
    return refuse (s, JV_SYNTAX, twice->text - 1, twice->text + twice->size + 1, "duplicate object key");
}

static int close_one (struct scan *s)
{
    const uint32_t index = s->open;
    struct jv *node = s->r->nodes + index;

    s->p++;
    s->depth--;
    s->open = node->span;
    node->span = s->r->used - index;
    node->size = (uint32_t)(s->p - node->text);
    if (s->open != NONE && s->r->nodes[s->open].type == JV_OBJECT)
        node[-1].span = 1 + node->span;
    return node->type == JV_OBJECT && node->count > 1 ? check_keys (s, index) : 0;
}

static int read_word (struct scan *s)
{
    static const struct {
        const char *text;
        size_t size;
        enum jv_type type;
    } words[] = { { "true", 4, JV_TRUE }, { "false", 5, JV_FALSE }, { "null", 4, JV_NULL } };
    const char *end = s->p, *from = s->p;

    while (end < s->end && is_letter (*end))
        end++;
    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++)
        if ((size_t)(end - from) == words[i].size && memcmp (from, words[i].text, words[i].size) == 0) {
            s->p = end;
            return add (s, words[i].type, from, end, false);
        }
    return refuse_token (s, from == s->end || strchr ("]}:,", *from) ? "unexpected token" : "invalid token");
}

static int read_value (struct scan *s)
{
    skip_space (s);
    if (s->values == s->values_max)
        return refuse (s, JV_VALUES, s->p, s->p, "too many values");
    s->values++;
    const char c = s->p < s->end ? *s->p : '\0';
    if (c == '"')
        return read_string (s);
    if (c == '{')
        return open_one (s, JV_OBJECT);
    if (c == '[')
        return open_one (s, JV_ARRAY);
    return is_digit (c) || c == '-' ? read_number (s) : read_word (s);
}

static int read_key (struct scan *s)
{
    skip_space (s);
    if (s->p == s->end || *s->p != '"')
        return refuse_token (s, "string or '}' expected");
    if (read_string (s) < 0)
        return -1;
    s->r->nodes[s->r->used - 1].span = 2; /* its value may increase it */
    skip_space (s);
    if (s->p == s->end || *s->p != ':')
        return refuse_token (s, "':' expected");
    s->p++;
    return 0;
}

/* Read an element, a member, or the whole text. */
static int read_item (struct scan *s)
{
    if (s->open == NONE)
        return read_value (s);
    s->r->nodes[s->open].count++;
    return s->r->nodes[s->open].type == JV_OBJECT && read_key (s) < 0 ? -1 : read_value (s);
}

/* Read the text between items: close arrays and objects, then read a comma, unless the innermost one was just opened.
 */
static int read_between (struct scan *s)
{
    while (s->open != NONE) {
        const struct jv *in = s->r->nodes + s->open;
        const char closer = in->type == JV_OBJECT ? '}' : ']';

        skip_space (s);
        if (s->p < s->end && *s->p == closer) {
            if (close_one (s) < 0)
                return -1;
        }
        else if (in->count == 0)
            return 0;
        else if (s->p < s->end && *s->p == ',') {
            s->p++;
            return 0;
        }
        else
            return refuse_token (s, closer == '}' ? "'}' expected" : "']' expected");
    }
    return 0;
}

static int read_all (struct scan *s)
{
    do {
        if (read_item (s) < 0 || read_between (s) < 0)
            return -1;
    } while (s->open != NONE);
    skip_space (s);
    return s->p == s->end ? 0 : refuse_token (s, "end of file expected");
}

const struct jv *jv_read (struct jv_reader *r, const char *text, size_t size, uint32_t depth, uint32_t values,
                          struct jv_error *e)
{
    struct scan s = { .r = r,
                      .text = text,
                      .p = text,
                      .end = text + size,
                      .open = NONE,
                      .depth_max = depth,
                      .values_max = (uint32_t)min_u64 (values, JV_VALUES_LIMIT),
                      .e = e };

    if (size > UINT32_MAX)
        return errset_null (EMSGSIZE);
    if (r->room > ROOM_KEPT)
        jv_reader_fini (r);
    r->used = 0;
    return read_all (&s) < 0 ? NULL : r->nodes;
}

void jv_reader_fini (struct jv_reader *r)
{
    free (r->nodes);
    *r = (struct jv_reader)JV_READER_INIT;
}
