/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fenced.c - a store of rank 0 in PostgreSQL that only the root of the newest term can write
 *
 * A write names the serial S and makes it S + 1. If its outcome is not known, settle () raises the serial by 2, each
 * time from the value that the row has, until that is acknowledged. Then no statement that may still be under way names
 * the current serial, so none of them changes anything, whenever it arrives. The write was done if and only if the
 * serial has become odd relative to S. If it was not done, it is tried again with the new serial. A value that is only
 * read says nothing: the server that has it may be replaced by one that has the value before.
 *
 * If synchronous_standby_names becomes empty, the server ends the commits that wait for a copy as if a copy had them.
 * So the setting is looked at again after each write, in the same session, before the write counts.
 *
 * fenced_open () raises the serial above all that an earlier user in the same term can reach, so a late statement of
 * that user changes nothing either, and that user cannot take the raise for its own.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libpg/fenced.h"
#include "libpg/pgstate.h"
#include "libpg/wait.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 1000

/* Whether the server waits for a copy on another server with each commit. */
#define IN_SYNC                                                \
    " AND current_setting ('synchronous_standby_names') <> ''" \
    " AND current_setting ('synchronous_commit') IN ('on', 'remote_apply')"

#define STILL_IN_SYNC "SELECT current_setting ('synchronous_standby_names') <> ''"

#define FENCE_ROW "store = $1 AND term = $2 AND serial = $3"
#define WRITE "WITH fence AS (UPDATE idtree.fence SET serial = serial + 1 WHERE " FENCE_ROW "%s RETURNING serial) %s"
#define SETTLE "UPDATE idtree.fence SET serial = serial + 2 WHERE " FENCE_ROW "%s RETURNING serial"
#define READ "SELECT term, serial FROM idtree.fence WHERE store = $1"

/* A user of the store has 2^20 serials, unless it has more writes than that. The first is 1 above a multiple of it. */
#define LIFE 1048576
#define TAKE                                                                           \
    "UPDATE idtree.fence SET term = $2, serial = (serial / 1048576 + 1) * 1048576 + 1" \
    " WHERE store = $1 AND (term < $2 OR (term = $2 AND serial = $3))%s RETURNING serial"

struct fenced {
    struct pg *pg;
    struct fenced_config config; /* 'conninfo' and 'uuid' are not kept */
    int64_t serial;
    int stop_fd;
    pthread_mutex_t lock; /* of the members below */
    bool unsure;
    idt_error_t why;
};

/* --- what others ask ------------------------------------------------------------------------------------ */

static void set_unsure (struct fenced *f, bool unsure, const idt_error_t *why)
{
    pthread_mutex_lock (&f->lock);
    f->unsure = unsure;
    if (why)
        f->why = *why;
    pthread_mutex_unlock (&f->lock);
}

bool fenced_is_unsure (struct fenced *f, idt_error_t *why)
{
    pthread_mutex_lock (&f->lock);
    bool unsure = f->unsure;
    if (unsure && why)
        *why = f->why;
    pthread_mutex_unlock (&f->lock);
    return unsure;
}

void fenced_stop (struct fenced *f)
{
    uint64_t one = 1;
    ssize_t rc = write (f->stop_fd, &one, sizeof (one));

    (void)rc; /* fails only if the counter is full: then it is readable already */
    pg_stop (f->pg);
}

const char *fenced_server (const struct fenced *f)
{
    return pg_server (f->pg);
}

/* --- the fence ------------------------------------------------------------------------------------------ */

/* Wait before the next attempt, longer each time. Returns 0, or -1 with errno ECANCELED. */
static int wait_a_little (struct fenced *f, uint64_t *pause_ms)
{
    int rc = pg_wait (-1, 0, f->stop_fd, clock_ms (CLOCK_MONOTONIC) + *pause_ms);

    *pause_ms = min_u64 (*pause_ms * 2, PAUSE_MAX_MS);
    return rc < 0 && errno == ECANCELED ? -1 : 0;
}

static const char *in_sync (const struct fenced *f)
{
    return f->config.trust ? "" : IN_SYNC;
}

