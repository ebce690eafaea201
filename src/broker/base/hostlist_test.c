/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist_test.c - names are added to a list, and the text of the list is compared with these names */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/hostlist.h"
#include "test/tap.h"

#define MAX_NAMES 200

/* Add 'names', which are "NAME*COUNT" or "NAME", separated by blanks, and return the text of the list. */
static char *text_of (const char *names)
{
    struct hostlist *hl = hostlist_create ();
    char copy[512], *save = NULL, *text;

    snprintf (copy, sizeof (copy), "%s", names);
    for (char *name = strtok_r (copy, " ", &save); name; name = strtok_r (NULL, " ", &save)) {
        char *times = strchr (name, '*');

        if (times)
            *times = '\0';
        if (hostlist_append (hl, name, times ? atoi (times + 1) : 1) < 0)
            bail_out ("out of memory");
    }
    text = hostlist_text (hl);
    hostlist_destroy (hl);
    return text;
}

static void test_texts (void)
{
    static const struct {
        const char *names, *text;
    } rows[] = {
        { "", "" },
        { "vm", "vm" },
        { "vm*3", "vm,vm,vm" },
        { "vm vm vm", "vm,vm,vm" },
        { "n1 n2 n3", "n[1-3]" },
        { "n1*2 n2*2", "n[1,1,2,2]" },
        { "n1 n1 n2 n3", "n[1,1,2-3]" },
        { "n8 n9 n10 n11", "n[8-11]" },
        { "n08 n09 n10", "n[08-10]" },
        { "n9 n010", "n[9,010]" },
        { "n099 n100", "n[099-100]" },
        { "n1 n3 m1 7 8", "n[1,3],m1,[7-8]" },
        { "login n1 n2 login", "login,n[1-2],login" },
        { "n1 n2 n1", "n[1-2,1]" },
        { "n4294967296 n4294967297", "n4[294967296-294967297]" },
        { "r1-n1 r1-n2 r2-n1", "r1-n[1-2],r2-n1" },
        { "n0 n1", "n[0-1]" },
        { "n00 n0", "n[00,0]" },
    };

    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        char *text = text_of (rows[i].names);

        ok (text && strcmp (text, rows[i].text) == 0, "the list of \"%s\" is \"%s\" (%s)", rows[i].names, rows[i].text,
            text);
        free (text);
    }
}

/* Write the names that "[NUMBERS]" at 'p' gives after 'stem', each followed by a comma. */
static const char *expand_brackets (const char *p, const char *stem, int stem_len, FILE *out)
{
    while (*p != ']') {
        unsigned lo, hi;
        int n, width;

        p += *p == '[' || *p == ',';
        sscanf (p, "%u%n", &lo, &width);
        hi = lo;
        n = width;
        if (p[n] == '-') {
            int more;

            sscanf (p + n + 1, "%u%n", &hi, &more);
            n += 1 + more;
        }
        for (p += n; lo <= hi; lo++)
            fprintf (out, "%.*s%0*u,", stem_len, stem, width, lo);
    }
    return p + 1;
}

/* A simple parser of RFC 29, which shares no code with the code under test. */
static void expand (const char *text, char *buf, size_t size)
{
    FILE *out = fmemopen (buf, size, "w");

    while (*text) {
        int n = (int)strcspn (text, ",[");

        if (text[n] == '[')
            text = expand_brackets (text + n, text, n, out);
        else {
            fprintf (out, "%.*s,", n, text);
            text += n;
        }
        text += *text == ',';
    }
    fclose (out);
}

static void random_name (char *name, size_t size, unsigned *number)
{
    static const char *const stems[] = { "n", "node-", "", "a0", "rack7x" };

    *number = rand () % 3 > 0 ? *number + 1 : rand () % 2 > 0 ? *number : (unsigned)rand () % 1200;
    if (rand () % 8 == 0)
        snprintf (name, size, "login");
    else
        snprintf (name, size, "%s%0*u", stems[rand () % 9 > 0 ? 0 : rand () % 5], rand () % 9 > 0 ? 3 : 1, *number);
}

static void test_random (void)
{
    int bad = 0;

    for (int seed = 1; seed <= 3000; seed++) {
        static char all[16384], back[16384];
        struct hostlist *hl = hostlist_create ();
        unsigned number = 0;
        size_t len = 0;

        srand (seed);
        all[0] = '\0';
        for (int i = rand () % MAX_NAMES; i > 0; i--) {
            int times = rand () % 4 > 0 ? 1 : 1 + rand () % 5;
            char name[32];

            random_name (name, sizeof (name), &number);
            hostlist_append (hl, name, times);
            while (times-- > 0 && len + 32 < sizeof (all))
                len += snprintf (all + len, sizeof (all) - len, "%s,", name);
        }
        char *text = hostlist_text (hl);
        back[0] = '\0';
        expand (text, back, sizeof (back));
        if (strcmp (all, back) != 0 && bad++ == 0)
            diag ("seed %d: %s is written as %s", seed, all, text);
        free (text);
        hostlist_destroy (hl);
    }
    ok (bad == 0, "each of 3000 random lists expands to the names that were added to the list");
}

/* The memory of a list depends on the number of its runs, and a million consecutive hosts are one run. */
static void test_large (void)
{
    struct hostlist *hl = hostlist_create ();
    char name[32], *text;

    for (int i = 0; i < 1000000; i++) {
        snprintf (name, sizeof (name), "node%d", i);
        hostlist_append (hl, name, 1);
    }
    text = hostlist_text (hl);
    ok (text && strcmp (text, "node[0-999999]") == 0, "a list of a million numbered hosts is stored as one run");
    free (text);
    hostlist_destroy (hl);
}

int main (void)
{
    test_texts ();
    test_random ();
    test_large ();
    done_testing ();
    return 0;
}
