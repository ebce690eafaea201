/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uris_test.c - lists of URIs in the forms that users write */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "libidtree/connect/uris.h"
#include "test/tap.h"

/* The parsed list, each URI in brackets. */
static const char *read_as (const char *text)
{
    static char buf[2048];
    struct uris u;
    size_t len = 0;

    if (uris_parse (&u, text, NULL) < 0)
        return errno == EINVAL && u.count == 0 ? "EINVAL" : "?";
    for (size_t i = 0; i < u.count; i++) {
        len += (size_t)snprintf (buf + len, sizeof (buf) - len, "[%s", u.uri[i].socket.sun_path);
        if (u.uri[i].has_rank)
            len += (size_t)snprintf (buf + len, sizeof (buf) - len, " %u", u.uri[i].rank);
        len += (size_t)snprintf (buf + len, sizeof (buf) - len, "]");
    }
    uris_fini (&u);
    return buf;
}

static void test_read (void)
{
    static const struct {
        const char *text, *read;
    } cases[] = {
        { "local:///a", "[/a]" },
        { "local:///a?rank=7", "[/a 7]" },
        { "local:///a?rank=1/b?c/local-0", "[/a?rank=1/b?c/local-0]" },
        { "local:///a?rank=1/b?rank=2", "[/a?rank=1/b 2]" },
        { "local:///a local:///b", "[/a][/b]" },
        { "local:///a,local:///b?rank=1,local:///c", "[/a][/b 1][/c]" },
        { " ,local:///a ,\t local:///b, ", "[/a][/b]" },
        { "local:///a,b/c d", "[/a,b/c d]" },
        { "local:///a,b local:///c", "[/a,b][/c]" },
        { "", "EINVAL" },
        { " , ", "EINVAL" },
        { "local://", "EINVAL" },
        { "local:///a?rank=", "EINVAL" },
        { "local:///a?rank=4294967296", "EINVAL" },
        { "local:///a tcp://b", "EINVAL" },
        { "/a", "EINVAL" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        ok (strcmp (read_as (cases[i].text), cases[i].read) == 0, "'%s' is parsed as %s", cases[i].text, cases[i].read);
}

static void test_limits (void)
{
    char text[URIS_MAX * 16 + 64] = "", path[160] = "local:///";
    struct uris u;
    idt_error_t error;

    for (int i = 0; i < URIS_MAX; i++)
        strcat (text, "local:///a ");
    ok (uris_parse (&u, text, &error) == 0 && u.count == URIS_MAX, "a list may have %d URIs", URIS_MAX);
    uris_fini (&u);
    strcat (text, "local:///a");
    ok (uris_parse (&u, text, &error) < 0 && errno == EINVAL, "a list with one more is refused: %s", error.text);
    memset (path + 9, 'x', 106);
    ok (uris_parse (&u, path, &error) == 0, "a path may have 107 bytes");
    uris_fini (&u);
    path[9 + 106] = 'x';
    ok (uris_parse (&u, path, &error) < 0 && errno == EINVAL && strstr (error.text, "107"),
        "a longer path is refused: %s", error.text);
}

int main (int argc, char *argv[])
{
    test_read ();
    test_limits ();
    return done_testing ();
}
