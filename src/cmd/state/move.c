/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* move.c - idtree init --store URI --from DIR: move the state of a folder to PostgreSQL
 *
 * The steps are in this order, so that a broker accepts at most one of both places at any time, and an interrupted
 * command can be run again:
 *   1. the stores of the folder are locked
 *   2. the tables are made, as "unfilled": brokers refuse them
 *   3. the content is copied; what an earlier run has left is removed before
 *   4. the folder is marked as moved: brokers refuse it. From now on the copy is complete
 *   5. the tables are "filled"
 */
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "cmd/state/move.h"
#include "cmd/state/store.h"
#include "libsqlite/database.h"
#include "libsqlite/state.h"
#include "modules/fluid/service/horizon_store.h"

#define BATCH_ROWS 1000
#define BATCH_BYTES (4 << 20)
#define COLUMNS_MAX 8

struct move_table {
    const char *select; /* in the folder */
    const char *insert; /* of arrays, in the database */
    const char *count;  /* in the database */
    int ncolumns;
    enum pg_type type[COLUMNS_MAX];
};

static const struct move_table documents = {
    .select = "SELECT id, name, uuid, seq, userid, form FROM documents LEFT JOIN owners ON document = id",
    .insert =
        "INSERT INTO idtree.documents (id, name, uuid, seq, owner, form) SELECT * FROM unnest ($1, $2, $3, $4, $5, $6)",
    .count = "SELECT count (*) FROM idtree.documents",
    .ncolumns = 6,
    .type = { PG_INT8, PG_TEXT, PG_TEXT, PG_INT8, PG_INT8, PG_BYTEA },
};

static const struct move_table documents_without_owners = {
    .select = "SELECT id, name, uuid, seq, NULL, form FROM documents",
    .insert =
        "INSERT INTO idtree.documents (id, name, uuid, seq, owner, form) SELECT * FROM unnest ($1, $2, $3, $4, $5, $6)",
    .count = "SELECT count (*) FROM idtree.documents",
    .ncolumns = 6,
    .type = { PG_INT8, PG_TEXT, PG_TEXT, PG_INT8, PG_INT8, PG_BYTEA },
};

static const struct move_table ranges = {
    .select = "SELECT document, seq, text FROM ranges",
    .insert = "INSERT INTO idtree.ranges (document, seq, text) SELECT * FROM unnest ($1, $2, $3)",
    .count = "SELECT count (*) FROM idtree.ranges",
    .ncolumns = 3,
    .type = { PG_INT8, PG_INT8, PG_TEXT },
};

static const struct move_table jobs = {
    .select = "SELECT id, bytes, userid, urgency, flags, key FROM jobs ORDER BY id",
    .insert = "INSERT INTO idtree.jobs (id, bytes, userid, urgency, flags, key)"
              " SELECT * FROM unnest ($1, $2, $3, $4, $5, $6)",
    .count = "SELECT count (*) FROM idtree.jobs",
    .ncolumns = 6,
    .type = { PG_INT8, PG_INT8, PG_INT8, PG_INT8, PG_INT8, PG_BYTEA },
};

static const struct move_table specs = {
    .select = "SELECT id, spec FROM specs ORDER BY id",
    .insert = "INSERT INTO idtree.specs (id, spec) SELECT * FROM unnest ($1, $2)",
    .count = "SELECT count (*) FROM idtree.specs",
    .ncolumns = 2,
    .type = { PG_INT8, PG_BYTEA },
};

static const struct move_table acks = {
    .select = "SELECT acked_s, upto FROM acks",
    .insert = "INSERT INTO idtree.acks (acked_s, upto) SELECT * FROM unnest ($1, $2)",
    .count = "SELECT count (*) FROM idtree.acks",
    .ncolumns = 2,
    .type = { PG_INT8, PG_INT8 },
};

/* The sums that job_pg.c keeps, computed of the rows. $1 is acked, $2 the floor. */
#define SET_INGEST                                                                        \
    "UPDATE idtree.ingest SET acked = $1, floor = $2,"                                    \
    " newest = coalesce ((SELECT max (id) FROM idtree.jobs), greatest ($2 - 1, 0)),"      \
    " cleared = coalesce ((SELECT least (min (id) - 1, $1) FROM idtree.specs), $1),"      \
    " jobs = (SELECT count (*) FROM idtree.jobs WHERE id > $1),"                          \
    " bytes = coalesce ((SELECT sum (bytes) FROM idtree.jobs WHERE id > $1), 0)::bigint," \
    " remembered = (SELECT count (*) FROM idtree.jobs WHERE id <= $1)"

struct move {
    const struct cmd *cmd;
    const char *dir;
    struct statefile *s;
    struct pg *pg;
    char path[PATH_MAX]; /* of the store that is being copied */
    struct horizon_store *horizon;
    sqlite3 *open[2]; /* stores that stay locked until all is moved */
    int nopen;
};

/* --- the folder ------------------------------------------------------------------------------------------ */

