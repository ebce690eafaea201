/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* suggest_test.c - guess the intended word for a mistyped one */
#include <stdint.h>
#include <string.h>

#include "cmd/base/suggest.h"
#include "test/tap.h"

/* Whether the distance is 'd' in both directions. */
static bool apart (const char *a, const char *b, unsigned d)
{
    return suggest_distance (a, b) == d && suggest_distance (b, a) == d;
}

int main (void)
{
    static const char *const words[] = { "start", "startctl", "id", "ping", "getattr", "setattr" };
    const size_t n = sizeof (words) / sizeof (words[0]);
    char longest[SUGGEST_WORD_MAX + 2];

    ok (apart ("", "", 0) && apart ("ping", "ping", 0), "equal words have distance 0");
    ok (apart ("", "abc", 3), "the distance from the empty word is the length of the other word");
    ok (apart ("ping", "pin", 1) && apart ("ping", "pong", 1) && apart ("ping", "pnig", 1),
        "a missing letter, a wrong letter and a swap of two neighbours have distance 1");
    ok (apart ("kitten", "sitting", 3) && apart ("ca", "abc", 3),
        "the distance of words that differ by several edits is the smallest sum");
    memset (longest, 'x', sizeof (longest));
    longest[SUGGEST_WORD_MAX + 1] = '\0';
    ok (apart (longest, "x", UINT32_MAX) && !suggest (longest, words, n),
        "a word of more than %d letters is far from all others", SUGGEST_WORD_MAX);
    longest[SUGGEST_WORD_MAX] = '\0';
    ok (apart (longest, "x", SUGGEST_WORD_MAX - 1), "a word of %d letters is compared", SUGGEST_WORD_MAX);
    ok (!strcmp (suggest ("statr", words, n), "start"), "the suggestion for statr is start");
    ok (!strcmp (suggest ("pnig", words, n), "ping"), "the suggestion for pnig is ping");
    ok (!strcmp (suggest ("gettattr", words, n), "getattr"), "the suggestion for gettattr is getattr");
    ok (!suggest ("frobnicate", words, n), "the word frobnicate gets no suggestion");
    ok (!suggest ("x", NULL, 0), "an empty list of words gives no suggestion");
    static const char *const job[] = { "submit", "list", "ack" };
    ok (!strcmp (suggest_synonym ("rm", job, 3), "ack") && !strcmp (suggest_synonym ("create", job, 3), "submit"),
        "in a command group without delete and new, rm suggests ack and create suggests submit");
    return done_testing ();
}
