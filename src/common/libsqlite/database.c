/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* database.c - an SQLite file that one process owns while it is open
 *
 * The file is accepted only if (1) SQLite finds it intact, (2) its application id is the expected one, and (3) so is
 * its version. A file without tables is a new one. An empty file is refused, because no start leaves one behind: the
 * tables are made before open returns, and a file that was made but not filled is removed. Exception: an empty file is
 * accepted if the instance's list shows that the store was never used. A crash may have left such a file.
 *
 * The checksums in a write-ahead log say which of its commits are complete. If one bit of the log is flipped, SQLite
 * takes an older state for the newest. Therefore a database that must not go back in time (kind->journal) has a
 * rollback journal, which is emptied when a commit ends. A start finds content in the journal only after a crash during
 * a commit, and that commit was not reported to any caller yet. If a bit of the journal is flipped, SQLite restores an
 * older page, or none. The users of the file must check what it then contains. One flipped bit of the file's size in
 * pages, in the journal's head, can make a whole database empty. So a file that had tables must still have them after
 * SQLite has played the journal back.
 *
 * The mark of an instance is one row in a table of its own, 'instance'. The store is added to the instance's list after
 * the mark is durable and before a caller may rely on the store. So a store that is not listed either was never used,
 * or carries the mark.
 */
#define _GNU_SOURCE
#include <assert.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libsqlite/state.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

/* sqlite.org/fileformat.html */
#define PAGES_OFFSET 16 /* in a journal: size of the file before the commit, in pages */

/* --- errors ---------------------------------------------------------------------------------------- */

int database_damaged (struct database *d, const char *what, idt_error_t *errp)
{
    /* The quotation is cut, because SQLite quotes its schema, and the path and the advice matter more. */
    return errsetf (errp, EBADMSG, "%s: damaged (%.80s): %s", d->path, what, d->kind->advice);
}

/* The errno of a failure. 'errnum' is errno after the failed call. It is needed because SQLite itself keeps errno only
 * for opens.
 */
static int system_errno (const struct database *d, int errnum)
{
    if (sqlite3_system_errno (d->db) != 0)
        return sqlite3_system_errno (d->db);
    return (sqlite3_extended_errcode (d->db) & 0xff) == SQLITE_IOERR && errnum != 0 ? errnum : EIO;
}

/* The errno that says why no file can be made in the folder; 0 if one can be made, or if the file system cannot say.
 * SQLite itself keeps another errno: if it cannot make a file, it tries to open the file without making it, and keeps
 * the errno of that attempt.
 */
