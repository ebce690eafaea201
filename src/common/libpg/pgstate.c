/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pgstate.c - the state of an instance in PostgreSQL: its tables, and which instance it is
 *
 * A table with one row has a column 'one', which is true in that row.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpg/pgstate.h"
#include "libutil/errprintf.h"

#define ONE_ROW "one boolean PRIMARY KEY DEFAULT true CHECK (one), "

/* 'filled' is false while idtree init moves the content of a folder into the tables. */
#define INSTANCE                                                                                                \
    "CREATE TABLE idtree.instance (" ONE_ROW "version bigint NOT NULL, uuid text NOT NULL, name text NOT NULL," \
    " epoch_ms bigint, created_ms bigint NOT NULL, uid_drift bigint, lost_horizon boolean NOT NULL, filled boolean NOT NULL);"

/* broker/root/role.h. 'state' is nobody, leads, released or stopped. */
#define ROLE                                                                                              \
    "CREATE TABLE idtree.role (" ONE_ROW "term bigint NOT NULL, owner text NOT NULL, host text NOT NULL," \
    " state text NOT NULL, beat bigint NOT NULL, attributes text NOT NULL) WITH (fillfactor = 50);"       \
    "INSERT INTO idtree.role (term, owner, host, state, beat, attributes) VALUES (0, '', '', 'nobody', 0, '');"

/* fenced.h */
#define FENCE                                                                                          \
    "CREATE TABLE idtree.fence (store text PRIMARY KEY, term bigint NOT NULL, serial bigint NOT NULL)" \
    " WITH (fillfactor = 50);"                                                                         \
    "INSERT INTO idtree.fence VALUES ('horizon', 0, 0), ('documents', 0, 0), ('jobs', 0, 0);"

/* modules/fluid/service/horizon_store.h. The row is made by the first rank 0. */
#define HORIZON                                                                                    \
    "CREATE TABLE idtree.horizon (" ONE_ROW "horizon_ms bigint NOT NULL, peak_ms bigint NOT NULL," \
    " watermark_ms bigint NOT NULL, settle_ms bigint NOT NULL, ahead_ms bigint NOT NULL,"          \
    " epoch_ms bigint NOT NULL) WITH (fillfactor = 50);"

/* modules/compressor/root/document_store.h. 'owner' is NULL if it is not known. */
#define DOCUMENTS                                                                                                 \
    "CREATE TABLE idtree.documents (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, uuid text NOT NULL UNIQUE," \
    " seq bigint NOT NULL, owner bigint, form bytea NOT NULL);"                                                   \
    "ALTER TABLE idtree.documents ALTER form SET STORAGE EXTERNAL;"                                               \
    "CREATE TABLE idtree.ranges (document bigint NOT NULL, seq bigint NOT NULL, text text NOT NULL,"              \
    " PRIMARY KEY (document, seq));"

/* modules/ingest/root/job_store.h */
#define JOBS                                                                                                       \
    "CREATE TABLE idtree.jobs (id bigint PRIMARY KEY, bytes bigint NOT NULL, userid bigint NOT NULL,"              \
    " urgency bigint NOT NULL, flags bigint NOT NULL, key bytea);"                                                 \
    "CREATE UNIQUE INDEX jobs_keys ON idtree.jobs (userid, key) WHERE key IS NOT NULL;"                            \
    "CREATE TABLE idtree.specs (id bigint PRIMARY KEY, spec bytea NOT NULL);"                                      \
    "ALTER TABLE idtree.specs ALTER spec SET STORAGE EXTERNAL;"                                                    \
    "CREATE TABLE idtree.acks (acked_s bigint PRIMARY KEY, upto bigint NOT NULL);"                                 \
    "CREATE TABLE idtree.ingest (" ONE_ROW "acked bigint NOT NULL, floor bigint NOT NULL, newest bigint NOT NULL," \
    " cleared bigint NOT NULL, jobs bigint NOT NULL, bytes bigint NOT NULL, remembered bigint NOT NULL)"           \
    " WITH (fillfactor = 50);"                                                                                     \
    "INSERT INTO idtree.ingest (acked, floor, newest, cleared, jobs, bytes, remembered) VALUES (0, 0, 0, 0, 0, 0, 0);"

