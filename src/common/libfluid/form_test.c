/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* form_test.c - the golden vectors, the texts that are ids, and round trips
 *
 * IDTREE_VECTORS has fluid.json (ids in all forms) and fluid-parse.json (texts that are ids or not).
 */
#include <errno.h>
#include <regex.h>

#include "idtree/fluid.h"
#include "test/ids/vectors.h"

/* --- vectors --------------------------------------------------------------------------- */

static const char *string_of (const json_t *o, const char *key)
{
    const char *s = json_string_value (json_object_get (o, key));

    if (!s) {
        char why[128];

        snprintf (why, sizeof (why),
                  "a row of t/vectors/fluid.json or fluid-parse.json has no text \"%s\": add it there", key);
        bail_out (why);
    }
    return s;
}

static uint64_t number_of (const json_t *o, const char *key)
{
    return strtoull (string_of (o, key), NULL, 10);
}

/* Key of each form in fluid.json. */
static const char *const form_key[FLUID_FORM_COUNT] = {
    [FLUID_DEC] = "id",       [FLUID_HEX] = "hex",     [FLUID_DOTHEX] = "dothex", [FLUID_F58] = "f58_ascii",
    [FLUID_F58_UTF8] = "f58", [FLUID_WORDS] = "words", [FLUID_EMOJI] = "emoji",
};

static bool fields_agree (const json_t *o, fluid_t id)
{
    struct fluid_fields fields = fluid_split (id);

    return fields.timestamp_ms == number_of (o, "timestamp_ms")
           && fields.generator == json_integer_value (json_object_get (o, "generator"))
           && fields.sequence == json_integer_value (json_object_get (o, "sequence"));
}

static bool encodes (fluid_t id, enum fluid_form form, const char *expected)
{
    char buf[FLUID_TEXT_MAX];
    int n = fluid_format (id, form, buf, sizeof (buf));

    return n == (int)strlen (expected) && strcmp (buf, expected) == 0;
}

static bool parses (const char *s, fluid_t expected)
{
    fluid_t id = ~expected;

    return fluid_parse (s, strlen (s), &id, NULL) == 0 && id == expected;
}

/* A buffer that is too small gives ENOSPC and stays untouched; one of exactly the right size is enough. */
static bool respects_size (fluid_t id, enum fluid_form form, size_t len)
{
    char buf[FLUID_TEXT_MAX], untouched[FLUID_TEXT_MAX];

    memset (untouched, '#', sizeof (untouched));
    memcpy (buf, untouched, sizeof (buf));
    for (size_t size = 0; size <= len; size++) {
        errno = 0;
        if (fluid_format (id, form, buf, size) != -1 || errno != ENOSPC || memcmp (buf, untouched, sizeof (buf)) != 0)
            return false;
    }
    return fluid_format (id, form, buf, len + 1) == (int)len && buf[len] == '\0'
           && memcmp (buf + len + 1, untouched, sizeof (buf) - len - 1) == 0;
}

static void test_form_vectors (const json_t *vectors, enum fluid_form form)
{
    const char *name = fluid_form_name (form);
    struct tally written = { .section = name }, read = written;
    bool sized = true;
    size_t i;
    json_t *o;

    json_array_foreach (vectors, i, o) {
        fluid_t id = number_of (o, "id");
        const char *text = string_of (o, form_key[form]);

        tally (&written, NULL, encodes (id, form, text));
        tally (&read, NULL, parses (text, id));
        sized &= respects_size (id, form, strlen (text));
    }
    tally_end (&written, "ids are written as the recorded text");
    tally_end (&read, "texts are read as the recorded id");
    ok (sized, "writing %s into a buffer that is too small fails with ENOSPC and leaves the buffer unchanged", name);
}

static void test_vectors (void)
{
    json_t *vectors = vectors_load ("fluid");
    struct tally fields = { .section = "fields" };
    size_t i;
    json_t *o;

    for (int form = 0; form < FLUID_FORM_COUNT; form++)
        test_form_vectors (vectors, form);
    json_array_foreach (vectors, i, o)
        tally (&fields, NULL, fields_agree (o, number_of (o, "id")));
    tally_end (&fields, "the fields of an id are the recorded ones");
    json_decref (vectors);
}

