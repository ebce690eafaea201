/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* judge_test.c - the judge accepts valid records, and finds each kind of violation */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "test/tap.h"

/* Judge records. A newline separates lines, and '|' separates records. Returns the number of violations. */
static unsigned long judge (const char *records)
{
    struct judge *j = judge_create ();
    char *text = strdup (records), *rest = text, *record, *line, name[32];
    FILE *nowhere = fopen ("/dev/null", "w");
    int n = 0;

    while ((record = strsep (&rest, "|"))) {
        snprintf (name, sizeof (name), "record %d", ++n);
        judge_begin (j, name);
        while ((line = strsep (&record, "\n")))
            if (*line)
                judge_line (j, line);
    }
    unsigned long wrong = judge_tell (j, nowhere);
    fclose (nowhere);
    free (text);
    judge_destroy (j);
    return wrong;
}

static void test_right (void)
{
    static const struct {
        const char *what, *records;
    } right[] = {
        { "answered and seen", "sent a\nid a 5|job 5 a" },
        { "refused and not seen", "sent a\nerrno a 28|job 7 b|sent b\nid b 7" },
        { "unknown and not seen", "sent a\nerrno a 110|sent b\nid b 7|job 7 b" },
        { "unknown and seen once", "sent a\nerrno a 110|job 7 a" },
        { "never answered, because the submitter was killed, and seen once", "sent a|job 7 a" },
        { "sent again until it has an id, which it always had",
          "sent a\nerrno a 104\nsent a\nerrno a 11\nsent a\nid a 5|job 5 a" },
        { "unknown, then refused, but seen", "sent a\nerrno a 104\nsent a\nerrno a 11|job 5 a" },
        { "answered twice with one id", "sent a\nid a 5\nsent a\nid a 5|job 5 a" },
        { "seen by two consumers", "sent a\nid a 5|job 5 a|job 5 a" },
        { "received again after it was seen", "sent a\nid a 5|job 5 a\nagain 5 a" },
        { "bad and refused", "bad a\nerrno a 22|job 5 b|sent b\nid b 5" },
        { "answered, without a consumer", "sent a\nid a 5" },
    };

    for (size_t i = 0; i < sizeof (right) / sizeof (right[0]); i++)
        ok (judge (right[i].records) == 0, "the judge accepts a record without a violation: %s", right[i].what);
}

static void test_wrong (void)
{
    static const struct {
        const char *what, *records;
    } wrong[] = {
        { "answered and not seen", "sent a\nid a 5\nsent b\nid b 6|job 6 b" },
        { "answered, and seen under another id", "sent a\nid a 5|job 6 a" },
        { "refused and seen", "sent a\nerrno a 28|job 5 a" },
        { "refused twice and seen", "sent a\nerrno a 28\nsent a\nerrno a 11|job 5 a" },
        { "seen twice", "sent a\nerrno a 110|job 5 a\njob 6 a" },
        { "seen under two ids by two consumers", "sent a\nerrno a 110|job 5 a|job 6 a" },
        { "one id seen for two jobs", "sent a\nsent b|job 5 a\njob 5 b" },
        { "ids that decrease", "sent a\nid a 5\nsent b\nid b 6|job 6 b\njob 5 a" },
        { "answered with two ids", "sent a\nid a 5\nsent a\nid a 6|job 5 a" },
        { "one id is the answer to two submissions", "sent a\nid a 5\nsent b\nid b 5" },
        { "seen, but never sent", "sent a\nid a 5|job 5 a\njob 6 b" },
        { "bad, and answered with an id", "bad a\nid a 5" },
        { "bad, and seen", "bad a|job 5 a" },
        { "not answered", "sent a\nsilent a\nerrno a 110" },
        { "received again, but never seen", "sent a\nid a 5|again 5 a" },
        { "received again under another id", "sent a\nid a 5|job 5 a\nagain 6 a" },
        { "an error that a consumer recorded", "sent a\nid a 5|job 5 a\nwrong answer: x y z" },
        { "not a line of a record", "sent a\nid a 5|job 5 a\nrumour a 5" },
    };

    for (size_t i = 0; i < sizeof (wrong) / sizeof (wrong[0]); i++)
        ok (judge (wrong[i].records) > 0, "the judge finds the violation in a record: %s", wrong[i].what);
}

static void test_many (void)
{
    char *text = malloc (1 << 20);
    size_t n = 0;

    for (int i = 0; i < 10000; i++)
        n += (size_t)sprintf (text + n, "sent t.%d\nid t.%d %d\n", i, i, i + 1);
    for (int i = 0; i < 10000; i++)
        n += (size_t)sprintf (text + n, "%cjob %d t.%d", i ? '\n' : '|', i + 1, i);
    ok (judge (text) == 0, "the judge keeps ten thousand submissions apart");
    free (text);
}

int main (void)
{
    test_right ();
    test_wrong ();
    test_many ();
    return done_testing ();
}
