/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* digits_test.c - the codecs of digits, compared with printf; base58, compared with arithmetic */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "form.h"
#include "test/tap.h"

/* Powers of several bases, and their neighbours: numbers with the most or the fewest digits. */
static size_t edges (uint64_t *out)
{
    static const unsigned bases[] = { 2, 10, 16, 58, 576, 1626 };
    size_t n = 0;

    for (size_t b = 0; b < sizeof (bases) / sizeof (bases[0]); b++) {
        uint64_t power = 1;

        do {
            for (int delta = -1; delta <= 1; delta++)
                out[n++] = power + delta;
        } while (!__builtin_mul_overflow (power, bases[b], &power));
    }
    out[n++] = UINT64_MAX;
    return n;
}

static bool agrees (const char *format, form_encode_f encode, form_decode_f decode, uint64_t id)
{
    char expected[64], text[64];
    fluid_t back = ~id;
    size_t pos;

    size_t n = snprintf (expected, sizeof (expected), format, id);

    return encode (id, text) == n && memcmp (text, expected, n) == 0 && decode (text, 0, n, &back, &pos) == 0
           && back == id;
}

static bool dothex_agrees (uint64_t id)
{
    char expected[64], text[64];
    fluid_t back = ~id;
    size_t pos;

    snprintf (expected, sizeof (expected), "%04x.%04x.%04x.%04x", (unsigned)(id >> 48), (unsigned)(id >> 32 & 0xffff),
              (unsigned)(id >> 16 & 0xffff), (unsigned)(id & 0xffff));
    return form_dothex_encode (id, text) == 19 && memcmp (text, expected, 19) == 0
           && form_dothex_decode (text, 0, 19, &back, &pos) == 0 && back == id;
}

static bool f58_agrees (uint64_t id)
{
    static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    char text[64];
    fluid_t back = ~id;
    size_t pos;
    uint64_t sum = 0;

    size_t n = form_f58_encode (id, text);
    for (size_t i = 0; i < n; i++)
        sum = sum * 58 + (strchr (digits, text[i]) - digits);

    return n >= 1 && n <= 11 && sum == id && (n == 1 || text[0] != '1')
           && form_f58_decode (text, 0, n, &back, &pos) == 0 && back == id;
}

static void test_edges (void)
{
    uint64_t ids[1024];
    size_t n = edges (ids);
    bool dec = true, hex = true, dothex = true, f58 = true;

    for (size_t i = 0; i < n; i++) {
        dec &= agrees ("%" PRIu64, form_dec_encode, form_dec_decode, ids[i]);
        hex &= agrees ("%" PRIx64, form_hex_encode, form_hex_decode, ids[i]);
        dothex &= dothex_agrees (ids[i]);
        f58 &= f58_agrees (ids[i]);
    }
    diag ("%zu numbers at the powers of six bases", n);
    ok (dec, "decimal digits are written as by printf");
    ok (hex, "hex digits are written as by printf");
    ok (dothex, "dotted hex is written as by printf");
    ok (f58, "base58 digits of an id are the remainders of divisions by 58, without a leading 1");
}

/* Count the bytes that are digits of a form, both alone and before another digit. */
static int digit_bytes (form_decode_f decode, char neighbour)
{
    int count = 0;

    for (int c = 0; c < 256; c++) {
        char text[2] = { (char)c, neighbour };
        fluid_t id = 0;
        size_t pos;
        bool alone = decode (text, 0, 1, &id, &pos) == 0;
        bool paired = decode (text, 0, 2, &id, &pos) == 0;

        if (alone != paired)
            return -1;
        count += alone;
    }
    return count;
}

static void test_bytes (void)
{
    ok (digit_bytes (form_dec_decode, '0') == 10, "of the 256 bytes exactly 10 are decimal digits");
    ok (digit_bytes (form_hex_decode, '0') == 22, "of the 256 bytes exactly 22 are hex digits, in both letter cases");
    ok (digit_bytes (form_f58_decode, '1') == 58, "of the 256 bytes exactly 58 are base58 digits");
}

/* Whether the value of each byte of 'digits' is its position. */
static bool counts (form_decode_f decode, const char *digits)
{
    for (size_t i = 0; digits[i] != '\0'; i++) {
        fluid_t id = ~UINT64_C (0);
        size_t pos;

        if (decode (digits + i, 0, 1, &id, &pos) < 0 || id != i)
            return false;
    }
    return true;
}