void fenced_params (const struct fenced *f, struct pg_params *p)
{
    *p = (struct pg_params){ 0 };
    pg_put_text (p, f->config.store);
    pg_put_int (p, (int64_t)f->config.term);
    pg_put_int (p, f->serial);
}

static int not_in_sync (const struct fenced *f, idt_error_t *errp)
{
    return errsetf (
        errp, ENOTSUP,
        "PostgreSQL %s: synchronous_standby_names is empty, or synchronous_commit is not on: a commit would be on "
        "one server only (set them, or root.store-sync=trust if the database stores commits twice itself)",
        pg_server (f->pg));
}

static int is_stale (const struct fenced *f, int64_t term, idt_error_t *errp)
{
    return errsetf (errp, ESTALE,
                    "PostgreSQL %s: the store of %s belongs to term %lld, and this is term %llu: another root leads",
                    pg_server (f->pg), f->config.store, (long long)term, (unsigned long long)f->config.term);
}

/* Read the row. Returns 0, or -1 with errno set and 'errp' filled. */
static int read_fence (struct fenced *f, int64_t *term, int64_t *serial, idt_error_t *errp)
{
    struct pg_params p = { 0 };
    struct pg_rows rows;

    pg_put_text (&p, f->config.store);
    if (pg_run (f->pg, READ, &p, &rows, NULL, errp) < 0)
        return -1;
    if (rows.count != 1) {
        pg_rows_free (&rows);
        return errsetf (errp, STATE_REFUSED, "PostgreSQL %s: the table idtree.fence has no row of %s",
                        pg_server (f->pg), f->config.store);
    }
    *term = pg_int (&rows, 0, 0);
    *serial = pg_int (&rows, 0, 1);
    pg_rows_free (&rows);
    return 0;
}

static int is_shared (const struct fenced *f, idt_error_t *errp)
{
    return errsetf (errp, ESTALE, "PostgreSQL %s: another process writes to the store of %s in term %llu",
                    pg_server (f->pg), f->config.store, (unsigned long long)f->config.term);
}

/* Find out why a statement that names 'serial' changed nothing. Returns 1 if the serial is another one, which is stored
 * in '*now'. Returns -1 with errno ENOTSUP, ESTALE, STATE_REFUSED, or as pg_run ().
 */
static int explain (struct fenced *f, int64_t serial, int64_t *now, idt_error_t *errp)
{
    int64_t term;

    if (read_fence (f, &term, now, errp) < 0)
        return -1;
    if (term > (int64_t)f->config.term)
        return is_stale (f, term, errp);
    if (term < (int64_t)f->config.term || *now < f->serial)
        return errsetf (errp, STATE_REFUSED,
                        "PostgreSQL %s: the store of %s has lost commits that it had acknowledged: an old copy of the "
                        "database was made the primary",
                        pg_server (f->pg), f->config.store);
    if (*now - f->serial >= LIFE / 2)
        return is_shared (f, errp);
    return *now == serial ? not_in_sync (f, errp) : 1;
}

/* Look whether the server still waits for a copy, in the session that got the acknowledgement. Returns 0, or -1. */
static int check_sync (struct fenced *f, uint64_t session, idt_error_t *errp)
{
    struct pg_rows rows;

    if (f->config.trust)
        return 0;
    if (pg_run (f->pg, STILL_IN_SYNC, NULL, &rows, NULL, errp) < 0)
        return -1;
    bool in = rows.count == 1 && pg_int (&rows, 0, 0) != 0;
    pg_rows_free (&rows);
    if (!in)
        return not_in_sync (f, errp);
    return pg_session (f->pg) == session
               ? 0
               : errsetf (errp, ECONNRESET, "PostgreSQL %s: the connection ended after a commit", pg_server (f->pg));
}

