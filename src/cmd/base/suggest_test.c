/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* suggest_test.c - what a mistyped word was meant to be */
#include <stdint.h>
#include <string.h>

#include "cmd/base/suggest.h"
#include "test/tap.h"

/* Is the distance 'd', whichever way one looks? */
static bool apart (const char *a, const char *b, unsigned d)
{
    return suggest_distance (a, b) == d && suggest_distance (b, a) == d;
}

int main (void)
{
    static const char *const words[] = { "start", "startctl", "id", "ping", "getattr", "setattr" };
    const size_t n = sizeof (words) / sizeof (words[0]);
    char longest[SUGGEST_WORD_MAX + 2];

    ok (apart ("", "", 0) && apart ("ping", "ping", 0), "equal words are 0 apart");
    ok (apart ("", "abc", 3), "the empty word is as far as the other is long");
    ok (apart ("ping", "pin", 1) && apart ("ping", "pong", 1) && apart ("ping", "pnig", 1),
        "a letter too few, a wrong one, two swapped: 1");
    ok (apart ("kitten", "sitting", 3) && apart ("ca", "abc", 3), "several: the least sum");
    memset (longest, 'x', sizeof (longest));
    longest[SUGGEST_WORD_MAX + 1] = '\0';
    ok (apart (longest, "x", UINT32_MAX) && !suggest (longest, words, n),
        "a word of more than %d letters is far from all", SUGGEST_WORD_MAX);
    longest[SUGGEST_WORD_MAX] = '\0';
    ok (apart (longest, "x", SUGGEST_WORD_MAX - 1), "one of %d is not", SUGGEST_WORD_MAX);
    ok (!strcmp (suggest ("statr", words, n), "start"), "statr was meant to be start");
    ok (!strcmp (suggest ("pnig", words, n), "ping"), "pnig: ping");
    ok (!strcmp (suggest ("gettattr", words, n), "getattr"), "gettattr: getattr");
    ok (!suggest ("frobnicate", words, n), "frobnicate: nothing like it");
    ok (!suggest ("x", NULL, 0), "no words, no suggestion");
    static const char *const job[] = { "submit", "list", "ack" };
    ok (!strcmp (suggest_synonym ("rm", job, 3), "ack") && !strcmp (suggest_synonym ("create", job, 3), "submit"),
        "where a group has neither delete nor new, rm is ack and create is submit");
    return done_testing ();
}
