/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* database_test.c - a database opens only if no other user can have put a file in its place */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    ok (opens (0, ""), "a folder that belongs to this user is accepted");
    chmod (dir, 0770);
    ok (opens (EPERM, "writable by no other user"), "a database in a folder that a group may write to is refused");
    chmod (dir, 0777);
    ok (opens (EPERM, "writable by no other user"), "a database in a folder that all may write to is refused");
    chmod (dir, 01777);
    ok (opens (0, ""), "a database in a folder with the sticky bit is accepted");
    chmod (dir, 0700);
    clean ();
}

static void test_links (void)
{
    char text[16] = "";

    put ("other", "precious", geteuid ());
    if (symlink ("other", file ("test.sqlite.holder")) < 0)
        bail_out ("no link");
    ok (opens (0, ""), "a database can be opened if a link stands in place of the holder's file");
    int fd = open (file ("other"), O_RDONLY);
    ok (read (fd, text, sizeof (text) - 1) == 8 && strcmp (text, "precious") == 0,
        "a link in place of the holder's file is not followed");
    close (fd);
    clean ();
    put ("other", "", geteuid ());
    ok (symlink ("other", file ("test.sqlite")) == 0 && opens (EPERM, "no link to one"),
        "a database is refused if a link stands in its place");
    clean ();
}

static void test_planted (void)
{
    static const char *const names[] = { "test.sqlite", "test.sqlite-wal", "test.sqlite-journal" };

    for (size_t i = 0; i < 3; i++) {
        put (names[i], "planted", 1);
        ok (opens (EPERM, names[i]), "a database is refused if %s belongs to another user", names[i]);
        clean ();
    }
}

static void test_holder (void)
{
    char holder[DATABASE_HOLDER_MAX], wanted[64];

    snprintf (wanted, sizeof (wanted), "process %d on ", (int)getpid ());
    database_holder (holder, NULL);
    ok (strncmp (holder, wanted, strlen (wanted)) == 0 && strlen (holder) > strlen (wanted),
        "the holder of a database is named by process and host: %s", holder);
    database_holder (holder, "broker 0123abcd");
    ok (strncmp (holder, "broker 0123abcd, process ", 25) == 0 && strstr (holder, wanted),
        "the holder of a database is named by its own name, too: %s", holder);
}

/* --- the log is taken away ---------------------------------------------------------------------------------- */

static const struct database_kind small = {
    .name = "test.sqlite",
    .journal = true,
    .application_id = 17,
    .version = 1,
    .create = "CREATE TABLE t (x INTEGER)",
    .advice = "restore a copy of it",
};

static struct database *must_open (const struct database_kind *k)
{
    idt_error_t err;
    struct database *d = database_open (k, dir, "a test", &err);

    if (!d)
        bail_out (err.text);
    return d;
}

/* Insert a row. Returns whether it succeeded (errnum 0), or failed with 'errnum' and a message that contains 'text'. */
static bool puts_row (struct database *d, int errnum, const char *text)
{
    idt_error_t err = { "" };
    int rc = database_run (d, "INSERT INTO t VALUES (1);", &err);

    if (rc < 0)
        diag ("%s", err.text);
    return errnum == 0 ? rc == 0 : rc < 0 && errno == errnum && strstr (err.text, text) != NULL;
}

static int rows (struct database *d)
{
    sqlite3_stmt *stmt = database_prepare (d, "SELECT count(*) FROM t;", NULL);
    int n = stmt && database_step (d, stmt, NULL) == 1 ? sqlite3_column_int (stmt, 0) : -1;

    sqlite3_finalize (stmt);
    return n;
}

static bool is_there (const char *name)
{
    return access (file (name), F_OK) == 0;
}

