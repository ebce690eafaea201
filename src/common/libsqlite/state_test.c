/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state_test.c - the stores of an instance are recognized after a crash
 *
 * A commit, or a checkpoint of a log, writes pages in an order that only the disk knows. So the test tries each set of
 * pages that a crash may leave written, with the log or the journal beside the file.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libsqlite/state.h"
#include "test/tap.h"

#define UUID "01234567-89ab-4cde-8f01-23456789abcd"
#define OTHER "11234567-89ab-4cde-8f01-23456789abcd"
#define FILE_MAX (64 * 1024)
#define TABLES "CREATE TABLE t (x INTEGER); CREATE TABLE u (y TEXT); INSERT INTO t VALUES (1)"

static const struct database_kind log_kind = {
    .name = "log.sqlite", .application_id = 0x69647478, .version = 1, .create = TABLES, .advice = "restore it"
};
static const struct database_kind journal_kind = { .name = STATE_HORIZON_STORE,
                                                   .journal = true,
                                                   .application_id = 0x69647466,
                                                   .version = 1,
                                                   .create = TABLES,
                                                   .advice = "start again" };

static char dir[] = "state_test-XXXXXX";

struct content {
    char bytes[FILE_MAX];
    size_t len;
};

static const char *file (const char *name, const char *suffix)
{
    static char path[2][128];
    static int i;

    i = !i;
    snprintf (path[i], sizeof (path[i]), "%s/%s%s", dir, name, suffix);
    return path[i];
}

static struct content get (const char *path)
{
    struct content c;
    int fd = open (path, O_RDONLY);
    ssize_t n = fd >= 0 ? read (fd, c.bytes, sizeof (c.bytes)) : 0;

    if (n < 0 || n == sizeof (c.bytes))
        bail_out ("cannot read a file");
    if (fd >= 0)
        close (fd);
    c.len = (size_t)n;
    return c;
}

static void put (const char *path, const struct content *c)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write (fd, c->bytes, c->len) != (ssize_t)c->len)
        bail_out ("cannot write a file");
    close (fd);
}

static void clean (void)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal", ".holder" };

    for (size_t i = 0; i < sizeof (suffixes) / sizeof (suffixes[0]); i++) {
        unlink (file (log_kind.name, suffixes[i]));
        unlink (file (journal_kind.name, suffixes[i]));
    }
    unlink (file ("instance", ""));
}

/* --- what a crash leaves ------------------------------------------------------------------------------ */

/* A file before and after the operation that is interrupted, and the log or journal beside it. */
struct crash {
    const struct database_kind *kind;
    const char *suffix;
    size_t page;
    struct content before, after, beside;
};

/* Make a database of 'kind' with SQLite alone, by the statements 'sql'. They are committed to the log, or, without a
 * log, are about to be committed.
 */
static struct crash make (const struct database_kind *kind, size_t page, const char *first, const char *sql)
{
    struct crash c = { .kind = kind, .page = page, .suffix = kind->journal ? "-journal" : "-wal" };
    char begin[1024];
    sqlite3 *db;

    clean ();
    snprintf (
        begin, sizeof (begin),
        "PRAGMA page_size = %zu; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = %s; PRAGMA synchronous = OFF;"
        "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 0; %s;",
        page, kind->journal ? "TRUNCATE" : "WAL", first);
    if (sqlite3_open (file (kind->name, ""), &db) != SQLITE_OK
        || sqlite3_exec (db, begin, NULL, NULL, NULL) != SQLITE_OK)
        bail_out ("cannot make a database");
    if (!kind->journal)
        sqlite3_exec (db, "PRAGMA wal_checkpoint (TRUNCATE);", NULL, NULL, NULL);
    c.before = get (file (kind->name, ""));
    if (sqlite3_exec (db, "BEGIN;", NULL, NULL, NULL) != SQLITE_OK
        || sqlite3_exec (db, sql, NULL, NULL, NULL) != SQLITE_OK)
        bail_out ("cannot fill a database");
    if (kind->journal)
        c.beside = get (file (kind->name, c.suffix));
    sqlite3_exec (db, "COMMIT;", NULL, NULL, NULL);
    if (!kind->journal)
        c.beside = get (file (kind->name, c.suffix));
    sqlite3_close (db);
    c.after = get (file (kind->name, ""));
    if (c.before.len == 0 || c.beside.len == 0 || c.after.len <= c.before.len)
        bail_out ("nothing to crash in");
    return c;
}

