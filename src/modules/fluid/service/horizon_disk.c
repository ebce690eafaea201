/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_disk.c - the durable horizon and epoch, in the file fluid.sqlite of a folder
 *
 * The file holds one table 'fluid' with one row: id 0, horizon_ms, watermark_ms, settle_ms, epoch_ms, seal, ahead_ms,
 * peak_ms (rank 0 adds the last two columns to a file of an earlier version). The file is valid if and only if (1) it
 * is a whole database of this kind and version (libsqlite), (2) the row exists, (3) seal is what seal () computes from
 * the other columns and (4) 0 <= horizon_ms <= 2^40. Table and row are made in one transaction.
 *
 * An outdated horizon must never be accepted. So the file has a rollback journal and no write-ahead log (database.c),
 * and the seal detects damage that leaves the database whole. A mix of pages of an old and of a new commit does no
 * harm, because a commit changes one row in one page, and a page of which half was written has no valid seal. The lock
 * of the database keeps two rank 0s from running on one statedir (the rule ONE_ROOT of doc/model/lease.pml).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/fluid.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"
#include "modules/fluid/service/horizon_backend.h"

#define KIND                                                                                                       \
    .name = STATE_HORIZON_STORE, .journal = true, .application_id = 1768191078 /* "idtf" */, .version = 1,         \
    .advice =                                                                                                      \
        "start once with --recover-horizon=DATE-or-ID, above all ids made, and its fluid.epoch; the file is kept " \
        "aside"

static const struct database_kind kind = { KIND };
static const struct database_kind kind_anew = { KIND, .anew = true };

struct horizon_disk {
    struct database *database;
    int64_t epoch_ms;
};

/* Return a checksum of 63 bits, because SQLite's integers are signed. If 'peak_ms' is 0, or 'ahead_ms' too, the
 * checksum equals the seal of an earlier version, which had no such column.
 */
static int64_t seal (const struct lease_record *r, int64_t epoch_ms)
{
    const uint64_t column[] = { r->horizon_ms,      r->watermark_ms, r->settle_ms,
                                (uint64_t)epoch_ms, r->ahead_ms,     r->peak_ms };
    size_t n = r->peak_ms > 0 ? 6 : r->ahead_ms > 0 ? 5 : 4;
    uint64_t z = 0;

    for (size_t i = 0; i < n; i++) {
        z = (z ^ column[i]) * UINT64_C (0xbf58476d1ce4e5b9) + UINT64_C (0x9e3779b97f4a7c15);
        z ^= z >> 29;
    }
    return (int64_t)(z >> 1);
}

static int write_record (void *arg, const struct lease_record *r, idt_error_t *errp)
{
    struct horizon_disk *b = arg;
    char sql[400];

    snprintf (sql, sizeof (sql),
              "UPDATE fluid SET horizon_ms = %llu, watermark_ms = %llu, settle_ms = %llu, ahead_ms = %llu,"
              " peak_ms = %llu, seal = %lld WHERE id = 0;",
              (unsigned long long)r->horizon_ms, (unsigned long long)r->watermark_ms, (unsigned long long)r->settle_ms,
              (unsigned long long)r->ahead_ms, (unsigned long long)r->peak_ms, (long long)seal (r, b->epoch_ms));
    return database_run (b->database, sql, errp);
}

/* --- open and close ----------------------------------------------------------------------------------- */

/* Read the row. Returns 0, or -1 with errno set and 'errp' filled. */
static int read_columns (struct database *d, sqlite3_stmt *stmt, struct horizon_store_content *content,
                         int64_t *stored_seal, idt_error_t *errp)
{
    int rc = database_step (d, stmt, errp);

    if (rc <= 0)
        return rc < 0 ? -1 : database_damaged (d, "its row is missing", errp);
    content->record = (struct lease_record){ .horizon_ms = (uint64_t)sqlite3_column_int64 (stmt, 0),
                                             .watermark_ms = (uint64_t)sqlite3_column_int64 (stmt, 1),
                                             .settle_ms = (uint64_t)sqlite3_column_int64 (stmt, 2),
                                             .ahead_ms = (uint64_t)sqlite3_column_int64 (stmt, 5),
                                             .peak_ms = (uint64_t)sqlite3_column_int64 (stmt, 6) };
    content->epoch_ms = sqlite3_column_int64 (stmt, 3);
    *stored_seal = sqlite3_column_int64 (stmt, 4);
    return 0;
}

/* Add a column to a file of an earlier version. */
static int add_column (struct database *d, const char *name, idt_error_t *errp)
{
    char sql[128];

    snprintf (sql, sizeof (sql), "SELECT 1 FROM pragma_table_info ('fluid') WHERE name = '%s';", name);
    sqlite3_stmt *stmt = database_prepare (d, sql, errp);
    int rc = stmt ? database_step (d, stmt, errp) : -1;

    sqlite3_finalize (stmt);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    snprintf (sql, sizeof (sql), "ALTER TABLE fluid ADD COLUMN %s INTEGER NOT NULL DEFAULT 0;", name);
    return database_run (d, sql, errp);
}

