/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_wire_test.c - lines and words of PMI-1 */
#include <errno.h>
#include <string.h>

#include "libpmi/pmi_wire.h"
#include "test/tap.h"

static void test_words (void)
{
    const char *line = "cmd=get_result rc=-1 msg=success value=a rc=7 key=x ";
    char buf[32] = "same";
    int n = 5;

    ok (pmi_word (line, "msg", buf, sizeof (buf)) == 0 && !strcmp (buf, "success"),
        "a word of a line is found by its key");
    ok (pmi_word (line, "value", buf, sizeof (buf)) == 0 && !strcmp (buf, "a rc=7 key=x "),
        "a value for which it is asked takes the rest of its line");
    strcpy (buf, "same");
    ok (pmi_word (line, "key", buf, sizeof (buf)) < 0 && errno == ENOENT && !strcmp (buf, "same"),
        "text inside a value is not found as a word");
    ok (pmi_word (line, "ms", buf, sizeof (buf)) < 0 && errno == ENOENT
            && pmi_word (line, "msgs", buf, sizeof (buf)) < 0 && errno == ENOENT,
        "a key is found only as a whole");
    ok (pmi_word (line, "msg", buf, 7) < 0 && errno == EOVERFLOW && !strcmp (buf, "same"),
        "EOVERFLOW: a buffer that is too small for a value is not changed");
    ok (pmi_word (line, "msg", buf, 8) == 0, "a buffer of exactly the size of a value is accepted");
    ok (pmi_word_int (line, "rc", &n) == 0 && n == -1, "a number may be negative");
    n = 5;
    ok (pmi_word_int (line, "msg", &n) < 0 && errno == EINVAL && n == 5, "EINVAL: the value is not a number");
    ok (pmi_word_int ("rc=99999999999", "rc", &n) < 0 && errno == EINVAL && n == 5, "EINVAL: the number is too large");
    ok (pmi_word_int ("rc=", "rc", &n) < 0 && errno == EINVAL, "EINVAL: the number is empty");
    ok (pmi_word_int ("rcx=1", "rc", &n) < 0 && errno == ENOENT, "ENOENT: the line has no word with this key");
    ok (pmi_is (line, "get_result") && !pmi_is (line, "get") && !pmi_is ("", "get"),
        "the command of a line is compared as a whole");
    ok (pmi_is ("  cmd=x   y=1", "x"), "blanks between words may repeat");
    ok (pmi_word ("cmd=x flag y=", "flag", buf, 1) == 0 && buf[0] == '\0'
            && pmi_word ("cmd=x flag y=", "y", buf, 1) == 0,
        "a word without '=' and a word without a value have an empty value");
}

static void test_valid (void)
{
    char key[PMI_KEYLEN_MAX + 1], value[PMI_VALLEN_MAX + 1];

    memset (key, 'k', sizeof (key));
    memset (value, ' ', sizeof (value));
    key[PMI_KEYLEN_MAX] = value[PMI_VALLEN_MAX] = '\0';
    ok (!pmi_key_valid (key) && pmi_key_valid (key + 1), "a key has at most %d bytes with its NUL", PMI_KEYLEN_MAX);
    ok (!pmi_value_valid (value) && pmi_value_valid (value + 1), "a value has at most %d bytes with its NUL",
        PMI_VALLEN_MAX);
    ok (!pmi_key_valid ("") && !pmi_key_valid ("a b") && !pmi_key_valid ("a=b") && !pmi_key_valid ("a\n")
            && !pmi_key_valid ("\x7f"),
        "a key with a blank, '=' or a control character is refused");
    ok (pmi_value_valid ("") && pmi_value_valid ("a=b c") && !pmi_value_valid ("a\nb"),
        "a value may contain anything except a newline");
}

/* Cut a text in two at each place: the lines are the same. */
static void test_lines (void)
{
    const char text[] = "one\ntwo words\n\nend\n";
    size_t len = sizeof (text) - 1;
    int good = 0;

    for (size_t cut = 0; cut <= len; cut++) {
        struct pmi_lines lines = { 0 };
        char got[64] = "";

        for (int half = 0; half < 2; half++) {
            const char *data = half ? text + cut : text;
            size_t size = half ? len - cut : cut;
            const char *line;

            while ((line = pmi_lines_add (&lines, &data, &size))) {
                strcat (got, line);
                strcat (got, "\n");
            }
            if (errno != EAGAIN || size != 0)
                break;
        }
        good += !strcmp (got, text);
    }
    ok (good == (int)len + 1, "lines are complete however they are divided into pieces");
}

static void test_lines_limit (void)
{
    struct pmi_lines lines = { 0 };
    char big[PMI_LINE_MAX + 1];
    const char *data = big;
    size_t size = PMI_LINE_MAX;

    memset (big, 'x', sizeof (big));
    big[PMI_LINE_MAX - 1] = '\n';
    const char *line = pmi_lines_add (&lines, &data, &size);
    ok (line && strlen (line) == PMI_LINE_MAX - 1, "a line of %d bytes is accepted", PMI_LINE_MAX);
    big[PMI_LINE_MAX - 1] = 'x';
    big[PMI_LINE_MAX] = '\n';
    data = big;
    size = sizeof (big);
    ok (!pmi_lines_add (&lines, &data, &size) && errno == EPROTO, "EPROTO: a line is one byte too long");
    data = "a\0b\n";
    size = 4;
    lines.len = 0;
    ok (!pmi_lines_add (&lines, &data, &size) && errno == EPROTO, "EPROTO: a line has a NUL");
}

int main (void)
{
    test_words ();
    test_valid ();
    test_lines ();
    test_lines_limit ();
    return done_testing ();
}
