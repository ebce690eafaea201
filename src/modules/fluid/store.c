/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store.c - the durable horizon and epoch
 *
 * The file holds one table 'fluid' with one row: id 0, horizon_ms, watermark_ms, settle_ms, epoch_ms, seal.  It is ours
 * if and only if (1) SQLite finds it whole, (2) its application id is APPLICATION_ID, (3) its version is VERSION, (4)
 * the row is there, (5) seal is what seal () makes of the other columns and (6) 0 <= horizon_ms <= 2^40.  A
 * file without any table is a new one.
 *
 * A commit is durable when it returns: write-ahead log, synchronous=FULL.  The log is taken over into the file at once,
 * for SQLite drops a damaged end of it silently, and an older horizon would be believed; the seal tells damage that
 * leaves the file whole.  locking_mode=EXCLUSIVE keeps the lock
 * that the first transaction took until the store is closed (B_TWO of doc/model/lease.pml).  Who holds it is written
 * to fluid.sqlite.holder, which nothing depends on.
 *
 * The connection belongs to store_open () and store_init (), then to the thread, then to store_close ().  What
 * passes between the reactor and the thread is under 'lock': a request or an outcome, never both.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <idtree/fluid.h>

#include "libutil/errprintf.h"
#include "libsqlite/sqlite.h"
#include "modules/fluid/store.h"

#define APPLICATION_ID "1768191078" /* "idtf" */
#define VERSION "1"
#define RECOVER                                                                                                    \
    "start once with --recover-horizon=DATE-or-ID, above all ids made, and its fluid.epoch; the file is kept aside"

enum task { TASK_NONE, TASK_WRITE, TASK_DONE, TASK_FAILED, TASK_END };

struct store {
    struct sqlite sqlite;
    sqlite3 *db;
    char *dir;
    char *path;
    char *holder_path;
    int64_t epoch_ms;
    bool made;   /* there was no file; */
    bool locked; /* it is ours; */
    bool filled; /* something is in it */
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* under lock: */
    enum task task;
    struct lease_record record;
    idt_error_t why;
};

static const char create_sql[] = "BEGIN IMMEDIATE;"
                                 "CREATE TABLE fluid (id INTEGER PRIMARY KEY CHECK (id = 0),"
                                 " horizon_ms INTEGER NOT NULL, watermark_ms INTEGER NOT NULL,"
                                 " settle_ms INTEGER NOT NULL, epoch_ms INTEGER NOT NULL, seal INTEGER NOT NULL);"
                                 "PRAGMA application_id = " APPLICATION_ID ";"
                                 "PRAGMA user_version = " VERSION ";";

/* --- SQLite -------------------------------------------------------------------------------------- */

/* What a person can do about a failure, in 'errp'; errno is set. */
static int explain (struct store *st, idt_error_t *errp)
{
    int code = st->sqlite.extended_errcode (st->db) & 0xff;

    switch (code) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        errno = EBADMSG;
        return errprintf (errp,
                          "%s: damaged (%s): " RECOVER, st->path, st->sqlite.errmsg (st->db));
    case SQLITE_FULL:
        errno = ENOSPC;
        return errprintf (errp, "%s: the disk is full", st->path);
    case SQLITE_READONLY:
        errno = EROFS;
        return errprintf (errp, "%s: cannot be written: check the folder's owner and mount", st->path);
    case SQLITE_CANTOPEN: /* SQLite tries more than one way, and its errno is that of the last */
        if (access (st->dir, W_OK) < 0)
            return errprintf (errp, "%s: cannot be made or written: %s", st->path, strerror (errno));
        /* fall through */
    default:
        errno = st->sqlite.system_errno (st->db);
        if (errno == 0)
            errno = EIO;
        return errprintf (errp, "%s: %s (%s)", st->path, st->sqlite.errmsg (st->db), strerror (errno));
    }
}

