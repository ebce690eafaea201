/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* out_test.c - output equals the output of printf (), except that bytes that could harm a terminal are escaped */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/out.h"
#include "test/tap.h"

#define TEXT_MAX 512

static void print (char *buf, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

static void print (char *buf, const char *fmt, ...)
{
    FILE *f = fmemopen (buf, TEXT_MAX, "w");
    va_list ap;

    va_start (ap, fmt);
    out_vprint (f, fmt, ap);
    va_end (ap);
    fclose (f);
}

#define is_as_printf(...)                                                                                 \
    do {                                                                                                  \
        char got[TEXT_MAX], want[TEXT_MAX];                                                               \
        print (got, __VA_ARGS__);                                                                         \
        snprintf (want, sizeof (want), __VA_ARGS__);                                                      \
        ok (strcmp (got, want) == 0, "out_vprint () prints the same as printf (): '%s' '%s'", got, want); \
    } while (0)

static void test_formats (void)
{
    is_as_printf ("plain, 100%%\n\t");
    is_as_printf ("%s|%8s|%-8s|%.2s|%8.2s|%*s|%-*s|%.*s", "abc", "abc", "abc", "abc", "abc", 6, "abc", 6, "abc", 1,
                  "abc");
    is_as_printf ("%d|%5d|%-5d|%05d|%+d|%i", -7, -7, -7, -7, 7, 7);
    is_as_printf ("%u|%x|%08x|%zu|%zd|%ju|%jd", 7u, 255u, 255u, (size_t)9, (ssize_t)-9, UINTMAX_MAX, INTMAX_MIN);
    is_as_printf ("%ld|%lu|%lld|%llu|%9lld|%hu", -1L, 1UL, INT64_C (-5) + 0LL, UINT64_C (5) + 0ULL, 5LL,
                  (unsigned short)3);
    is_as_printf ("%" PRIu64 "|%" PRIu32 "|%016" PRIx64, UINT64_MAX, UINT32_MAX, UINT64_C (0xabc));
    is_as_printf ("%g|%.3f|%8.2f|%e|%c|%%", .1, 2.5, 2.5, 2.5, 'x');
}

static void shows (const char *text, const char *want)
{
    char got[TEXT_MAX];

    print (got, "%s", text);
    ok (strcmp (got, want) == 0, "a text for a terminal is shown as '%s'", got);
}

static void test_harmless (void)
{
    char got[TEXT_MAX];

    shows ("caf\xc3\xa9", "caf\xc3\xa9");
    shows ("a\nb\tc\r", "a\\nb\\x09c\\x0d");
    shows ("\x1b[31mred", "\\x1b[31mred");
    shows ("\x7f", "\\x7f");
    shows ("\xc2\x9b"
           "31m",
           "\\xc2\\x9b31m");
    shows ("bad \xe9 \xf0\x9f", "bad \\xe9 \\xf0\\x9f");
    print (got, "%-6s|%6s|%.3s|%c", "\xc3\xa9", "\xc3\xa9", "\x1b\x1b\x1b\x1b", 7);
    ok (strcmp (got, "\xc3\xa9     |     \xc3\xa9|\\x1b\\x1b\\x1b|\\x07") == 0,
        "a field width counts characters, and a precision counts bytes: %s", got);
}

int main (void)
{
    test_formats ();
    test_harmless ();
    return done_testing ();
}