/* A block is one statement. */
#define MAKE                                                                                                           \
    "DO $idtree$ BEGIN"                                                                                                \
    " IF to_regnamespace ('idtree') IS NULL THEN CREATE SCHEMA idtree; END IF; " INSTANCE ROLE FENCE HORIZON DOCUMENTS \
        JOBS "INSERT INTO idtree.instance (version, uuid, name, epoch_ms, created_ms, lost_horizon, filled)"           \
    " VALUES (%d, '%s', '%s', %s, %lld, %s, %s); END $idtree$"

int pgstate_make (struct pg *pg, const struct pgstate *s, idt_error_t *errp)
{
    char epoch[24] = "NULL", *sql;

    if (!state_uuid_is_good (s->uuid) || !state_name_is_good (s->name))
        return errsetf (errp, EINVAL, "PostgreSQL: '%s' and '%s' are no UUID and name of an instance", s->uuid,
                        s->name);
    if (s->has_epoch)
        snprintf (epoch, sizeof (epoch), "%lld", (long long)s->epoch_ms);
    if (asprintf (&sql, MAKE, PGSTATE_VERSION, s->uuid, s->name, epoch, (long long)s->created_ms,
                  s->lost_horizon ? "true" : "false", s->unfilled ? "false" : "true")
        < 0)
        return errsetf (errp, ENOMEM, "PostgreSQL: out of memory");
    int rc = pg_run (pg, sql, NULL, NULL, NULL, errp), saved = errno;
    free (sql);
    errno = saved;
    return rc;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static int take_text (const struct pg_rows *rows, int column, char *text, size_t size)
{
    size_t length;
    const char *value = pg_bytes (rows, 0, column, &length);

    if (length >= size)
        return -1;
    memcpy (text, value, length + 1);
    return 0;
}

static int take_row (struct pg *pg, const struct pg_rows *rows, struct pgstate *s, idt_error_t *errp)
{
    struct pgstate found = { .has_epoch = !pg_is_null (rows, 0, 3),
                             .epoch_ms = pg_int (rows, 0, 3),
                             .created_ms = pg_int (rows, 0, 4),
                             .lost_horizon = pg_int (rows, 0, 6) != 0,
                             .unfilled = pg_int (rows, 0, 5) == 0 };

    if (pg_int (rows, 0, 0) != PGSTATE_VERSION)
        return errsetf (errp, STATE_REFUSED,
                        "PostgreSQL %s: the tables have version %lld, and this idtree knows %d: use a newer idtree",
                        pg_server (pg), (long long)pg_int (rows, 0, 0), PGSTATE_VERSION);
    if (take_text (rows, 1, found.uuid, sizeof (found.uuid)) < 0
        || take_text (rows, 2, found.name, sizeof (found.name)) < 0 || !state_uuid_is_good (found.uuid)
        || !state_name_is_good (found.name))
        return errsetf (errp, STATE_REFUSED, "PostgreSQL %s: idtree.instance has no valid UUID and name",
                        pg_server (pg));
    *s = found;
    return 0;
}

int pgstate_find (struct pg *pg, struct pgstate *s, idt_error_t *errp)
{
    struct pg_rows rows;

    if (pg_run (pg, "SELECT version, uuid, name, epoch_ms, created_ms, filled, lost_horizon FROM idtree.instance", NULL,
                &rows, NULL, errp)
        < 0) {
        if (errno == ENOENT)
            errsetf (errp, STATE_REFUSED,
                     "PostgreSQL %s: the database has no state of idtree: check its name in root.store; only for a new "
                     "instance run idtree init --store=URI",
                     pg_server (pg));
        return -1;
    }
    int rc = rows.count == 1 ? take_row (pg, &rows, s, errp)
                             : errsetf (errp, STATE_REFUSED, "PostgreSQL %s: idtree.instance has %d rows instead of 1",
                                        pg_server (pg), rows.count);
    int saved = errno;
    pg_rows_free (&rows);
    errno = saved;
    return rc;
}

int pgstate_read (struct pg *pg, struct pgstate *s, idt_error_t *errp)
{
    struct pgstate found;

    if (pgstate_find (pg, &found, errp) < 0)
        return -1;
    if (found.unfilled)
        return errsetf (errp, STATE_REFUSED,
                        "PostgreSQL %s: the state of instance %s (%s) is not complete: run idtree init --store=URI "
                        "--from=DIR again",
                        pg_server (pg), found.uuid, found.name);
    *s = found;
    return 0;
}

int pgstate_set_filled (struct pg *pg, idt_error_t *errp)
{
    return pg_run (pg, "UPDATE idtree.instance SET filled = true", NULL, NULL, NULL, errp);
}
