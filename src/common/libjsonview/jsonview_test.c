/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jsonview_test.c - texts are accepted and refused as by jansson, with the same values; error messages and positions;
 * limits, memory, and keys with colliding hashes
 */
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libjsonview/jsonview.h"
#include "test/failing_alloc.h"
#include "test/jsonview_same.h"
#include "test/tap.h"

static struct jv_reader reader = JV_READER_INIT;
static struct jv_error error;

static const struct jv *read_text (const char *text)
{
    return jv_read (&reader, text, strlen (text), 100, 1000, &error);
}

/* The same in memory that ends exactly behind the text. */
static bool same_exact (const char *text, size_t size)
{
    char *exact = malloc (size + !size);

    memcpy (exact, text, size);
    bool same = jsonview_same (&reader, exact, size);
    free (exact);
    return same;
}

/* --- values -------------------------------------------------------------------------------------------- */

static const char *const good[] = {
    "{}",
    "[]",
    " [ ] ",
    "5",
    "-0",
    "-0.0",
    "\"\"",
    "null",
    "\t\r\n true \n",
    "[1,-1,0,12345678901234567,9223372036854775807,-9223372036854775808]",
    "[1.5,-2e3,1E+2,1e-2,0.0e9,0e999999999999999999999,1e-999999999999999999999,4.9e-324,2.2250738585072011e-308]",
    "[1.7976931348623157e308,0.00000000000000000000000000001e330,179769313486231570000e288]",
    "[9007199254740993.0,9007199254740992.99999999999999999999999999999,0.1000000000000000055511151231257827]",
    "{\"a\":{\"b\":[{\"c\":null},[[]],\"x\"],\"d\":{}},\"e\":false}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\\uFFFF\"",
    "{\"\\u0061\":1,\"b\":2,\"\":3,\"a\\\\\":4}",
    "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
    "{\"1234567\":1,\"12345678\":2,\"123456789\":3,\"1234567890123456\":4,\"12345678901234567\":5,\"abc\":6,\"acb\":7}",
};

static const char *const bad[] = {
    "",
    " ",
    "{",
    "[",
    "}",
    "]",
    "[}",
    "{]",
    "[1,]",
    "{,}",
    "[,1]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{a:1}",
    "{1:1}",
    "[1 2]",
    "[1][2]",
    "{} {}",
    "01",
    "-",
    "-01",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "1.e5",
    "0x10",
    "1a",
    "tru",
    "truee",
    "True",
    "nul",
    "NaN",
    "Infinity",
    "'a'",
    "\"",
    "\"a",
    "\"\\",
    "\"\\x\"",
    "\"\\u\"",
    "\"\\u12",
    "\"\\u123g\"",
    "\"\\u0000\"",
    "\"\n\"",
    "\"\x01\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\ud800\\u0041\"",
    "\"\\ud800\\ud800\"",
    "\"\\udc00\\udc00\"",
    "\"\\ud800x",
    "\"\xff\"",
    "\"\xc3",
    "\"\xc3\"",
    "\"\xed\xa0\x80\"",
    "\"\xc0\xaf\"",
    "\xef\xbb\xbf{}",
    "\xff",
    "/**/1",
    "{\"a\":1,\"a\":1}",
    "9223372036854775808",
    "-9223372036854775809",
    "1e309",
    "-1e309",
    "1e999999999999999999999",
    "1797693134862315900000e288",
    "[\"a\":1]",
    "{\"a\",1}",
    "{\"a\" 1}",
    "\x1b",
    "\v1",
    "{\"\\u0061\":1,\"a\":2}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"\\u00e9\":1,\"\xc3\xa9\":2}",
    "[1}",
    "{\"a\":1]",
    "\"\\u-123\"",
    "\"\\u@@@@\"",
    "1 1",
    "nullx",
};

static void test_cases (void)
{
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++)
        if (!ok (read_text (good[i]) && same_exact (good[i], strlen (good[i])),
                 "jsonview accepts a text that jansson accepts: text %zu", i))
            diag ("%s: %s", good[i], error.text);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        if (!ok (!read_text (bad[i]) && errno == EINVAL && same_exact (bad[i], strlen (bad[i])),
                 "jsonview refuses a text that jansson refuses: text %zu: %s", i,
                 error.fault == JV_UTF8 ? "UTF-8" : "JSON"))
            diag ("%s", bad[i]);
    ok (same_exact ("1\0", 2) && same_exact ("\0", 1) && same_exact ("\"\0\"", 3) && same_exact ("[\0]", 3),
        "a NUL is refused at each place of a JSON text");
}

