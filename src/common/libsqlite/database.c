/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* database.c - a file of SQLite that is ours alone for as long as it is open
 *
 * It is ours if and only if (1) SQLite finds it whole, (2) its application id and (3) its version are those asked for.
 * A file without any table is a new one; a file without any byte is none that we left, for the tables are made before
 * open returns, and a file that was made and not filled is removed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"

/* --- errors ---------------------------------------------------------------------------------------- */

int database_damaged (struct database *d, const char *what, idt_error_t *errp)
{
    errno = EBADMSG;
    return errprintf (errp, "%s: damaged (%s): %s", d->path, what, d->kind->advice);
}

int database_explain (struct database *d, idt_error_t *errp)
{
    switch (d->sqlite.extended_errcode (d->db) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return database_damaged (d, d->sqlite.errmsg (d->db), errp);
    case SQLITE_FULL:
        errno = ENOSPC;
        return errprintf (errp, "%s: the disk is full", d->path);
    case SQLITE_READONLY:
        errno = EROFS;
        return errprintf (errp, "%s: cannot be written: check the folder's owner and mount", d->path);
    case SQLITE_CANTOPEN: /* SQLite tries more than one way, and its errno is that of the last */
        if (access (d->dir, W_OK) < 0)
            return errprintf (errp, "%s: cannot be made or written: %s", d->path, strerror (errno));
        /* fall through */
    default:
        errno = d->sqlite.system_errno (d->db);
        if (errno == 0)
            errno = EIO;
        return errprintf (errp, "%s: %s (%s)", d->path, d->sqlite.errmsg (d->db), strerror (errno));
    }
}

/* --- statements ------------------------------------------------------------------------------------- */

