/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_store_test.c - a commit is stored completely or not at all; a file that is in use or damaged is refused */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <idtree/idcomp.h>

#include "libsqlite/database.h"
#include "test/document_cases.h"
#include "test/faulty_disk.h"

static char dir[64];

static struct document_store *open_in (const char *folder)
{
    static struct module_place place; /* stores are open in one folder at a time */

    place.dir = folder;
    return open_place (&place);
}

static void make_dir (void)
{
    strcpy (dir, "/tmp/idtree-store-XXXXXX");
    if (!mkdtemp (dir))
        bail_out ("mkdtemp");
    disk_choose (dir);
}

/* Returns whether the folder had no other files. */
static bool remove_dir (const char *folder)
{
    static const char *const names[] = { "compressor.sqlite", "compressor.sqlite-wal", "compressor.sqlite-journal" };
    char path[128];

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        snprintf (path, sizeof (path), "%s/%s", folder, names[i]);
        unlink (path);
    }
    return rmdir (folder) == 0;
}

static void check_content (void)
{
    const struct module_place place = { .dir = dir };
    struct document_store *st;

    make_dir ();
    st = open_in (dir);
    ok (!open_in (dir) && errno == EBUSY && strstr (error.text, "in use by broker 12345678"),
        "a store cannot be opened twice at the same time: %s", error.text);
    document_store_close (st);
    cases_content (&place);
    ok (strstr (error.text, "compressor.sqlite: damaged"), "a damaged store is named: %s", error.text);
    ok (remove_dir (dir), "the folder of a store has no other files");
}

#define EXCLUSIVE "PRAGMA locking_mode = EXCLUSIVE; " /* the test disk has no shared memory */

static bool sql_in (const char *statements)
{
    char path[128];
    sqlite3 *db;

    snprintf (path, sizeof (path), "%s/compressor.sqlite", dir);
    bool good = sqlite3_open (path, &db) == SQLITE_OK && sqlite3_exec (db, statements, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close (db);
    return good;
}

static void check_ends (void)
{
    const struct module_place place = { .dir = dir };

    make_dir ();
    cases_ends (&place);
    struct document_store *st = sql_in (EXCLUSIVE "DROP TABLE owners;") ? open_in (dir) : NULL;
    ok (st && strcmp (owners, "ein:-1 two:-1 tri:-1 ") == 0,
        "a file of an earlier version without owners is accepted: %s", owners);
    document_store_close (st);
    ok (remove_dir (dir), "after deletions the folder of a store has no other files");
}

/* Fail each write of a commit in turn: the commit stores nothing, and can be repeated. */
static void check_failing_disk (void)
{
    bool whole = true, told = true, clean = true;
    int nth = 0;

    do {
        make_dir ();
        struct document_store *st = open_in (dir);
        disk_fail (++nth, true, DISK_FULL);
        int rc = commit (st, made, 2);
        bool failed = disk_failed ();
        told = told && (rc == 1 || (rc < 0 && errno != 0 && strstr (error.text, dir)));
        disk_fail (0, false, DISK_FULL);
        if (rc < 0)
            whole = whole && commit (st, made, 2) == 1;
        document_store_close (st);
        st = open_in (dir);
        whole = whole && st && strcmp (content, "1:one/U1@0=x,a,b;2:two/U2@0=y") == 0;
        document_store_close (st);
        clean = clean && remove_dir (dir);
        if (!failed)
            break;
    } while (nth < 1000);
    ok (nth > 2 && told, "a commit to a store on a full disk is reported as failed, at each of %d writes", nth - 1);
    ok (whole && clean, "a commit succeeds when the disk has space again");
}

static void check_power_cut (void)
{
    char after[] = "/tmp/idtree-after-XXXXXX";

    make_dir ();
    struct document_store *st = open_in (dir);
    commit (st, made, 2);
    disk_power_cut (dir, mkdtemp (after));
    document_store_close (st);
    st = open_in (after);
    ok (st && strcmp (content, "1:one/U1@0=x,a,b;2:two/U2@0=y") == 0, "a commit to a store survives a power cut: %s",
        content);
    document_store_close (st);
    ok (remove_dir (after) && remove_dir (dir), "after power cuts the folders of the stores have no other files");
}

static void check_refused (void)
{
    char path[128];

    make_dir ();
    snprintf (path, sizeof (path), "%s/compressor.sqlite", dir);
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    ok (!open_in (dir) && errno == EBADMSG, "a store with an empty file is refused: %s", error.text);
    ok (write (fd, path, sizeof (path)) > 0 && !open_in (dir) && errno == EBADMSG,
        "a store with a file of garbage is refused: %s", error.text);
    close (fd);
    ok (remove_dir (dir), "the file of a refused store is not changed");
    ok (!open_in ("/nowhere") && errno != 0 && strstr (error.text, "/nowhere/compressor.sqlite"),
        "a store in a missing folder is refused with the folder's name: %s", error.text);
    errno = EINTR;
    document_store_close (NULL);
    ok (errno == EINTR, "document_store_close (NULL) does nothing and keeps errno");
}

/* Whether the UUIDs in "1:NAME/UUID@0=x,a,b;2:NAME/UUID@0=y" are valid and different. */
static bool uuids_are_new (const char *one, const char *two)
{
    struct idcomp_uuid uuid;

    return idcomp_uuid_parse (one, IDCOMP_UUID_TEXT_MAX - 1, &uuid, NULL) == 0
           && idcomp_uuid_parse (two, IDCOMP_UUID_TEXT_MAX - 1, &uuid, NULL) == 0
           && strncmp (one, two, IDCOMP_UUID_TEXT_MAX - 1) != 0;
}

static void check_copy (void)
{
    static char once[sizeof (content)];
    struct document_store *st;

    make_dir ();
    st = open_in (dir);
    ok (st && commit (st, made, 2) == 1 && document_store_copied (st) == 0, "a store with a new file is not a copy");
    document_store_close (st);
    ok (sql_in (EXCLUSIVE DATABASE_COPY_MARK) && sql_in (EXCLUSIVE DATABASE_COPY_MARK),
        "the file of a store can be marked as a copy twice");
    st = open_in (dir);
    const char *two = strstr (content, ";2:two/");
    ok (st && document_store_copied (st) > 1700000000 && strncmp (content, "1:one/", 6) == 0 && two
            && strstr (content, "@0=x,a,b;2:two/") && uuids_are_new (content + 6, two + 7),
        "documents in a copy of a store have new UUIDs and the same content: %s", content);
    document_store_close (st);
    strcpy (once, content);
    st = open_in (dir);
    ok (st && document_store_copied (st) == 0 && strcmp (content, once) == 0,
        "the UUIDs in a copy of a store change only once");
    document_store_close (st);
    ok (remove_dir (dir), "a copy of a store leaves no other files");
}

int main (void)
{
    if (disk_install () < 0) {
        printf ("1..0 # SKIP SQLite is not installed\n");
        return 0;
    }
    check_content ();
    check_ends ();
    check_copy ();
    check_failing_disk ();
    check_power_cut ();
    check_refused ();
    return done_testing ();
}
