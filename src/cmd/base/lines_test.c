/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lines_test.c - a stream cut into lines */
#include <stdlib.h>
#include <string.h>

#include "cmd/base/input.h"
#include "test/tap.h"

static char got[8192];

static void take_cb (void *arg, uint64_t line, const char *s, size_t len)
{
    size_t n = strlen (got);

    snprintf (got + n, sizeof (got) - n, "%d:%zu:%.10s|", (int)line, len, s);
}

/* Whether 'text', added in two pieces that meet at byte 'cut', gives the lines in 'expect'. */
static bool gives (const char *text, size_t len, size_t cut, const char *expect)
{
    struct lines l = { .take = take_cb };
    char *data = malloc (len + 1);

    memcpy (data, text, len);
    got[0] = '\0';
    lines_add (&l, data, cut);
    lines_add (&l, data + cut, len - cut);
    lines_end (&l);
    free (data);
    return !strcmp (got, expect);
}

static bool gives_cut_anywhere (const char *text, size_t len, const char *expect)
{
    for (size_t cut = 0; cut <= len; cut++)
        if (!gives (text, len, cut, expect)) {
            diag ("cut at %zu: got %s", cut, got);
            return false;
        }
    return true;
}

#define TEXT(s) s, sizeof (s) - 1

int main (void)
{
    char longline[2 * LINES_MAX + 8];

    ok (gives_cut_anywhere (TEXT ("0x10\nab\n\t18 \n"), "1:4:0x10|2:2:ab|3:4:\t18 |"),
        "lines are passed on in order, with their numbers");
    ok (gives_cut_anywhere (TEXT ("1\n2"), "1:1:1|2:1:2|"), "the last line of a stream needs no newline");
    ok (gives_cut_anywhere (TEXT (""), ""), "an empty stream has no lines");
    ok (gives_cut_anywhere (TEXT ("1\n\n\n5\n"), "1:1:1|2:0:|3:0:|4:1:5|"), "empty lines of a stream are passed on");
    ok (gives_cut_anywhere (TEXT ("1\n2\0003\n4\n"), "1:1:1|2:3:2|3:1:4|"),
        "the length of a line that contains a NUL is above its strlen ()");
    memset (longline, ' ', sizeof (longline));
    longline[LINES_MAX - 1] = '7';
    longline[LINES_MAX] = '\n';
    ok (gives_cut_anywhere (longline, LINES_MAX + 1, "1:1024:          |"), "a line of %d bytes is passed on whole",
        LINES_MAX);
    longline[LINES_MAX] = ' ';
    longline[LINES_MAX + 1] = '\n';
    longline[LINES_MAX + 2] = '8';
    ok (gives_cut_anywhere (longline, LINES_MAX + 3, "1:1025:          |2:1:8|"),
        "a line over the limit is cut and has a length above the limit, and the next line is passed on");
    longline[LINES_MAX + 1] = longline[LINES_MAX + 2] = ' ';
    ok (gives_cut_anywhere (longline, sizeof (longline), "1:1025:          |"),
        "a line over the limit at the end of a stream without a newline is cut, too");
    return done_testing ();
}