int database_run (struct database *d, const char *sql, idt_error_t *errp)
{
    if (d->sqlite.exec (d->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return database_explain (d, errp);
    return 0;
}

sqlite3_stmt *database_prepare (struct database *d, const char *sql, idt_error_t *errp)
{
    sqlite3_stmt *stmt;

    if (d->sqlite.prepare_v2 (d->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        database_explain (d, errp);
        return NULL;
    }
    return stmt;
}

int database_step (struct database *d, sqlite3_stmt *stmt, idt_error_t *errp)
{
    int rc = d->sqlite.step (stmt);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return database_explain (d, errp);
    return rc == SQLITE_ROW;
}

/* One integer that a statement tells; 0 where it tells none. */
static int ask (struct database *d, const char *sql, int64_t *value, idt_error_t *errp)
{
    sqlite3_stmt *stmt = database_prepare (d, sql, errp);
    int rc = stmt ? database_step (d, stmt, errp) : -1;

    if (rc >= 0)
        *value = rc > 0 ? d->sqlite.column_int64 (stmt, 0) : 0;
    if (stmt)
        d->sqlite.finalize (stmt);
    return rc < 0 ? -1 : 0;
}

/* --- whose it is ------------------------------------------------------------------------------------- */

/* Who holds the file, as that one wrote it. */
static int tell_busy (struct database *d, idt_error_t *errp)
{
    char holder[128] = "another process";
    int fd = open (d->holder_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read (fd, holder, sizeof (holder) - 1) : 0;

    if (fd >= 0)
        close (fd);
    if (n > 0)
        holder[n] = '\0';
    errno = EBUSY;
    return errprintf (errp, "%s: in use by %s: one instance at a time can run on a statedir", d->path, holder);
}

static void write_holder (struct database *d, const char *holder)
{
    int fd = open (d->holder_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        return;
    if (write (fd, holder, strlen (holder)) < 0)
        unlink (d->holder_path);
    close (fd);
}

static int lock_file (struct database *d, idt_error_t *errp)
{
    /* The lock comes with the first transaction, and stays. */
    static const char lock[] = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;";
    static const char set_up[] = "COMMIT; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE; COMMIT;";

    int rc = d->sqlite.exec (d->db, lock, NULL, NULL, NULL) & 0xff;
    if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return tell_busy (d, errp);
    d->locked = true;
    return rc == SQLITE_OK ? database_run (d, set_up, errp) : database_explain (d, errp);
}

static int check_kind (struct database *d, idt_error_t *errp)
{
    int64_t id, version;

    if (ask (d, "PRAGMA application_id;", &id, errp) < 0 || ask (d, "PRAGMA user_version;", &version, errp) < 0)
        return -1;
    if (id == d->kind->application_id && version == d->kind->version)
        return 0;
    errno = EBADMSG;
    return errprintf (errp, "%s: not a file of idtree, or of another version: check statedir", d->path);
}

int database_fill (struct database *d, const char *sql, idt_error_t *errp)
{
    char *all;
    int rc;

    if (asprintf (&all, "BEGIN IMMEDIATE; %s; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;", sql,
                  d->kind->application_id, d->kind->version) < 0)
        return errprintf (errp, "%s: out of memory", d->path);
    rc = database_run (d, all, errp);
    int saved = errno;
    free (all);
    if (rc == 0)
        d->made = false; /* it stays */
    else
        database_run (d, "ROLLBACK;", NULL);
    errno = saved;
    return rc;
}

static int look_inside (struct database *d, idt_error_t *errp)
{
    int64_t tables, bad;

    if (ask (d, "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok';", &bad, errp) < 0
        || ask (d, "SELECT count(*) FROM sqlite_master;", &tables, errp) < 0)
        return -1;
    if (bad > 0)
        return database_damaged (d, "it is not whole", errp);
    d->is_new = tables == 0;
    if (!d->is_new)
        return check_kind (d, errp);
    return d->kind->create ? database_fill (d, d->kind->create, errp) : 0;
}

/* --- open and close ------------------------------------------------------------------------------------ */

void database_close (struct database *d)
{
    if (!d)
        return;
    int saved = errno;
    if (d->made && d->locked) /* an empty file would be taken for a damaged one */
        unlink (d->path);
    if (d->locked)
        unlink (d->holder_path);
    if (d->db)
        d->sqlite.close (d->db);
    sqlite_unload (&d->sqlite);
    free (d->holder_path);
    free (d->path);
    free (d->dir);
    free (d);
    errno = saved;
}

static int look_at_file (struct database *d, idt_error_t *errp)
{
    struct stat sb;

    if (stat (d->path, &sb) < 0)
        d->made = errno == ENOENT;
    else if (sb.st_size == 0)
        return database_damaged (d, "it is empty", errp);
    return 0;
}

static int open_file (struct database *d, idt_error_t *errp)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_EXRESCODE;

    if (look_at_file (d, errp) < 0)
        return -1;
    if (sqlite_load (&d->sqlite) < 0)
        return errprintf (errp, "libsqlite3.so.0 cannot be loaded: install SQLite (libsqlite3-0)");
    if (d->sqlite.open_v2 (d->path, &d->db, flags, NULL) != SQLITE_OK)
        return database_explain (d, errp);
    return lock_file (d, errp);
}

static struct database *database_new (const struct database_kind *kind, const char *dir)
{
    struct database *d = calloc (1, sizeof (*d));

    if (!d)
        return NULL;
    d->kind = kind;
    if (!(d->dir = strdup (dir)) || asprintf (&d->path, "%s/%s", dir, kind->name) < 0
        || asprintf (&d->holder_path, "%s.holder", d->path) < 0) {
        database_close (d);
        errno = ENOMEM;
        return NULL;
    }
    return d;
}

struct database *database_open (const struct database_kind *kind, const char *dir, const char *holder,
                                idt_error_t *errp)
{
    struct database *d = database_new (kind, dir);

    if (!d) {
        errprintf (errp, "%s: %s", dir, strerror (errno));
        return NULL;
    }
    if (open_file (d, errp) < 0 || look_inside (d, errp) < 0) {
        database_close (d);
        return NULL;
    }
    write_holder (d, holder);
    return d;
}