static int read_row (struct horizon_disk *b, struct horizon_store_content *content, idt_error_t *errp)
{
    struct database *d = b->database;
    int64_t stored_seal = 0;
    sqlite3_stmt *stmt;

    if (add_column (d, "ahead_ms", errp) < 0 || add_column (d, "peak_ms", errp) < 0
        || !(stmt = database_prepare (d,
                                      "SELECT horizon_ms, watermark_ms, settle_ms, epoch_ms, seal, ahead_ms, peak_ms"
                                      " FROM fluid WHERE id = 0;",
                                      errp)))
        return -1;
    int rc = read_columns (d, stmt, content, &stored_seal, errp);
    int saved = errno;
    sqlite3_finalize (stmt);
    errno = saved;
    if (rc < 0)
        return -1;
    if (seal (&content->record, content->epoch_ms) != stored_seal
        || content->record.horizon_ms > (uint64_t)FLUID_TIMESTAMP_MAX + 1)
        return database_damaged (d, "its values do not match their seal", errp);
    b->epoch_ms = content->epoch_ms;
    return 0;
}

static void close_disk (void *arg)
{
    struct horizon_disk *b = arg;
    int saved = errno;

    database_close (b->database);
    free (b);
    errno = saved;
}

static void *open_disk (const struct module_place *place, const char *holder, bool anew,
                        struct horizon_store_content *content, idt_error_t *errp)
{
    struct horizon_disk *b = calloc (1, sizeof (*b));

    if (!b) {
        errprintf (errp, "%s: %s", place->dir, strerror (errno));
        return NULL;
    }
    b->database = database_open (anew ? &kind_anew : &kind, place->dir, holder, errp);
    *content = (struct horizon_store_content){ .is_new = b->database && b->database->is_new };
    if (b->database && (content->is_new || read_row (b, content, errp) == 0))
        return b;
    close_disk (b);
    return NULL;
}

static int init_disk (void *arg, int64_t epoch_ms, const struct lease_record *r, idt_error_t *errp)
{
    struct horizon_disk *b = arg;
    char sql[800];

    b->epoch_ms = epoch_ms;
    snprintf (sql, sizeof (sql),
              "CREATE TABLE fluid (id INTEGER PRIMARY KEY CHECK (id = 0), horizon_ms INTEGER NOT NULL,"
              " watermark_ms INTEGER NOT NULL, settle_ms INTEGER NOT NULL, epoch_ms INTEGER NOT NULL,"
              " seal INTEGER NOT NULL, ahead_ms INTEGER NOT NULL, peak_ms INTEGER NOT NULL);"
              " INSERT INTO fluid VALUES (0, %llu, %llu, %llu, %lld, %lld, %llu, %llu)",
              (unsigned long long)r->horizon_ms, (unsigned long long)r->watermark_ms, (unsigned long long)r->settle_ms,
              (long long)epoch_ms, (long long)seal (r, epoch_ms), (unsigned long long)r->ahead_ms,
              (unsigned long long)r->peak_ms);
    return database_fill (b->database, sql, errp);
}

const struct horizon_backend horizon_disk = {
    .open = open_disk, .init = init_disk, .write = write_record, .close = close_disk
};

/* --- damage ------------------------------------------------------------------------------------------- */

/* Find an unused path, such as DIR/fluid.sqlite.damaged-3. */
static int free_path (const char *dir, char *path, size_t size)
{
    for (int i = 1; i < 1000; i++) {
        if (snprintf (path, size, "%s/" STATE_HORIZON_STORE ".damaged-%d", dir, i) >= (int)size)
            return errset (ENAMETOOLONG);
        if (access (path, F_OK) < 0)
            return 0;
    }
    return errset (EEXIST);
}

static int move (const char *dir, const char *to, const char *suffix)
{
    char from[PATH_MAX], path[PATH_MAX];

    if (snprintf (from, sizeof (from), "%s/" STATE_HORIZON_STORE "%s", dir, suffix) >= (int)sizeof (from)
        || snprintf (path, sizeof (path), "%s%s", to, suffix) >= (int)sizeof (path))
        return errset (ENAMETOOLONG);
    return rename (from, path) < 0 && errno != ENOENT ? -1 : 0;
}

/* The database is renamed first, before its journal and its log. A database without its journal, or without the
 * write-ahead log of an earlier version, could be taken for a valid one.
 */
int horizon_store_set_aside (const char *dir, char *path, size_t size, idt_error_t *errp)
{
    if (free_path (dir, path, size) == 0 && move (dir, path, "") == 0 && move (dir, path, "-journal") == 0
        && move (dir, path, "-wal") == 0)
        return 0;
    return errprintf (errp, "%s/" STATE_HORIZON_STORE ": cannot rename the file: %s", dir, strerror (errno));
}
