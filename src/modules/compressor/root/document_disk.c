/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_disk.c - the documents of an instance in an SQLite file, compressor.sqlite in the statedir
 *
 *   documents  id, name, uuid, seq, form: the stored form with ranges 1 ... seq finalized
 *   ranges     document, seq, text: later ranges
 *   owners     document, userid: the owner. Files of older versions get this table when they are opened
 *
 * The state of a document is its form and then its ranges in order. The numbers of ranges must be consecutive.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"
#include "modules/compressor/root/document_backend.h"

enum statement {
    PUT_DOCUMENT,
    PUT_OWNER,
    DROP_RANGES,
    PUT_RANGE,
    RENAME_DOCUMENT,
    DELETE_DOCUMENT,
    DELETE_OWNER,
    STATEMENTS
};

#define OWNERS "CREATE TABLE IF NOT EXISTS owners (document INTEGER PRIMARY KEY, userid INTEGER NOT NULL)"

static const char *const sql[STATEMENTS] = {
    [PUT_DOCUMENT] = "INSERT OR REPLACE INTO documents (id, name, uuid, seq, form) VALUES (?, ?, ?, ?, ?);",
    [PUT_OWNER] = "INSERT OR REPLACE INTO owners (document, userid) VALUES (?, ?);",
    [DROP_RANGES] = "DELETE FROM ranges WHERE document = ? AND seq <= ?;",
    [PUT_RANGE] = "INSERT INTO ranges (document, seq, text) VALUES (?, ?, ?);",
    [RENAME_DOCUMENT] = "UPDATE documents SET name = ?2 WHERE id = ?1;",
    [DELETE_DOCUMENT] = "DELETE FROM documents WHERE id = ?;",
    [DELETE_OWNER] = "DELETE FROM owners WHERE document = ?;",
};

static const struct database_kind kind = {
    .name = "compressor.sqlite",
    .application_id = 1768191075, /* "idtc" */
    .version = 1,
    .create = "CREATE TABLE documents (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, uuid TEXT NOT NULL,"
              " seq INTEGER NOT NULL, form BLOB NOT NULL);"
              "CREATE TABLE ranges (document INTEGER NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL,"
              " PRIMARY KEY (document, seq)) WITHOUT ROWID;" OWNERS,
    .advice = "move it and its -wal away, then restore a copy or run idtree state forget; ranks with open "
              "documents can save them",
};

struct document_file {
    const char *dir;
    const char *holder;
    struct database *d; /* NULL: not open */
    sqlite3_stmt *stmt[STATEMENTS];
    int64_t copied_s; /* time of the copy that was opened, Unix seconds; 0: not a copy */
};

/* --- writing ------------------------------------------------------------------------------------------ */

/* Run a statement whose values are bound. */
static int run (struct document_file *st, enum statement s, idt_error_t *errp)
{
    int rc = database_step (st->d, st->stmt[s], errp), saved = errno;

    sqlite3_reset (st->stmt[s]);
    errno = saved;
    return rc < 0 ? -1 : 0;
}

/* Delete the ranges of a document up to 'seq'. */
static int drop_ranges (struct document_file *st, int64_t id, int64_t seq, idt_error_t *errp)
{
    sqlite3_bind_int64 (st->stmt[DROP_RANGES], 1, id);
    sqlite3_bind_int64 (st->stmt[DROP_RANGES], 2, seq);
    return run (st, DROP_RANGES, errp);
}

static int put_owner (struct document_file *st, const struct document_store_document *doc, idt_error_t *errp)
{
    if (doc->owner == IDT_USERID_UNKNOWN)
        return 0;
    sqlite3_bind_int64 (st->stmt[PUT_OWNER], 1, doc->id);
    sqlite3_bind_int64 (st->stmt[PUT_OWNER], 2, doc->owner);
    return run (st, PUT_OWNER, errp);
}

