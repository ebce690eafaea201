/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_test.c - UUIDs as text and as numbers, compared with the vectors and by round trips */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "test_vectors.h"

static void check_numeric (const json_t *cases)
{
    size_t i;
    json_t *v;
    char text[IDCOMP_UUID_TEXT_MAX];
    bool good = json_array_size (cases) > 0;

    json_array_foreach (cases, i, v) {
        u128 want = uuidnum_join (strtoull (text_at (v, 1), NULL, 16), strtoull (text_at (v, 2), NULL, 16));
        u128 got = text_num (text_at (v, 0));
        good &= got == want && strcasecmp (num_text (got, text), text_at (v, 0)) == 0;
    }
    ok (good, "the %zu UUIDs of the vectors have their numeric forms, and are restored from them",
        json_array_size (cases));
}

static void check_offset (const json_t *cases)
{
    size_t i;
    json_t *v;
    char text[IDCOMP_UUID_TEXT_MAX];
    bool good = json_array_size (cases) > 0;

    json_array_foreach (cases, i, v) {
        u128 sum = text_num (text_at (v, 0)) + (u128)decimal (text_at (v, 1));
        good &= strcmp (num_text (sum, text), text_at (v, 2)) == 0;
    }
    ok (good, "adding to a UUID skips version and variant in the %zu cases of the vectors", json_array_size (cases));
}

static void check_diff (const json_t *cases)
{
    size_t i;
    json_t *v;
    bool good = json_array_size (cases) > 0;

    json_array_foreach (cases, i, v)
        good &= (__int128)(text_num (text_at (v, 0)) - text_num (text_at (v, 1))) == decimal (text_at (v, 2));
    ok (good, "the difference of two UUIDs is right in the %zu cases of the vectors", json_array_size (cases));
}

static void check_stable (const json_t *cases)
{
    size_t i;
    json_t *v;

    ok (json_array_size (cases) > 0, "the vectors have texts that are stable ids, and texts that are not");
    json_array_foreach (cases, i, v)
        ok (idcomp_is_stable_id (text_at (v, 0)) == (int_at (v, 1) == 1), "'%s' is %sa stable id", text_at (v, 0),
            int_at (v, 1) ? "" : "not ");
}

/* The position of the error in the first 'len' characters; -1: no error. */
static int fault_of (const char *text, size_t len, int errnum)
{
    struct idcomp_uuid uuid;
    size_t pos = 99;

    errno = 0;
    if (idcomp_uuid_parse (text, len, &uuid, &pos) == 0)
        return -1;
    return errno == errnum ? (int)pos : 99;
}

static bool parses (const char *text)
{
    return fault_of (text, strlen (text), 0) == -1;
}

static void check_parse (void)
{
    static const char good[] = "01234567-89aB-4cDe-Bf01-23456789abcD";
    struct idcomp_uuid uuid;
    char text[IDCOMP_UUID_TEXT_MAX];
    bool strict = true;

    ok (idcomp_uuid_parse (good, strlen (good), &uuid, NULL) == 0,
        "the text of a UUID is accepted in both letter cases");
    idcomp_uuid_format (&uuid, text, sizeof (text));
    ok (strcmp (text, "01234567-89ab-4cde-bf01-23456789abcd") == 0, "a UUID is written in lower case");
    for (size_t i = 0; i < sizeof (good) - 1; i++) {
        snprintf (text, sizeof (text), "%s", good);
        text[i] = text[i] == '-' ? '0' : '-';
        strict &= fault_of (text, sizeof (good) - 1, EINVAL) == (int)i;
        text[i] = 'g';
        strict &= fault_of (text, sizeof (good) - 1, EINVAL) == (int)i;
        text[i] = '\0';
        strict &= fault_of (text, sizeof (good) - 1, EINVAL) == (int)i;
        strict &= fault_of (text, i, EMSGSIZE) == (int)i;
    }
    ok (strict,
        "the text of a UUID is refused with a wrong character at any position, and if it is cut at any position");
    ok (fault_of ("01234567-89ab-4cde-bf01-23456789abcde", 37, EMSGSIZE) == 36, "a text longer than a UUID is refused");
    ok (idcomp_uuid_format (&uuid, text, IDCOMP_UUID_TEXT_LEN) < 0 && errno == ENOSPC && text[0] == '0',
        "writing a UUID needs space for the NUL");
    ok (!parses ("------------------------------------"), "a text of hyphens only is refused");
    ok (fault_of ("01234567-89ab-1cde-bf01-23456789abcd", 36, EINVAL) == 14, "a UUID of version 1 is refused");
    ok (fault_of ("01234567-89ab-4cde-cf01-23456789abcd", 36, EINVAL) == 19, "a UUID of another variant is refused");
}

