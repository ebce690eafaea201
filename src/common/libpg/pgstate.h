/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pgstate.h - the state of an instance in PostgreSQL: its tables, and which instance it is
 *
 * All tables are in the schema 'idtree':
 *   instance   one row: version of the tables, UUID, name, epoch, uid.drift
 *   role       one row: who is rank 0 (broker/root/role.h)
 *   fence      one row for each store: term and serial of its writer (fenced.h)
 *   horizon    one row: what fluid keeps
 *   documents, ranges   what the compressor keeps
 *   jobs, ingest        what job-ingest keeps
 * idtree init makes them, once. A broker never does.
 */
#ifndef PG_PGSTATE_H
#define PG_PGSTATE_H

#include "libpg/pg.h"
#include "libstate/statefile.h"

#define PGSTATE_VERSION 1

struct pgstate {
    char uuid[STATE_UUID_SIZE];
    char name[STATE_NAME_SIZE];
    bool has_epoch;   /* false: rank 0 sets it at its first start */
    int64_t epoch_ms; /* Unix milliseconds */
    int64_t created_ms;
    bool lost_horizon; /* the instance has made ids, but its horizon was lost: rank 0 needs --recover-horizon */
    bool unfilled;     /* the content of a folder is being moved in: no broker uses it yet */
};

/* Make the tables and the identity, all or nothing, in one statement. Returns 0, or -1 with errno set and 'errp'
 * filled: EEXIST if the schema exists, else as pg_run ().
 */
int pgstate_make (struct pg *pg, const struct pgstate *s, idt_error_t *errp);

/* Read the identity. Returns 0, or -1 with errno set and 'errp' filled: STATE_REFUSED if there is no state of idtree,
 * or one that is not complete or of a later version; else as pg_run ().
 */
int pgstate_read (struct pg *pg, struct pgstate *s, idt_error_t *errp);

/* Like pgstate_read (), but the state may be unfilled. */
int pgstate_find (struct pg *pg, struct pgstate *s, idt_error_t *errp);

/* End the move: the state is no longer unfilled. Returns 0, or -1 like pg_run (). */
int pgstate_set_filled (struct pg *pg, idt_error_t *errp);

#endif /* PG_PGSTATE_H */
