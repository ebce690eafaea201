/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jsonview.c - parse JSON in place, and read its values
 *
 * Nodes are stored in the order of the text: an array, then its elements; an object, then a key, its value, the next
 * key. The 'span' of a node is the distance to its next sibling. While an array or object is open, its 'span' is the
 * index of the array or object that contains it, so the parser needs no stack.
 *
 * Texts are not trusted: the time to parse one grows no faster than n log n, for all keys.
 */
#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libjsonview/jsonview.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/text.h"

#define ROOM_FIRST 128
#define ROOM_KEPT 4096 /* nodes; a larger array is freed before the next text */
#define NONE UINT32_MAX
#define NEAR_MAX 20 /* bytes; an error message does not show a longer token */
#define FINITE 300  /* a real without exponent and with at most so many digits is finite */
#define ONES UINT64_C (0x0101010101010101)
#define DIGITS_MAX 800 /* significant digits of a real; of further digits it matters only whether one is not 0 */
#define EXPONENT 99999 /* largest exponent for 1 to 800 digits: with a larger one a number is infinite, or 0 */
#define PROBES 8       /* probes in the table for each key; after these keys are sorted instead */

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

/* --- the content of strings, with and without escapes ---------------------------------------------- */

/* The number that four hexadecimal digits at 'p' stand for, or -1. */
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

/* The character of an escape "\uXXXX" or of a surrogate pair; 0 if the escape is invalid. '*size' is the size of the
 * escape in the text.
 */
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

/* Decode the escape at 'p' to '*n' bytes in 'out'. Returns the size of the escape in the text; 0 if it is not valid. */
static size_t read_escape (const char *p, const char *end, char out[4], size_t *n)
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

/* Iterates over the bytes of a string; escapes are decoded. */
struct json_cursor {
    const char *p, *end;
    bool escaped;
    char out[4]; /* bytes of the current escape */
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
    c->p += read_escape (c->p, c->end, c->out, &c->n);
    c->i = 1;
    return (unsigned char)c->out[0];
}

static struct json_cursor cursor_of (const struct jv *v)
{
    return (struct json_cursor){ .p = v->text, .end = v->text + v->size, .escaped = v->escaped };
}

static int compare (const struct jv *a, const struct jv *b)
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
        if (key->escaped ? compare (key, &wanted) == 0 : same_plain (key, &wanted))
            return jv_value (key);
    return NULL;
}

bool jv_same (const struct jv *a, const struct jv *b)
{
    if (!jv_is (a, JV_STRING) || !jv_is (b, JV_STRING))
        return false;
    return a->escaped || b->escaped ? compare (a, b) == 0 : same_plain (a, b);
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

/* A decoded string is never longer than its text, so the copy fits. */
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

/* --- the values of numbers ------------------------------------------------------------------------- */

int64_t jv_integer (const struct jv *v)
{
    if (!jv_is (v, JV_INTEGER))
        return 0;
    bool negative = *v->text == '-';
    uint64_t n = 0;
    for (uint32_t i = negative; i < v->size; i++)
        n = n * 10 + (uint64_t)(v->text[i] - '0');
    return (int64_t)(negative ? 0 - n : n);
}

/* Read an exponent. Above a limit its value does not matter, so the limit is returned. */
static int64_t read_exponent (const char *p, const char *end)
{
    static const int64_t most = INT64_C (1) << 40; /* more digits than a text can have */
    bool negative = *p == '-';
    int64_t n = 0;

    for (p += *p == '-' || *p == '+'; p < end; p++)
        n = min_i64 (n * 10 + (*p - '0'), most);
    return negative ? -n : n;
}

/* Read a real. The significant digits and an exponent are copied to a buffer, for two reasons: strtod () needs a NUL
 * behind them, and a decimal point would be wrong in some locales.
 */
static double read_real (const char *text, uint32_t size)
{
    char buf[DIGITS_MAX + 32];
    const char *p = text, *end = text + size;
    int64_t exponent = 0;
    size_t n = 0;
    bool behind = false, more = false;

    for (p += *p == '-'; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            behind = true;
            continue;
        }
        exponent -= behind;
        if (n == DIGITS_MAX) {
            more |= *p != '0';
            exponent++;
        }
        else if (n > 0 || *p != '0')
            buf[n++] = *p;
    }
    if (n == 0)
        return *text == '-' ? -0.0 : 0.0;
    if (more && buf[n - 1] == '0')
        buf[n - 1] = '1';
    if (p < end)
        exponent += read_exponent (p + 1, end);
    snprintf (buf + n, sizeof (buf) - n, "e%d", (int)(exponent < -EXPONENT ? -EXPONENT : min_i64 (exponent, EXPONENT)));
    double d = strtod (buf, NULL);
    return *text == '-' ? -d : d;
}

double jv_number (const struct jv *v)
{
    return jv_is (v, JV_REAL) ? read_real (v->text, v->size) : (double)jv_integer (v);
}

/* --- duplicate keys -------------------------------------------------------------------------------- */

/* Keys are put into a hash table. If some keys have escapes, or were chosen so that they collide in the table, all keys
 * are sorted instead. Sorting takes n log n time for every set of keys.
 */

