/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* utf8_test.c - each character is well-formed in exactly one form */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "test/tap.h"
#include "libutil/text.h"

static size_t encode (uint32_t c, size_t len, char *s)
{
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

    for (size_t i = len; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3f));
    s[0] = (char)(first[len] | c);
    return len;
}

static size_t shortest (uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

/* Whether 'c', written with 'len' bytes, is accepted or refused as it should be, and each of its prefixes is refused.
 */
static bool behaves (uint32_t c, size_t len)
{
    bool good = len == shortest (c) && c < 0x110000 && (c < 0xd800 || c > 0xdfff);
    bool shown = good && c >= 0x20 && (c < 0x7f || c > 0x9f);
    char s[4];

    encode (c, len, s);
    for (size_t cut = 1; cut < len; cut++)
        if (utf8_span (s, cut) != 0)
            return false;
    return utf8_span (s, len) == (good ? len : 0) && utf8_span_printable (s, len) == (shown ? len : 0);
}

static void test_all (void)
{
    uint32_t c = 0, bad = 0;

    for (; c < 0x200000; c++)
        for (size_t len = shortest (c); len <= 4; len++)
            bad += !behaves (c, len);
    ok (bad == 0, "each of 2,097,152 numbers is either a character in its shortest form, or refused");
}

static void test_clean (void)
{
    static const struct {
        const char *text, *want, *printable;
    } cases[] = {
        { "", "", "" },
        { "plain", "plain", "plain" },
        { "caf\xc3\xa9", "caf\xc3\xa9", "caf\xc3\xa9" },
        { "caf\xe9", "caf?", "caf?" },
        { "\xe9t\xe9", "?t?", "?t?" },
        { "\xf0\x9f\x8c", "???", "???" },
        { "a\xed\xa0\x80z", "a???z", "a???z" },
        { "\xff\xc3\xa9\xff", "?\xc3\xa9?", "?\xc3\xa9?" },
        { "a\nb", "a\nb", "a?b" },
        { "\x1b[2Jb\x7f", "\x1b[2Jb\x7f", "?[2Jb?" },
        { "a\xc2\x9b\xc3\xa9", "a\xc2\x9b\xc3\xa9", "a??\xc3\xa9" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        char s[32];

        strcpy (s, cases[i].text);
        utf8_clean (s, strlen (s));
        ok (strcmp (s, cases[i].want) == 0, "bytes that are not UTF-8 become '?': case %zu", i);
        strcpy (s, cases[i].text);
        utf8_clean_printable (s, strlen (s));
        ok (strcmp (s, cases[i].printable) == 0, "control characters become '?' if they are not permitted: case %zu",
            i);
    }
}

int main (int argc, char *argv[])
{
    test_all ();
    test_clean ();
    return done_testing ();
}
