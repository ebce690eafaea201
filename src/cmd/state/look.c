/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.c - idtree state: look at a state folder without changing it; show and check its contents, copy its stores, give
 * up a lost store
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/state/look.h"
#include "cmd/state/store.h"
#include "libsqlite/database.h"
#include "libsqlite/state.h"
#include "libutil/duration.h"

#define WAIT_MS 1000 /* ms, for the end of a commit or of a broker that is stopping */
#define PAGES 1000   /* pages that are copied in one step */
#define WIDTH 12

/* A store that is open for reading. */
struct look_store {
    sqlite3 *db; /* NULL: the store cannot be opened */
    char log[PATH_MAX], index[PATH_MAX];
    bool had_log, had_index; /* the files existed before; SQLite makes missing ones when it reads */
};

/* --- a store ----------------------------------------------------------------------------------- */

static bool is_there (const char *path)
{
    return access (path, F_OK) == 0;
}

/* Open a store.  Its queries will wait for a lock for up to WAIT_MS. */
static void open_store (struct look_store *s, const char *dir, const char *name)
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

/* Whether this connection holds the lock that a reader keeps on a store with a log until it closes the store.  While
 * the lock is held, no broker has the store open, and no broker can begin to write into the files that close_store ()
 * removes.
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

/* Close a store.  SQLite does not remove the log and the index that it made for a read-only connection, so they are
 * removed here.
 */
static void close_store (struct look_store *s)
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

/* Write a clause into 'why' that says why SQLite could not read a store and returned 'rc'. */
static void say_why (const char *dir, const char *name, int rc, char why[LOOK_WHY_SIZE])
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

/* Read the dates.  Returns SQLITE_ROW if they were read, else another result of SQLite. */
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

    open_store (&s, l->dir, STATE_HORIZON_STORE);
    int rc = s.db ? read_dates (l, s.db) : SQLITE_CANTOPEN;
    close_store (&s);
    snprintf (path, sizeof (path), "%s/" STATE_HORIZON_STORE, l->dir);
    if (l->has_fluid)
        return;
    l->in_use = rc == SQLITE_BUSY;
    if (is_there (path))
        say_why (l->dir, STATE_HORIZON_STORE, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, l->why);
    else if (state_find_store (&l->state, STATE_HORIZON_STORE))
        snprintf (l->why, sizeof (l->why), "missing");
}

/* End the program because the file 'instance' is missing. */
__attribute__ ((noreturn)) static void die_unknown (const struct cmd *cmd, struct look *l)
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

/* Read the file 'instance'. Ends the program if it cannot be read. */
static void look_at_file (const struct cmd *cmd, struct look *l)
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

static void add_date (json_t *o, const char *key, int64_t unix_ms)
{
    char date[DATE_SIZE];

    json_object_set_new (o, key, json_string (format_date (unix_ms, date)));
}

/* Return all fields as one object, a new reference. */
static json_t *json_new (const struct look *l)
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

/* --- show -------------------------------------------------------------------------------------- */

/* Look at the folder 'dir'; NULL: the operand. */
static struct look begin (struct cmd *cmd, const char *dir)
{
    struct look l = { .dir = dir };

    if (!dir) {
        cmd_options (cmd, NULL);
        l.dir = cmd->argv[0];
    }
    look_at_file (cmd, &l);
    look_at_horizon (&l);
    return l;
}