static int run (struct store *st, const char *sql, idt_error_t *errp)
{
    if (st->sqlite.exec (st->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return explain (st, errp);
    return 0;
}

/* One integer that a statement tells; 'absent' where it tells none. */
static int ask (struct store *st, const char *sql, int64_t absent, int64_t *value, idt_error_t *errp)
{
    sqlite3_stmt *stmt;
    int rc;

    if (st->sqlite.prepare_v2 (st->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return explain (st, errp);
    rc = st->sqlite.step (stmt);
    *value = rc == SQLITE_ROW ? st->sqlite.column_int64 (stmt, 0) : absent;
    if (st->sqlite.finalize (stmt) != SQLITE_OK)
        return explain (st, errp);
    return 0;
}

/* 63 bits: SQLite's integers are signed. */
static int64_t seal (const struct lease_record *r, int64_t epoch_ms)
{
    const uint64_t column[] = { r->horizon_ms, r->watermark_ms, r->settle_ms, (uint64_t)epoch_ms };
    uint64_t z = 0;

    for (size_t i = 0; i < sizeof (column) / sizeof (column[0]); i++) {
        z = (z ^ column[i]) * UINT64_C (0xbf58476d1ce4e5b9) + UINT64_C (0x9e3779b97f4a7c15);
        z ^= z >> 29;
    }
    return (int64_t)(z >> 1);
}

/* The commit is what counts: a log that could not be taken over now will be with the next. */
static int write_record (struct store *st, const struct lease_record *r, idt_error_t *errp)
{
    char sql[240];

    snprintf (sql, sizeof (sql),
              "UPDATE fluid SET horizon_ms = %llu, watermark_ms = %llu, settle_ms = %llu, seal = %lld WHERE id = 0;",
              (unsigned long long)r->horizon_ms, (unsigned long long)r->watermark_ms, (unsigned long long)r->settle_ms,
              (long long)seal (r, st->epoch_ms));
    if (run (st, sql, errp) < 0)
        return -1;
    st->sqlite.exec (st->db, "PRAGMA wal_checkpoint (TRUNCATE);", NULL, NULL, NULL);
    return 0;
}

/* --- the thread ------------------------------------------------------------------------------------- */

static void tell (struct store *st)
{
    uint64_t one = 1;

    while (write (st->fd, &one, sizeof (one)) < 0 && errno == EINTR)
        ;
}

static void do_write (struct store *st)
{
    struct lease_record record = st->record;
    idt_error_t why = { "" };

    pthread_mutex_unlock (&st->lock);
    bool good = write_record (st, &record, &why) == 0;
    pthread_mutex_lock (&st->lock);
    st->why = why;
    if (st->task == TASK_WRITE) { /* else it is the end */
        st->task = good ? TASK_DONE : TASK_FAILED;
        tell (st);
    }
}

static void *thread_main (void *arg)
{
    struct store *st = arg;

    pthread_mutex_lock (&st->lock);
    while (st->task != TASK_END) {
        if (st->task == TASK_WRITE)
            do_write (st);
        else
            pthread_cond_wait (&st->wake, &st->lock);
    }
    pthread_mutex_unlock (&st->lock);
    return NULL;
}

/* Signals are the broker's: the thread takes none. */
static int start_thread (struct store *st, idt_error_t *errp)
{
    sigset_t all, saved;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &saved);
    int rc = pthread_create (&st->thread, NULL, thread_main, st);
    pthread_sigmask (SIG_SETMASK, &saved, NULL);
    if (rc != 0) {
        errno = rc;
        return errprintf (errp, "%s: cannot start a thread: %s", st->path, strerror (rc));
    }
    return 0;
}

static void set_task (struct store *st, enum task task, const struct lease_record *record)
{
    pthread_mutex_lock (&st->lock);
    st->task = task;
    if (record)
        st->record = *record;
    pthread_cond_signal (&st->wake);
    pthread_mutex_unlock (&st->lock);
}

void store_write (struct store *st, const struct lease_record *record)
{
    set_task (st, TASK_WRITE, record);
}

int store_fd (const struct store *st)
{
    return st->fd;
}

bool store_result (struct store *st, bool *good, uint64_t *horizon_ms, idt_error_t *errp)
{
    uint64_t count;
    bool ended;

    while (read (st->fd, &count, sizeof (count)) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock (&st->lock);
    ended = st->task == TASK_DONE || st->task == TASK_FAILED;
    if (ended) {
        *good = st->task == TASK_DONE;
        *horizon_ms = st->record.horizon_ms;
        if (!*good && errp)
            *errp = st->why;
        st->task = TASK_NONE;
    }
    pthread_mutex_unlock (&st->lock);
    return ended;
}

/* --- open and close ----------------------------------------------------------------------------------- */

/* Who holds the file, as that one wrote it. */
static int tell_busy (struct store *st, idt_error_t *errp)
{
    char holder[128] = "another process";
    int fd = open (st->holder_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read (fd, holder, sizeof (holder) - 1) : 0;

    if (fd >= 0)
        close (fd);
    if (n > 0)
        holder[n] = '\0';
    errno = EBUSY;
    return errprintf (errp, "%s: in use by %s: one instance at a time can run on a statedir", st->path, holder);
}

static void write_holder (struct store *st, const char *holder)
{
    int fd = open (st->holder_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        return;
    if (write (fd, holder, strlen (holder)) < 0)
        unlink (st->holder_path);
    close (fd);
}

static int lock_file (struct store *st, idt_error_t *errp)
{
    /* The lock comes with the first transaction, and stays. */
    static const char lock[] = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;";
    static const char set_up[] = "COMMIT; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE; COMMIT;";

    int rc = st->sqlite.exec (st->db, lock, NULL, NULL, NULL) & 0xff;
    if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return tell_busy (st, errp);
    st->locked = true;
    return rc == SQLITE_OK ? run (st, set_up, errp) : explain (st, errp);
}

static int not_ours (struct store *st, const char *what, idt_error_t *errp)
{
    errno = EBADMSG;
    return errprintf (errp, "%s: not a file of idtree, or of another version (%s): check statedir", st->path, what);
}

static int check_ours (struct store *st, idt_error_t *errp)
{
    int64_t id, version;

    if (ask (st, "PRAGMA application_id;", 0, &id, errp) < 0 || ask (st, "PRAGMA user_version;", 0, &version, errp) < 0)
        return -1;
    if (id != atoll (APPLICATION_ID))
        return not_ours (st, "application id", errp);
    if (version != atoll (VERSION))
        return not_ours (st, "version", errp);
    return 0;
}

static int damaged (struct store *st, const char *what, idt_error_t *errp)
{
    errno = EBADMSG;
    return errprintf (errp, "%s: damaged (%s): " RECOVER, st->path, what);
}

static int read_row (struct store *st, struct store_content *content, idt_error_t *errp)
{
    int64_t horizon, watermark, settle, stored_seal;

    if (ask (st, "SELECT horizon_ms FROM fluid WHERE id = 0;", -1, &horizon, errp) < 0
        || ask (st, "SELECT watermark_ms FROM fluid WHERE id = 0;", -1, &watermark, errp) < 0
        || ask (st, "SELECT settle_ms FROM fluid WHERE id = 0;", -1, &settle, errp) < 0
        || ask (st, "SELECT epoch_ms FROM fluid WHERE id = 0;", -1, &content->epoch_ms, errp) < 0
        || ask (st, "SELECT seal FROM fluid WHERE id = 0;", -1, &stored_seal, errp) < 0)
        return -1;
    content->record = (struct lease_record){ (uint64_t)horizon, (uint64_t)watermark, (uint64_t)settle };
    if (seal (&content->record, content->epoch_ms) != stored_seal || horizon < 0
        || horizon > (int64_t)FLUID_TIMESTAMP_MAX + 1)
        return damaged (st, "its numbers do not match their seal", errp);
    st->epoch_ms = content->epoch_ms;
    return 0;
}

static int read_content (struct store *st, struct store_content *content, idt_error_t *errp)
{
    int64_t tables, bad;

    if (ask (st, "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok';", 0, &bad, errp) < 0
        || ask (st, "SELECT count(*) FROM sqlite_master;", 0, &tables, errp) < 0)
        return -1;
    *content = (struct store_content){ .is_new = tables == 0 };
    if (tables == 0)
        return 0;
    if (bad > 0)
        return damaged (st, "it is not whole", errp);
    if (check_ours (st, errp) < 0)
        return -1;
    return read_row (st, content, errp);
}

static void store_destroy (struct store *st)
{
    int saved = errno;

    if (st->made && st->locked && !st->filled) /* an empty file would be taken for a damaged one */
        unlink (st->path);
    if (st->db)
        st->sqlite.close (st->db);
    sqlite_unload (&st->sqlite);
    if (st->fd >= 0)
        close (st->fd);
    pthread_cond_destroy (&st->wake);
    pthread_mutex_destroy (&st->lock);
    free (st->holder_path);
    free (st->path);
    free (st->dir);
    free (st);
    errno = saved;
}

static struct store *store_new (const char *dir)
{
    struct store *st = calloc (1, sizeof (*st));

    if (!st)
        return NULL;
    pthread_mutex_init (&st->lock, NULL);
    pthread_cond_init (&st->wake, NULL);
    st->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (st->fd < 0 || !(st->dir = strdup (dir)) || asprintf (&st->path, "%s/fluid.sqlite", dir) < 0
        || asprintf (&st->holder_path, "%s.holder", st->path) < 0) {
        store_destroy (st);
        return NULL;
    }
    return st;
}

/* A file of no bytes is none that we left: it lost what was in it. */
static int look_at_file (struct store *st, idt_error_t *errp)
{
    struct stat sb;

    if (stat (st->path, &sb) < 0)
        st->made = errno == ENOENT;
    else if (sb.st_size == 0)
        return damaged (st, "it is empty", errp);
    return 0;
}

static int open_file (struct store *st, idt_error_t *errp)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_EXRESCODE;

    if (look_at_file (st, errp) < 0)
        return -1;
    if (sqlite_load (&st->sqlite) < 0)
        return errprintf (errp, "libsqlite3.so.0 cannot be loaded: install SQLite (libsqlite3-0)");
    if (st->sqlite.open_v2 (st->path, &st->db, flags, NULL) != SQLITE_OK)
        return explain (st, errp);
    return lock_file (st, errp);
}

struct store *store_open (const char *dir, const char *holder, struct store_content *content, idt_error_t *errp)
{
    struct store *st = store_new (dir);

    if (!st) {
        errprintf (errp, "%s: %s", dir, strerror (errno));
        return NULL;
    }
    if (open_file (st, errp) < 0 || read_content (st, content, errp) < 0 || start_thread (st, errp) < 0) {
        store_destroy (st);
        return NULL;
    }
    write_holder (st, holder);
    return st;
}

int store_init (struct store *st, int64_t epoch_ms, const struct lease_record *r, idt_error_t *errp)
{
    char sql[700];

    st->epoch_ms = epoch_ms;
    snprintf (sql, sizeof (sql), "%s INSERT INTO fluid VALUES (0, %llu, %llu, %llu, %lld, %lld); COMMIT;", create_sql,
              (unsigned long long)r->horizon_ms, (unsigned long long)r->watermark_ms,
              (unsigned long long)r->settle_ms, (long long)epoch_ms, (long long)seal (r, epoch_ms));
    if (run (st, sql, errp) == 0) {
        st->filled = true;
        return 0;
    }
    int saved = errno;
    run (st, "ROLLBACK;", NULL);
    errno = saved;
    return -1;
}

int store_close (struct store *st, const struct lease_record *last, idt_error_t *errp)
{
    int rc = 0;

    set_task (st, TASK_END, NULL);
    pthread_join (st->thread, NULL);
    if (last)
        rc = write_record (st, last, errp);
    unlink (st->holder_path);
    store_destroy (st);
    return rc;
}

/* --- damage ------------------------------------------------------------------------------------------- */

/* A path that is free yet, as DIR/fluid.sqlite.damaged-3. */
static int free_path (const char *dir, char *path, size_t size)
{
    for (int i = 1; i < 1000; i++) {
        if (snprintf (path, size, "%s/fluid.sqlite.damaged-%d", dir, i) >= (int)size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (access (path, F_OK) < 0)
            return 0;
    }
    errno = EEXIST;
    return -1;
}

static int move (const char *dir, const char *to, const char *suffix)
{
    char from[PATH_MAX], path[PATH_MAX];

    if (snprintf (from, sizeof (from), "%s/fluid.sqlite%s", dir, suffix) >= (int)sizeof (from)
        || snprintf (path, sizeof (path), "%s%s", to, suffix) >= (int)sizeof (path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return rename (from, path) < 0 && errno != ENOENT ? -1 : 0;
}

/* The file first: without its log it could pass for a whole but older one. */
int store_set_aside (const char *dir, char *path, size_t size, idt_error_t *errp)
{
    if (free_path (dir, path, size) == 0 && move (dir, path, "") == 0 && move (dir, path, "-wal") == 0)
        return 0;
    return errprintf (errp, "%s/fluid.sqlite: cannot be moved aside: %s", dir, strerror (errno));
}
