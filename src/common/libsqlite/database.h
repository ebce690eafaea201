/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* database.h - an SQLite file that one process owns while it is open
 *
 * When a commit returns, it is durable and in the file that the next start opens: the function checks that the file is
 * still the one at its path. The file is locked from open to close. The holder's name is written beside the file to
 * NAME.holder, for messages only.
 *
 * If the folder has the file 'instance' (libstate/statefile.h), the databases in the folder belong to that instance.
 * Each carries the instance's UUID as a mark, which the transaction that made its tables has stored. A store that the
 * instance has listed must exist when the folder is used again.
 *
 * A database has one user at a time; it may pass from thread to thread.
 */
#ifndef SQLITE_DATABASE_H
#define SQLITE_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <idtree/error.h>

#include "libstate/statefile.h"

/* Identifies the file that was seen at a path. */
struct database_place {
    bool known;
    dev_t dev;
    ino_t ino;
};

struct database {
    sqlite3 *db;
    bool is_new; /* the file has no tables */
    char *dir;
    char *path;
    char *holder_path;
    const struct database_kind *kind; /* borrowed */
    char instance[STATE_UUID_SIZE];   /* UUID of the instance that the folder belongs to; "": no instance */
    bool listed;                      /* the store is in the instance's list, so it must exist */
    bool unmarked;                    /* the store is listed, but has no mark of the instance yet */
    bool made;                        /* the file was missing or empty, and has no content yet */
    bool filled;                      /* the file had tables before SQLite opened it */
    bool locked;
    bool logging;               /* set up: the log of this kind is the file that SQLite has open beside the database */
    struct database_place file; /* the file that was opened; known after the file is locked */
    struct database_place log;  /* the database's -wal or -journal; known after SQLite made it */
    char *log_path;
    int no_room; /* why the last write found no space: ENOSPC, EDQUOT or EFBIG; 0: it did not fail for this reason */
};

struct database_kind {
    const char *name; /* name of the file, such as "fluid.sqlite" */
    bool journal;     /* for a small database in which all damage must be detected: see database.c */
    int page_size;    /* bytes of a page in a new file; 0: 512 with 'journal', else 4096 */
    int application_id;
    int version;
    const char *create; /* statements that make the tables; NULL: the caller calls database_fill () */
    const char *advice; /* what to do if the file is damaged, as a clause */
    bool anew;          /* a lost file is created again, without an error */
};

#define DATABASE_HOLDER_MAX 128

/* Format the holder of a file for messages: "WHO, process 17 on HOST"; WHO may be NULL. */
void database_holder (char holder[DATABASE_HOLDER_MAX], const char *who);

/* Open the file in folder 'dir', or make it with its tables. 'kind' must live as long as the database. 'holder' is
 * shown to other processes, as "broker UUID, process 17 on HOST". Blocks. Returns NULL with errno set and 'errp'
 * filled:
 *   STATE_REFUSED  the file is missing, or belongs to another instance
 *   EBUSY    another process holds the file; the text names that process
 *   EBADMSG  the file is damaged, or not of this kind and version
 *   EPERM    others may change the folder (private_dir.h), or in a sticky folder a file belongs to another user
 *   ENOENT   SQLite is not installed
 *   others   as the system says (EACCES, EROFS, ENOSPC, ...)
 */
struct database *database_open (const struct database_kind *kind, const char *dir, const char *holder,
                                idt_error_t *errp);

/* Make the tables of a new file and their first content in one transaction. If the database is closed before that, its
 * file is removed. Returns like database_run ().
 */
int database_fill (struct database *d, const char *sql, idt_error_t *errp);

/* Report damage that only the caller can detect, with the usual message; sets errno EBADMSG. Returns -1. */
int database_damaged (struct database *d, const char *what, idt_error_t *errp);

/* Close the database. Statements must be finalized before. NULL is allowed; keeps errno. */
void database_close (struct database *d);

/* Run statements without results. Returns 0, or -1 with errno set and 'errp' filled, like all functions below:
 *   ESTALE   the database or its write-ahead log was removed or replaced, and the commit is in the removed file: the
 *            next start will not find it. database_close () moves the content of a removed log into the database.
 *   ENOTSUP  a rollback journal was removed, and SQLite does not make another one
 * If a rollback journal was removed between two commits, the function makes a new one.
 */
int database_run (struct database *d, const char *sql, idt_error_t *errp);

/* Run a PRAGMA whose answer must be 'value' (case is ignored). The answer must be checked, because SQLite returns no
 * error if it ignores a PRAGMA. Fails with ENOTSUP if the answer differs.
 */
int database_expect (struct database *d, const char *pragma, const char *value, idt_error_t *errp);

/* Prepare a statement; the caller calls sqlite3_finalize (). NULL on failure. */
sqlite3_stmt *database_prepare (struct database *d, const char *sql, idt_error_t *errp);

/* Take the next row of a statement. Returns 1 if there is a row, 0 after the last row. */
int database_step (struct database *d, sqlite3_stmt *stmt, idt_error_t *errp);

/* Whether the last failure was a write without space: the disk is full (ENOSPC), a quota is used up (EDQUOT), or the
 * file may not grow (EFBIG). After such a failure nothing is written. A sync that fails for one of these reasons does
 * not count, because its data was written and a later start may find it.
 */
bool database_is_full (const struct database *d);

/* Describe the last failure, and what to do about it, in 'errp'; sets errno. Returns -1. */
int database_explain (struct database *d, idt_error_t *errp);

/* DATABASE_COPY_MARK marks a file as a copy that was made now, as idtree state backup does. The mark stays until a
 * program opens the copy and adapts its content. That program runs DATABASE_COPY_UNMARK in the same transaction.
 */
#define DATABASE_COPY_MARK                                                         \
    "CREATE TABLE IF NOT EXISTS copied (at INTEGER NOT NULL); DELETE FROM copied;" \
    "INSERT INTO copied VALUES (CAST (strftime ('%s', 'now') AS INTEGER));"
#define DATABASE_COPY_UNMARK "DROP TABLE copied;"

/* Store the time of the copy in '*at_s' in Unix seconds; 0 if the file is not a copy. Returns 0, or -1 with errno set
 * and 'errp' filled.
 */
int database_copied (struct database *d, int64_t *at_s, idt_error_t *errp);

#endif /* SQLITE_DATABASE_H */
