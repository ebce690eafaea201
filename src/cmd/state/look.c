/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.c - a state folder as it lies there */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/state/look.h"
#include "libutil/duration.h"

#define WAIT_MS 1000 /* for who writes, or ends; a broker that runs has its stores locked for as long as it does */

sqlite3 *look_open (const char *dir, const char *name)
{
    char path[PATH_MAX];
    sqlite3 *db = NULL;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout (db, WAIT_MS);
        return db;
    }
    sqlite3_close (db);
    return NULL;
}

static void tell_holder (const char *dir, const char *name, char why[LOOK_WHY_SIZE])
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
        tell_holder (dir, name, why);
        break;
    case SQLITE_READONLY: /* a journal is to be played back, which is not for us */
        snprintf (why, LOOK_WHY_SIZE, "left by a crash in the middle of a commit: a start of the broker mends it");
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        snprintf (why, LOOK_WHY_SIZE, "damaged (%s)", sqlite3_errstr (rc));
        break;
    default:
        snprintf (why, LOOK_WHY_SIZE, "not to be read: %s", sqlite3_errstr (rc));
    }
}

/* Returns what SQLite does of a row. */
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
    sqlite3 *db = look_open (l->dir, STATE_HORIZON_STORE);
    int rc = db ? read_dates (l, db) : SQLITE_CANTOPEN;
    char path[PATH_MAX];

    sqlite3_close (db);
    snprintf (path, sizeof (path), "%s/" STATE_HORIZON_STORE, l->dir);
    if (l->has_fluid)
        return;
    l->in_use = rc == SQLITE_BUSY;
    if (access (path, F_OK) == 0)
        look_why (l->dir, STATE_HORIZON_STORE, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, l->why);
    else if (state_find_store (&l->state, STATE_HORIZON_STORE))
        snprintf (l->why, sizeof (l->why), "missing");
}

void look_at (const struct cmd *cmd, struct look *l)
{
    idt_error_t error;

    if (state_read (l->dir, &l->state, &error) < 0)
        cmd_die (cmd, "%s", error.text);
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