static int why_no_file (const struct database *d)
{
    int fd = open (d->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ? 0 : errno;
    close (fd);
    return 0;
}

/* The errno that says why a write found no space; 0 if it failed for another reason. SQLite itself reports a full disk
 * only for ENOSPC.
 */
static int why_no_room (const struct database *d, int errnum)
{
    int rc = sqlite3_extended_errcode (d->db), sys = system_errno (d, errnum);

    if ((rc & 0xff) == SQLITE_FULL)
        return ENOSPC;
    if ((rc & 0xff) == SQLITE_CANTOPEN) {
        sys = why_no_file (d);
        return sys == ENOSPC || sys == EDQUOT ? sys : 0;
    }
    return rc == SQLITE_IOERR_WRITE && (sys == ENOSPC || sys == EDQUOT || sys == EFBIG) ? sys : 0;
}

bool database_is_full (const struct database *d)
{
    return d->no_room != 0;
}

static int explain_no_room (const struct database *d, idt_error_t *errp)
{
    if (d->no_room == EDQUOT)
        return errsetf (errp, ENOSPC, "%s: the disk quota of its owner is used up", d->path);
    if (d->no_room == EFBIG)
        return errsetf (errp, ENOSPC, "%s: it may not grow: raise the limit of file sizes (ulimit -f, LimitFSIZE=)",
                        d->path);
    return errsetf (errp, ENOSPC, "%s: the disk is full", d->path);
}

int database_explain (struct database *d, idt_error_t *errp)
{
    int saved = errno, errnum = system_errno (d, saved);

    d->no_room = why_no_room (d, saved);
    if (d->no_room != 0)
        return explain_no_room (d, errp);
    switch (sqlite3_extended_errcode (d->db) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return database_damaged (d, sqlite3_errmsg (d->db), errp);
    case SQLITE_READONLY:
        return errsetf (errp, EROFS, "%s: cannot be written: check the folder's owner and mount", d->path);
    case SQLITE_CANTOPEN: /* SQLite tries several ways, and keeps the errno of the last one */
        if (access (d->dir, W_OK) < 0 || why_no_file (d) != 0)
            return errprintf (errp, "%s: cannot be made or written: %s", d->path, strerror (errno));
        /* fall through */
    default:
        errno = errnum;
        return errprintf (errp, "%s: %s (%s)", d->path, sqlite3_errmsg (d->db), strerror (errno));
    }
}

/* --- statements ------------------------------------------------------------------------------------- */

static int note_place (struct database_place *place, const char *path)
{
    struct stat sb;

    if (stat (path, &sb) < 0)
        return -1;
    *place = (struct database_place){ .known = true, .dev = sb.st_dev, .ino = sb.st_ino };
    return 0;
}

/* Whether the file that was noted is still at 'path'. No other file can have its inode number while it is open. */
static bool is_in_place (const struct database_place *place, const char *path)
{
    struct stat sb;

    return !place->known || (stat (path, &sb) == 0 && sb.st_dev == place->dev && sb.st_ino == place->ino);
}

static int check_file (struct database *d, idt_error_t *errp)
{
    if (!d->locked || is_in_place (&d->file, d->path))
        return 0;
    return errsetf (errp, ESTALE,
                    "%s: was removed or replaced while in use: put the one back that was there, or stop the instance",
                    d->path);
}

/* Whether SQLite has the log open. SQLite makes the log when it first needs it, and keeps it open afterwards. */
static bool is_log_open (const struct database *d)
{
    sqlite3_file *log = NULL;

    return sqlite3_file_control (d->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log
           && log->pMethods;
}

/* Detect a removed or replaced write-ahead log, because commits would go to a file that the next start does not find.
 * If the log has not been noted yet, note it. If that fails although SQLite has the log open, the log was removed.
 */
static int check_log (struct database *d, idt_error_t *errp)
{
    if (!d->logging || !is_log_open (d))
        return 0;
    if (d->log.known ? is_in_place (&d->log, d->log_path) : note_place (&d->log, d->log_path) == 0)
        return 0;
    if (d->kind->journal) /* renew_journal () checks a journal before the next commit */
        return 0;
    return errsetf (errp, ESTALE,
                    "%s: was removed or replaced while in use: stop rank 0 in order, then the database gets what is in "
                    "it; a crash before that loses it",
                    d->log_path);
}

static int check_place (struct database *d, idt_error_t *errp)
{
    return check_file (d, errp) < 0 ? -1 : check_log (d, errp);
}

/* If the journal was removed, make the next commit create another one, so that a start after a crash finds it. This is
 * done only between two commits, when a journal is empty.
 */
static int renew_journal (struct database *d, idt_error_t *errp)
{
    if (!d->kind->journal || !d->locked || !sqlite3_get_autocommit (d->db) || !is_log_open (d)
        || !is_in_place (&d->file, d->path) || (d->log.known && is_in_place (&d->log, d->log_path)))
        return 0;
    if (database_expect (d, "journal_mode = OFF", "off", errp) < 0
        || database_expect (d, "journal_mode = TRUNCATE", "truncate", errp) < 0)
        return -1;
    d->log = (struct database_place){ 0 };
    return 0;
}

int database_run (struct database *d, const char *sql, idt_error_t *errp)
{
    d->no_room = 0;
    if (renew_journal (d, errp) < 0)
        return -1;
    if (sqlite3_exec (d->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return check_place (d, errp);
    int saved = errno;
    if (check_place (d, errp) < 0)
        return -1;
    errno = saved;
    return database_explain (d, errp);
}

sqlite3_stmt *database_prepare (struct database *d, const char *sql, idt_error_t *errp)
{
    sqlite3_stmt *stmt;

    if (sqlite3_prepare_v2 (d->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        database_explain (d, errp);
        return NULL;
    }
    return stmt;
}

int database_step (struct database *d, sqlite3_stmt *stmt, idt_error_t *errp)
{
    int rc = sqlite3_step (stmt);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return database_explain (d, errp);
    return rc == SQLITE_ROW;
}

/* Run a statement that returns at most one row. Returns 0 with the first column of the row in 'text', or with "" if
 * there is no row.
 */
static int answer_of (struct database *d, const char *sql, char *text, size_t size, idt_error_t *errp)
{
    sqlite3_stmt *stmt = database_prepare (d, sql, errp);
    int rc = stmt ? database_step (d, stmt, errp) : -1, saved = errno;
    const char *column = rc > 0 ? (const char *)sqlite3_column_text (stmt, 0) : NULL;

    snprintf (text, size, "%s", column ? column : "");
    sqlite3_finalize (stmt);
    errno = saved;
    return rc < 0 ? -1 : 0;
}

/* Run a statement that returns at most one integer. '*value' is 0 if it returns no row. */
static int ask (struct database *d, const char *sql, int64_t *value, idt_error_t *errp)
{
    char text[32];

    if (answer_of (d, sql, text, sizeof (text), errp) < 0)
        return -1;
    *value = strtoll (text, NULL, 10);
    return 0;
}

int database_expect (struct database *d, const char *pragma, const char *value, idt_error_t *errp)
{
    char sql[64], text[32];

    snprintf (sql, sizeof (sql), "PRAGMA %s;", pragma);
    if (answer_of (d, sql, text, sizeof (text), errp) < 0)
        return -1;
    if (strcasecmp (text, value) == 0)
        return 0;
    return errsetf (
        errp, ENOTSUP,
        "%s: SQLite answers \"%s\" to PRAGMA %s, and \"%s\" is needed: use a library of SQLite that can do this",
        d->path, text, pragma, value);
}

int database_copied (struct database *d, int64_t *at_s, idt_error_t *errp)
{
    int64_t some;

    *at_s = 0;
    if (ask (d, "SELECT count (*) FROM sqlite_master WHERE name = 'copied';", &some, errp) < 0)
        return -1;
    return some > 0 ? ask (d, "SELECT max (at, 1) FROM copied;", at_s, errp) : 0;
}

/* --- whose it is ------------------------------------------------------------------------------------- */

/* Report which process holds the file. That process has written its name beside the file. */
static int tell_busy (struct database *d, idt_error_t *errp)
{
    char holder[128] = "another process";
    int fd = open (d->holder_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read (fd, holder, sizeof (holder) - 1) : 0;

    if (fd >= 0)
        close (fd);
    if (n > 0)
        holder[n] = '\0';
    return errsetf (errp, EBUSY, "%s: in use by %s: one instance at a time can run on a statedir", d->path, holder);
}

static void write_holder (struct database *d, const char *holder)
{
    int fd = open (d->holder_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);

    if (fd < 0)
        return;
    if (write (fd, holder, strlen (holder)) < 0)
        unlink (d->holder_path);
    close (fd);
}

/* Note the place of the locked file, which is the file at the path. From now on check_file () checks that it stays
 * there.
 */
static int note_file (struct database *d, idt_error_t *errp)
{
    if (note_place (&d->file, d->path) < 0)
        return errprintf (errp, "%s: %s", d->path, strerror (errno));
    d->locked = true;
    return 0;
}

/* Set the journal mode of the kind. If a new file has a journal, write its first page, because an empty file would be
 * refused.
 */
static int set_up (struct database *d, idt_error_t *errp)
{
    bool journal = d->kind->journal;

    if (database_run (d, "COMMIT;", errp) < 0 || database_expect (d, "locking_mode", "exclusive", errp) < 0
        || database_expect (d, journal ? "journal_mode = TRUNCATE" : "journal_mode = WAL", journal ? "truncate" : "wal",
                            errp)
               < 0
        || database_run (d, journal ? "PRAGMA synchronous = EXTRA;" : "PRAGMA synchronous = FULL;", errp) < 0
        || database_expect (d, "synchronous", journal ? "3" : "2", errp) < 0)
        return -1;
    return database_run (d, journal && d->made ? "PRAGMA user_version = 0;" : "BEGIN EXCLUSIVE; COMMIT;", errp);
}

static int page_size (const struct database_kind *kind)
{
    int usual = kind->journal ? 512 : 4096;

    return kind->page_size ? kind->page_size : usual;
}

static int lock_file (struct database *d, idt_error_t *errp)
{
    char lock[128];

    /* The first transaction takes the lock and keeps it. */
    snprintf (lock, sizeof (lock), "PRAGMA page_size = %d; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;",
              page_size (d->kind));
    int rc = sqlite3_exec (d->db, lock, NULL, NULL, NULL) & 0xff;
    if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return tell_busy (d, errp);
    if (note_file (d, errp) < 0)
        return -1;
    if (rc != SQLITE_OK)
        return database_explain (d, errp);
    if (set_up (d, errp) < 0)
        return -1;
    d->logging = true;
    return check_log (d, errp);
}

static int check_kind (struct database *d, idt_error_t *errp)
{
    int64_t id, version;

    if (ask (d, "PRAGMA application_id;", &id, errp) < 0 || ask (d, "PRAGMA user_version;", &version, errp) < 0)
        return -1;
    if (id == d->kind->application_id && version == d->kind->version)
        return 0;
    return errsetf (errp, EBADMSG, "%s: not a file of idtree, or of another version: check statedir", d->path);
}

/* Run statements in one transaction. */
static int run_whole (struct database *d, const char *sql, idt_error_t *errp)
{
    int rc = database_run (d, sql, errp), saved = errno;

    if (rc < 0)
        database_run (d, "ROLLBACK;", NULL);
    errno = saved;
    return rc;
}

#define MARK_MAX 160 /* bytes of the statements that make the mark */

static const char *make_mark (const struct database *d, char sql[MARK_MAX])
{
    snprintf (sql, MARK_MAX, "CREATE TABLE instance (uuid TEXT NOT NULL); INSERT INTO instance VALUES ('%s');",
              d->instance);
    return d->instance[0] ? sql : "";
}

/* Add the store to the instance's list. Before that, checkpoint the mark into the file itself, because a program that
 * reads the mark may not read the log.
 */
static int list_it (struct database *d, idt_error_t *errp)
{
    if (!d->instance[0])
        return 0;
    /* the answer 0 means not busy */
    if (!d->kind->journal
        && (database_expect (d, "wal_checkpoint (TRUNCATE)", "0", errp) < 0 || check_place (d, errp) < 0))
        return -1;
    if (state_add_store (d->dir, d->kind->name, errp) < 0)
        return -1;
    d->listed = true;
    d->unmarked = false;
    return 0;
}

int database_fill (struct database *d, const char *sql, idt_error_t *errp)
{
    char mark[MARK_MAX], *all;
    int rc;

    assert (d->is_new && d->locked);
    if (asprintf (&all, "BEGIN IMMEDIATE; %s; %s PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;", sql,
                  make_mark (d, mark), d->kind->application_id, d->kind->version)
        < 0)
        return errprintf (errp, "%s: out of memory", d->path);
    rc = run_whole (d, all, errp);
    int saved = errno;
    free (all);
    errno = saved;
    if (rc < 0)
        return -1;
    d->made = false; /* from now on the file is not removed at close */
    return list_it (d, errp);
}

static int mark_old (struct database *d, idt_error_t *errp)
{
    char mark[MARK_MAX], all[MARK_MAX + 32];

    snprintf (all, sizeof (all), "BEGIN IMMEDIATE; %s COMMIT;", make_mark (d, mark));
    return run_whole (d, all, errp) < 0 ? -1 : list_it (d, errp);
}

static int check_mark (struct database *d, idt_error_t *errp)
{
    char uuid[STATE_UUID_SIZE];

    state_mark_of (d->db, uuid);
    if (!uuid[0] && (!d->instance[0] || d->unmarked))
        return d->instance[0] ? mark_old (d, errp) : 0;
    if (!d->instance[0])
        return state_orphaned (d->path, uuid, errp);
    if (strcmp (uuid, d->instance) != 0)
        return errsetf (errp, STATE_REFUSED,
                        "%s: of %s%s, but the folder is of the instance %s: put back what belongs to it", d->path,
                        uuid[0] ? "the instance " : "no instance", uuid, d->instance);
    return d->listed ? 0 : list_it (d, errp);
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
    if (d->is_new && (d->filled || (d->listed && !d->kind->anew)))
        return database_damaged (d, "all that was in it is gone", errp);
    if (!d->is_new)
        return check_kind (d, errp) < 0 ? -1 : check_mark (d, errp);
    return d->kind->create ? database_fill (d, d->kind->create, errp) : 0;
}

/* --- open and close ------------------------------------------------------------------------------------ */

void database_close (struct database *d)
{
    if (!d)
        return;
    int saved = errno;
    bool ours = d->locked && check_file (d, NULL) == 0;
    if (ours && d->made) /* the next start would take an empty file for a damaged one */
        unlink (d->path);
    if (ours)
        unlink (d->holder_path);
    if (ours && d->kind->journal) /* without this an empty journal would remain, which is harmless */
        sqlite3_exec (d->db, "PRAGMA journal_mode = DELETE;", NULL, NULL, NULL);
    if (d->db)
        sqlite3_close (d->db);
    free (d->log_path);
    free (d->holder_path);
    free (d->path);
    free (d->dir);
    free (d);
    errno = saved;
}

/* Whether the journal would undo the commit that made the tables. It would if the file had one page before the commit.
 */
static bool was_being_filled (const struct database *d)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s-journal", d->path);
    return state_peek (path, PAGES_OFFSET) == 1;
}

/* Whether the file has tables: the application id is written together with them. */
static bool is_filled (const struct database *d)
{
    return state_peek (d->path, STATE_ID_OFFSET) == (uint32_t)d->kind->application_id && !was_being_filled (d);
}

/* Find out which instance the folder belongs to, and whether the store is in the instance's list. */
static int look_at_folder (struct database *d, idt_error_t *errp)
{
    const struct state_store *store;
    struct statefile s;

    if (state_read (d->dir, &s, errp) < 0)
        return errno == ENOENT ? 0 : -1;
    memcpy (d->instance, s.uuid, sizeof (d->instance));
    store = state_find_store (&s, d->kind->name);
    d->listed = store != NULL;
    d->unmarked = store && store->unmarked;
    return 0;
}

static int look_at_file (struct database *d, idt_error_t *errp)
{
    struct stat sb;

    d->filled = d->kind->journal && is_filled (d);
    bool there = stat (d->path, &sb) == 0;
    if (there && sb.st_size > 0)
        return 0;
    if (there && (d->listed || !d->instance[0]))
        return database_damaged (d, "it is empty", errp);
    d->made = there || errno == ENOENT; /* an empty file that is not listed was left by a crash while it was made */
    if (!d->made || !d->listed || d->kind->anew)
        return 0;
    return state_missing (d->dir, d->kind->name, d->instance, errp);
}

/* If other users may add files to the folder, make sure that none of their files is used. */
static int check_owner (struct database *d, const char *suffix, idt_error_t *errp)
{
    struct stat sb;
    char *path;
    int rc;

    if (asprintf (&path, "%s%s", d->path, suffix) < 0)
        return errprintf (errp, "%s: out of memory", d->path);
    if ((rc = lstat (path, &sb)) < 0)
        rc = errno == ENOENT ? 0 : errprintf (errp, "%s: %s", path, strerror (errno));
    else if (!S_ISREG (sb.st_mode) || sb.st_uid != geteuid ()) {
        errno = EPERM;
        rc = errprintf (errp, "%s: must be a file of yours, and no link to one", path);
    }
    free (path);
    return rc;
}

static int check_owners (struct database *d, idt_error_t *errp)
{
    static const char *const suffixes[] = { "", "-wal", "-journal" };

    for (size_t i = 0; i < sizeof (suffixes) / sizeof (suffixes[0]); i++)
        if (check_owner (d, suffixes[i], errp) < 0)
            return -1;
    return 0;
}

/* Remove the permissions of other users. A user who may read the file could keep it locked, and could see stored data.
 * SQLite gives the files beside the database the same permissions.
 */
static int keep_private (const struct database *d, idt_error_t *errp)
{
    struct stat sb;

    if (stat (d->path, &sb) == 0 && (sb.st_mode & (S_IRWXG | S_IRWXO)) && chmod (d->path, 0600) < 0)
        return errprintf (errp, "%s: it cannot be made private: %s", d->path, strerror (errno));
    return 0;
}

static int open_file (struct database *d, idt_error_t *errp)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

    idt_error_t why;

    if (private_dir_check ("statedir", d->dir, PRIVATE_DIR_STICKY, &why) < 0)
        return errprintf (errp, "%s: %s", d->path, why.text);
    if (check_owners (d, errp) < 0 || look_at_folder (d, errp) < 0 || look_at_file (d, errp) < 0)
        return -1;
    if (sqlite3_open_v2 (d->path, &d->db, flags, NULL) != SQLITE_OK)
        return database_explain (d, errp);
    return keep_private (d, errp) < 0 || lock_file (d, errp) < 0 ? -1 : check_owners (d, errp);
}

static struct database *database_new (const struct database_kind *kind, const char *dir)
{
    struct database *d = calloc (1, sizeof (*d));

    if (!d)
        return NULL;
    d->kind = kind;
    if (!(d->dir = strdup (dir)) || asprintf (&d->path, "%s/%s", dir, kind->name) < 0
        || asprintf (&d->holder_path, "%s.holder", d->path) < 0
        || asprintf (&d->log_path, "%s%s", d->path, kind->journal ? "-journal" : "-wal") < 0) {
        database_close (d);
        return errset_null (ENOMEM);
    }
    return d;
}

void database_holder (char holder[DATABASE_HOLDER_MAX], const char *who)
{
    char host[64] = "?";

    gethostname (host, sizeof (host) - 1);
    snprintf (holder, DATABASE_HOLDER_MAX, "%s%sprocess %d on %s", who ? who : "", who ? ", " : "", (int)getpid (),
              host);
}

struct database *database_open (const struct database_kind *kind, const char *dir, const char *holder,
                                idt_error_t *errp)
{
    struct database *d = database_new (kind, dir);

    if (!d)
        return errsetf_null (errp, ENOMEM, "%s: %s", dir, strerror (ENOMEM));
    if (open_file (d, errp) < 0 || look_inside (d, errp) < 0) {
        database_close (d);
        return NULL;
    }
    write_holder (d, holder);
    return d;
}