__attribute__ ((noreturn)) static void die_store (const struct move *m, sqlite3 *db)
{
    if (sqlite3_errcode (db) == SQLITE_BUSY)
        cmd_die (m->cmd, "%s: in use: stop the broker of rank 0 first", m->path);
    cmd_die (m->cmd, "%s: %s", m->path, sqlite3_errmsg (db));
}

static sqlite3_stmt *prepare (const struct move *m, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2 (db, sql, -1, &stmt, NULL) != SQLITE_OK)
        die_store (m, db);
    return stmt;
}

static bool step (const struct move *m, sqlite3 *db, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step (stmt);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        die_store (m, db);
    return rc == SQLITE_ROW;
}

static int64_t ask (const struct move *m, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = prepare (m, db, sql);
    int64_t value = step (m, db, stmt) ? sqlite3_column_int64 (stmt, 0) : 0;

    sqlite3_finalize (stmt);
    return value;
}

static bool has_table (const struct move *m, sqlite3 *db, const char *name)
{
    char sql[96];

    snprintf (sql, sizeof (sql), "SELECT count (*) FROM sqlite_master WHERE name = '%s'", name);
    return ask (m, db, sql) > 0;
}

/* Open a store of the folder and lock it until unlock (). Returns NULL if the instance has no such store. */
static sqlite3 *open_store (struct move *m, const char *name)
{
    sqlite3 *db;

    if (!state_find_store (m->s, name))
        return NULL;
    snprintf (m->path, sizeof (m->path), "%s/%s", m->dir, name);
    if (sqlite3_open_v2 (m->path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK
        || sqlite3_exec (db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;", NULL, NULL, NULL) != SQLITE_OK)
        die_store (m, db);
    if (ask (m, db, "SELECT count (*) FROM pragma_quick_check WHERE quick_check <> 'ok'") > 0)
        cmd_die (m->cmd, "%s: damaged", m->path);
    if (has_table (m, db, "copied"))
        cmd_die (m->cmd, "%s: is a copy of idtree state backup that no broker has opened yet: start rank 0 once",
                 m->path);
    m->open[m->nopen++] = db;
    return db;
}

static void unlock (struct move *m)
{
    idt_error_t error;

    while (m->nopen > 0)
        sqlite3_close (m->open[--m->nopen]);
    if (m->horizon)
        horizon_store_close (m->horizon, NULL, &error);
}

/* --- rows ------------------------------------------------------------------------------------------------- */

static void run (const struct move *m, const char *sql, const struct pg_params *p)
{
    idt_error_t error;

    if (pg_run (m->pg, sql, p, NULL, NULL, &error) < 0)
        cmd_die (m->cmd, "%s: run the command again", error.text);
}

static void add_value (struct pg_array *a, sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type (row, column) == SQLITE_NULL)
        pg_array_null (a);
    else if (a->type == PG_INT8)
        pg_array_int (a, sqlite3_column_int64 (row, column));
    else
        pg_array_bytes (a, sqlite3_column_blob (row, column), (size_t)sqlite3_column_bytes (row, column));
}

/* Copy the next rows. Returns their number. '*more' is set to false after the last row. */
static int copy_batch (const struct move *m, sqlite3 *db, const struct move_table *t, sqlite3_stmt *rows, bool *more)
{
    struct pg_array column[COLUMNS_MAX];
    struct pg_params p = { 0 };
    size_t bytes = 0;
    int n = 0;

    for (int i = 0; i < t->ncolumns; i++)
        pg_array_init (&column[i], t->type[i]);
    while (n < BATCH_ROWS && bytes < BATCH_BYTES && (*more = step (m, db, rows))) {
        for (int i = 0; i < t->ncolumns; i++) {
            add_value (&column[i], rows, i);
            bytes += (size_t)sqlite3_column_bytes (rows, i);
        }
        n++;
    }
    for (int i = 0; i < t->ncolumns; i++)
        pg_put_array (&p, &column[i]);
    if (n > 0)
        run (m, t->insert, &p);
    for (int i = 0; i < t->ncolumns; i++)
        pg_array_fini (&column[i]);
    return n;
}

static void check_count (const struct move *m, const struct move_table *t, int64_t expected)
{
    struct pg_rows rows;
    idt_error_t error;

    if (pg_run (m->pg, t->count, NULL, &rows, NULL, &error) < 0)
        cmd_die (m->cmd, "%s: run the command again", error.text);
    if (rows.count != 1 || pg_int (&rows, 0, 0) != expected)
        cmd_die (m->cmd,
                 "%s: %lld rows were copied, but the database has %lld: is another copy of this command running?",
                 m->path, (long long)expected, (long long)pg_int (&rows, 0, 0));
    pg_rows_free (&rows);
}

static void copy_table (const struct move *m, sqlite3 *db, const struct move_table *t)
{
    sqlite3_stmt *rows = prepare (m, db, t->select);
    int64_t all = 0;
    bool more = true;

    while (more)
        all += copy_batch (m, db, t, rows, &more);
    sqlite3_finalize (rows);
    check_count (m, t, all);
}

static void copy_documents (struct move *m)
{
    sqlite3 *db = open_store (m, "compressor.sqlite");

    if (!db)
        return;
    copy_table (m, db, has_table (m, db, "owners") ? &documents : &documents_without_owners);
    copy_table (m, db, &ranges);
}

static void copy_jobs (struct move *m)
{
    sqlite3 *db = open_store (m, "ingest.sqlite");
    struct pg_params p = { 0 };

    if (!db)
        return;
    copy_table (m, db, &jobs);
    copy_table (m, db, &specs);
    copy_table (m, db, &acks);
    pg_put_int (&p, ask (m, db, "SELECT acked FROM meta"));
    pg_put_int (&p, ask (m, db, "SELECT floor FROM meta"));
    run (m, SET_INGEST, &p);
}

/* --- the horizon ------------------------------------------------------------------------------------------ */

/* Lock and read the horizon. Returns false if no id was made. */
static bool read_horizon (struct move *m, struct horizon_store_content *content)
{
    const struct module_place place = { .dir = m->dir };
    char holder[DATABASE_HOLDER_MAX];
    idt_error_t error;

    if (!state_find_store (m->s, STATE_HORIZON_STORE))
        return false;
    database_holder (holder, "idtree init --from");
    if (!(m->horizon = horizon_store_open (&place, holder, content, &error)))
        cmd_die (m->cmd, "%s", error.text);
    return !content->is_new;
}

static void copy_horizon (const struct move *m, const struct horizon_store_content *content)
{
    const struct lease_record *r = &content->record;
    struct pg_params p = { 0 };

    pg_put_int (&p, (int64_t)r->horizon_ms);
    pg_put_int (&p, (int64_t)r->peak_ms);
    pg_put_int (&p, (int64_t)r->watermark_ms);
    pg_put_int (&p, (int64_t)r->settle_ms);
    pg_put_int (&p, (int64_t)r->ahead_ms);
    pg_put_int (&p, content->epoch_ms);
    run (m,
         "INSERT INTO idtree.horizon (horizon_ms, peak_ms, watermark_ms, settle_ms, ahead_ms, epoch_ms)"
         " VALUES ($1, $2, $3, $4, $5, $6)",
         &p);
}

/* --- the move --------------------------------------------------------------------------------------------- */

/* Make the tables, or find those of an earlier run, and empty them. */
static void make_tables (const struct move *m)
{
    struct pgstate found, s = {
        .has_epoch = m->s->has_epoch, .epoch_ms = m->s->epoch_ms, .created_ms = m->s->created_ms, .unfilled = true
    };
    idt_error_t error;

    memcpy (s.uuid, m->s->uuid, sizeof (s.uuid));
    memcpy (s.name, m->s->name, sizeof (s.name));
    if (pgstate_make (m->pg, &s, &error) == 0)
        return;
    if (errno != EEXIST || pgstate_find (m->pg, &found, &error) < 0)
        cmd_die (m->cmd, "%s", error.text);
    if (!found.unfilled || strcmp (found.uuid, s.uuid) != 0)
        cmd_die (m->cmd, "the database has the state of instance %s (%s) already: idtree state show --store prints it",
                 found.uuid, found.name);
    run (m, "TRUNCATE idtree.horizon, idtree.documents, idtree.ranges, idtree.jobs, idtree.specs, idtree.acks", NULL);
}

static void copy_all (struct move *m)
{
    struct horizon_store_content content = { 0 };
    bool has_horizon = read_horizon (m, &content);

    if (has_horizon) {
        m->s->has_epoch = true;
        m->s->epoch_ms = content.epoch_ms;
    }
    make_tables (m);
    if (has_horizon)
        copy_horizon (m, &content);
    copy_documents (m);
    copy_jobs (m);
}

/* The folder is marked, so an earlier run has copied all of it. */
static void check_copied (const struct move *m)
{
    struct pgstate found;
    idt_error_t error;

    if (pgstate_find (m->pg, &found, &error) < 0)
        cmd_die (m->cmd, "%s; %s was moved to another database", error.text, m->dir);
    if (strcmp (found.uuid, m->s->uuid) != 0)
        cmd_die (m->cmd, "%s was moved to another database: this one has instance %s (%s)", m->dir, found.uuid,
                 found.name);
    m->s->has_epoch = found.has_epoch;
    m->s->epoch_ms = found.epoch_ms;
}

void move_state (const struct cmd *cmd, const char *uri, const char *dir, struct statefile *s)
{
    struct move m = { .cmd = cmd, .dir = dir, .s = s };
    idt_error_t error;

    if (state_read_moved (dir, s, &error) < 0 || (!s->moved && state_check (dir, s, NULL, &error) < 0))
        cmd_die (cmd, "%s", error.text);
    m.pg = store_connect (cmd, uri);
    if (s->moved)
        check_copied (&m);
    else {
        copy_all (&m);
        if (state_set_moved (dir, &error) < 0)
            cmd_die (cmd, "%s", error.text);
    }
    if (pgstate_set_filled (m.pg, &error) < 0)
        cmd_die (cmd, "%s: run the command again", error.text);
    unlock (&m);
    pg_close (m.pg);
}
