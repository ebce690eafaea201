/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* backup.c - idtree state backup: a copy of the stores, to look at, or as the last resort after the originals are lost
 *
 * The copy has the horizon as text.  It has no fluid.sqlite: a broker that started with an old one would issue the ids
 * made since then again.  So a broker refuses the copied folder as it is.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/base/cmd.h"
#include "cmd/state/look.h"
#include "libsqlite/database.h"
#include "libutil/duration.h"

#define PAGES 1000 /* copied in one step */

/* Copy through SQLite, so that the copy is consistent. */
static int copy_pages (sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *b = sqlite3_backup_init (to, "main", from, "main");
    int rc = b ? SQLITE_OK : SQLITE_ERROR;

    while (rc == SQLITE_OK)
        rc = sqlite3_backup_step (b, PAGES);
    if (b)
        sqlite3_backup_finish (b);
    return rc;
}

static void copy_store (const struct cmd *cmd, const struct look *l, const char *to_dir, const char *name)
{
    char path[PATH_MAX], why[LOOK_WHY_SIZE];
    struct look_store from = { 0 };
    sqlite3 *to = NULL;

    snprintf (path, sizeof (path), "%s/%s", to_dir, name);
    look_open (&from, l->dir, name);
    if (!from.db || sqlite3_open_v2 (path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        cmd_die (cmd, "%s/%s: cannot be copied to %s", l->dir, name, path);
    int rc = copy_pages (from.db, to);
    look_close (&from);
    if (rc != SQLITE_DONE) {
        look_why (l->dir, name, rc, why);
        cmd_die (cmd, "%s/%s is %s: it cannot be copied", l->dir, name, why);
    }
    if (sqlite3_exec (to, DATABASE_COPY_MARK, NULL, NULL, NULL) != SQLITE_OK)
        cmd_die (cmd, "%s: cannot be written: %s", path, sqlite3_errmsg (to));
    sqlite3_close (to);
}

static void write_text (const struct cmd *cmd, const struct look *l, const char *to_dir)
{
    struct statefile listed = l->state; /* also lists the horizon's store, so that no broker starts without it */
    json_t *all = look_json_new (l);
    char *text = json_dumps (all, JSON_INDENT (2)), line[STATE_TEXT_MAX];
    idt_error_t error;

    snprintf (line, sizeof (line), "%s\n", text ? text : "");
    if (!state_find_store (&listed, STATE_HORIZON_STORE))
        state_list_store (&listed, STATE_HORIZON_STORE, false);
    if (state_write_text (to_dir, "state.json", line, STATE_EXCLUSIVE, &error) < 0
        || state_create (to_dir, &listed, &error) < 0)
        cmd_die (cmd, "%s", error.text);
    free (text);
    json_decref (all);
}

static int run (struct cmd *cmd)
{
    struct look l = { 0 };

    cmd_options (cmd, NULL);
    l.dir = cmd->argv[0];
    look_at (cmd, &l);
    if (l.in_use)
        cmd_die (cmd, "the horizon is not known: %s/" STATE_HORIZON_STORE " is %s; stop the broker of rank 0 first",
                 l.dir, l.why);
    if (mkdir (cmd->argv[1], 0700) < 0)
        cmd_die (cmd, "cannot make %s: %s", cmd->argv[1], strerror (errno));
    for (unsigned i = 0; i < l.state.nstores; i++)
        if (strcmp (l.state.stores[i].name, STATE_HORIZON_STORE) != 0)
            copy_store (cmd, &l, cmd->argv[1], l.state.stores[i].name);
    write_text (cmd, &l, cmd->argv[1]);
    if (!l.why[0])
        return CMD_OK;
    cmd_warn (cmd, "the copy lacks the horizon: %s/" STATE_HORIZON_STORE " is %s", l.dir, l.why);
    return CMD_FAILED;
}

const struct command state_backup_command = {
    .name = "state backup",
    .operands = "DIR NEW",
    .flags = CMD_SILENT,
    .summary = "Copy documents and jobs of a state folder to look at; the horizon is copied only as text",
    .details = "No broker starts on the copy.  See BACKUP in idtree-operations(7).",
    .example = "idtree state backup /var/lib/idtree /backup/idtree-monday",
    .run = run,
};
