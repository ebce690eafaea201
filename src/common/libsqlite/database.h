/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* database.h - a file of SQLite that is ours alone for as long as it is open
 *
 * A commit is durable when it returns, and found again at the next start: the file is still the one at its path.  The
 * file is locked from open to close; who holds it is written beside it, in NAME.holder, which nothing depends on.
 *
 * Where the folder has the file 'instance' (libstate/statefile.h), databases in it are an instance's: each carries its
 * UUID from the transaction on that made its tables, and one that was there once must be there again.
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

/* Which file lay at a path when we saw it there. */
struct database_place {
    bool known;
    dev_t dev;
    ino_t ino;
};

struct database {
    sqlite3 *db;
    bool is_new; /* no tables are in it */
    char *dir;
    char *path;
    char *holder_path;
    const struct database_kind *kind; /* borrowed */
    char instance[STATE_UUID_SIZE];   /* whose folder it is in; "": no instance's */
    bool listed;                      /* it must be there */
    bool unmarked;                    /* and has no mark of the instance yet */
    bool made;                        /* there was no file, and nothing is in it yet */
    bool filled;                      /* tables were in it, before SQLite looked */
    bool locked;
    bool logging;               /* it is set up: what SQLite has open beside it is the log of its kind */
    struct database_place file; /* what was opened, once it is locked */
    struct database_place log;  /* its -wal or -journal, once that was made */
    char *log_path;
    int no_room; /* why the last write found none: ENOSPC, EDQUOT, EFBIG; 0: that was not it */
};

struct database_kind {
    const char *name; /* of the file, as "fluid.sqlite" */
    bool journal;     /* small, and nothing in it is believed that was damaged: see database.c */
    int page_size;    /* of a new file, in bytes; 0: as usual */
    int application_id;
    int version;
    const char *create; /* statements that make its tables; NULL: who opens it calls database_fill () */
    const char *advice; /* what to do where it is damaged, as a clause */
    bool anew;          /* one that was lost is made anew */
};

#define DATABASE_HOLDER_MAX 128

/* Who holds a file, for others to read: "WHO, process 17 on HOST"; WHO may be NULL. */
void database_holder (char holder[DATABASE_HOLDER_MAX], const char *who);

/* Open the file in folder 'dir', or make it with its tables.  'kind' must live as long as the database.  'holder' tells
 * others who has it, as "broker UUID, process 17 on HOST".  Blocks.  Returns NULL with errno set and 'errp' filled:
 *   STATE_REFUSED  it is missing, or another instance's
 *   EBUSY    another process holds it; the text says who
 *   EBADMSG  it is damaged, or not of this kind and version
 *   EPERM    others may change the folder (private_dir.h; where its sticky bit is set: a file in it is not ours)
 *   ENOENT   SQLite is not installed
 *   others   as the system says (EACCES, EROFS, ENOSPC, ...)
 */
struct database *database_open (const struct database_kind *kind, const char *dir, const char *holder,
                                idt_error_t *errp);

/* Make the tables of a new file, and what must be in them from the beginning, in one transaction.  A file that is
 * closed before that is removed.  Returns as database_run ().
 */
int database_fill (struct database *d, const char *sql, idt_error_t *errp);

/* Whose mark a file carries, as far as that can be seen without touching it or what a crash left beside it: 'uuid' is
 * "" where it carries none, or may get it from what lies beside it (peek.h).  Returns whether it is a file of ours.
 */
bool database_mark (const char *path, char uuid[STATE_UUID_SIZE]);

/* The same message for damage that only the caller can see; sets errno EBADMSG.  Returns -1. */
int database_damaged (struct database *d, const char *what, idt_error_t *errp);

/* Close it.  Statements must be finalized before.  NULL is fine; keeps errno. */
void database_close (struct database *d);

/* Run statements without results.  Returns 0, or -1 with errno set and 'errp' filled, like all below:
 *   ESTALE   what was committed is in a file that was removed or replaced meanwhile, the database or its write-ahead
 *            log: the next start will not find it.  What is in a log that was removed gets into the database by
 *            database_close ().
 *   ENOTSUP  a rollback journal was removed, and SQLite makes no other one
 * A rollback journal that was removed between two commits is made again.
 */
int database_run (struct database *d, const char *sql, idt_error_t *errp);

/* Run a PRAGMA that must answer 'value', whatever its case: SQLite returns no error where it ignores one.  ENOTSUP: it
 * answers something else.
 */
int database_expect (struct database *d, const char *pragma, const char *value, idt_error_t *errp);

/* Make a statement, for sqlite3_finalize ().  NULL where it failed. */
sqlite3_stmt *database_prepare (struct database *d, const char *sql, idt_error_t *errp);

/* Take the next row of a statement.  Returns 1 if there is one, 0 after the last. */
int database_step (struct database *d, sqlite3_stmt *stmt, idt_error_t *errp);

/* Whether the last failure was that a write found no room: the disk is full (ENOSPC), a quota is used up (EDQUOT), or
 * the file may not grow (EFBIG).  Nothing was written after that.  A sync that fails for such a reason is another
 * thing: what it was for is written, and may be found.
 */
bool database_is_full (const struct database *d);

/* What a person can do about the last failure, in 'errp'; sets errno.  Returns -1. */
int database_explain (struct database *d, idt_error_t *errp);

/* Statements that make a file say that it is a copy, made now, as idtree state backup does.  It says so until who opens
 * it has done what that means for what is in it, and run the second ones in the same transaction.
 */
#define DATABASE_COPY_MARK                                                         \
    "CREATE TABLE IF NOT EXISTS copied (at INTEGER NOT NULL); DELETE FROM copied;" \
    "INSERT INTO copied VALUES (CAST (strftime ('%s', 'now') AS INTEGER));"
#define DATABASE_COPY_UNMARK "DROP TABLE copied;"

/* When it was made, in 'at_s', Unix seconds; 0: it is no copy.  Returns 0, or -1 as above. */
int database_copied (struct database *d, int64_t *at_s, idt_error_t *errp);

#endif /* SQLITE_DATABASE_H */