static bool refuses (const char *s, const char *error)
{
    fluid_t id = 77;
    size_t pos = SIZE_MAX;
    int expected = strcmp (error, "ERANGE") == 0 ? ERANGE : EINVAL;

    errno = 0;
    return fluid_parse (s, strlen (s), &id, &pos) == -1 && errno == expected && pos <= strlen (s) && id == 77;
}

static void test_parse_vectors (void)
{
    json_t *vectors = vectors_load ("fluid-parse");
    struct tally accept = { .section = "accept" }, reject = { .section = "reject" };
    size_t i;
    json_t *o;

    json_array_foreach (vectors_section (vectors, "accept"), i, o)
        tally (&accept, NULL, parses (get_s (o, "input"), number_of (o, "id")));
    tally_end (&accept, "an accepted text is read as the recorded id");
    json_array_foreach (vectors_section (vectors, "reject"), i, o) {
        bool good = refuses (get_s (o, "input"), string_of (o, "error"));
        tally (&reject, NULL, good);
        if (!good)
            diag ("%s: %s", string_of (o, "error"), string_of (o, "why"));
    }
    tally_end (&reject, "an invalid text is refused with the recorded errno");
    json_decref (vectors);
}

/* --- the texts that are ids ------------------------------------------------------------ */

/* The grammar of RFC 19 for the forms of digits, again as a regular expression. */
static const char grammar[] = "^[ \t\n\v\f\r]*"
                              "([0-9]+"
                              "|0x[0-9a-fA-F]+"
                              "|(f|\xc6\x92)[1-9A-HJ-NP-Za-km-z]+"
                              "|[0-9a-fA-F]{1,4}(\\.[0-9a-fA-F]{1,4}){3})"
                              "[ \t\n\v\f\r]*$";

/* Try all texts of 'len' bytes of 'alphabet'. Returns how many the grammar and the parser judge differently. */
static long differences (const regex_t *regex, const char *alphabet, int len)
{
    size_t letters = strlen (alphabet);
    long count = 1, differ = 0;

    for (int i = 0; i < len; i++)
        count *= letters;
    for (long number = 0; number < count; number++) {
        char text[16] = "";
        fluid_t id;

        for (long i = 0, rest = number; i < len; i++, rest /= letters)
            text[i] = alphabet[rest % letters];
        bool valid = regexec (regex, text, 0, NULL, 0) == 0;
        if (valid != (fluid_parse (text, len, &id, NULL) == 0)) {
            if (differ++ == 0)
                diag ("the results for '%s' differ", text);
        }
    }
    return differ;
}

static void test_grammar (void)
{
    regex_t regex;
    long differ = 0;

    if (regcomp (&regex, grammar, REG_EXTENDED | REG_NOSUB) != 0)
        bail_out ("regcomp");
    for (int len = 0; len <= 5; len++)
        differ += differences (&regex, " 01fxFl.-\xc6\x92", len);
    ok (differ == 0, "of the texts of up to 5 of 11 bytes, exactly those are ids that match the grammar");
    differ = 0;
    for (int len = 6; len <= 8; len++)
        differ += differences (&regex, " 0f.x", len);
    ok (differ == 0, "of the texts of 6 to 8 of 5 bytes, exactly those are ids that match the grammar");
    regfree (&regex);
}

static void test_blanks (void)
{
    int before = 0, after = 0;

    for (int c = 0; c < 256; c++) {
        char leading[] = { (char)c, 'f', '2' };
        char trailing[] = { 'f', '2', (char)c };
        fluid_t id;

        before += fluid_parse (leading, 3, &id, NULL) == 0 && id == 1;
        after += fluid_parse (trailing, 3, &id, NULL) == 0 && id == 1;
    }
    ok (before == 6, "exactly six bytes of white space are skipped before an id");
    ok (after == 6, "exactly six bytes of white space are skipped after an id");
}

