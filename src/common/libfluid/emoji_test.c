/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* emoji_test.c - all digits of base 576, and all code points and bytes that are not digits */
#include <errno.h>
#include <string.h>

#include "form.h"
#include "test/tap.h"

#define BASE 576

static void put_utf8 (unsigned point, char *s)
{
    s[0] = (char)(0xf0 | point >> 18);
    s[1] = (char)(0x80 | (point >> 12 & 0x3f));
    s[2] = (char)(0x80 | (point >> 6 & 0x3f));
    s[3] = (char)(0x80 | (point & 0x3f));
}

/* Find the 576 digits by reading each code point that has four bytes in UTF-8. */
static void test_all_points (void)
{
    bool seen[BASE] = { false }, back = true, above = true;
    int digits = 0;

    for (unsigned point = 0x10000; point <= 0x10ffff; point++) {
        char text[4], written[32];
        fluid_t id;
        size_t pos;

        put_utf8 (point, text);
        if (form_emoji_decode (text, 0, 4, &id, &pos) < 0)
            continue;
        digits++;
        above &= point >= 0x1f000 && id < BASE && !seen[id];
        if (id < BASE)
            seen[id] = true;
        back &= form_emoji_encode (id, written) == 4 && memcmp (written, text, 4) == 0;
    }
    ok (digits == BASE, "exactly 576 code points are digits");
    ok (above, "each emoji digit has its own value below 576, and begins with the bytes F0 9F");
    ok (back, "each value is written as the emoji it was read from");
}

/* Changing a byte of an emoji gives an emoji only if the result is the UTF-8 form of one. */
static void test_all_bytes (void)
{
    static const char first[] = "\xf0\x9f\x98\x83"; /* U+1F603, 0 */
    int accepted = 0;

    for (int at = 0; at < 4; at++) {
        for (int c = 0; c < 256; c++) {
            char text[4], written[32];
            fluid_t id;
            size_t pos;

            memcpy (text, first, 4);
            text[at] = (char)c;
            if (form_emoji_decode (text, 0, 4, &id, &pos) < 0)
                continue;
            accepted++;
            if (form_emoji_encode (id, written) != 4 || memcmp (written, text, 4) != 0)
                accepted = 1000;
        }
    }
    ok (accepted > 4 && accepted < 128, "no wrong byte is accepted as part of an emoji");
}

static bool fails (const char *text, size_t len, int errnum, size_t at)
{
    fluid_t id = 77;
    size_t pos = 99;

    errno = 0;
    return form_emoji_decode (text, 0, len, &id, &pos) == -1 && errno == errnum && pos == at && id == 77;
}

static void test_misfits (void)
{
    static const char two_to_64[] = "🚹💗💧👗😷📷📓";
    char text[64];
    fluid_t id;
    size_t pos, n = form_emoji_encode (UINT64_MAX, text);

    ok (n == 28 && form_emoji_decode (text, 0, n, &id, &pos) == 0 && id == UINT64_MAX,
        "the largest id has seven emoji, and these can be read");
    ok (fails (two_to_64, strlen (two_to_64), ERANGE, 0), "emoji of the number 2^64 fail with ERANGE");
    strcpy (text, two_to_64);
    strcat (text, "🦄");
    ok (fails (text, strlen (text), EINVAL, 28),
        "an unknown emoji fails with EINVAL even after a number that is too large");
    ok (fails ("", 0, EINVAL, 0), "an empty text of emoji fails with EINVAL");
    bool cut = true;
    for (size_t i = 1; i < 4; i++)
        cut &= fails ("😃😃", 4 + i, EINVAL, 4) && fails ("😃", i, EINVAL, 0);
    ok (cut, "a truncated emoji fails with EINVAL");
}

/* Powers of 576 and their neighbours have no leading zeros. */
static void test_lengths (void)
{
    uint64_t power = 1;
    bool right = true;

    for (size_t digits = 1; digits <= 7; digits++, power *= BASE)
        for (int delta = -1; delta <= 1; delta++) {
            char text[32];
            fluid_t id;
            size_t n = form_emoji_encode (power + delta, text);
            right &= n == 4 * (delta < 0 && digits > 1 ? digits - 1 : digits);
            right &= form_emoji_decode (text, 0, n, &id, NULL) == 0 && id == power + delta;
        }
    ok (right, "powers of 576 and their neighbours are written with the fewest possible emoji");
}

int main (void)
{
    test_all_points ();
    test_all_bytes ();
    test_misfits ();
    test_lengths ();
    return done_testing ();
}