static uint64_t load_short (const char *p, uint32_t size)
{
    uint32_t a, b;

    if (size < 4)
        return size > 0 ? (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[size / 2] << 8
                              | (unsigned char)p[size - 1]
                        : 0;
    memcpy (&a, p, 4);
    memcpy (&b, p + size - 4, 4);
    return (uint64_t)a << 32 | b;
}

static uint32_t hash (const struct jv *key)
{
    static const uint64_t odd = UINT64_C (0x9e3779b97f4a7c15);
    uint64_t h = key->size * odd;

    if (key->size < 8)
        h ^= load_short (key->text, key->size);
    else {
        for (uint32_t i = 0; i + 8 < key->size; i += 8) {
            h = (h ^ load (key->text + i)) * odd;
            h ^= h >> 32;
        }
        h ^= load (key->text + key->size - 8);
    }
    h *= odd;
    return (uint32_t)(h >> 32);
}

/* Put the keys into a table. Returns true if this shows whether there is a duplicate key: '*twice' is the duplicate, or
 * NULL. Returns false if the keys must be sorted.
 */
static bool try_table (const struct jv *object, uint32_t *table, uint32_t mask, const struct jv **twice)
{
    uint32_t probes = PROBES * object->count;
    const struct jv *key;

    memset (table, 0, (mask + 1) * sizeof (*table));
    *twice = NULL;
    jv_foreach (object, key) {
        uint32_t i = hash (key) & mask;

        for (; table[i]; i = (i + 1) & mask) {
            if (same_plain (object + table[i], key)) {
                *twice = key;
                return true;
            }
            if (probes-- == 0)
                return false;
        }
        if (key->escaped)
            return false;
        table[i] = (uint32_t)(key - object);
    }
    return true;
}

static int compare_keys (const void *a, const void *b)
{
    const struct jv *x = *(const struct jv *const *)a, *y = *(const struct jv *const *)b;
    int rc;

    if (x->escaped || y->escaped)
        rc = compare (x, y);
    else if ((rc = memcmp (x->text, y->text, min_u64 (x->size, y->size))) == 0)
        rc = x->size < y->size ? -1 : x->size > y->size;
    return rc ? rc : x < y ? -1 : 1;
}

static const struct jv *find_sorted (const struct jv *object, const struct jv **keys)
{
    uint32_t n = 0;
    const struct jv *key;

    jv_foreach (object, key)
        keys[n++] = key;
    qsort (keys, n, sizeof (*keys), compare_keys);
    for (uint32_t i = 1; i < n; i++)
        if (jv_same (keys[i - 1], keys[i]))
            return keys[i];
    return NULL;
}

/* Find a key that occurs a second time in the same object; NULL if no key does. 'room' has space for one struct jv for
 * each member. That is enough, because the table has at most 4 places of 4 bytes for each key.
 */
static const struct jv *find_twice (const struct jv *object, void *room)
{
    uint32_t mask = 3;
    const struct jv *twice;

    while (mask < 2 * object->count)
        mask = 2 * mask + 1;
    return try_table (object, room, mask, &twice) ? twice : find_sorted (object, room);
}

/* --- the parser ------------------------------------------------------------------------------------ */

struct scan {
    struct jv_reader *r;
    const char *text, *p, *end; /* 'p' is the next unread character */
    uint32_t open;              /* the innermost open array or object */
    uint32_t depth, depth_max;
    uint32_t values, values_max;
    struct jv_error *e;
};

/* --- plain text ---------------------------------------------------------------------------------------- */

/* The lowest set bit belongs to the first byte that is special: '"', '\', a control character or a byte that is not
 * ASCII. (Higher bits may be wrong, because a subtraction borrows from higher bytes. It borrows only from these, so the
 * bits below are right.)
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

/* --- error messages ------------------------------------------------------------------------------------ */

/* Compute the line and column of 'at', which is behind the last byte read. */
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

/* Report that the token from 'from' to 'at' is wrong, or that the text has ended. */
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

/* The end of the token at 's->p': a word, a plain string, or one character; NULL if there is no such token. */
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

/* Read the special byte at '*p' and move '*p' behind it. 'from' is the beginning of the string that contains it. */
static int read_special (struct scan *s, const char *from, const char **p)
{
    char out[4];
    size_t n, size = 0;

    if (*p == s->end)
        return refuse (s, JV_SYNTAX, s->end, *p, "premature end of input");
    if (**p == '\\') {
        size = read_escape (*p, s->end, out, &n);
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

/* Read one or more digits at 'p'. Returns their end, or NULL after an error. */
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

/* Check that an object has no duplicate key. The unused nodes of the reader are scratch memory for this. */
static int check_keys (struct scan *s, uint32_t index)
{
    struct jv_reader *r = s->r;

    if (reserve (r, r->nodes[index].count) < 0)
        return -1;
    const struct jv *twice = find_twice (r->nodes + index, r->nodes + r->used);
    if (!twice)
        return 0;
    return refuse (s, JV_SYNTAX, twice->text - 1, twice->text + twice->size + 1, "duplicate object key");
}

static int close_one (struct scan *s)
{
    const uint32_t index = s->open;
    struct jv *node = s->r->nodes + index;

    assert (s->depth > 0 && index < s->r->used);
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
    s->r->nodes[s->r->used - 1].span = 2; /* the key and a simple value; close_one () sets it for an array or object */
    skip_space (s);
    if (s->p == s->end || *s->p != ':')
        return refuse_token (s, "':' expected");
    s->p++;
    return 0;
}

/* Read an element of the open array, a member of the open object, or the whole text. */
static int read_item (struct scan *s)
{
    if (s->open == NONE)
        return read_value (s);
    s->r->nodes[s->open].count++;
    return s->r->nodes[s->open].type == JV_OBJECT && read_key (s) < 0 ? -1 : read_value (s);
}

/* Read the text between items: close arrays and objects, then read a comma. There is no comma if the innermost array or
 * object was just opened.
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
