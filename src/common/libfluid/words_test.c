/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* words_test.c - each word in each position, and texts that differ little from a word
 *
 * The list is mnemonicode-words.txt of the source tree, from which the table was made.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "form.h"
#include "test/tap.h"

#define WORDS 1626
#define PLACES 6

static char words[WORDS][8];

static void load_words (void)
{
    FILE *f = fopen (SOURCE_VECTORS "/mnemonicode-words.txt", "r");
    int index;

    if (!f)
        bail_out ("cannot read mnemonicode-words.txt");
    for (int i = 0; i < WORDS; i++) {
        if (fscanf (f, "%d %7s", &index, words[i]) != 2 || index != i)
            bail_out ("mnemonicode-words.txt is not a list of 1626 words");
    }
    fclose (f);
}

/* Write six words: the low half first, the least significant word of each half first. */
static void join_words (const char *word[PLACES], char *text)
{
    sprintf (text, "%s-%s-%s--%s-%s-%s", word[0], word[1], word[2], word[3], word[4], word[5]);
}

static int decode (const char *text, fluid_t *id)
{
    size_t pos;

    return form_words_decode (text, 0, strlen (text), id, &pos);
}

static void test_every_word (void)
{
    static const uint64_t weight[3] = { 1, 1626, 1626 * 1626 };
    bool reads = true, writes = true;
    int over = 0;

    for (int place = 0; place < PLACES; place++) {
        for (int i = 0; i < WORDS; i++) {
            const char *six[PLACES] = { words[0], words[0], words[0], words[0], words[0], words[0] };
            uint64_t half = i * weight[place % 3];
            char text[FLUID_TEXT_MAX], written[FLUID_TEXT_MAX];
            fluid_t id = 0;

            six[place] = words[i];
            join_words (six, text);
            if (half > UINT32_MAX) {
                over += decode (text, &id) == -1 && errno == ERANGE;
                continue;
            }
            uint64_t expected = place < 3 ? half : half << 32;
            reads &= decode (text, &id) == 0 && id == expected;
            writes &= form_words_encode (expected, written) == strlen (text)
                      && memcmp (written, text, strlen (text)) == 0;
        }
    }
    ok (reads, "each word is read in each of the six positions");
    ok (writes, "each word is written in each of the six positions");
    /* 1625 * 1626^2 exceeds 2^32 by itself; 1624 * 1626^2 does not */
    ok (over == 2, "only the last word of the list, in the third position, makes a half of an id out of range");
}

static void test_limits (void)
{
    char text[FLUID_TEXT_MAX];
    fluid_t id;
    size_t n = form_words_encode (UINT64_MAX, text);

    text[n] = '\0';
    ok (decode (text, &id) == 0 && id == UINT64_MAX, "the words of the largest id can be read");

    /* natural-analyze-verbal is 2^32 - 1; its neighbour nebula-analyze-verbal 2^32 */
    ok (strncmp (text, "natural-analyze-verbal--", 24) == 0, "the words of 2^32 - 1 are natural-analyze-verbal");
    const char *six[PLACES] = { "", "analyze", "verbal", "academy", "academy", "academy" };
    for (int i = 0; i < WORDS - 1; i++)
        if (strcmp (words[i], "natural") == 0)
            six[0] = words[i + 1];
    join_words (six, text);
    errno = 0;
    ok (decode (text, &id) == -1 && errno == ERANGE, "a low half of 2^32 in words fails with ERANGE");
    const char *swapped[PLACES] = { "academy", "academy", "academy", six[0], six[1], six[2] };
    join_words (swapped, text);
    errno = 0;
    ok (decode (text, &id) == -1 && errno == ERANGE, "a high half of 2^32 in words fails with ERANGE");
    errno = 0;
    ok (decode ("academy-academy", &id) == -1 && errno == EINVAL, "a half of two words fails with EINVAL");
}

static int compare (const void *a, const void *b)
{
    return strcmp (a, b);
}

static bool listed (const char *word, char (*sorted)[8])
{
    return bsearch (word, sorted, WORDS, sizeof (sorted[0]), compare) != NULL;
}

