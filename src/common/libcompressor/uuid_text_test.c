/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_text_test.c - all ways to convert agree, on good and on hostile input */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libutil/tap.h"
#include "uuid_text.h"

static const char *const names[UUID_PATH_COUNT] = {"on words", "on vectors"};

static uint64_t next_random (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The text as printf writes it. */
static void print (const struct idcomp_uuid *uuid, char text[IDCOMP_UUID_TEXT])
{
    const unsigned char *b = uuid->bytes;

    snprintf (text, IDCOMP_UUID_TEXT,
              "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
              b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
              b[15]);
}

static bool converts (enum uuid_path path, const struct idcomp_uuid *uuid)
{
    char expected[IDCOMP_UUID_TEXT];
    char text[IDCOMP_UUID_TEXT];
    struct idcomp_uuid read;

    print (uuid, expected);
    uuid_path_write (path, uuid, text);
    if (memcmp (text, expected, sizeof (text)) != 0 || !uuid_path_read (path, text, &read) ||
        memcmp (&read, uuid, sizeof (read)) != 0)
        return false;
    for (char *p = text; *p; p++)
        *p = (char)toupper ((unsigned char)*p);
    return uuid_path_read (path, text, &read) && memcmp (&read, uuid, sizeof (read)) == 0;
}

/* Every byte in every place, and random ones. */
static void test_convert (enum uuid_path path)
{
    uint64_t state = 1;
    unsigned good = 0;
    unsigned n = 0;

    for (int place = 0; place < 16; place++) {
        for (int byte = 0; byte < 256; byte++, n++) {
            struct idcomp_uuid uuid = {{0}};
            uuid.bytes[place] = (unsigned char)byte;
            good += converts (path, &uuid);
        }
    }
    for (int i = 0; i < 100000; i++, n++) {
        struct idcomp_uuid uuid;
        uint64_t random[2] = {next_random (&state), next_random (&state)};
        memcpy (uuid.bytes, random, sizeof (uuid.bytes));
        good += converts (path, &uuid);
    }
    ok (good == n, "%s: %u UUIDs are written as printf does, and read back in both letter cases",
        names[path], n);
}

static bool fits (char c, bool hyphen)
{
    return hyphen ? c == '-' : isxdigit ((unsigned char)c) && (unsigned char)c < 128;
}

/* Each of the 256 characters in each of the 36 places. */
static void test_hostile (enum uuid_path path)
{
    static const char good[] = "01234567-89aB-cdEf-5a5A-0f9F6b7e8D1c";
    unsigned right = 0;
    unsigned n = 0;

    for (size_t place = 0; place < sizeof (good) - 1; place++) {
        for (int c = 0; c < 256; c++, n++) {
            char text[sizeof (good)];
            struct idcomp_uuid uuid;
            memcpy (text, good, sizeof (text));
            text[place] = (char)c;
            right += uuid_path_read (path, text, &uuid) == fits ((char)c, good[place] == '-');
        }
    }
    ok (right == n, "%s: every character in every place is judged", names[path]);
}

int main (void)
{
    for (int path = 0; path < UUID_PATH_COUNT; path++) {
        if (!uuid_path_works (path)) {
            skip (names[path], "not on this processor");
            continue;
        }
        test_convert (path);
        test_hostile (path);
    }
    return done_testing ();
}
