/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* show.c - idtree state show, check, forget: the contents of a state folder, and whether they are complete */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/state/look.h"
#include "libsqlite/state.h"

#define WIDTH 12

static struct look begin (struct cmd *cmd)
{
    struct look l = { 0 };

    cmd_options (cmd, NULL);
    l.dir = cmd->argv[0];
    look_at (cmd, &l);
    return l;
}

static int show (struct cmd *cmd)
{
    struct look l = begin (cmd);
    json_t *all = look_json_new (&l);

    if (l.why[0])
        cmd_warn (cmd, "the horizon is not known: %s/" STATE_HORIZON_STORE " is %s", l.dir, l.why);
    if (cmd->json)
        ask_print (cmd, all);
    else
        out_print_members (all, "", WIDTH, JSON_COMPACT);
    json_decref (all);
    return CMD_OK;
}

/* --- check ------------------------------------------------------------------------------------ */

/* Whether a file is not a store.  A file that is busy, or needs a log beside it to be read, counts as a store.  SQLite
 * takes an empty file for a database.
 */
static bool is_no_store (const struct look *l, const char *name)
{
    char path[PATH_MAX], uuid[STATE_UUID_SIZE];
    struct stat sb;

    snprintf (path, sizeof (path), "%s/%s", l->dir, name);
    return stat (path, &sb) == 0 && sb.st_size == 0 ? true : !state_read_mark (path, uuid) && !state_is_torn (path);
}

/* Returns 0, or -1 with the reason in 'why'. */
static int check_store (const struct look *l, const char *name, char why[LOOK_WHY_SIZE])
{
    sqlite3_stmt *stmt = NULL;
    struct look_store s = { 0 };

    if (is_no_store (l, name)) {
        snprintf (why, LOOK_WHY_SIZE, "damaged (it is empty, or not a store of idtree)");
        return -1;
    }
    look_open (&s, l->dir, name);
    int rc = s.db ? sqlite3_prepare_v2 (s.db, "PRAGMA quick_check;", -1, &stmt, NULL) : SQLITE_CANTOPEN;

    if (rc == SQLITE_OK && (rc = sqlite3_step (stmt)) == SQLITE_ROW)
        rc = strcmp ((const char *)sqlite3_column_text (stmt, 0), "ok") ? SQLITE_CORRUPT : SQLITE_OK;
    sqlite3_finalize (stmt);
    look_close (&s);
    if (rc == SQLITE_OK)
        return 0;
    look_why (l->dir, name, rc, why);
    return -1;
}

static int check (struct cmd *cmd)
{
    struct look l = begin (cmd);
    idt_error_t error;
    int bad = 0;

    if (state_check (l.dir, &l.state, NULL, &error) < 0)
        cmd_die (cmd, "%s", error.text);
    for (unsigned i = 0; i < l.state.nstores; i++) {
        const char *name = l.state.stores[i].name;
        char why[LOOK_WHY_SIZE];

        if (check_store (&l, name, why) == 0) {
            if (strcmp (name, STATE_HORIZON_STORE) != 0 || l.has_fluid)
                continue;
            snprintf (why, sizeof (why), "%s", l.why);
        }
        cmd_warn (cmd, "%s/%s is %s", l.dir, name, why);
        bad++;
    }
    if (bad > 0)
        return CMD_FAILED;
    if (cmd->json) {
        json_t *o = json_pack ("{s:s s:s s:s}", "statedir", l.dir, "uuid", l.state.uuid, "name", l.state.name);
        ask_print (cmd, o);
        json_decref (o);
    }
    else
        out_print ("%s: the state of the instance %s (%s) is complete and undamaged\n", l.dir, l.state.uuid,
                   l.state.name);
    return CMD_OK;
}

/* --- forget ----------------------------------------------------------------------------------- */

static int forget (struct cmd *cmd)
{
    struct look l = { 0 };
    char path[4096];
    idt_error_t error;

    cmd_options (cmd, NULL);
    l.dir = cmd->argv[0];
    look_at_instance (cmd, &l);
    if (strcmp (cmd->argv[1], STATE_HORIZON_STORE) == 0)
        cmd_die (cmd, "ids would be issued twice: start once with --recover-horizon=DATE-or-ID, above all ids made");
    snprintf (path, sizeof (path), "%s/%s", cmd->argv[0], cmd->argv[1]);
    if (access (path, F_OK) == 0 || errno != ENOENT)
        cmd_die (cmd, "%s: exists: move it away first", path);
    if (state_drop_store (cmd->argv[0], cmd->argv[1], &error) < 0)
        cmd_die (cmd, "%s", error.text);
    return CMD_OK;
}

const struct command state_show_command = {
    .name = "state show",
    .operands = "DIR",
    .summary = "Show the instance of a state folder, and up to which time its ids may have been made",
    .example = "idtree state show /var/lib/idtree",
    .json = "one object",
    .run = show,
};

const struct command state_check_command = {
    .name = "state check",
    .operands = "DIR",
    .summary = "Check that the state in a folder is complete and undamaged; no broker may run on it",
    .example = "idtree state check /var/lib/idtree",
    .json = "one object, if the state is complete and undamaged",
    .run = check,
};

const struct command state_forget_command = {
    .name = "state forget",
    .operands = "DIR STORE",
    .flags = CMD_SILENT,
    .summary = "Give up the contents of a lost store: an empty one is made when it is needed",
    .example = "idtree state forget /var/lib/idtree compressor.sqlite",
    .run = forget,
};
