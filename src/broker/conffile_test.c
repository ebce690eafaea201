/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile_test.c - the syntax of a file of attributes */
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

    ok (load (a, text, strlen (text), &err) == 0, "a configuration file is read %s", err.text);
    ok (strcmp (attr_get (a, "a", NULL), "1") == 0 && strcmp (attr_get (a, "b", NULL), " two words ") == 0
            && strcmp (attr_get (a, "c", NULL), "") == 0 && strcmp (attr_get (a, "d", NULL), "x = y") == 0
            && strcmp (attr_get (a, "last", NULL), "1") == 0,
        "blanks and quotes around a value of a configuration file are removed, and the last line needs no newline");
    attrs_destroy (a);
}

static void is_value (struct attrs *a, const char *name, const char *want)
{
    const char *value = attr_get (a, name, NULL);

    ok (value && strcmp (value, want) == 0, "an attribute has the value in the configuration file: %s = %s", name,
        value ? value : "(none)");
}

static void test_toml (void)
{
    static const char text[] = "top = 'a\\b#c'  # comment\n"
                               "quoted = \"a \\\"b\\\\ # c\" # d\n"
                               "yes = true\nno = false # no\n"
                               "[tbon] # table\n"
                               "topo = \"kary:2\"\n"
                               "deep.er = 2\n"
                               "[cluster.more]\n"
                               "hosts = [\"login\", # the first\n"
                               "   'node[0-3]',\n"
                               "\n"
                               " 7 ]\n"
                               "none = []\n"
                               "last = [ \"a\", ]";
    struct attrs *a = attrs_create ();
    idt_error_t err = { "" };

    ok (load (a, text, strlen (text), &err) == 0, "a configuration file with tables and lists is read %s", err.text);
    is_value (a, "top", "a\\b#c");
    is_value (a, "quoted", "a \"b\\ # c");
    is_value (a, "yes", "true");
    is_value (a, "no", "false");
    is_value (a, "tbon.topo", "kary:2");
    is_value (a, "tbon.deep.er", "2");
    is_value (a, "cluster.more.hosts", "login,node[0-3],7");
    is_value (a, "cluster.more.none", "");
    is_value (a, "cluster.more.last", "a");
    attrs_destroy (a);
}

static void test_origin (void)
{
    struct attrs *a = attrs_create (), *copy;
    idt_error_t err = { "" };
    uint32_t n;
    static const char text[] = "\n[cluster]\n\nport = 99999\n";

    ok (load (a, text, strlen (text), &err) == 0 && (copy = attrs_copy (a)),
        "a configuration file with a number out of range is read; the owner of the attribute checks the range");
    ok (attr_u32 (copy, "cluster.port", "1", 1, 65535, &n, &err) < 0
            && strstr (err.text, ":4: attribute cluster.port=99999"),
        "the error for a number out of range names the line of the configuration file: %s", err.text);
    attr_give (a, "cluster.port", "0", &err);
    ok (!attr_origin (a, "cluster.port") && attr_u32 (a, "cluster.port", "1", 1, 65535, &n, &err) < 0
            && strncmp (err.text, "attribute cluster.port=0", 24) == 0,
        "the error for a number out of range names no line if the command line set the number: %s", err.text);
    attrs_destroy (copy);
    attrs_destroy (a);
}

static void test_faults (void)
{
    static const struct {
        const char *text;
        size_t size; /* 0: the length of the string 'text' */
        const char *fault;
    } cases[] = {
        { "a = 1\nnonsense\n", 0, ":2: must read ATTR = VALUE" },
        { "a = \"1\n", 0, ":1: a closing quote is missing" },
        { " = 1\n", 0, ":1: the name of an attribute is missing" },
        { "\n\na b = 1\n", 0, ":3: attribute a b: byte 2 of the name is not printable ASCII" },
        { "a = caf\xe9\n", 0, ":1: attribute a: byte 4 of its value (0xe9) is not UTF-8" },
        { "a = 1\x1b[0m\n", 0, ":1: attribute a: byte 2 of its value (0x1b) is a control character" },
        { "a = 'x' y\n", 0, ":1: only a comment may follow a value" },
        { "a = \"\\n\"\n", 0, ":1: \\ in a string must be followed by \\ or a quote" },
        { "a = [1 2]\n", 0, ":1: a list lacks a comma" },
        { "a = [1,\n2\n", 0, ":3: the file ends in a list" },
        { "a = [[1]]\n", 0, ":1: a list has strings and numbers" },
        { "a = [=]\n", 0, ":1: a list has strings and numbers" },
        { "a = { b = 1 }\n", 0, ":1: tables in { } are not supported" },
        { "[[a]]\n", 0, ":1: lists of tables" },
        { "[a\n", 0, ":1: must read [TABLE]" },
        { "[]\n", 0, ":1: the name of a table" },
        { "[a b]\n", 0, ":1: the name of a table" },
        { "[a] b\n", 0, ":1: only a comment may follow [TABLE]" },
        { "a.b = 1\n[a]\nb = 2\n", 0, ":3: a.b is already set in line 1" },
        { "a = [\n'x',\n'\x1b',\n]\n", 0, ":1: attribute a: byte 3 of its value (0x1b) is a control character" },
        { "a = 1\0b = 2\n", 12, ":1: byte 6 is NUL: not a file of attributes" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        struct attrs *a = attrs_create ();
        idt_error_t err = { "" };
        size_t size = cases[i].size ? cases[i].size : strlen (cases[i].text);

        ok (load (a, cases[i].text, size, &err) < 0 && strstr (err.text, cases[i].fault),
            "an invalid configuration file is refused: %s", err.text);
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
    ok (load (a, text, size, &err) < 0 && strstr (err.text, "a line has at most"),
        "a line of a configuration file over the limit is refused: %s", err.text);
    ok (conffile_load (a, "/dev/zero", &err) < 0, "a configuration file without line ends is refused: %s", err.text);
    ok (conffile_load (a, ".", &err) < 0 && conffile_load (a, "no-such-file", &err) < 0,
        "a missing configuration file is refused: %s", err.text);
    free (text);
    attrs_destroy (a);
}

int main (int argc, char *argv[])
{
    test_values ();
    test_toml ();
    test_origin ();
    test_faults ();
    test_endless ();
    return done_testing ();
}
