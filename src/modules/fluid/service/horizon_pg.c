/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_pg.c - the durable horizon and epoch, in the table idtree.horizon of a PostgreSQL database
 *
 * The table has no row or one. fenced_open () makes sure that no earlier root raises the horizon any longer. Only
 * then, in a later statement, the row is read (rule READ_AFTER_FENCE of doc/model/standby.pml). A statement that waits
 * for the row 'fence' sees all other rows as they were before it waited.
 *
 * When a write has failed and may still be done, this life takes no further write. Otherwise a late attempt of the one
 * could be taken for the other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/fluid.h>

#include "libpg/fenced.h"
#include "libstate/statefile.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/fluid/service/horizon_backend.h"

#define STORE "horizon"

/* The clock of the server, and the row. */
#define READ                                                                                              \
    "SELECT (extract (epoch FROM clock_timestamp ()) * 1000000)::bigint, h.one, h.horizon_ms, h.peak_ms," \
    " h.watermark_ms, h.settle_ms, h.ahead_ms, h.epoch_ms, i.lost_horizon"                                \
    " FROM idtree.instance AS i LEFT JOIN idtree.horizon AS h ON true WHERE " FENCED_HOLDS

#define WRITE                                                                                           \
    ", written AS (INSERT INTO idtree.horizon (horizon_ms, peak_ms, watermark_ms, settle_ms, ahead_ms," \
    " epoch_ms) SELECT $4, $5, $6, $7, $8, $9 FROM fence ON CONFLICT (one) DO UPDATE SET"               \
    " horizon_ms = $4, peak_ms = $5, watermark_ms = $6, settle_ms = $7, ahead_ms = $8, epoch_ms = $9)"  \
    " SELECT serial FROM fence"

struct horizon_pg {
    struct fenced *fenced;
    int64_t epoch_ms;
    int lost; /* errno of a write that failed and may still be done; 0: there was none */
    idt_error_t why;
};

/* --- open and read ------------------------------------------------------------------------------------ */

static int lost_horizon (struct horizon_pg *b, idt_error_t *errp)
{
    return errsetf (errp, STATE_REFUSED,
                    "PostgreSQL %s: the table idtree.horizon is empty, but the instance has made ids (idtree init "
                    "--uuid): start once with --recover-horizon=DATE-or-ID, above all ids made",
                    fenced_server (b->fenced));
}

static int get_row (struct horizon_pg *b, const struct pg_rows *rows, bool anew, struct horizon_store_content *content,
                    idt_error_t *errp)
{
    if ((content->is_new = pg_is_null (rows, 0, 1)))
        return anew || pg_int (rows, 0, 8) == 0 ? 0 : lost_horizon (b, errp);
    content->record = (struct lease_record){ .horizon_ms = (uint64_t)pg_int (rows, 0, 2),
                                             .peak_ms = (uint64_t)pg_int (rows, 0, 3),
                                             .watermark_ms = (uint64_t)pg_int (rows, 0, 4),
                                             .settle_ms = (uint64_t)pg_int (rows, 0, 5),
                                             .ahead_ms = (uint64_t)pg_int (rows, 0, 6) };
    b->epoch_ms = content->epoch_ms = pg_int (rows, 0, 7);
    if (content->record.horizon_ms <= (uint64_t)FLUID_TIMESTAMP_MAX + 1)
        return 0;
    return errsetf (errp, EBADMSG, "PostgreSQL %s: the horizon in idtree.horizon is %lld, and must be 0 to 2^40",
                    fenced_server (b->fenced), (long long)content->record.horizon_ms);
}

static int read_row (struct horizon_pg *b, bool anew, struct horizon_store_content *content, idt_error_t *errp)
{
    int64_t before_us = (int64_t)clock_us (CLOCK_REALTIME);
    struct pg_params p;
    struct pg_rows rows;

    *content = (struct horizon_store_content){ .has_clock = true };
    fenced_params (b->fenced, &p);
    if (fenced_read (b->fenced, READ, &p, &rows, errp) < 0)
        return -1;
    int rc = rows.count == 1 ? get_row (b, &rows, anew, content, errp)
                             : errsetf (errp, ESTALE, "PostgreSQL %s: another root leads", fenced_server (b->fenced));
    if (rc == 0)
        content->clock_us = pg_int (&rows, 0, 0) - (before_us + (int64_t)clock_us (CLOCK_REALTIME)) / 2;
    int saved = errno;
    pg_rows_free (&rows);
    errno = saved;
    return rc;
}

static void close_pg (void *arg)
{
    struct horizon_pg *b = arg;
    int saved = errno;

    fenced_close (b->fenced);
    free (b);
    errno = saved;
}

static void *open_pg (const struct module_place *place, const char *holder, bool anew,
                      struct horizon_store_content *content, idt_error_t *errp)
{
    const struct fenced_config config = {
        .conninfo = place->store, .store = STORE, .uuid = place->uuid, .term = place->term, .trust = place->trust
    };
    struct horizon_pg *b = calloc (1, sizeof (*b));

    if (!b)
        return errsetf_null (errp, ENOMEM, "PostgreSQL: out of memory");
    if ((b->fenced = fenced_open (&config, errp)) && read_row (b, anew, content, errp) == 0)
        return b;
    close_pg (b);
    return NULL;
}

/* --- writes ------------------------------------------------------------------------------------------- */

static int write_pg (void *arg, const struct lease_record *r, idt_error_t *errp)
{
    struct horizon_pg *b = arg;
    struct pg_params p;
    bool unsure;

    if (b->lost)
        return errsetf (errp, b->lost, "%s", b->why.text);
    fenced_params (b->fenced, &p);
    pg_put_int (&p, (int64_t)r->horizon_ms);
    pg_put_int (&p, (int64_t)r->peak_ms);
    pg_put_int (&p, (int64_t)r->watermark_ms);
    pg_put_int (&p, (int64_t)r->settle_ms);
    pg_put_int (&p, (int64_t)r->ahead_ms);
    pg_put_int (&p, b->epoch_ms);
    int rc = fenced_write (b->fenced, WRITE, &p, &unsure, &b->why);
    if (rc < 0 && (unsure || errno == ESTALE))
        b->lost = errno;
    return rc < 0 ? errsetf (errp, errno, "%s", b->why.text) : 0;
}

static int init_pg (void *arg, int64_t epoch_ms, const struct lease_record *r, idt_error_t *errp)
{
    ((struct horizon_pg *)arg)->epoch_ms = epoch_ms;
    return write_pg (arg, r, errp);
}

static void stop_pg (void *arg)
{
    fenced_stop (((struct horizon_pg *)arg)->fenced);
}

static bool is_unsure_pg (void *arg, idt_error_t *why)
{
    return fenced_is_unsure (((struct horizon_pg *)arg)->fenced, why);
}

const struct horizon_backend horizon_pg = {
    .open = open_pg, .init = init_pg, .write = write_pg, .stop = stop_pg, .is_unsure = is_unsure_pg, .close = close_pg
};