/* Leave a file in which the pages of the set are written. */
static void leave (const struct crash *c, unsigned set)
{
    struct content left = c->before;

    for (size_t at = 0; at < c->after.len; at += c->page)
        if (set >> at / c->page & 1) {
            if (at > left.len)
                memset (left.bytes + left.len, 0, at - left.len);
            memcpy (left.bytes + at, c->after.bytes + at, c->page);
            left.len = left.len < at + c->page ? at + c->page : left.len;
        }
    put (file (c->kind->name, ""), &left);
    put (file (c->kind->name, c->suffix), &c->beside);
}

static struct statefile instance_of (const char *uuid)
{
    struct statefile s = { .name = "x", .created_ms = 1000 };

    snprintf (s.uuid, sizeof (s.uuid), "%s", uuid);
    return s;
}

static bool opens (const struct database_kind *kind, unsigned set)
{
    idt_error_t err;
    struct database *d = database_open (kind, dir, "a test", &err);

    if (!d)
        diag ("pages %#x: %s", set, err.text);
    database_close (d);
    return d != NULL;
}

/* Count the sets of pages that are refused, by the check of the folder or by the open. */
static unsigned count_refused (const struct crash *c, unsigned *tried)
{
    unsigned pages = (unsigned)(c->after.len / c->page), refused = 0;
    struct statefile s = instance_of (UUID);
    idt_error_t err;

    for (unsigned set = 0; set < 1U << pages; set++, ++*tried) {
        clean ();
        leave (c, set);
        state_create (dir, &s, NULL);
        bool good = state_check (dir, &s, NULL, &err) == 0;

        if (!good)
            diag ("pages %#x: %s", set, err.text);
        refused += !good || !opens (c->kind, set);
    }
    return refused;
}

#define MARK "CREATE TABLE instance (uuid TEXT NOT NULL); INSERT INTO instance VALUES ('" UUID "');"
#define KIND(id) "PRAGMA application_id = " #id "; PRAGMA user_version = 1;"
#define LOG_KIND KIND (0x69647478)
#define JOURNAL_KIND KIND (0x69647466)

static void check_made (void)
{
    struct crash log = make (&log_kind, 512, "", TABLES ";" MARK LOG_KIND);
    struct crash journal = make (&journal_kind, 512, "", TABLES ";" MARK JOURNAL_KIND);
    struct crash early = make (&log_kind, 512, "", MARK TABLES ";" LOG_KIND);
    unsigned tried = 0, refused = count_refused (&log, &tried);

    ok (refused == 0 && tried > 4,
        "after a crash while the log with new tables is written back, the store is accepted (%u sets of pages)", tried);
    tried = 0, refused = count_refused (&early, &tried);
    ok (refused == 0 && tried > 4,
        "after a crash while the log is written back, the store is accepted wherever the mark is in the log (%u)",
        tried);
    tried = 0, refused = count_refused (&journal, &tried);
    ok (refused == 0 && tried > 4, "after a crash while tables are created without a log, the store is accepted (%u)",
        tried);
}

static void check_begun (void)
{
    static const struct content empty;
    struct statefile s = instance_of (UUID);

    clean ();
    state_create (dir, &s, NULL);
    put (file (log_kind.name, ""), &empty);
    put (file (journal_kind.name, ""), &empty);
    ok (state_check (dir, &s, NULL, NULL) == 0 && opens (&log_kind, 0) && opens (&journal_kind, 0)
            && state_read (dir, &s, NULL) == 0 && s.nstores == 2,
        "after a crash before the first page is written, the empty store is created again");
    put (file (journal_kind.name, ""), &empty);
    ok (!database_open (&journal_kind, dir, NULL, NULL) && errno == EBADMSG,
        "an empty store that was in use is not created again");
}