static int show (struct cmd *cmd)
{
    const char *store = NULL;

    cmd_options (cmd, &store);
    if ((cmd->argc > 0) == (store != NULL))
        cmd_usage (cmd, "either a folder or --store URI is needed");
    if (!store && !*cmd->argv[0])
        cmd_usage (cmd, "the DIR is empty");
    if (store)
        return store_show (cmd, store);
    struct look l = begin (cmd, cmd->argv[0]);
    json_t *all = json_new (&l);

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

/* Whether a file is not a store.  A busy file counts as a store, and so does a file that cannot be read without its
 * log.  An empty file is not a store, although SQLite would accept it as a database.
 */
static bool is_no_store (const struct look *l, const char *name)
{
    char path[PATH_MAX], uuid[STATE_UUID_SIZE];
    struct stat sb;

    snprintf (path, sizeof (path), "%s/%s", l->dir, name);
    return stat (path, &sb) == 0 && sb.st_size == 0 ? true : !state_read_mark (path, uuid) && !state_is_torn (path);
}

/* Check a store.  Returns 0, or -1 with the reason in 'why'. */
static int check_store (const struct look *l, const char *name, char why[LOOK_WHY_SIZE])
{
    sqlite3_stmt *stmt = NULL;
    struct look_store s = { 0 };

    if (is_no_store (l, name)) {
        snprintf (why, LOOK_WHY_SIZE, "damaged (it is empty, or not a store of idtree)");
        return -1;
    }
    open_store (&s, l->dir, name);
    int rc = s.db ? sqlite3_prepare_v2 (s.db, "PRAGMA quick_check;", -1, &stmt, NULL) : SQLITE_CANTOPEN;

    if (rc == SQLITE_OK && (rc = sqlite3_step (stmt)) == SQLITE_ROW)
        rc = strcmp ((const char *)sqlite3_column_text (stmt, 0), "ok") ? SQLITE_CORRUPT : SQLITE_OK;
    sqlite3_finalize (stmt);
    close_store (&s);
    if (rc == SQLITE_OK)
        return 0;
    say_why (l->dir, name, rc, why);
    return -1;
}

static int check (struct cmd *cmd)
{
    struct look l = begin (cmd, NULL);
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
    look_at_file (cmd, &l);
    if (strcmp (cmd->argv[1], STATE_HORIZON_STORE) == 0)
        cmd_die (cmd, "ids would be issued twice: start once with --recover-horizon=DATE-or-ID, above all ids made");
    snprintf (path, sizeof (path), "%s/%s", cmd->argv[0], cmd->argv[1]);
    if (access (path, F_OK) == 0 || errno != ENOENT)
        cmd_die (cmd, "%s: exists: move it away first", path);
    if (state_drop_store (cmd->argv[0], cmd->argv[1], &error) < 0)
        cmd_die (cmd, "%s", error.text);
    return CMD_OK;
}

/* --- backup ------------------------------------------------------------------------------------
 *
 * The copy has the horizon only as text, and no fluid.sqlite.  If a broker started with an old fluid.sqlite, it would
 * issue the ids again that were made after the backup.  Without the file, a broker refuses to start in the copied
 * folder.
 */

/* Copy a store through SQLite, so that the copy is consistent. */
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
    open_store (&from, l->dir, name);
    if (!from.db || sqlite3_open_v2 (path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        cmd_die (cmd, "%s/%s: cannot be copied to %s", l->dir, name, path);
    int rc = copy_pages (from.db, to);
    close_store (&from);
    if (rc != SQLITE_DONE) {
        say_why (l->dir, name, rc, why);
        cmd_die (cmd, "%s/%s is %s: it cannot be copied", l->dir, name, why);
    }
    if (sqlite3_exec (to, DATABASE_COPY_MARK, NULL, NULL, NULL) != SQLITE_OK)
        cmd_die (cmd, "%s: cannot be written: %s", path, sqlite3_errmsg (to));
    sqlite3_close (to);
}

static void write_text (const struct cmd *cmd, const struct look *l, const char *to_dir)
{
    /* the copy lists the horizon's store, too, so that no broker starts without it */
    struct statefile listed = l->state;
    json_t *all = json_new (l);
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

static int backup (struct cmd *cmd)
{
    struct look l = begin (cmd, NULL);

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

/* --- commands ---------------------------------------------------------------------------------- */

static const struct cmd_option show_options[] = {
    { 0, "store", "URI", "show the state in PostgreSQL, as root.store says", cmd_take_text, 0 },
    CMD_OPTIONS_END,
};

const struct command state_show_command = {
    .name = "state show",
    .operands = "[DIR]",
    .summary = "Show the instance of a state folder or database, and up to which time its ids may have been made",
    .example = "idtree state show /var/lib/idtree",
    .json = "one object",
    .options = show_options,
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

const struct command state_backup_command = {
    .name = "state backup",
    .operands = "DIR NEW",
    .flags = CMD_SILENT,
    .summary = "Copy documents and jobs of a state folder to look at; the horizon is copied only as text",
    .details = "No broker starts on the copy.  See BACKUP in idtree-operations(7).",
    .example = "idtree state backup /var/lib/idtree /backup/idtree-monday",
    .run = backup,
};