static void test_access (void)
{
    static const char text[] =
        "{\"s\":\"ab\\u0063\",\"plain\":\"abc\",\"n\":7,\"r\":1.5,\"a\":[1,[2,3],{\"x\":4}],\"\\u006f\":{}}";
    const struct jv *o = read_text (text), *a = jv_member (o, "a"), *it;
    char buf[4] = "zzz";
    int64_t sum = 0;

    ok (jv_same (jv_member (o, "s"), jv_member (o, "plain")) && jv_equals (jv_member (o, "s"), "abc"),
        "a JSON string with escapes equals the same string without escapes");
    ok (!jv_equals (jv_member (o, "s"), "ab") && !jv_equals (jv_member (o, "s"), "abcd")
            && !jv_equals (jv_member (o, "s"), "ab\\u0063"),
        "two different JSON strings are not equal");
    ok (jv_copy (jv_member (o, "s"), buf, 3) == 3 && strcmp (buf, "ab") == 0
            && jv_copy (jv_member (o, "plain"), buf, 3) == 3 && strcmp (buf, "ab") == 0
            && jv_copy (jv_member (o, "s"), NULL, 0) == 3,
        "a copy of a string into a small buffer is cut, and the full length is returned");
    ok (jv_copy (jv_member (o, "n"), buf, 4) == 0 && strcmp (buf, "") == 0,
        "a value that is not a string is copied as an empty string");
    errno = 0;
    ok (!jv_strdup (jv_member (o, "n"), NULL) && errno == EINVAL, "a value that is not a string cannot be duplicated");
    ok (jv_is (jv_member (o, "o"), JV_OBJECT) && !jv_member (o, "\\u006f"),
        "a key with escapes is found by its name without escapes");
    ok (!jv_member (o, "x") && !jv_member (a, "x") && !jv_member (NULL, "x") && jv_count (NULL) == 0
            && !jv_is (NULL, JV_NULL),
        "the accessors return NULL for a missing value");
    ok (jv_integer (jv_member (o, "n")) == 7 && jv_integer (jv_member (o, "r")) == 0 && jv_integer (NULL) == 0
            && jv_number (jv_member (o, "r")) == 1.5 && jv_number (jv_member (o, "n")) == 7 && jv_number (a) == 0,
        "the accessors for numbers return the number, and 0 for other values");
    jv_foreach (a, it)
        sum = sum * 10 + jv_integer (it) + (int64_t)jv_count (it);
    ok (sum == 121, "an iteration visits all elements of an array or object, with any content");
    ok (a->size == strlen ("[1,[2,3],{\"x\":4}]") && strncmp (a->text, "[1,[2,3],{\"x\":4}]", a->size) == 0
            && o->size == sizeof (text) - 1,
        "the text of an array or object that is returned includes its brackets");
    o = read_text ("-0.0");
    ok (signbit (jv_number (o)), "the number -0.0 keeps its sign");
}

/* --- errors -------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *why;
    size_t line, column;
    enum jv_fault fault;
} errors[] = {
    { "", "unexpected token near end of file", 1, 0, JV_SYNTAX },
    { "[\n", "unexpected token near end of file", 2, 0, JV_SYNTAX },
    { "[1,\n nul]", "invalid token near 'nul'", 2, 4, JV_SYNTAX },
    { "[1,]", "unexpected token near ']'", 1, 4, JV_SYNTAX },
    { "[1 2]", "']' expected near '2'", 1, 4, JV_SYNTAX },
    { "{\"a\":1 \"b\"", "'}' expected near '\"b\"'", 1, 10, JV_SYNTAX },
    { "{\"a\" \"\\n", "':' expected near '\"'", 1, 6, JV_SYNTAX },
    { "{\"a\" 1}", "':' expected near '1'", 1, 6, JV_SYNTAX },
    { "{5}", "string or '}' expected near '5'", 1, 2, JV_SYNTAX },
    { "{} true", "end of file expected near 'true'", 1, 7, JV_SYNTAX },
    { "[\"\xc3\xa9\", 01]", "invalid token near '01'", 1, 8, JV_SYNTAX },
    { "[\xc3\xa9]", "invalid token near '\xc3\xa9'", 1, 2, JV_SYNTAX },
    { "[\xe9]", "unable to decode byte 0xe9", 1, 1, JV_UTF8 },
    { "[\"caf\xe9\"]", "unable to decode byte 0xe9 near '\"caf'", 1, 5, JV_UTF8 },
    { "[\"\\x\"]", "invalid escape near '\"\\'", 1, 3, JV_SYNTAX },
    { "[\"a\nb\"]", "unexpected newline near '\"a'", 1, 3, JV_SYNTAX },
    { "[\"a\tb\"]", "control character 0x9 near '\"a'", 1, 3, JV_SYNTAX },
    { "[\"a", "premature end of input near end of file", 1, 3, JV_SYNTAX },
    { "{\"k\":1,\n\"k\":2}", "duplicate object key near '\"k\"'", 2, 3, JV_SYNTAX },
    { "[99999999999999999999]", "too big integer near '99999999999999999999'", 1, 21, JV_SYNTAX },
    { "[-9223372036854775809]", "too big negative integer near '-9223372036854775809'", 1, 21, JV_SYNTAX },
    { "[1e999]", "real number overflow near '1e999'", 1, 6, JV_SYNTAX },
    { "[xxxxxxxxxxxxxxxxxxxxxxxxx]", "invalid token", 1, 26, JV_SYNTAX },
};

static void test_errors (void)
{
    for (size_t i = 0; i < sizeof (errors) / sizeof (errors[0]); i++)
        if (!ok (!read_text (errors[i].text) && errno == EINVAL && strcmp (error.text, errors[i].why) == 0
                     && error.line == errors[i].line && error.column == errors[i].column
                     && error.fault == errors[i].fault,
                 "an error is at line %zu, column %zu: error %zu", errors[i].line, errors[i].column, i))
            diag ("line %zu, column %zu: %s", error.line, error.column, error.text);
}

/* --- bounds -------------------------------------------------------------------------------------------- */

