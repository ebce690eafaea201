/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_text_test.c - all ways to convert agree, on good and on hostile input */
#include <errno.h>
#include <string.h>

#include "libsno/sno_text.h"
#include "libutil/tap.h"

static const char *const names[SNO_PATH_COUNT] = { "scalar", "SSSE3", "AVX2" };

static uint64_t next_random (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

static sno_t random_id (uint64_t *state)
{
    sno_t id;
    uint64_t head = next_random (state), tail = next_random (state);
    memcpy (id.bytes, &head, 8);
    memcpy (id.bytes + 8, &tail, 2);
    return id;
}

static bool encodes_like_scalar (enum sno_path path, const sno_t *id)
{
    char expected[SNO_TEXT_MAX], text[SNO_TEXT_MAX];
    sno_t read;

    sno_path_format (SNO_PATH_SCALAR, id, expected, sizeof (expected));
    return sno_path_format (path, id, text, sizeof (text)) == SNO_TEXT_LEN && !memcmp (text, expected, sizeof (text))
           && sno_path_parse (path, text, 16, &read, NULL) == 0 && !memcmp (&read, id, sizeof (read));
}

/* Every bit alone, every bit missing, and random ids. */
static void test_encode (enum sno_path path)
{
    uint64_t state = 1;
    unsigned good = 0, n = 0;

    for (int bit = 0; bit < 80; bit++) {
        sno_t one = { { 0 } }, all;
        one.bytes[bit / 8] = (uint8_t)(1 << bit % 8);
        for (int i = 0; i < SNO_SIZE; i++)
            all.bytes[i] = (uint8_t)~one.bytes[i];
        good += encodes_like_scalar (path, &one) + encodes_like_scalar (path, &all);
        n += 2;
    }
    for (int i = 0; i < 100000; i++, n++) {
        sno_t id = random_id (&state);
        good += encodes_like_scalar (path, &id);
    }
    ok (good == n, "%s writes and reads %u ids as the plain form does", names[path], n);
}

static void test_room (enum sno_path path)
{
    const sno_t id = { { 1, 2, 3 } };
    char text[SNO_TEXT_MAX], untouched[SNO_TEXT_MAX];
    size_t refused = 0;

    memset (untouched, '#', sizeof (untouched));
    memcpy (text, untouched, sizeof (text));
    for (size_t size = 0; size < SNO_TEXT_MAX; size++)
        refused += sno_path_format (path, &id, text, size) < 0 && errno == ENOSPC
                   && !memcmp (text, untouched, sizeof (text));
    ok (refused == SNO_TEXT_MAX, "%s: a buffer that is too small is ENOSPC and stays untouched", names[path]);
}

/* Each of the 256 bytes in each of the 16 places. */
static void test_decode (enum sno_path path)
{
    unsigned agreed = 0, taken = 0;

    for (int place = 0; place < SNO_TEXT_LEN; place++)
        for (int c = 0; c < 256; c++) {
            char text[SNO_TEXT_MAX] = "brpk4q72xwf2m63l";
            sno_t expected, id, untouched;
            memset (&expected, 0x5a, sizeof (expected));
            untouched = id = expected;
            text[place] = (char)c;
            size_t pos = 99;
            bool good = sno_path_parse (SNO_PATH_SCALAR, text, 16, &expected, NULL) == 0;
            bool same = (sno_path_parse (path, text, 16, &id, &pos) == 0) == good
                        && !memcmp (&id, &expected, sizeof (id));
            agreed += same && (good || (!memcmp (&id, &untouched, sizeof (id)) && pos == (size_t)place));
            taken += good;
        }
    ok (agreed == 16 * 256, "%s judges every byte in every place as the plain form does", names[path]);
    ok (taken == 16 * 32, "... and that takes 32 of them in each");
}

int main (void)
{
    for (int path = 0; path < SNO_PATH_COUNT; path++) {
        if (!sno_path_works (path)) {
            skip (names[path], "not on this processor");
            continue;
        }
        test_encode (path);
        test_room (path);
        test_decode (path);
    }
    char text[SNO_TEXT_MAX];
    memset (text, '#', sizeof (text));
    sno_format (&(sno_t){ { 0 } }, text, sizeof (text));
    ok (!strcmp (text, "2222222222222222"), "the zero id is sixteen 2 with a NUL");
    return done_testing ();
}
