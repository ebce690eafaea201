/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile_test.c - what a file of attributes may look like */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/conffile.h"
#include "test/tap.h"

static int load (struct attrs *a, const char *text, size_t size, idt_error_t *errp)
{
    char path[] = "conffile-XXXXXX";
    int fd = mkstemp (path);

    if (fd < 0 || write (fd, text, size) != (ssize_t)size)
        bail_out ("cannot write a file");
    close (fd);
    int rc = conffile_load (a, path, errp);
    unlink (path);
    return rc;
}

static void test_values (void)
{
    struct attrs *a = attrs_create ();
    idt_error_t err = { "" };
    static const char text[] = "# a comment\n\n a = 1 \nb=\" two words \"\nc =\nd = x = y\nlast = 1";

    ok (load (a, text, strlen (text), &err) == 0, "a file is read %s", err.text);
    ok (strcmp (attr_get (a, "a", NULL), "1") == 0 && strcmp (attr_get (a, "b", NULL), " two words ") == 0
            && strcmp (attr_get (a, "c", NULL), "") == 0 && strcmp (attr_get (a, "d", NULL), "x = y") == 0
            && strcmp (attr_get (a, "last", NULL), "1") == 0,
        "blanks are cut, quotes taken off, and the last line needs no newline");
    attrs_destroy (a);
}

static void test_faults (void)
{
    static const struct {
        const char *text;
        size_t size; /* 0: of the string */
        const char *fault;
    } cases[] = {
        { "a = 1\nnonsense\n", 0, ":2: must read ATTR = VALUE" },
        { "a = \"1\n", 0, ":1: a quote is missing" },
        { " = 1\n", 0, ":1: the name of an attribute is missing" },
        { "\n\na b = 1\n", 0, ":3: attribute a b: byte 2 of the name is no printable ASCII" },
        { "a = caf\xe9\n", 0, ":1: attribute a: byte 4 of its value (0xe9) is not UTF-8" },
        { "a = 1\x1b[0m\n", 0, ":1: attribute a: byte 2 of its value (0x1b) is a control character" },
        { "a = 1\0b = 2\n", 12, ":1: byte 6 is NUL: not a file of attributes" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        struct attrs *a = attrs_create ();
        idt_error_t err = { "" };
        size_t size = cases[i].size ? cases[i].size : strlen (cases[i].text);

        ok (load (a, cases[i].text, size, &err) < 0 && strstr (err.text, cases[i].fault), "%s", err.text);
        attrs_destroy (a);
    }
}

static void test_endless (void)
{
    struct attrs *a = attrs_create ();
    size_t size = ATTR_NAME_MAX + ATTR_VALUE_MAX + 256;
    char *text = malloc (size);
    idt_error_t err = { "" };

    memset (text, 'x', size);
    ok (load (a, text, size, &err) < 0 && strstr (err.text, "a line has at most"), "a line has an end: %s", err.text);
    ok (conffile_load (a, "/dev/zero", &err) < 0, "so has nonsense: %s", err.text);
    ok (conffile_load (a, ".", &err) < 0 && conffile_load (a, "no-such-file", &err) < 0, "no file is told: %s",
        err.text);
    free (text);
    attrs_destroy (a);
}

int main (int argc, char *argv[])
{
    test_values ();
    test_faults ();
    test_endless ();
    return done_testing ();
}