static bool bounded (const char *text, uint32_t depth, uint32_t values)
{
    return jv_read (&reader, text, strlen (text), depth, values, &error);
}

static void test_bounds (void)
{
    ok (bounded ("5", 0, 1) && !bounded ("[]", 0, 1) && error.fault == JV_DEPTH && bounded ("[[{}],[[]]]", 3, 5)
            && !bounded ("[[{}],[[]]]", 2, 5) && error.fault == JV_DEPTH && error.column == 3,
        "the depth of a JSON text is limited, and closed arrays do not count");
    ok (!bounded ("[[{}],[[]]]", 3, 4) && error.fault == JV_VALUES && !bounded ("5", 1, 0) && error.fault == JV_VALUES,
        "the number of values of a JSON text is limited");
    ok (bounded ("{\"a\":1,\"b\":{\"c\":2}}", 2, 4) && !bounded ("{\"a\":1,\"b\":{\"c\":2}}", 2, 3),
        "keys do not count towards the limit of values of a JSON text");
    ok (!jv_read (&reader, "5", (size_t)UINT32_MAX + 1, 1, 1, &error) && errno == EMSGSIZE,
        "a JSON text of 4 GiB is refused without reading it");
}

static char *many_keys (uint32_t n, const char *format, uint32_t twice)
{
    char *text = malloc (n * 64 + 8), *p = text;

    *p++ = '{';
    for (uint32_t i = 0; i < n; i++) {
        p += sprintf (p, "%s\"", i > 0 ? "," : "");
        p += sprintf (p, format, i == twice ? n / 3 : i);
        p += sprintf (p, "\":%u", i);
    }
    strcpy (p, "}");
    return text;
}

static void test_keys (void)
{
    static const char *const formats[] = { "%u", "PREFIX_OF_ALL_%08u", "%08u_and_more_behind", "\\u0041%u" };
    bool good_ones = true, twice = true;

    for (size_t f = 0; f < sizeof (formats) / sizeof (formats[0]); f++)
        for (uint32_t n = 2; n < 5000; n += 1 + n / 2) {
            char *all = many_keys (n, formats[f], n), *bad_one = many_keys (n, formats[f], n - 1);
            good_ones &= same_exact (all, strlen (all));
            twice &= same_exact (bad_one, strlen (bad_one))
                     && !jv_read (&reader, bad_one, strlen (bad_one), 1, 5000, &error)
                     && strncmp (error.text, "duplicate object key", 20) == 0;
            free (all);
            free (bad_one);
        }
    ok (good_ones, "an object with many keys is accepted");
    ok (twice, "a duplicate among the many keys of an object is found");
}

/* The hash of a 16-byte key after its first 8 bytes. The other 8 bytes can be chosen to cancel it, so that all such
 * keys have the same place in the table.
 */
static uint64_t hash_of_first (const char *key)
{
    static const uint64_t odd = UINT64_C (0x9e3779b97f4a7c15);
    uint64_t first, h;

    memcpy (&first, key, 8);
    h = (16 * odd ^ le64toh (first)) * odd;
    return h ^ h >> 32;
}

