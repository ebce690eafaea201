/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranges_test.c - sets of numbers as text: read and written */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/text.h"
#include "test/tap.h"

static void test_read (void)
{
    static const char *const bad[] = { "x",  "-",  "1-",   "-1",    "2-1",        "1,",    ",1",
                                       "[1", "1]", "[1]x", "1 ",    "4294967296", "1-2-3", "[1,]",
                                       "[",  "]",  "1,,2", "[[1]]", "0x1",        "+1",    "00000000001" };
    static const struct {
        const char *text;
        uint32_t n;
        int have;
    } good[] = {
        { "", 0, 0 },
        { "[]", 0, 0 },
        { "0", 0, 1 },
        { "0", 1, 0 },
        { "3-5", 2, 0 },
        { "3-5", 3, 1 },
        { "3-5", 5, 1 },
        { "3-5", 6, 0 },
        { "[0-7,9]", 9, 1 },
        { "9,0-7", 8, 0 },
        { "[2]", 2, 1 },
        { "4294967295", 4294967295U, 1 },
        { "0-4294967295", 77, 1 },
        { "1,1", 1, 1 },
    };
    int refused = 0, bad_last = 0;
    uint32_t last = 77;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        bad_last += ranges_last (bad[i], &last) < 0 && errno == EINVAL;
        if (ranges_have (bad[i], 1) < 0 && errno == EINVAL)
            refused++;
        else
            diag ("%s", bad[i]);
    }
    ok (refused == sizeof (bad) / sizeof (bad[0]), "ranges_have () refuses a text that is not a set of ranges (%d)",
        refused);
    ok (bad_last == refused && last == 77, "ranges_last () refuses a text that is not a set of ranges");
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++)
        ok (ranges_have (good[i].text, good[i].n) == good[i].have, "the set of ranges '%s' %s %u", good[i].text,
            good[i].have ? "has" : "has not", good[i].n);
}

static void add (uint64_t first, uint64_t last, void *arg)
{
    uint64_t *sum = arg;

    *sum = *sum * 100 + first * 10 + last;
}

static void test_each (void)
{
    uint64_t sum = 0;

    ok (ranges_each ("[1-2,4]", add, &sum) == 1 && sum == 1244 && ranges_each ("[]", add, &sum) == 0 && sum == 1244,
        "the ranges of a set are reported in the order of the text");
    ok (ranges_each ("1,x", add, &sum) < 0 && errno == EINVAL && sum == 124411,
        "the ranges before the first wrong character of a set are reported");
}

static void test_last (void)
{
    uint32_t last = 77;

    ok (ranges_last ("", &last) == 0 && ranges_last ("[]", &last) == 0 && last == 77,
        "an empty set of ranges has no last number");
    ok (ranges_count ("", 9) == 0 && ranges_count ("[]", 9) == 0 && ranges_count ("1-", 9) == 0
            && ranges_count ("[3,5-7]", 9) == 4 && ranges_count ("3,5-4294967295", 7) == 3
            && ranges_count ("7", 7) == 0,
        "only numbers of a set that are below the end are counted");
    ok (ranges_last ("9,0-7", &last) == 1 && last == 9, "the last number of a set may be in any of its ranges");
    ok (ranges_last ("[3,5-4294967295]", &last) == 1 && last == 4294967295U,
        "the last number of a range is the end of that range");
}

static void test_format (uint32_t *numbers, size_t count, const char *want)
{
    char *text = ranges_format (numbers, count);

    ok (text && strcmp (text, want) == 0, "a set of %zu numbers is written as '%s'", count, text ? text : "?");
    free (text);
}

/* A set that is written can be read. */
static void test_both (void)
{
    uint32_t numbers[40];
    int wrong = 0;

    srand (1);
    for (int round = 0; round < 200; round++) {
        bool in[64] = { false };
        size_t n = (size_t)(rand () % 40);
        char *text;

        for (size_t i = 0; i < n; i++)
            in[numbers[i] = (uint32_t)(rand () % 64)] = true;
        text = ranges_format (numbers, n);
        for (uint32_t i = 0; i < 64; i++)
            wrong += ranges_have (text, i) != in[i];
        free (text);
    }
    ok (wrong == 0, "a set of ranges that is written is read with the same numbers");
}

int main (void)
{
    test_read ();
    test_each ();
    test_last ();
    test_format ((uint32_t[]){ 0 }, 0, "");
    test_format ((uint32_t[]){ 5 }, 1, "5");
    test_format ((uint32_t[]){ 2, 1, 0, 3 }, 4, "0-3");
    test_format ((uint32_t[]){ 9, 1, 0, 4294967295U, 4294967294U }, 5, "[0-1,9,4294967294-4294967295]");
    test_both ();
    return done_testing ();
}