/* Raise the serial from 'serial' by 2. Returns 1 if that is durable, 0 if nothing was changed, or -1. */
static int raise_serial (struct fenced *f, int64_t serial, idt_error_t *errp)
{
    char sql[512];
    struct pg_params p = { 0 };
    struct pg_rows rows;

    snprintf (sql, sizeof (sql), SETTLE, in_sync (f));
    pg_put_text (&p, f->config.store);
    pg_put_int (&p, (int64_t)f->config.term);
    pg_put_int (&p, serial);
    if (pg_run (f->pg, sql, &p, &rows, NULL, errp) < 0)
        return -1;
    int count = rows.count;
    pg_rows_free (&rows);
    return count > 0 && check_sync (f, pg_session (f->pg), errp) < 0 ? -1 : count;
}

/* Raise the serial once, from '*serial', or find out the new one. Returns 1 if it was raised, and then '*done' says
 * whether the write was done; 0 if '*serial' is new; -1 with errno set and 'errp' filled.
 */
static int settle_once (struct fenced *f, int64_t *serial, bool *done, idt_error_t *errp)
{
    int rc = raise_serial (f, *serial, errp);

    if (rc <= 0)
        return rc < 0 || explain (f, *serial, serial, errp) < 0 ? -1 : 0;
    *done = (*serial - f->serial) % 2 != 0;
    f->serial = *serial + 2;
    return 1;
}

/* Find out whether the write with f->serial was done, and make f->serial the new one. Returns 1 if it was done, and is
 * durable; 0 if it was not done, and never will be; -1 with errno ECANCELED, ESTALE or STATE_REFUSED and 'errp' filled.
 */
static int settle (struct fenced *f, const idt_error_t *why, idt_error_t *errp)
{
    uint64_t pause_ms = PAUSE_MIN_MS;
    int64_t serial = f->serial;
    bool done;
    int rc;

    set_unsure (f, true, why);
    while ((rc = settle_once (f, &serial, &done, errp)) <= 0) {
        if (rc == 0)
            continue;
        if (errno == ESTALE || errno == STATE_REFUSED || errno == ECANCELED)
            return -1;
        set_unsure (f, true, errp);
        if (wait_a_little (f, &pause_ms) < 0)
            return -1;
    }
    set_unsure (f, false, NULL);
    return done;
}

/* --- writes and reads ----------------------------------------------------------------------------------- */

/* Try a write once. Returns 1 if it is done, 0 if it is not known, or -1 if it was not done. */
static int try_once (struct fenced *f, const char *sql, struct pg_params *p, idt_error_t *errp)
{
    struct pg_params own;
    struct pg_rows rows;
    enum pg_fate fate;
    int64_t now;

    fenced_params (f, &own);
    memcpy (p->number[2], own.number[2], sizeof (own.number[2]));
    if (pg_run (f->pg, sql, p, &rows, &fate, errp) < 0)
        return fate == PG_UNKNOWN ? 0 : -1;
    int count = rows.count;
    pg_rows_free (&rows);
    if (count == 0)
        return explain (f, f->serial, &now, errp) > 0 ? is_shared (f, errp) : -1;
    if (check_sync (f, pg_session (f->pg), errp) < 0)
        return 0;
    f->serial++;
    return 1;
}

static int write_until_known (struct fenced *f, const char *sql, struct pg_params *p, bool *unsure, idt_error_t *errp)
{
    for (;;) {
        int rc = try_once (f, sql, p, errp);

        if (rc != 0)
            return rc > 0 ? 0 : -1;
        idt_error_t why = *errp;
        if ((rc = settle (f, &why, errp)) != 0) {
            *unsure = rc < 0;
            return rc > 0 ? 0 : -1;
        }
    }
}

int fenced_write (struct fenced *f, const char *body, struct pg_params *p, bool *unsure, idt_error_t *errp)
{
    idt_error_t error;
    bool ignored;
    char *sql;

    assert (p->count >= 3);
    *(unsure ? unsure : &ignored) = false;
    if (asprintf (&sql, WRITE, in_sync (f), body) < 0)
        return errsetf (errp, ENOMEM, "PostgreSQL: out of memory");
    int rc = write_until_known (f, sql, p, unsure ? unsure : &ignored, errp ? errp : &error), saved = errno;
    free (sql);
    errno = saved;
    return rc;
}