static int put_document (struct document_file *st, const struct document_store_document *doc, idt_error_t *errp)
{
    sqlite3_stmt *put = st->stmt[PUT_DOCUMENT];

    sqlite3_bind_int64 (put, 1, doc->id);
    sqlite3_bind_text (put, 2, doc->name, -1, SQLITE_STATIC);
    sqlite3_bind_text (put, 3, doc->uuid, -1, SQLITE_STATIC);
    sqlite3_bind_int64 (put, 4, doc->seq);
    sqlite3_bind_blob64 (put, 5, doc->form, doc->form_size, SQLITE_STATIC);
    return run (st, PUT_DOCUMENT, errp) < 0 || put_owner (st, doc, errp) < 0
                   || drop_ranges (st, doc->id, doc->seq, errp) < 0
               ? -1
               : 0;
}

static int put_range (struct document_file *st, int64_t document, int64_t seq, const char *text, idt_error_t *errp)
{
    sqlite3_stmt *put = st->stmt[PUT_RANGE];

    sqlite3_bind_int64 (put, 1, document);
    sqlite3_bind_int64 (put, 2, seq);
    sqlite3_bind_text (put, 3, text, -1, SQLITE_STATIC);
    return run (st, PUT_RANGE, errp);
}

static int delete_document (struct document_file *st, int64_t id, idt_error_t *errp)
{
    sqlite3_bind_int64 (st->stmt[DELETE_DOCUMENT], 1, id);
    sqlite3_bind_int64 (st->stmt[DELETE_OWNER], 1, id);
    return drop_ranges (st, id, INT64_MAX, errp) < 0 || run (st, DELETE_OWNER, errp) < 0
                   || run (st, DELETE_DOCUMENT, errp) < 0
               ? -1
               : 0;
}

static int rename_document (struct document_file *st, int64_t id, const char *name, idt_error_t *errp)
{
    sqlite3_bind_int64 (st->stmt[RENAME_DOCUMENT], 1, id);
    sqlite3_bind_text (st->stmt[RENAME_DOCUMENT], 2, name, -1, SQLITE_STATIC);
    return run (st, RENAME_DOCUMENT, errp);
}

/* Store a change. Ranges that the form of the same change contains are not stored as rows. */
static int put_change (struct document_file *st, const struct document_store_change *change, idt_error_t *errp)
{
    const struct document_store_document *doc = &change->document;

    if (change->deleted)
        return delete_document (st, doc->id, errp);
    if (doc->form && put_document (st, doc, errp) < 0)
        return -1;
    for (size_t i = document_change_skip (change); i < change->nranges; i++)
        if (put_range (st, doc->id, change->first + (int64_t)i, change->ranges[i], errp) < 0)
            return -1;
    return change->new_name ? rename_document (st, doc->id, change->new_name, errp) : 0;
}