/* --- what an earlier version left --------------------------------------------------------------------- */

static unsigned count_not_adopted (const struct crash *c, unsigned *tried)
{
    struct crash horizon = make (&journal_kind, 512, "", TABLES ";" JOURNAL_KIND);
    unsigned pages = (unsigned)(c->after.len / c->page), lost = 0;
    idt_error_t err;

    for (unsigned set = 0; set < 1U << pages; set++, ++*tried) {
        struct statefile s = instance_of (UUID);

        clean ();
        put (file (journal_kind.name, ""), &horizon.after);
        leave (c, set);
        bool good = state_adopt (dir, &s, &err) == 1 && state_find_store (&s, c->kind->name);

        if (!good)
            diag ("pages %#x: not adopted", set);
        lost += !good || !opens (&journal_kind, set) || !opens (c->kind, set);
    }
    return lost;
}

static void check_adopted (void)
{
    struct crash fresh = make (&log_kind, 512, "", TABLES ";" LOG_KIND);
    struct crash grown = make (&log_kind, 512, TABLES ";" LOG_KIND, "CREATE TABLE v (z); CREATE TABLE w (z)");
    unsigned tried = 0, lost = count_not_adopted (&fresh, &tried);

    ok (lost == 0 && tried > 4, "tables of an earlier version that are only in the log are adopted (%u sets of pages)",
        tried);
    tried = 0, lost = count_not_adopted (&grown, &tried);
    ok (lost == 0 && tried > 4,
        "tables of an earlier version are adopted while a crash left some of them in the log (%u)", tried);
}

/* --- strangers ---------------------------------------------------------------------------------------- */

static void check_strangers (void)
{
    struct crash log = make (&log_kind, 512, "", TABLES ";" MARK LOG_KIND);
    struct crash bare = make (&log_kind, 512, "", TABLES ";" LOG_KIND);
    struct statefile s = instance_of (OTHER);
    idt_error_t err;

    clean ();
    put (file (log_kind.name, ""), &log.after);
    put (file (log_kind.name, "-wal"), &log.beside);
    ok (state_check (dir, &s, NULL, &err) < 0 && errno == STATE_REFUSED && strstr (err.text, UUID),
        "a store with the mark of another instance is refused, with any log or journal beside it: %s", err.text);
    clean ();
    state_create (dir, &s, NULL);
    leave (&log, 0);
    ok (state_check (dir, &s, NULL, &err) == 0 && !database_open (&log_kind, dir, NULL, &err) && errno == STATE_REFUSED,
        "a store whose wrong mark is only in the log is refused when it is opened: %s", err.text);
    clean ();
    put (file (log_kind.name, ""), &bare.after);
    ok (state_check (dir, &s, NULL, &err) < 0 && errno == STATE_REFUSED && strstr (err.text, "of no instance"),
        "a complete store without a mark is refused: %s", err.text);
}

static bool reading_fails; /* reading a folder fails */

/* Replaces the function of the C library. */
struct dirent *readdir (DIR *d)
{
    union {
        void *found;
        struct dirent *(*call) (DIR *);
    } real = { dlsym (RTLD_NEXT, "readdir") };

    if (!reading_fails)
        return real.call (d);
    errno = EIO;
    return NULL;
}

/* A folder that cannot be read is not empty. */
static void check_unreadable (void)
{
    struct statefile fresh = { .nstores = 0 };
    idt_error_t err;

    ok (state_survey (dir, &fresh, &err) == 0, "an empty folder has no store");
    reading_fails = true;
    int rc = state_survey (dir, &fresh, &err), errnum = errno;
    reading_fails = false;
    ok (rc < 0 && errnum == EIO && strstr (err.text, "Input/output error"),
        "if a folder cannot be read to its end, the check for stores fails: %s", rc < 0 ? err.text : "none");
}

int main (void)
{
    if (!mkdtemp (dir))
        bail_out ("cannot make a folder");
    check_made ();
    check_begun ();
    check_adopted ();
    check_strangers ();
    clean ();
    check_unreadable ();
    ok (rmdir (dir) == 0, "the folder of the test is empty in the end");
    return done_testing ();
}
