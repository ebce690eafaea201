/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_store_test.c - a commit is stored completely or not at all; a file that is in use or damaged is refused */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <idtree/idcomp.h>

#include "libsqlite/database.h"
#include "test/tap.h"
#include "modules/compressor/root/document_store.h"
#include "test/faulty_disk.h"

static char dir[64];
static idt_error_t error;

/* The content that was read, as text: NAME@SEQ=FORM followed by the ranges. */
static char content[1024];

static int document_cb (void *arg, const struct document_store_document *doc, idt_error_t *errp)
{
    size_t n = strlen (content);

    snprintf (content + n, sizeof (content) - n, "%s%lld:%s/%s@%lld=%.*s", n > 0 ? ";" : "", (long long)doc->id,
              doc->name, doc->uuid, (long long)doc->seq, (int)doc->form_size, (const char *)doc->form);
    return 0;
}

static int range_cb (void *arg, int64_t seq, const char *text, idt_error_t *errp)
{
    size_t n = strlen (content);

    snprintf (content + n, sizeof (content) - n, ",%s", text);
    return 0;
}

/* Open a store in a folder. Stores in a folder are at one place at a time. */
static struct document_store *open_read (const char *folder, const struct document_store_reader *reader)
{
    static struct module_place place;

    place.dir = folder;
    content[0] = '\0';
    error.text[0] = '\0';
    struct document_store *st = document_store_create (&place, "broker 12345678, process 1 on here", reader, NULL,
                                                       &error);
    document_store_open (st);
    if (document_store_wait (st, &error) > 0)
        return st;
    document_store_close (st);
    return NULL;
}

static struct document_store *open_in (const char *folder)
{
    static const struct document_store_reader reader = { document_cb, range_cb };

    return open_read (folder, &reader);
}

static int commit (struct document_store *st, const struct document_store_change *changes, size_t n)
{
    struct pollfd pfd = { .fd = document_store_fd (st), .events = POLLIN };
    int rc;

    document_store_commit (st, changes, n);
    wait_until ((rc = document_store_result (st, &error)) != 0) poll (&pfd, 1, TAP_WAIT_S * 1000);
    return rc;
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

static const char *ab[] = { "a", "b" }, *cd[] = { "c", "d" };

static const struct document_store_change made[] = {
    { .document = { 1, "one", "U1", 0, "x", 1, 1001 }, .first = 1, .ranges = ab, .nranges = 2 },
    { .document = { 2, "two", "U2", 0, "y", 1, IDT_USERID_UNKNOWN } },
};

static void check_content (void)
{
    struct document_store *st, *second;

    make_dir ();
    st = open_in (dir);
    ok (st && strcmp (content, "") == 0, "a store with a new file has no documents");
    second = open_in (dir);
    ok (!second && errno == EBUSY && strstr (error.text, "in use by broker 12345678"),
        "a store cannot be opened twice at the same time: %s", error.text);
    ok (document_store_result (st, &error) == 0, "before the first commit a store has no result");
    ok (commit (st, made, 2) == 1, "a store accepts documents with their ranges");
    ok (commit (st, &(struct document_store_change){ .document = { .id = 1 }, .first = 3, .ranges = cd, .nranges = 2 },
                1)
            == 1,
        "a store accepts further ranges of a stored document");
    document_store_close (st);
    st = open_in (dir);
    ok (st && strcmp (content, "1:one/U1@0=x,a,b,c,d;2:two/U2@0=y") == 0,
        "a reopened store returns documents and ranges: %s", content);
    const char *ef[] = { "e", "f" };
    ok (commit (st,
                &(struct document_store_change){ { 1, "one", "U1", 5, "form", 4, 1001 }, 5, ef, 2, false, NULL, NULL },
                1)
            == 1,
        "a stored form replaces the ranges in the form");
    document_store_close (st);
    st = open_in (dir);
    ok (st && strcmp (content, "1:one/U1@5=form,f;2:two/U2@0=y") == 0, "ranges after a stored form are kept: %s",
        content);
    commit (st, &(struct document_store_change){ .document = { .id = 2 }, .first = 2, .ranges = ab, .nranges = 2 }, 1);
    document_store_close (st);
    ok (!open_in (dir) && errno == EBADMSG && strstr (error.text, "range 1 of two is missing"),
        "a store whose file lacks a range is refused: %s", error.text);
    ok (remove_dir (dir), "the folder of a store has no other files");
}

static char owners[64];

static int owner_cb (void *arg, const struct document_store_document *doc, idt_error_t *errp)
{
    size_t n = strlen (owners);

    snprintf (owners + n, sizeof (owners) - n, "%s:%d ", doc->name, (int)doc->owner);
    return document_cb (arg, doc, errp);
}

/* Close and open the store. */
static struct document_store *again (struct document_store *st)
{
    static const struct document_store_reader reader = { owner_cb, range_cb };

    document_store_close (st);
    owners[0] = '\0';
    return open_read (dir, &reader);
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
    struct document_store *st;

    make_dir ();
    st = open_in (dir);
    ok (commit (st, made, 2) == 1 && (st = again (st)) && strcmp (owners, "one:1001 two:-1 ") == 0,
        "a store keeps the owner of a document: %s", owners);
    const struct document_store_change renamed = { { .id = 1 }, 3, cd, 2, false, "uno", NULL };
    ok (commit (st, &renamed, 1) == 1 && (st = again (st)) && strcmp (content, "1:uno/U1@0=x,a,b,c,d;2:two/U2@0=y") == 0
            && strcmp (owners, "uno:1001 two:-1 ") == 0,
        "a renamed document keeps its content and owner: %s", content);
    ok (commit (st, &(struct document_store_change){ .document = { .id = 1 }, .deleted = true }, 1) == 1
            && (st = again (st)) && strcmp (content, "2:two/U2@0=y") == 0,
        "a deleted document leaves nothing in the store: %s", content);
    const struct document_store_change anew = { .document = { 1, "uno", "U3", 0, "z", 1, IDT_USERID_UNKNOWN } };
    ok (commit (st, &anew, 1) == 1 && (st = again (st)) && strcmp (content, "1:uno/U3@0=z;2:two/U2@0=y") == 0
            && strcmp (owners, "uno:-1 two:-1 ") == 0,
        "a new document with the name of a deleted one gets nothing of the deleted one: %s", content);
    document_store_close (st);
    st = NULL;
    ok (sql_in (EXCLUSIVE "DROP TABLE owners;") && (st = again (st)) && strcmp (owners, "uno:-1 two:-1 ") == 0,
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
    char once[sizeof (content)];
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