/* Replace the file by a copy with the same content, like a restored backup. */
static void replace_by_copy (const char *name)
{
    char from[128], to[128], data[1 << 16];

    snprintf (from, sizeof (from), "%s", file (name));
    snprintf (to, sizeof (to), "%s", file ("other"));
    int in = open (from, O_RDONLY), out = open (to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n = read (in, data, sizeof (data));

    if (n < 0 || write (out, data, (size_t)n) != n || rename (to, from) < 0)
        bail_out ("cannot copy a file");
    close (in);
    close (out);
}

static void test_wal_removed (void)
{
    struct database *d = must_open (&kind);

    ok (puts_row (d, 0, "") && is_there ("test.sqlite-wal"), "commits to a database create a log");
    unlink (file ("test.sqlite-wal"));
    ok (puts_row (d, ESTALE, "test.sqlite-wal: was removed or replaced while in use: stop rank 0 in order"),
        "the removal of a database's log is detected");
    ok (puts_row (d, ESTALE, "test.sqlite-wal"), "each commit detects that the log was removed");
    database_close (d);
    d = must_open (&kind);
    ok (rows (d) == 3, "closing a database in order loses nothing that was in the removed log");
    ok (puts_row (d, 0, ""), "the next open of a database whose log was removed creates another log");
    replace_by_copy ("test.sqlite-wal");
    ok (puts_row (d, ESTALE, "test.sqlite-wal"), "a log that was replaced by a copy is detected");
    database_close (d);
    clean ();
}

static void test_journal_removed (void)
{
    struct database *d = must_open (&small);

    ok (puts_row (d, 0, "") && is_there ("test.sqlite-journal"), "the journal of a database exists between commits");
    unlink (file ("test.sqlite-journal"));
    ok (puts_row (d, 0, "") && is_there ("test.sqlite-journal"), "the next commit creates a removed journal again");
    replace_by_copy ("test.sqlite-journal");
    unlink (file ("test.sqlite-journal"));
    ok (puts_row (d, 0, "") && is_there ("test.sqlite-journal"), "each commit creates a removed journal again");
    replace_by_copy ("test.sqlite");
    unlink (file ("test.sqlite-journal"));
    ok (puts_row (d, ESTALE, "test.sqlite: was removed or replaced") && !is_there ("test.sqlite-journal"),
        "no journal is created beside a database file that was replaced");
    database_close (d);
    clean ();
    d = must_open (&small);
    unlink (file ("test.sqlite-journal"));
    ok (puts_row (d, 0, "") && puts_row (d, 0, "") && is_there ("test.sqlite-journal") && rows (d) == 2,
        "the first commit creates a removed journal again");
    database_close (d);
    clean ();
}

/* --- SQLite ignores a PRAGMA ------------------------------------------------------------------------------- */

static const char *ignored; /* this PRAGMA has no effect */

static int authorize_cb (void *arg, int action, const char *first, const char *second, const char *db, const char *by)
{
    return action == SQLITE_PRAGMA && ignored && strcmp (first, ignored) == 0 ? SQLITE_IGNORE : SQLITE_OK;
}

static int watch_open (sqlite3 *db, char **why, const void *api)
{
    return sqlite3_set_authorizer (db, authorize_cb, NULL);
}

static void test_ignored (void)
{
    static const char *const names[] = { "journal_mode", "locking_mode", "synchronous" };

    sqlite3_auto_extension ((void (*) (void))watch_open);
    for (size_t i = 0; i < 2 * (sizeof (names) / sizeof (names[0])); i++) {
        const struct database_kind *k = i % 2 ? &small : &kind;
        idt_error_t err = { "" };

        ignored = names[i / 2];
        struct database *d = database_open (k, dir, "a test", &err);
        ok (!d && errno == ENOTSUP && strstr (err.text, ignored),
            "an open fails if SQLite ignores the setting %s%s: %s", ignored, k->journal ? " of a journal" : "",
            err.text);
        database_close (d);
        ignored = NULL;
        clean ();
    }
    struct database *d = must_open (&small);
    ok (puts_row (d, 0, "") && unlink (file ("test.sqlite-journal")) == 0,
        "a commit succeeds, and then the journal is removed");
    ignored = "journal_mode";
    ok (puts_row (d, ENOTSUP, "journal_mode = OFF") && rows (d) == 1,
        "if SQLite does not make another journal, no row is stored, because a crash would lose it");
    ignored = NULL;
    ok (puts_row (d, 0, "") && is_there ("test.sqlite-journal") && rows (d) == 2,
        "rows are stored again when SQLite creates a journal");
    sqlite3_db_config (d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    unlink (file ("test.sqlite-journal"));
    ok (puts_row (d, ENOTSUP, "\"truncate\" to PRAGMA journal_mode = OFF"),
        "in SQLite's defensive mode no row is stored, because the PRAGMA for the journal is refused");
    database_close (d);
    clean ();
    sqlite3_reset_auto_extension ();
}

/* Whether opening under each limit of file sizes from 1 KiB fails because of the limit, until the database fits. */
static bool names_the_limit (const struct database_kind *k)
{
    struct rlimit limit, old;
    struct database *d = NULL;
    bool good = true;

    getrlimit (RLIMIT_FSIZE, &old);
    limit = old;
    signal (SIGXFSZ, SIG_IGN);
    for (limit.rlim_cur = 1024; good && !d && limit.rlim_cur < 64 * 1024; limit.rlim_cur += 1024) {
        idt_error_t err = { "" };

        setrlimit (RLIMIT_FSIZE, &limit);
        d = database_open (k, dir, "a test", &err);
        good = d || (errno == ENOSPC && strstr (err.text, "it may not grow: raise the limit of file sizes"));
        if (!good)
            diag ("%lu bytes: %s", (unsigned long)limit.rlim_cur, err.text);
        setrlimit (RLIMIT_FSIZE, &old);
        if (d)
            database_close (d);
        clean ();
    }
    return good && d;
}

static void test_limit (void)
{
    ok (names_the_limit (&kind),
        "the message of a failed commit names the limit of file sizes, whichever file reached it");
    ok (names_the_limit (&small),
        "the message of a failed commit with a journal names the limit of file sizes, whichever file reached it");
}

/* Exit status 0: with free space for 'inodes' files the database opens, or fails because the disk is full; 1: it does
 * something else; 77: no disk can be mounted here.
 */
static int open_without_inodes (int inodes)
{
    char size[32];
    idt_error_t err = { "" };

    snprintf (size, sizeof (size), "mode=0700,nr_inodes=%d", inodes + 1);
    if (unshare (CLONE_NEWNS) < 0 || mount ("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
        || mount ("none", dir, "tmpfs", 0, size) < 0)
        return 77;
    struct database *d = database_open (&kind, dir, "a test", &err);
    diag ("room for %d files: %s", inodes, err.text);
    return (d && inodes > 0) || (!d && errno == ENOSPC && strstr (err.text, "the disk is full")) ? 0 : 1;
}

static void test_inodes (void)
{
    for (int inodes = 0; inodes < 4; inodes++) {
        int status = -1;
        pid_t pid = fork ();

        if (pid == 0)
            _exit (open_without_inodes (inodes));
        waitpid (pid, &status, 0);
        if (WIFEXITED (status) && WEXITSTATUS (status) == 77)
            diag ("no disk can be mounted here");
        else
            ok (status == 0, "on a disk with space for %d files a database opens, or fails because the disk is full",
                inodes);
    }
}

int main (int argc, char *argv[])
{
    if (!mkdtemp (dir))
        bail_out ("no folder");
    test_folder ();
    test_links ();
    test_holder ();
    test_wal_removed ();
    test_journal_removed ();
    test_ignored ();
    test_limit ();
    test_inodes ();
    if (geteuid () == 0)
        test_planted ();
    else
        diag ("only root can make files of another user");
    ok (rmdir (dir) == 0, "the folder of the test is empty in the end");
    return done_testing ();
}
