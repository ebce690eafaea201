/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* database_test.c - a database opens only where nobody else can have put anything in its way */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "test/tap.h"

static const struct database_kind kind = {
    .name = "test.sqlite",
    .application_id = 17,
    .version = 1,
    .create = "CREATE TABLE t (x INTEGER)",
    .advice = "restore a copy of it",
};

static char dir[] = "database_test-XXXXXX";

static const char *file (const char *name)
{
    static char path[128];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return path;
}

static void put (const char *name, const char *text, uid_t owner)
{
    int fd = open (file (name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd < 0 || write (fd, text, strlen (text)) < 0 || (geteuid () == 0 && fchown (fd, owner, owner) < 0))
        bail_out ("cannot write a file");
    close (fd);
}

static void clean (void)
{
    static const char *const names[] = { "test.sqlite", "test.sqlite-wal", "test.sqlite-journal", "test.sqlite.holder",
                                         "other" };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        unlink (file (names[i]));
}

/* Whether the database opens (errnum 0), or is refused with 'errnum' and 'text'. */
static bool opens (int errnum, const char *text)
{
    idt_error_t err = { "" };
    struct database *d = database_open (&kind, dir, "a test", &err);

    if (!d)
        diag ("%s", err.text);
    bool good = d ? errnum == 0 : errno == errnum && strstr (err.text, text);
    database_close (d);
    return good;
}

static void test_folder (void)
{
    ok (opens (0, ""), "a folder of ours is fine");
    chmod (dir, 0770);
    ok (opens (EPERM, "writable by nobody else"), "one that a group may write to is refused");
    chmod (dir, 0777);
    ok (opens (EPERM, "writable by nobody else"), "so is one that all may");
    chmod (dir, 01777);
    ok (opens (0, ""), "but not where only files of one's own can be replaced");
    chmod (dir, 0700);
    clean ();
}

static void test_links (void)
{
    char text[16] = "";

    put ("other", "precious", geteuid ());
    if (symlink ("other", file ("test.sqlite.holder")) < 0)
        bail_out ("no link");
    ok (opens (0, ""), "a link in place of what names the holder is no obstacle");
    int fd = open (file ("other"), O_RDONLY);
    ok (read (fd, text, sizeof (text) - 1) == 8 && strcmp (text, "precious") == 0, "... and is not followed");
    close (fd);
    clean ();
    put ("other", "", geteuid ());
    ok (symlink ("other", file ("test.sqlite")) == 0 && opens (EPERM, "no link to one"), "the file itself is none");
    clean ();
}

static void test_planted (void)
{
    static const char *const names[] = { "test.sqlite", "test.sqlite-wal", "test.sqlite-journal" };

    for (size_t i = 0; i < 3; i++) {
        put (names[i], "planted", 1);
        ok (opens (EPERM, names[i]), "%s of somebody else is not taken for ours", names[i]);
        clean ();
    }
}

static void test_holder (void)
{
    char holder[DATABASE_HOLDER_MAX], wanted[64];

    snprintf (wanted, sizeof (wanted), "process %d on ", (int)getpid ());
    database_holder (holder, NULL);
    ok (strncmp (holder, wanted, strlen (wanted)) == 0 && strlen (holder) > strlen (wanted), "a holder is told: %s",
        holder);
    database_holder (holder, "broker 0123abcd");
    ok (strncmp (holder, "broker 0123abcd, process ", 25) == 0 && strstr (holder, wanted), "... by its name: %s",
        holder);
}

int main (int argc, char *argv[])
{
    if (!mkdtemp (dir))
        bail_out ("no folder");
    test_folder ();
    test_links ();
    test_holder ();
    if (geteuid () == 0)
        test_planted ();
    else
        diag ("only root can make files of somebody else");
    ok (rmdir (dir) == 0, "nothing is left");
    return done_testing ();
}