int fenced_read (struct fenced *f, const char *sql, const struct pg_params *p, struct pg_rows *rows, idt_error_t *errp)
{
    enum pg_fate fate;
    int rc = pg_run (f->pg, sql, p, rows, &fate, errp);

    return rc < 0 && errno == ECONNRESET ? pg_run (f->pg, sql, p, rows, &fate, errp) : rc;
}

/* --- open and close ------------------------------------------------------------------------------------- */

static int check_instance (struct fenced *f, const char *uuid, idt_error_t *errp)
{
    struct pgstate s;

    if (pgstate_read (f->pg, &s, errp) < 0)
        return -1;
    if (strcmp (s.uuid, uuid) == 0)
        return 0;
    return errsetf (errp, STATE_REFUSED, "PostgreSQL %s: the store belongs to instance %s (%s), not to %s",
                    pg_server (f->pg), s.uuid, s.name, uuid);
}

/* Set the term. Returns 1 if that is durable, 0 if the fence has changed since it was read, or -1 with errno set and
 * 'errp' filled.
 */
static int take_once (struct fenced *f, idt_error_t *errp)
{
    char sql[512];
    struct pg_params p;
    struct pg_rows rows;
    int64_t term, now, serial = 0;

    if (read_fence (f, &term, &f->serial, errp) < 0)
        return -1;
    if (term > (int64_t)f->config.term)
        return is_stale (f, term, errp);
    snprintf (sql, sizeof (sql), TAKE, in_sync (f));
    fenced_params (f, &p);
    if (pg_run (f->pg, sql, &p, &rows, NULL, errp) < 0)
        return -1;
    int count = rows.count;
    if (count > 0)
        serial = pg_int (&rows, 0, 0);
    pg_rows_free (&rows);
    if (count == 0)
        return read_fence (f, &term, &now, errp) < 0 ? -1 : now == f->serial ? not_in_sync (f, errp) : 0;
    f->serial = serial;
    return check_sync (f, pg_session (f->pg), errp) < 0 ? -1 : 1;
}

/* It may be done several times, so a lost answer needs no further care. */
static int take (struct fenced *f, idt_error_t *errp)
{
    int rc;

    while ((rc = take_once (f, errp)) == 0)
        ;
    return rc < 0 ? -1 : 0;
}

void fenced_close (struct fenced *f)
{
    if (!f)
        return;
    int saved = errno;
    pg_close (f->pg);
    if (f->stop_fd >= 0)
        close (f->stop_fd);
    pthread_mutex_destroy (&f->lock);
    free (f);
    errno = saved;
}

static struct pg *connect_store (const struct fenced_config *config, idt_error_t *errp)
{
    char application[64];
    const struct pg_config pg = {
        .conninfo = config->conninfo,
        .application = application,
        .timeout_ms = config->timeout_ms ? config->timeout_ms : FENCED_TIMEOUT_MS,
    };

    snprintf (application, sizeof (application), "idtree %s", config->store);
    return pg_open (&pg, errp);
}

struct fenced *fenced_create (const struct fenced_config *config, idt_error_t *errp)
{
    struct fenced *f = calloc (1, sizeof (*f));

    if (!f)
        return errsetf_null (errp, ENOMEM, "PostgreSQL: out of memory");
    f->config = *config;
    pthread_mutex_init (&f->lock, NULL);
    f->stop_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->stop_fd < 0)
        errprintf (errp, "PostgreSQL: %s", strerror (errno));
    else if ((f->pg = connect_store (config, errp)))
        return f;
    fenced_close (f);
    return NULL;
}

int fenced_take (struct fenced *f, idt_error_t *errp)
{
    set_unsure (f, false, NULL);
    return check_instance (f, f->config.uuid, errp) < 0 ? -1 : take (f, errp);
}

struct fenced *fenced_open (const struct fenced_config *config, idt_error_t *errp)
{
    struct fenced *f = fenced_create (config, errp);

    if (!f || fenced_take (f, errp) == 0)
        return f;
    fenced_close (f);
    return NULL;
}