static void test_detection (void)
{
    ok (parses ("f.f.f.f", UINT64_C (0x000f000f000f000f)), "a text with a dot is dotted hex, also after an f");
    ok (parses ("fabric-academy-academy--academy-academy-academy", 262),
        "a text with a dash is words, also after an f");
    ok (refuses ("f1.", "EINVAL") && refuses ("f1-", "EINVAL"), "base58 with a dot or a dash is refused");
    ok (refuses ("\xf0\x9f", "EINVAL"), "a text of only the first two bytes of an emoji is refused");
    ok (refuses ("\xc6", "EINVAL"), "a text of only the first byte of a prefix is refused");
}

/* The position of the error in 's'; -1: no error. */
static int fault_of (const char *s)
{
    fluid_t id;
    size_t pos = 1000;

    return fluid_parse (s, strlen (s), &id, &pos) < 0 ? (int)pos : -1;
}

static void test_faults (void)
{
    ok (fault_of ("") == 0 && fault_of ("   ") == 0, "in a text without an id the error is at the beginning");
    ok (fault_of (" 12_4 ") == 3 && fault_of (" 0x1g") == 4 && fault_of ("0x") == 2 && fault_of (" f2I") == 3
            && fault_of (" ƒ2I") == 4,
        "the error in digits is at the first character that is not a digit, counting prefix and blanks");
    ok (fault_of (" 1.2.3.4.5") == 8 && fault_of ("1.2.3") == 5,
        "the error in dotted hex is at an extra dot, or at the end");
    ok (fault_of ("academy-acadamy-academy--academy-academy-academy") == 8
            && fault_of ("academy-academy-academy--") == 25 && fault_of ("academy-academy-academy-academy") == 24,
        "the error in words is at the beginning of an unknown word");
    ok (fault_of ("😃😃x") == 8 && fault_of ("😃a😃") == 4, "the error in emoji is at the first byte of an unknown emoji");
    ok (fault_of (" 0x10000000000000000") == 3 && fault_of ("academy-academy-academy--amen-amen-amen") == 25,
        "the error of a number that is too large is at the beginning of the number");
}

/* --- round trips ----------------------------------------------------------------------- */

static bool round_trip (fluid_t id)
{
    for (int form = 0; form < FLUID_FORM_COUNT; form++) {
        char buf[FLUID_TEXT_MAX];
        int n = fluid_format (id, form, buf, sizeof (buf));

        if (n < 1 || strlen (buf) != (size_t)n || !parses (buf, id))
            return false;
    }
    return true;
}

static void test_round_trips (void)
{
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15);
    bool good = true;

    for (uint64_t id = 0; id < 20000; id++)
        good &= round_trip (id) && round_trip (~id);
    ok (good, "the 20000 smallest and largest ids can be written and read in all forms");
    for (int i = 0; i < 100000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        good &= round_trip (x >> i % 64);
    }
    ok (good, "100000 random ids of all lengths can be written and read in all forms");
}

static void test_names (void)
{
    static const char *const names[] = { "dec", "hex", "dothex", "f58", "ƒ58", "words", "emoji" };
    enum fluid_form form = FLUID_HEX;
    char buf[FLUID_TEXT_MAX] = "#";
    bool good = true;

    for (int i = 0; i < FLUID_FORM_COUNT; i++) {
        enum fluid_form found = FLUID_FORM_COUNT;

        good &= strcmp (fluid_form_name (i), names[i]) == 0;
        good &= fluid_form_find (names[i], &found) == 0 && found == (enum fluid_form)i;
    }
    ok (good, "each form has its name");
    ok (!fluid_form_name (FLUID_FORM_COUNT) && !fluid_form_name (-1), "an invalid form has no name");
    errno = 0;
    ok (fluid_form_find ("F58", &form) == -1 && errno == EINVAL && form == FLUID_HEX,
        "a name that no form has fails with EINVAL");
    errno = 0;
    ok (fluid_format (1, FLUID_FORM_COUNT, buf, sizeof (buf)) == -1 && errno == EINVAL && buf[0] == '#',
        "writing an id in an invalid form fails with EINVAL");
}

int main (void)
{
    test_vectors ();
    test_parse_vectors ();
    test_grammar ();
    test_blanks ();
    test_detection ();
    test_faults ();
    test_round_trips ();
    test_names ();
    return done_testing ();
}
