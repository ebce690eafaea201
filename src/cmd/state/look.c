/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.c - read a state folder without changing it */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/state/look.h"
#include "libsqlite/state.h"
#include "libutil/duration.h"

#define WAIT_MS 1000 /* for the end of a commit or of the broker; a running broker keeps its stores locked */

static bool is_there (const char *path)
{
    return access (path, F_OK) == 0;
}

void look_open (struct look_store *s, const char *dir, const char *name)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    snprintf (s->log, sizeof (s->log), "%s/%s-wal", dir, name);
    snprintf (s->index, sizeof (s->index), "%s/%s-shm", dir, name);
    s->had_log = is_there (s->log);
    s->had_index = is_there (s->index);
    if (sqlite3_open_v2 (path, &s->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout (s->db, WAIT_MS);
        return;
    }
    sqlite3_close (s->db);
    s->db = NULL;
}

/* Whether this connection holds the lock that a reader of a store with a log keeps until it closes it.  While it does,
 * no broker has the store open, and no broker can begin to write into the files that are removed here.
 */
static bool is_locked (sqlite3 *db)
{
    int state = SQLITE_LOCK_NONE;

    return sqlite3_file_control (db, "main", SQLITE_FCNTL_LOCKSTATE, &state) == SQLITE_OK
           && state == SQLITE_LOCK_SHARED;
}

static bool is_empty (const char *path)
{
    struct stat sb;

    return stat (path, &sb) == 0 && sb.st_size == 0;
}

/* SQLite does not remove the files that it made for a read-only connection: remove them here. */
void look_close (struct look_store *s)
{
    if (s->db && is_locked (s->db)) {
        if (!s->had_log && is_empty (s->log))
            unlink (s->log);
        if (!s->had_index)
            unlink (s->index);
    }
    sqlite3_close (s->db);
    s->db = NULL;
}

static void write_holder (const char *dir, const char *name, char why[LOOK_WHY_SIZE])
{
    char file[STATE_STORE_SIZE + 16], holder[STATE_TEXT_MAX];

    snprintf (file, sizeof (file), "%s.holder", name);
    if (state_read_text (dir, file, holder, NULL) <= 0)
        snprintf (holder, sizeof (holder), "a broker");
    snprintf (why, LOOK_WHY_SIZE, "in use by %.128s", holder);
}

void look_why (const char *dir, const char *name, int rc, char why[LOOK_WHY_SIZE])
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
        write_holder (dir, name, why);
        break;
    case SQLITE_READONLY: /* a journal must be replayed, which would change the store */
        snprintf (why, LOOK_WHY_SIZE, "left by a crash during a commit: a start of the broker repairs it");
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        snprintf (why, LOOK_WHY_SIZE, "damaged (%s)", sqlite3_errstr (rc));
        break;
    default:
        snprintf (why, LOOK_WHY_SIZE, "not readable: %s", sqlite3_errstr (rc));
    }
}

/* Returns the result of SQLite for the row. */
static int read_dates (struct look *l, sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2 (db, "SELECT epoch_ms, horizon_ms, watermark_ms FROM fluid;", -1, &stmt, NULL);

    if (rc == SQLITE_OK && (rc = sqlite3_step (stmt)) == SQLITE_ROW) {
        l->has_fluid = true;
        l->epoch_ms = sqlite3_column_int64 (stmt, 0);
        l->horizon_ms = l->epoch_ms + sqlite3_column_int64 (stmt, 1);
        l->watermark_ms = l->epoch_ms + sqlite3_column_int64 (stmt, 2);
    }
    sqlite3_finalize (stmt);
    return rc;
}

void look_at_horizon (struct look *l)
{
    struct look_store s = { 0 };
    char path[PATH_MAX];

    look_open (&s, l->dir, STATE_HORIZON_STORE);
    int rc = s.db ? read_dates (l, s.db) : SQLITE_CANTOPEN;
    look_close (&s);
    snprintf (path, sizeof (path), "%s/" STATE_HORIZON_STORE, l->dir);
    if (l->has_fluid)
        return;
    l->in_use = rc == SQLITE_BUSY;
    if (is_there (path))
        look_why (l->dir, STATE_HORIZON_STORE, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, l->why);
    else if (state_find_store (&l->state, STATE_HORIZON_STORE))
        snprintf (l->why, sizeof (l->why), "missing");
}

static void die_unknown (const struct cmd *cmd, struct look *l) __attribute__ ((noreturn));

/* End the program: the file 'instance' is missing. */
static void die_unknown (const struct cmd *cmd, struct look *l)
{
    struct statefile left = { 0 };
    char epoch[DATE_SIZE];
    idt_error_t error;
    int rc = state_survey (l->dir, &left, &error);

    if (rc == 0)
        cmd_die (cmd, "%s holds no state: idtree init makes the state of a new instance", l->dir);
    if (rc > 0)
        cmd_die (cmd,
                 "%s/instance: is missing: an earlier version left %s and did not make it; the next start makes "
                 "it",
                 l->dir, left.stores[0].name);
    look_at_horizon (l);
    if (!l->has_fluid)
        cmd_die (cmd, "%s", error.text);
    cmd_die (cmd, "%s; " STATE_HORIZON_STORE " counts from --epoch %s", error.text, format_date (l->epoch_ms, epoch));
}

void look_at_instance (const struct cmd *cmd, struct look *l)
{
    idt_error_t error;

    if (state_read (l->dir, &l->state, &error) == 0)
        return;
    if (errno == ENOENT && is_there (l->dir))
        die_unknown (cmd, l);
    if (errno == ENOENT)
        cmd_die (cmd, "there is no folder %s", l->dir);
    cmd_die (cmd, "%s", error.text);
}

void look_at (const struct cmd *cmd, struct look *l)
{
    look_at_instance (cmd, l);
    look_at_horizon (l);
}

static void add_date (json_t *o, const char *key, int64_t unix_ms)
{
    char date[DATE_SIZE];

    json_object_set_new (o, key, json_string (format_date (unix_ms, date)));
}

json_t *look_json_new (const struct look *l)
{
    json_t *all = json_pack ("{s:s s:s s:s}", "statedir", l->dir, "uuid", l->state.uuid, "name", l->state.name);
    json_t *stores = json_array ();

    add_date (all, "created", l->state.created_ms);
    if (l->has_fluid || l->state.has_epoch)
        add_date (all, "epoch", l->has_fluid ? l->epoch_ms : l->state.epoch_ms);
    if (l->has_fluid) {
        add_date (all, "horizon", l->horizon_ms);
        add_date (all, "watermark", l->watermark_ms);
    }
    for (unsigned i = 0; i < l->state.nstores; i++)
        json_array_append_new (stores, json_string (l->state.stores[i].name));
    json_object_set_new (all, "stores", stores);
    return all;
}