static void test_values (void)
{
    ok (counts (form_dec_decode, "0123456789"), "each decimal digit has its value");
    ok (counts (form_hex_decode, "0123456789abcdef"), "each hex digit has its value");
    ok (counts (form_hex_decode, "0123456789ABCDEF"), "each hex digit in upper case has its value");
    ok (counts (form_f58_decode, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
        "each base58 digit has the value that RFC 19 gives to it");
}

static bool fails (form_decode_f decode, const char *text, int errnum, size_t at)
{
    fluid_t id = 77;
    size_t pos = 99;

    errno = 0;
    return decode (text, 0, strlen (text), &id, &pos) == -1 && errno == errnum && pos == at && id == 77;
}

static void test_misfits (void)
{
    ok (fails (form_dec_decode, "", EINVAL, 0), "an empty text fails with EINVAL");
    ok (fails (form_dec_decode, "18446744073709551616", ERANGE, 0), "the number 2^64 fails with ERANGE");
    ok (fails (form_dec_decode, "184467440737095516150", ERANGE, 0),
        "a number of ten times 2^64 - 1 fails with ERANGE");
    ok (fails (form_dec_decode, "18446744073709551616x", EINVAL, 20),
        "a character that is no digit fails with EINVAL even after a number that is too large");
    ok (fails (form_f58_decode, "zzzzzzzzzzzzzz0", EINVAL, 14),
        "in base58 a character that is no digit fails with EINVAL even after a number that is too large");
    ok (fails (form_dothex_decode, "1.2.3", EINVAL, 5), "dotted hex of three groups fails with EINVAL");
    ok (fails (form_dothex_decode, "1.2.3.4.", EINVAL, 7), "dotted hex with a fourth dot fails with EINVAL");
    ok (fails (form_dothex_decode, "1.2.3.12345", EINVAL, 10) && fails (form_dothex_decode, "12345.2.3.4", EINVAL, 4),
        "dotted hex with five digits in a group fails with EINVAL");
    ok (fails (form_dothex_decode, "1.x.3.4", EINVAL, 2) && fails (form_dothex_decode, "1..3.4", EINVAL, 2)
            && fails (form_dothex_decode, "1.2.3.", EINVAL, 6),
        "dotted hex with an empty group fails with EINVAL");
}

static void test_leading_zeros (void)
{
    char text[1000];
    fluid_t id = 0;
    size_t pos;

    memset (text, '0', sizeof (text));
    text[sizeof (text) - 1] = '7';
    ok (form_dec_decode (text, 0, sizeof (text), &id, &pos) == 0 && id == 7,
        "leading zeros do not count as digits of a group");
}

/* With each byte at each position: the text is accepted if and only if that byte is a digit (in place of a dot: a dot);
 * otherwise it is refused with the position of that byte.
 */
static bool one_byte (form_decode_f decode, const char *good, const char *digits)
{
    size_t len = strlen (good);
    bool right = true;

    for (size_t at = 0; at < len; at++)
        for (int c = 0; c < 256; c++) {
            char text[32];
            fluid_t id;
            size_t pos = at;

            memcpy (text, good, len);
            text[at] = c;
            bool fits = c != 0 && strchr (good[at] == '.' ? "." : digits, c);
            right &= (decode (text, 0, len, &id, &pos) == 0) == fits;
            right &= pos == at || c == '.'; /* a fourth dot may be reported at a later position */
        }
    return right;
}

static void test_each_place (void)
{
    static const char decimal[] = "0123456789", hex[] = "0123456789abcdefABCDEF";
    static const char f58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

    ok (one_byte (form_dec_decode, "1234567890123456789", decimal) && one_byte (form_dec_decode, "12345678", decimal)
            && one_byte (form_dec_decode, "1234567", decimal),
        "in decimal each byte at each position is a digit or is refused there");
    ok (one_byte (form_hex_decode, "0123456789abcdef", hex) && one_byte (form_hex_decode, "1234567", hex),
        "in hex each byte at each position is a digit or is refused there");
    ok (one_byte (form_f58_decode, "1uZZybuNNy", f58) && one_byte (form_f58_decode, "uZZyb", f58),
        "in base58 each byte at each position is a digit or is refused there");
    ok (one_byte (form_dothex_decode, "0017.e9fb.8df1.6c2e", hex),
        "in dotted hex each byte at each position is a digit, a dot in its place, or is refused there");
}

int main (void)
{
    test_edges ();
    test_bytes ();
    test_values ();
    test_misfits ();
    test_leading_zeros ();
    test_each_place ();
    return done_testing ();
}