static bool accepted (const char *word)
{
    const char *six[PLACES] = { word, "academy", "academy", "academy", "academy", "academy" };
    char text[FLUID_TEXT_MAX];
    fluid_t id;

    join_words (six, text);
    return decode (text, &id) == 0;
}

/* Change each letter of each word, shorten it, and extend it: the result is accepted if and only if it is in the list.
 */
static void test_near_misses (void)
{
    static char sorted[WORDS][8];
    int tried = 0, wrong = 0;

    memcpy (sorted, words, sizeof (sorted));
    qsort (sorted, WORDS, sizeof (sorted[0]), compare);
    for (int i = 0; i < WORDS; i++) {
        size_t len = strlen (words[i]);
        char word[10];

        for (size_t at = 0; at <= len; at++) {
            for (char c = 'a'; c <= 'z'; c++) {
                strcpy (word, words[i]);
                word[at] = c;
                word[at < len ? len : len + 1] = '\0';
                tried++;
                wrong += accepted (word) != listed (word, sorted);
            }
            strcpy (word, words[i]);
            word[at] = '\0';
            tried++;
            wrong += accepted (word) != listed (word, sorted);
        }
    }
    diag ("%d texts that differ from a word of the list by one letter", tried);
    ok (wrong == 0, "a word is accepted if and only if it is in the list");
    ok (!accepted ("[cademy") && !accepted ("acad@my") && !accepted ("academ{"),
        "in a word, characters next to the capital letters in ASCII are refused");
    ok (!accepted ("academyacademyacademy"), "a word longer than all of the list is refused");
}

/* Capitals are accepted as in Flux, since people write ids by hand. */
static void test_capitals (void)
{
    int read = 0;

    for (int i = 0; i < WORDS; i++) {
        char plain[8], first[8], all[8];
        fluid_t id = 0, same = 1;

        memcpy (plain, words[i], sizeof (plain));
        memcpy (first, plain, sizeof (first));
        memcpy (all, plain, sizeof (all));
        first[0] = toupper (first[0]);
        for (char *c = all; *c; c++)
            *c = toupper (*c);
        const char *six[PLACES] = { plain, plain, words[0], plain, plain, words[0] };
        const char *other[PLACES] = { first, all, words[0], all, plain, words[0] };
        char text[PLACES * 9];
        join_words (six, text);
        bool good = decode (text, &id) == 0;
        join_words (other, text);
        read += good && decode (text, &same) == 0 && same == id;
    }
    ok (read == WORDS, "each word can be read in capitals, with the same value");
}

/* All combinations of 0, 1, 2 or 3 dashes between six words: one of them is valid. */
static void test_dashes (void)
{
    static const char *const dashes[] = { "", "-", "--", "---" };
    int right = 0;
    fluid_t id;

    for (int code = 0; code < 1 << 10; code++) {
        char text[128] = "";

        for (int place = 0; place < PLACES; place++) {
            strcat (text, "alpha");
            if (place < PLACES - 1)
                strcat (text, dashes[code >> 2 * place & 3]);
        }
        right += decode (text, &id) == 0;
    }
    ok (right == 1, "of the 1024 combinations of up to three dashes between the words, exactly one is accepted");
    ok (decode ("alpha-alpha-alpha--alpha-alpha-alpha-", &id) < 0, "a dash after the last word is refused");
    ok (decode ("-alpha-alpha-alpha--alpha-alpha-alpha", &id) < 0, "a dash before the first word is refused");
    ok (decode ("", &id) < 0, "an empty text of words is refused");
}

/* Words are padded with NULs for the look-up. */
static void test_nuls (void)
{
    static const char inside[] = "adam\0-alpha-alpha--alpha-alpha-alpha",
                      behind[] = "adam-alpha-alpha--alpha-alpha-adam\0";
    fluid_t id;
    size_t pos;

    ok (form_words_decode (inside, 0, sizeof (inside) - 1, &id, &pos) < 0 && pos == 0
            && form_words_decode (behind, 0, sizeof (behind) - 1, &id, &pos) < 0 && pos == 30,
        "a NUL after a word is refused");
}

int main (void)
{
    load_words ();
    test_every_word ();
    test_limits ();
    test_near_misses ();
    test_capitals ();
    test_dashes ();
    test_nuls ();
    return done_testing ();
}
