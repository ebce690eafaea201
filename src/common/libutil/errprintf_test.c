/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf_test.c - a text that is too long keeps the reason behind a path */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "test/tap.h"

#define ADVICE "was removed: put it back, or stop the instance"

static void check_path (size_t size, const char *letter)
{
    char path[4096] = "/";
    idt_error_t err;

    while (strlen (path) + strlen (letter) <= size)
        strcat (path, letter);
    strcat (path, "/end");
    errno = ENOENT;
    bool good = errprintf (&err, "broker 7: %s: %s", path, ADVICE) < 0 && errno == ENOENT
                && !strncmp (err.text, "broker 7: /", 11) && strstr (err.text, "/end: " ADVICE)
                && strlen (err.text) < sizeof (err.text) && !strchr (err.text, '?')
                && !strstr (err.text, "...") == (strlen (path) + strlen ("broker 7: : " ADVICE) < sizeof (err.text));
    ok (good, "an error text with a path of %zu bytes keeps the reason after the path: %s", strlen (path), err.text);
}

/* A text without a long word is cut at its end. */
static void check_sentence (void)
{
    char text[1024] = "", cut[sizeof ((idt_error_t *)0)->text];
    idt_error_t err;

    while (strlen (text) < 600)
        strcat (text, "some words ");
    snprintf (cut, sizeof (cut), "%.*s", (int)sizeof (cut) - 1, text);
    errsetf (&err, EINVAL, "%s", text);
    ok (errno == EINVAL && !strcmp (err.text, cut), "an error text without a long word is cut at its end");
}

int main (void)
{
    for (size_t size = 10; size < 4000; size = size < 260 ? size + 10 : size * 2)
        check_path (size, "d");
    check_path (300, "\xc3\xa9");
    check_path (301, "\xe2\x82\xac");
    check_path (1000, "\xf0\x9f\x8c\xb3");
    check_sentence ();
    ok (errprintf (NULL, "%s", "text") < 0, "a function whose caller passes no error object returns -1");
    return done_testing ();
}
