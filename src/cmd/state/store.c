/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store.c - make and look at the state of an instance in PostgreSQL */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/state/store.h"
#include "libutil/duration.h"

#define TIMEOUT_MS 10000
#define WIDTH 27

struct pg *store_connect (const struct cmd *cmd, const char *uri)
{
    const struct pg_config config = { .conninfo = uri, .application = "idtree command", .timeout_ms = TIMEOUT_MS };
    idt_error_t error;
    struct pg *pg;

    if (!*uri)
        cmd_usage (cmd, "--store is empty: give a connection string, such as postgresql://idtree@db1,db2/idtree");
    pg = pg_open (&config, &error);
    if (!pg && errno == EINVAL)
        cmd_usage (cmd, "--store: %s", error.text);
    if (!pg)
        cmd_die (cmd, "--store: %s", error.text);
    return pg;
}

/* --- init --------------------------------------------------------------------------------------------- */

void store_make (const struct cmd *cmd, const char *uri, const struct pgstate *s)
{
    struct pg *pg = store_connect (cmd, uri);
    struct pgstate found;
    idt_error_t error;

    if (pgstate_make (pg, s, &error) < 0) {
        if (errno == EEXIST && pgstate_read (pg, &found, &error) == 0)
            cmd_die (cmd, "the database has the state of instance %s (%s) already: idtree state show --store prints it",
                     found.uuid, found.name);
        cmd_die (cmd, "%s", error.text);
    }
    pg_close (pg);
}

/* --- show --------------------------------------------------------------------------------------------- */

#define SHOW                                                                                              \
    "SELECT h.epoch_ms, h.epoch_ms + h.horizon_ms, h.epoch_ms + h.watermark_ms, r.term, r.state, r.host," \
    " current_setting ('synchronous_standby_names'), current_setting ('synchronous_commit')"              \
    " FROM idtree.role AS r LEFT JOIN idtree.horizon AS h ON true"

static void add_date (json_t *o, const char *key, int64_t unix_ms)
{
    char date[DATE_SIZE];

    json_object_set_new (o, key, json_string (format_date (unix_ms, date)));
}

static void add_text (json_t *o, const char *key, const struct pg_rows *rows, int column)
{
    json_object_set_new (o, key, json_string (pg_bytes (rows, 0, column, NULL)));
}

static void add_row (json_t *all, const struct pg_rows *rows, const struct pgstate *s)
{
    if (!pg_is_null (rows, 0, 0) || s->has_epoch)
        add_date (all, "epoch", pg_is_null (rows, 0, 0) ? s->epoch_ms : pg_int (rows, 0, 0));
    if (!pg_is_null (rows, 0, 1)) {
        add_date (all, "horizon", pg_int (rows, 0, 1));
        add_date (all, "watermark", pg_int (rows, 0, 2));
    }
    json_object_set_new (all, "term", json_integer (pg_int (rows, 0, 3)));
    add_text (all, "state", rows, 4);
    add_text (all, "host", rows, 5);
    add_text (all, "synchronous_standby_names", rows, 6);
    add_text (all, "synchronous_commit", rows, 7);
}

int store_show (struct cmd *cmd, const char *uri)
{
    struct pg *pg = store_connect (cmd, uri);
    struct pg_rows rows;
    struct pgstate s;
    idt_error_t error;

    if (pgstate_read (pg, &s, &error) < 0 || pg_run (pg, SHOW, NULL, &rows, NULL, &error) < 0)
        cmd_die (cmd, "%s", error.text);
    if (rows.count != 1)
        cmd_die (cmd, "PostgreSQL %s: the table idtree.role has %d rows instead of 1", pg_server (pg), rows.count);
    json_t *all = json_pack ("{s:s s:s s:s}", "server", pg_server (pg), "uuid", s.uuid, "name", s.name);
    add_date (all, "created", s.created_ms);
    add_row (all, &rows, &s);
    pg_rows_free (&rows);
    pg_close (pg);
    if (cmd->json)
        ask_print (cmd, all);
    else
        out_print_members (all, "", WIDTH, JSON_COMPACT);
    json_decref (all);
    return CMD_OK;
}