static bool complete_key (char key[16])
{
    uint64_t last = htole64 (hash_of_first (key) ^ UINT64_C (0x5050505050505050));

    memcpy (key + 8, &last, 8);
    for (int i = 8; i < 16; i++)
        if (key[i] < 0x20 || key[i] > 0x7e || key[i] == '"' || key[i] == '\\')
            return false;
    return true;
}

static void test_keys_that_meet (void)
{
    enum { N = 3000 };
    char *text = malloc (N * 24 + 8), *p = text, key[17] = "";
    uint32_t made = 0;

    *p++ = '{';
    for (uint32_t i = 0; made < N && i < UINT32_MAX; i++) {
        for (int k = 0; k < 8; k++)
            key[k] = (char)('A' + (i >> 4 * k & 15));
        if (complete_key (key))
            p += sprintf (p, "%s\"%s\":1", made++ > 0 ? "," : "", key);
    }
    strcpy (p, "}");
    const struct jv *v = jv_read (&reader, text, strlen (text), 1, N + 1, &error);
    ok (v && jv_count (v) == N, "an object with %d keys that have the same place in the hash table is accepted", N);
    memcpy (p - 20, text + 1, 18);
    ok (!jv_read (&reader, text, strlen (text), 1, N + 1, &error) && strncmp (error.text, "duplicate", 9) == 0,
        "a duplicate among keys that have the same place in the hash table is refused");
    free (text);
}

static void test_sorted (void)
{
    char text[200] = "";
    bool sorted = true;

    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            static const char *const keys[] = { "\\u0061", "ab", "abc", "b", "" };
            snprintf (text, sizeof (text), "{\"\\u0041\":0,\"%s\":1,\"%s\":2}", keys[i], keys[j]);
            sorted = sorted && !jv_read (&reader, text, strlen (text), 1, 9, &error) == (i == j);
        }
    ok (sorted, "keys with escapes are compared without their escapes");
}

/* --- memory -------------------------------------------------------------------------------------------- */

static void test_memory (void)
{
    char *text = many_keys (3000, "%u", 3000);
    const struct jv *v = NULL;
    bool good_ones = true;
    int n = 0;

    for (; !v && n < 100; n++) {
        jv_reader_fini (&reader);
        countdown = n;
        v = jv_read (&reader, text, strlen (text), 1, 5000, &error);
        good_ones &= v || errno == ENOMEM;
        countdown = -1;
    }
    ok (good_ones && v && n > 3, "a failure of any of %d allocations is reported as ENOMEM", n - 1);
    uint32_t room = reader.room;
    countdown = 0;
    v = read_text ("[1,2]");
    countdown = -1;
    ok (!v && errno == ENOMEM && room > 4096 && reader.room == 0,
        "the reader frees the memory of a long text when it reads the next text");
    read_text ("[1,2]");
    countdown = 0;
    v = read_text ("{\"a\":[1,2,3],\"b\":4}");
    ok (v && failures > 0, "the reader keeps the memory of a short text");
    errno = 0;
    ok (!jv_strdup (jv_value (v + 1) - 1, NULL) && errno == ENOMEM,
        "a copy of a string without memory fails with ENOMEM");
    countdown = -1;
    free (text);
}

/* --- anything ------------------------------------------------------------------------------------------ */

static uint64_t seed = 1;

