/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* convert_test.c - a stream of ids, one a line, to another form */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/convert.h"
#include "libutil/tap.h"

static char told[8192];

static void bad_cb (void *arg, uint64_t line, const char *s, size_t len, int errnum)
{
    size_t n = strlen (told);

    snprintf (told + n, sizeof (told) - n, "%d:%d:%zu:%.10s|", (int)line, errnum == ERANGE, len, s);
}

/* Convert 'text' in two pieces cut at 'cut'; is what comes out 'expect', and what is told 'bad'? */
static bool converts (const char *text, size_t len, size_t cut, const char *expect, const char *bad)
{
    struct convert c;
    char *data = malloc (len + 1), *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);

    memcpy (data, text, len);
    told[0] = '\0';
    convert_init (&c, FLUID_DEC, f, bad_cb, NULL);
    convert_add (&c, data, cut);
    convert_add (&c, data + cut, len - cut);
    convert_end (&c);
    fclose (f);
    bool good = !strcmp (out, expect) && !strcmp (told, bad);
    free (out);
    free (data);
    return good;
}

static bool converts_cut_anywhere (const char *text, size_t len, const char *expect,
                                   const char *bad)
{
    for (size_t cut = 0; cut <= len; cut++)
        if (!converts (text, len, cut, expect, bad)) {
            diag ("cut at %zu: told %s", cut, told);
            return false;
        }
    return true;
}

#define TEXT(s) s, sizeof (s) - 1

int main (void)
{
    char longline[2 * CONVERT_LINE_MAX + 8];

    ok (converts_cut_anywhere (TEXT ("0x10\n0000.0000.0000.0011\n\t18 \n"), "16\n17\n18\n", ""),
        "ids of any form come out in one, in order");
    ok (converts_cut_anywhere (TEXT ("1\n2"), "1\n2\n", ""), "the last line needs no newline");
    ok (converts_cut_anywhere (TEXT (""), "", ""), "nothing in, nothing out");
    ok (converts_cut_anywhere (TEXT ("1\nxyz\n\n99999999999999999999\n5\n"), "1\n5\n",
                               "2:0:3:xyz|3:0:0:|4:1:20:9999999999|"),
        "lines that are no ids are told by number, the others are converted");
    ok (converts_cut_anywhere (TEXT ("1\n2\0003\n4\n"), "1\n4\n", "2:0:3:2|"),
        "a NUL is no part of an id");
    memset (longline, ' ', sizeof (longline));
    longline[CONVERT_LINE_MAX - 1] = '7';
    longline[CONVERT_LINE_MAX] = '\n';
    ok (converts_cut_anywhere (longline, CONVERT_LINE_MAX + 1, "7\n", ""),
        "a line of %d bytes is taken", CONVERT_LINE_MAX);
    longline[CONVERT_LINE_MAX] = ' ';
    longline[CONVERT_LINE_MAX + 1] = '\n';
    longline[CONVERT_LINE_MAX + 2] = '8';
    ok (converts_cut_anywhere (longline, CONVERT_LINE_MAX + 3, "8\n", "1:0:1024:          |"),
        "a longer one is told, and the next is taken");
    longline[CONVERT_LINE_MAX + 1] = longline[CONVERT_LINE_MAX + 2] = ' ';
    ok (converts_cut_anywhere (longline, sizeof (longline), "", "1:0:1024:          |"),
        "also where it never ends");
    return done_testing ();
}
