/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lex64_test.c - every value at every place, for both characters that represent 0 */
#include "libutil/id_text.h"
#include "test/tap.h"

static const char common[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

static char letter (unsigned value, char zero)
{
    return value ? common[value - 1] : zero;
}

/* 'value' at 'place', 'rest' elsewhere, with bits above the 48 that must be ignored. */
static bool written_and_read (char zero, int place, unsigned value, unsigned rest)
{
    uint64_t half[2] = { 0xabcd, 0x1234 }, back[2], both[2];
    char text[16], expected[16];

    for (int i = 0; i < 16; i++) {
        unsigned v = i == place ? value : rest;
        half[i / 8] = half[i / 8] << 6 | v;
        expected[i] = letter (v, zero);
    }
    lex64_encode16 (half[0], half[1], zero, text);
    return !memcmp (text, expected, 16) && lex64_decode (text, 8, zero, &back[0]) == 8
           && lex64_decode (text + 8, 8, zero, &back[1]) == 8 && back[0] == (half[0] & UINT64_C (0xffffffffffff))
           && back[1] == (half[1] & UINT64_C (0xffffffffffff)) && lex64_decode16 (text, zero, &both[0], &both[1])
           && both[0] == back[0] && both[1] == back[1];
}

static void test_values (char zero)
{
    unsigned good = 0;

    for (int place = 0; place < 16; place++)
        for (unsigned value = 0; value < 64; value++)
            for (unsigned rest = 0; rest < 64; rest++)
                good += written_and_read (zero, place, value, rest);
    ok (good == 16 * 64 * 64, "alphabet with '%c' for 0: each value in each place is written and read", zero);
}

static void test_foreign (char zero)
{
    unsigned good = 0, taken = 0;

    for (int place = 0; place < 8; place++)
        for (int c = 0; c < 256; c++) {
            char text[8];
            uint64_t bits;
            memset (text, 'z', sizeof (text));
            text[place] = (char)c;
            size_t n = lex64_decode (text, 8, zero, &bits);
            bool known = c && (c == zero || strchr (common, c));
            good += n == (known ? 8 : (size_t)place);
            taken += known;
        }
    ok (good == 8 * 256 && taken == 8 * 64,
        "alphabet with '%c' for 0: lex64_decode () stops at a byte that is not in the alphabet", zero);
}

static void test_foreign_among_16 (char zero)
{
    unsigned good = 0;

    for (int place = 0; place < 16; place++)
        for (int c = 0; c < 256; c++) {
            char text[16];
            uint64_t bits;
            memset (text, zero, sizeof (text));
            text[place] = (char)c;
            good += lex64_decode16 (text, zero, &bits, &bits) == (c && (c == zero || strchr (common, c)));
        }
    ok (good == 16 * 256, "alphabet with '%c' for 0: lex64_decode16 () refuses a byte that is not in the alphabet",
        zero);
}

static void test_order (char zero)
{
    unsigned rising = 0;

    for (unsigned value = 1; value < 64; value++)
        rising += letter (value - 1, zero) < letter (value, zero);
    ok (rising == 63, "alphabet with '%c' for 0: the characters ascend", zero);
}

int main (void)
{
    for (const char *zero = "-."; *zero; zero++) {
        test_values (*zero);
        test_foreign (*zero);
        test_foreign_among_16 (*zero);
        test_order (*zero);
    }
    return done_testing ();
}
