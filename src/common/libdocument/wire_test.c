/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_test.c - payloads are the expected JSON, and can be read */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdocument/document.h"
#include "test/tap.h"

#define UUID "6a0b79c1-7c4f-4c5b-9f3e-0123456789ab"

static bool is_good (const char *name)
{
    return docwire_check_name (name, NULL) == 0;
}

static void check_names (void)
{
    char name[DOCWIRE_NAME_MAX + 2] = "";
    idt_error_t error;

    memset (name, 'n', DOCWIRE_NAME_MAX);
    ok (is_good (name) && is_good ("a") && is_good ("Az09._-"),
        "the name of a document may have letters, digits, and . _ -");
    name[DOCWIRE_NAME_MAX] = 'n';
    ok (!is_good (name) && !is_good (""), "the name of a document is refused if it is empty or too long");
    ok (!is_good (".a") && !is_good ("-a") && !is_good ("a b") && !is_good ("a/b") && !is_good ("\xc3\xa4"),
        "the name of a document is refused if it has other characters than letters, digits, and . _ -");
    ok (docwire_check_name ("a*", &error) < 0 && errno == EINVAL && strstr (error.text, "'a*' is not a valid name"),
        "the error text of a refused name says why: %s", error.text);
}

static void check_uuids (void)
{
    char a[IDCOMP_UUID_TEXT_MAX], b[IDCOMP_UUID_TEXT_MAX];
    struct idcomp_uuid uuid;

    ok (docwire_random_uuid (a) == 0 && docwire_random_uuid (b) == 0 && strcmp (a, b) != 0
            && idcomp_uuid_parse (a, strlen (a), &uuid, NULL) == 0,
        "a new document gets a random UUID: %s", a);
}

/* --- ranges ----------------------------------------------------------------------------------------- */

static const char *const range_text[] = {
    "{\"sessionId\":\"" UUID "\",\"ids\":{\"firstGenCount\":1,\"count\":2,\"requestedClusterSize\":512,"
    "\"localIdRanges\":[[1,2]]}}",
    "{\"sessionId\":\"" UUID "\",\"ids\":{\"firstGenCount\":3,\"count\":1,\"requestedClusterSize\":512,"
    "\"localIdRanges\":[]}}",
};

static json_t *parse_new (char *text)
{
    json_t *o = text ? json_loads (text, 0, NULL) : NULL;

    free (text);
    return o;
}

static bool is_string (const json_t *o, const char *key, const char *value)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s && strcmp (s, value) == 0;
}

static bool is_number (const json_t *o, const char *key, int64_t value)
{
    const json_t *n = json_object_get (o, key);

    return json_is_integer (n) && json_integer_value (n) == value;
}

static bool is_range (const json_t *o, const char *text)
{
    json_t *expected = json_loads (text, 0, NULL);
    bool same = json_equal (o, expected);

    json_decref (expected);
    return same;
}

static void check_range (void)
{
    json_t *o = json_loads (range_text[0], 0, NULL), *bad = json_pack ("{s:i}", "sessionId", 7), *n = json_integer (7);
    struct idcomp_range range;
    idt_error_t error;

    ok (docwire_get_range (o, &range, &error) == 0 && range.first == 1 && range.count == 2,
        "a range is read from JSON");
    json_t *element = parse_new (docwire_element ("doc", UUID, UINT64_C (0x0123456789abcdef), 4, &range));
    ok (is_string (element, "document", "doc") && is_string (element, "uuid", UUID) && is_number (element, "seq", 4)
            && is_string (element, "digest", "0123456789abcdef")
            && is_range (json_array_get (json_object_get (element, "ranges"), 0), range_text[0]),
        "the announcement of a range contains the range unchanged");
    idcomp_range_fini (&range);
    ok (docwire_get_range (bad, &range, &error) < 0 && errno == EINVAL && strstr (error.text, "sessionId"),
        "an invalid range is refused, and the error names the invalid member: %s", error.text);
    ok (docwire_get_range (n, &range, NULL) < 0 && errno == EINVAL, "a range that is not an object is refused");
    json_decref (element);
    json_decref (o);
    json_decref (bad);
    json_decref (n);
}

static const char *text_of (void *arg, int64_t seq)
{
    return range_text[seq - *(const int64_t *)arg];
}

static void check_ranges (void)
{
    int64_t first = 8;
    uint64_t digest = 0xab;
    json_t *event = parse_new (docwire_ranges ("doc", UUID, &digest, -1, first, 2, text_of, &first));
    json_t *answer = parse_new (docwire_ranges ("doc", UUID, NULL, 9, first, 0, text_of, &first));
    const json_t *ranges = json_object_get (event, "ranges");

    ok (is_number (event, "seq", 8) && is_string (event, "digest", "00000000000000ab") && json_array_size (ranges) == 2
            && is_range (json_array_get (ranges, 0), range_text[0])
            && is_range (json_array_get (ranges, 1), range_text[1]),
        "the ranges of an event are numbered from the number of the first one on");
    ok (!json_object_get (event, "newest") && is_number (answer, "newest", 9) && !json_object_get (answer, "digest"),
        "a list of ranges has no member for a number that is not known");
    ok (json_is_array (json_object_get (answer, "ranges")), "a list of no ranges is empty");
    json_decref (event);
    json_decref (answer);
}

/* --- forms ------------------------------------------------------------------------------------------ */

#define SIZE (DOCWIRE_PIECE + 100)

static void fill (unsigned char *form)
{
    for (size_t i = 0; i < SIZE; i++)
        form[i] = (unsigned char)(i * 31 + i / 7);
}

/* Whether the bytes in "state" equal the bytes of 'form' from 'offset' on. */
static bool has_bytes (const json_t *o, const unsigned char *form, size_t offset, size_t n)
{
    size_t size;
    unsigned char *bytes = docwire_get_form (json_string_value (json_object_get (o, "state")), &size);
    bool same = bytes && size == n && memcmp (bytes, form + offset, n) == 0;

    free (bytes);
    return same;
}

static void check_forms (void)
{
    static unsigned char form[SIZE];

    fill (form);
    json_t *small = parse_new (docwire_state ("doc", UUID, 9, 8, form, 100, 0));
    ok (is_number (small, "newest", 9) && is_number (small, "seq", 8) && has_bytes (small, form, 0, 100)
            && !json_object_get (small, "size"),
        "a small form is sent whole");
    json_t *a = parse_new (docwire_state ("doc", UUID, 9, 8, form, SIZE, 0));
    json_t *b = parse_new (docwire_state ("doc", UUID, 9, 8, form, SIZE, DOCWIRE_PIECE));
    ok (has_bytes (a, form, 0, DOCWIRE_PIECE) && has_bytes (b, form, DOCWIRE_PIECE, 100)
            && is_number (a, "size", IDCOMP_BASE64_TEXT_SIZE (SIZE) - 1),
        "a form above the size of a piece is sent in pieces, with the length of its text");
    json_t *whole = parse_new (docwire_state ("doc", UUID, 8, 8, form, SIZE, DOCWIRE_WHOLE));
    ok (has_bytes (whole, form, 0, SIZE) && !json_object_get (whole, "size"),
        "a form above the size of a piece is sent whole on request");
    size_t size;
    ok (!docwire_get_form ("****", &size) && errno == IDCOMP_ECORRUPT_BASE64,
        "a form whose text is not base64 is refused");
    json_decref (small);
    json_decref (a);
    json_decref (b);
    json_decref (whole);
}

int main (void)
{
    check_names ();
    check_uuids ();
    check_range ();
    check_ranges ();
    check_forms ();
    return done_testing ();
}