static uint32_t draw (uint32_t n)
{
    seed = seed * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

#define TEXT_MAX 4096

struct out {
    char text[TEXT_MAX];
    size_t size;
};

static void put (struct out *o, const char *s)
{
    size_t n = strlen (s);

    if (o->size + n < TEXT_MAX)
        memcpy (o->text + o->size, s, n);
    o->size += o->size + n < TEXT_MAX ? n : 0;
}

static void put_string (struct out *o)
{
    static const char *const parts[] = { "a",
                                         "b",
                                         "key",
                                         "0",
                                         "\\n",
                                         "\\u0061",
                                         "\\\"",
                                         "\\\\",
                                         "\xc3\xa9",
                                         "\\ud83d\\ude00",
                                         "\xf0\x9f\x98\x80",
                                         "longer than eight",
                                         "é",
                                         "\\/" };

    put (o, "\"");
    for (uint32_t n = draw (4); n > 0; n--)
        put (o, parts[draw (sizeof (parts) / sizeof (parts[0]))]);
    put (o, "\"");
}

static void put_number (struct out *o)
{
    char buf[80];

    snprintf (buf, sizeof (buf), "%s%u", draw (3) ? "" : "-", draw (2) ? draw (20) : draw (UINT32_MAX));
    put (o, buf);
    if (draw (4) == 0)
        for (uint32_t n = draw (30); n > 0; n--)
            put (o, n % 2 ? "7" : "30");
    if (draw (3) == 0)
        put (o, draw (2) ? ".25" : ".000000000000000000000000000000000001");
    snprintf (buf, sizeof (buf), "%s%u", draw (2) ? "e-" : "E", draw (330));
    if (draw (4) == 0)
        put (o, buf);
}

static void put_any (struct out *o, int depth)
{
    static const char *const words[] = { "null", "true", "false", "{}", "[]" };
    const uint32_t kind = draw (depth > 6 ? 3 : 5);

    put (o, draw (6) ? "" : " \n");
    if (kind == 0)
        put (o, words[draw (5)]);
    else if (kind == 1)
        put_string (o);
    else if (kind == 2)
        put_number (o);
    else {
        put (o, kind == 3 ? "[" : "{");
        for (uint32_t i = 0, n = draw (5) ? draw (5) : draw (30); i < n; i++) {
            put (o, i > 0 ? "," : "");
            if (kind == 4) {
                put_string (o);
                put (o, ":");
            }
            put_any (o, depth + 1);
        }
        put (o, kind == 3 ? "]" : "}");
    }
    put (o, draw (6) ? "" : "\t ");
}

static void mutate (struct out *o)
{
    static const char bytes[] = "{}[]:,\"\\u0019aeE+-. \n\t\x80\xc3\xff\x01/tn";
    size_t at = draw ((uint32_t)o->size + 1), n = draw (3);

    if (draw (2) && at < o->size)
        o->text[at] = bytes[draw (sizeof (bytes))];
    else if (draw (2) && at + n <= o->size) {
        memmove (o->text + at, o->text + at + n, o->size - at - n);
        o->size -= n;
    }
    else if (o->size + 1 < TEXT_MAX) {
        memmove (o->text + at + 1, o->text + at, o->size - at);
        o->text[at] = bytes[draw (sizeof (bytes))];
        o->size++;
    }
}

static void test_anything (void)
{
    uint32_t different = 0, taken = 0, refused = 0;

    for (int i = 0; i < tap_turns (30000); i++) {
        struct out o = { .size = 0 };
        put_any (&o, 0);
        for (int m = 0; m < 4; m++) {
            bool same = same_exact (o.text, o.size);
            bool good_one = jv_read (&reader, o.text, o.size, 100, 5000, &error);
            taken += good_one;
            refused += !good_one;
            if (!same && different++ < 5)
                diag ("%.*s", (int)(o.size < 200 ? o.size : 200), o.text);
            mutate (&o);
        }
    }
    ok (different == 0 && taken > 1000 && refused > 1000,
        "of random texts jsonview and jansson accept the same %u and refuse the same %u", taken, refused);
}

static void test_reals (void)
{
    uint32_t different = 0;
    char text[3000];

    for (int i = 0; i < tap_turns (200000); i++) {
        uint64_t bits = (uint64_t)draw (UINT32_MAX) << 33 ^ (uint64_t)draw (UINT32_MAX) << 11 ^ draw (4096);
        double d;
        memcpy (&d, &bits, sizeof (d));
        if (!isfinite (d))
            continue;
        snprintf (text, sizeof (text), i % 100 ? "%.17e" : i % 200 ? "%.1100f" : "%.1100e", d);
        const struct jv *v = read_text (text);
        different += !v || jv_number (v) != d || signbit (jv_number (v)) != signbit (d);
    }
    ok (different == 0, "real numbers have the value of their text, with any number of digits");
    /* A number half way between two doubles, and one with a late digit that decides. */
    memset (text, '0', sizeof (text));
    memcpy (text, "9007199254740993.", 17);
    text[2000] = '\0';
    const struct jv *v = read_text (text);
    ok (v && jv_number (v) == 9007199254740992.0, "a number half way between two doubles is rounded to the even one");
    text[1999] = '1';
    v = read_text (text);
    ok (v && jv_number (v) == 9007199254740994.0, "a late digit of a number decides between two doubles");
}

int main (int argc, char *argv[])
{
    test_cases ();
    test_access ();
    test_errors ();
    test_bounds ();
    test_keys ();
    test_keys_that_meet ();
    test_sorted ();
    test_memory ();
    test_anything ();
    test_reals ();
    jv_reader_fini (&reader);
    return done_testing ();
}