static int disk_write (void *b, const struct document_store_change *changes, size_t n, idt_error_t *errp)
{
    struct document_file *st = b;

    if (database_run (st->d, "BEGIN IMMEDIATE;", errp) < 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_change (st, &changes[i], errp);
    if (rc == 0)
        rc = database_run (st->d, "COMMIT;", errp);
    if (rc < 0) {
        int saved = errno;
        database_run (st->d, "ROLLBACK;", NULL);
        errno = saved;
    }
    return rc;
}

/* --- reading --------------------------------------------------------------------------------------------- */

static int read_ranges (struct document_file *st, const struct document_store_document *doc, sqlite3_stmt *ranges,
                        const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    int64_t expected = doc->seq;
    int rc;

    sqlite3_reset (ranges);
    sqlite3_bind_int64 (ranges, 1, doc->id);
    while ((rc = database_step (st->d, ranges, errp)) > 0) {
        if (sqlite3_column_int64 (ranges, 0) != ++expected)
            return errsetf (errp, EBADMSG, "%s: damaged (range %lld of %s is missing): %s", st->d->path,
                            (long long)expected, doc->name, kind.advice);
        if (reader->range (arg, expected, (const char *)sqlite3_column_text (ranges, 1), errp) < 0)
            return -1;
    }
    return rc;
}

static int read_documents (struct document_file *st, sqlite3_stmt *documents, sqlite3_stmt *ranges,
                           const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    int rc;

    while ((rc = database_step (st->d, documents, errp)) > 0) {
        const struct document_store_document doc = {
            .id = sqlite3_column_int64 (documents, 0),
            .name = (const char *)sqlite3_column_text (documents, 1),
            .uuid = (const char *)sqlite3_column_text (documents, 2),
            .seq = sqlite3_column_int64 (documents, 3),
            .form = sqlite3_column_blob (documents, 4),
            .form_size = (size_t)sqlite3_column_bytes (documents, 4),
            .owner = sqlite3_column_type (documents, 5) == SQLITE_NULL ? IDT_USERID_UNKNOWN
                                                                       : (uint32_t)sqlite3_column_int64 (documents, 5),
        };
        if (reader->document (arg, &doc, errp) < 0 || read_ranges (st, &doc, ranges, reader, arg, errp) < 0)
            return -1;
    }
    return rc;
}

static int disk_read (void *b, const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    struct document_file *st = b;
    sqlite3_stmt *documents = database_prepare (st->d,
                                                "SELECT id, name, uuid, seq, form, userid FROM documents"
                                                " LEFT JOIN owners ON document = id ORDER BY id;",
                                                errp);
    sqlite3_stmt *ranges = database_prepare (st->d, "SELECT seq, text FROM ranges WHERE document = ? ORDER BY seq;",
                                             errp);
    int rc = documents && ranges ? read_documents (st, documents, ranges, reader, arg, errp) : -1;
    int saved = errno;

    sqlite3_finalize (documents);
    sqlite3_finalize (ranges);
    errno = saved;
    return rc;
}

/* --- copies ---------------------------------------------------------------------------------------------- */

/* The documents of a copy get new UUIDs, so they count as other documents. Sessions of the original documents may be
 * ahead of the copy, and are refused because of the UUID. SQLite seeds the generator of these random bytes from the
 * system.
 */
#define NEW_UUID                                                                                                    \
    "lower (hex (randomblob (4)) || '-' || hex (randomblob (2)) || '-4' || substr (hex (randomblob (2)), 2) || '-'" \
    " || substr ('89ab', 1 + (random () & 3), 1) || substr (hex (randomblob (2)), 2) || '-' || hex (randomblob (6)))"

static int begin_anew (struct document_file *st, idt_error_t *errp)
{
    if (database_copied (st->d, &st->copied_s, errp) < 0)
        return -1;
    if (st->copied_s == 0)
        return 0;
    return database_run (st->d,
                         "BEGIN IMMEDIATE; UPDATE documents SET uuid = " NEW_UUID ";" DATABASE_COPY_UNMARK "COMMIT;",
                         errp);
}

static int64_t disk_copied (const void *b)
{
    return ((const struct document_file *)b)->copied_s;
}

/* --- open and close ---------------------------------------------------------------------------------------- */

static int prepare (struct document_file *st, idt_error_t *errp)
{
    if (database_run (st->d, OWNERS ";", errp) < 0)
        return -1;
    for (int i = 0; i < STATEMENTS; i++)
        if (!(st->stmt[i] = database_prepare (st->d, sql[i], errp)))
            return -1;
    return 0;
}

static void close_file (struct document_file *st)
{
    for (int i = 0; i < STATEMENTS; i++) {
        if (st->stmt[i])
            sqlite3_finalize (st->stmt[i]);
        st->stmt[i] = NULL;
    }
    database_close (st->d);
    st->d = NULL;
}

static int disk_open (void *b, idt_error_t *errp)
{
    struct document_file *st = b;

    close_file (st);
    st->d = database_open (&kind, st->dir, st->holder, errp);
    return !st->d || prepare (st, errp) < 0 || begin_anew (st, errp) < 0 ? -1 : 0;
}

static void disk_close (void *b)
{
    close_file (b);
    free (b);
}

static void disk_late (void *b, uint64_t ms, idt_error_t *why)
{
    const struct document_file *st = b;

    errprintf (why, "%s/%s: the disk has not answered" DOCUMENT_LATE, st->dir, kind.name, (unsigned long long)ms);
}

static void *disk_create (const struct module_place *place, const char *holder)
{
    struct document_file *st = calloc (1, sizeof (*st));

    if (st) {
        st->dir = place->dir;
        st->holder = holder;
    }
    return st;
}

const struct document_backend document_disk = {
    .create = disk_create,
    .open = disk_open,
    .read = disk_read,
    .write = disk_write,
    .late = disk_late,
    .copied = disk_copied,
    .close = disk_close,
};
