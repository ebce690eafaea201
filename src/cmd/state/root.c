/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root.c - idtree root: which host is rank 0, if its state is in PostgreSQL, and another host's turn */
#include <errno.h>
#include <string.h>

#include "broker/root/role_pg.h"
#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/state/store.h"

#define WIDTH 14

static void print (const struct cmd *cmd, json_t *all)
{
    if (cmd->json)
        ask_print (cmd, all);
    else
        out_print_members (all, "", WIDTH, JSON_COMPACT);
    json_decref (all);
}

/* --- status --------------------------------------------------------------------------------------------- */

#define STATUS "SELECT term, state, host, owner, beat, " ROLE_PG_STANDBYS " FROM idtree.role"

static json_t *status_of_store_new (struct cmd *cmd, const char *uri)
{
    struct pg *pg = store_connect (cmd, uri);
    struct pg_rows rows;
    struct pgstate s;
    idt_error_t error;

    if (pgstate_read (pg, &s, &error) < 0 || pg_run (pg, STATUS, NULL, &rows, NULL, &error) < 0)
        cmd_die (cmd, "%s", error.text);
    if (rows.count != 1)
        cmd_die (cmd, "PostgreSQL %s: the table idtree.role has %d rows instead of 1", pg_server (pg), rows.count);
    json_t *all = json_pack ("{s:s s:s s:I s:s s:s s:I s:I}", "server", pg_server (pg), "name", s.name, "term",
                             (json_int_t)pg_int (&rows, 0, 0), "state", pg_bytes (&rows, 0, 1, NULL), "host",
                             pg_bytes (&rows, 0, 2, NULL), "beat", (json_int_t)pg_int (&rows, 0, 4), "standbys",
                             (json_int_t)pg_int (&rows, 0, 5));
    pg_rows_free (&rows);
    pg_close (pg);
    return all;
}

static int run_status (struct cmd *cmd)
{
    const char *store = NULL;

    cmd_options (cmd, &store);
    if (store && cmd->uri)
        cmd_usage (cmd, "--store and --uri exclude each other: --store asks the database, --uri a broker");
    if (store)
        print (cmd, status_of_store_new (cmd, store));
    else {
        ask_connect (cmd);
        print (cmd, ask_new (cmd, "root.get", 0, NULL, "role of rank 0"));
    }
    return CMD_OK;
}

static const struct cmd_option status_options[] = {
    { 0, "store", "URI", "ask the database, as root.store says, and not rank 0", cmd_take_text, 0 },
    CMD_OPTIONS_END,
};

const struct command root_status_command = {
    .name = "root status",
    .flags = CMD_CONNECTS,
    .summary = "Show which host is rank 0, if several hosts can be",
    .details = "With --store it needs no broker: it shows who led last, and how many processes stand by.",
    .example = "idtree root status --store service=idtree",
    .json = "one object",
    .options = status_options,
    .run = run_status,
};

/* --- release -------------------------------------------------------------------------------------------- */

static int run_release (struct cmd *cmd)
{
    cmd_options (cmd, NULL);
    ask_connect_own (cmd);
    json_decref (ask_new (cmd, "root.release", 0, NULL, "release of the role of rank 0"));
    return CMD_OK;
}

const struct command root_release_command = {
    .name = "root release",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Let another host become rank 0, if one stands by",
    .details = "Rank 0 stops in order and exits with 76, so that its unit starts it again and it stands by.",
    .example = "idtree root release",
    .run = run_release,
};