/* Each position except hyphens, version and variant accepts exactly the hex digits. */
static void check_digits (void)
{
    static const char zero[] = "00000000-0000-4000-8000-000000000000";
    char text[IDCOMP_UUID_TEXT_MAX];
    bool good = true;

    for (size_t i = 0; i < sizeof (zero) - 1; i++) {
        for (int c = 1; zero[i] == '0' && c < 256; c++) {
            snprintf (text, sizeof (text), "%s", zero);
            text[i] = c;
            good &= parses (text) == (strchr ("0123456789abcdefABCDEF", c) != NULL);
        }
    }
    ok (good, "at each position of a digit of a UUID exactly the hex digits are accepted, of 255 characters");
}

static void check_random (void)
{
    unsigned char zeros[16] = { 0 };
    unsigned char ones[16];
    char text[IDCOMP_UUID_TEXT_MAX];

    memset (ones, 0xff, sizeof (ones));
    struct idcomp_uuid low = idcomp_uuid_random (zeros);
    struct idcomp_uuid high = idcomp_uuid_random (ones);
    idcomp_uuid_format (&low, text, sizeof (text));
    ok (strcmp (text, "00000000-0000-4000-8000-000000000000") == 0,
        "random bits that are all 0 give the smallest UUID");
    idcomp_uuid_format (&high, text, sizeof (text));
    ok (strcmp (text, "ffffffff-ffff-4fff-bfff-ffffffffffff") == 0, "random bits that are all 1 give the largest UUID");
}

/* Each single bit, and each pair of adjacent bits, is kept by both conversions. */
static void check_bits (void)
{
    bool good = true;

    for (int bit = 0; bit < UUIDNUM_BITS; bit++) {
        for (u128 pattern = 1; pattern <= 3; pattern += 2) {
            u128 num = pattern << bit & (UUIDNUM_END - 1);
            struct idcomp_uuid uuid = uuidnum_to_uuid (num);
            struct idcomp_uuid again;
            char text[IDCOMP_UUID_TEXT_MAX];
            idcomp_uuid_format (&uuid, text, sizeof (text));
            good &= uuid_is_v4 (&uuid) && idcomp_uuid_parse (text, strlen (text), &again, NULL) == 0
                    && uuidnum_from_uuid (&again) == num;
        }
    }
    ok (good, "each of the 122 bits of a UUID is the same in number, UUID and text");
}

static uint64_t next_random (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The text as printf writes it. */
static void print (const struct idcomp_uuid *uuid, char text[IDCOMP_UUID_TEXT_MAX])
{
    const unsigned char *b = uuid->bytes;

    snprintf (text, IDCOMP_UUID_TEXT_MAX, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
              b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static bool converts (const struct idcomp_uuid *uuid)
{
    char expected[IDCOMP_UUID_TEXT_MAX];
    char text[IDCOMP_UUID_TEXT_MAX];
    struct idcomp_uuid read;

    print (uuid, expected);
    idcomp_uuid_format (uuid, text, sizeof (text));
    if (memcmp (text, expected, sizeof (text)) != 0 || idcomp_uuid_parse (text, strlen (text), &read, NULL) < 0
        || memcmp (&read, uuid, sizeof (read)) != 0)
        return false;
    for (char *p = text; *p; p++)
        *p = (char)toupper ((unsigned char)*p);
    return idcomp_uuid_parse (text, strlen (text), &read, NULL) == 0 && memcmp (&read, uuid, sizeof (read)) == 0;
}

/* Each byte value at each position, and random UUIDs. */
static void check_convert (void)
{
    uint64_t state = 1;
    unsigned good = 0;
    unsigned n = 0;

    for (int place = 0; place < 16; place++) {
        for (int byte = 0; byte < 256; byte++, n++) {
            struct idcomp_uuid uuid = { { 0 } };
            uuid.bytes[place] = (unsigned char)byte;
            uuid = idcomp_uuid_random (uuid.bytes);
            good += converts (&uuid);
        }
    }
    for (int i = 0; i < 100000; i++, n++) {
        struct idcomp_uuid uuid;
        uint64_t random[2] = { next_random (&state), next_random (&state) };
        memcpy (uuid.bytes, random, sizeof (random));
        uuid = idcomp_uuid_random (uuid.bytes);
        good += converts (&uuid);
    }
    ok (good == n, "%u UUIDs are written as by printf, and read in both letter cases", n);
}

int main (void)
{
    json_t *root = vectors_load ("idcomp");
    const json_t *uuid = json_object_get (root, "uuid");

    check_numeric (json_object_get (uuid, "numeric"));
    check_offset (json_object_get (uuid, "offset"));
    check_diff (json_object_get (uuid, "diff"));
    check_stable (json_object_get (uuid, "stable"));
    check_parse ();
    check_digits ();
    check_random ();
    check_bits ();
    check_convert ();
    json_decref (root);
    return done_testing ();
}
