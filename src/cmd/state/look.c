/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.c - a state folder as it lies there */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmd/state/look.h"
#include "libutil/duration.h"

/* A broker that runs has its stores locked, so they are read as a crash would leave them: at worst a commit behind. */
sqlite3 *look_open (const char *dir, const char *name)
{
    char path[PATH_MAX];
    sqlite3 *db = NULL;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
        return db;
    sqlite3_close (db);
    return NULL;
}

static void look_at_fluid (struct look *l)
{
    sqlite3 *db = look_open (l->dir, STATE_HORIZON_STORE);
    sqlite3_stmt *stmt = NULL;

    if (db
        && sqlite3_prepare_v2 (db, "SELECT epoch_ms, horizon_ms, watermark_ms FROM fluid;", -1, &stmt, NULL)
               == SQLITE_OK
        && sqlite3_step (stmt) == SQLITE_ROW) {
        l->has_fluid = true;
        l->epoch_ms = sqlite3_column_int64 (stmt, 0);
        l->horizon_ms = l->epoch_ms + sqlite3_column_int64 (stmt, 1);
        l->watermark_ms = l->epoch_ms + sqlite3_column_int64 (stmt, 2);
    }
    sqlite3_finalize (stmt);
    sqlite3_close (db);
}

void look_at (const struct cmd *cmd, struct look *l)
{
    idt_error_t error;

    if (state_read (l->dir, &l->state, &error) < 0)
        cmd_die (cmd, "%s", error.text);
    look_at_fluid (l);
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
