/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fenced.h - a store of rank 0 in PostgreSQL that only the root of the newest term can write
 *
 * Several processes may believe that they are rank 0. Each got its own term, a number that grows with each takeover
 * (broker/root/role.h). Each store has a row in the table 'fence' with the term of its writer and a serial number.
 * fenced_open () sets the term. From then on the writes of earlier terms change nothing, whenever they arrive. Each
 * write is one statement, which names term and serial and raises the serial: so it is done once, in order, or not at
 * all.
 *
 * If a write gets no answer, further statements raise the serial, so that the write is either done or can never be
 * done, and the fence tells which. If it was not done, it is tried again with the new serial. What was read from the
 * fence, or came with a warning, counts after a further statement is acknowledged. Rules: FENCE_TERM, FENCE_SERIAL,
 * ASK_AGAIN, ACKNOWLEDGED (doc/model/README.md).
 *
 * The store must not lose a commit that it answered, even if its host is lost. So a write is done only if the server
 * waits for a copy on another server: synchronous_standby_names is not empty, and synchronous_commit is on or
 * remote_apply. With 'trust' it is not asked.
 *
 * All functions block. Only one runs at a time, except fenced_stop ().
 */
#ifndef PG_FENCED_H
#define PG_FENCED_H

#include "libpg/pg.h"

struct fenced;

struct fenced_config {
    const char *conninfo;
    const char *store; /* "horizon", "documents" or "jobs"; must stay valid */
    const char *uuid;  /* of the instance; must stay valid until the store is taken */
    uint64_t term;     /* 1 or more */
    bool trust;
    uint64_t timeout_ms; /* of a statement; 0: FENCED_TIMEOUT_MS */
};

#define FENCED_TIMEOUT_MS 3000

/* Prepare a store. Does no I/O. Returns NULL with errno set and 'errp' filled: as pg_open (). */
struct fenced *fenced_create (const struct fenced_config *config, idt_error_t *errp);

/* Connect, check the instance, and set the term of the store. It may be called again: after a failure, or to open the
 * store anew. Returns 0, or -1 with errno set and 'errp' filled:
 *   ESTALE         a later term has the store: another root leads
 *   STATE_REFUSED  there is no state of idtree, or that of another instance, or of a later version
 *   ENOTSUP        a commit would not be on a second server
 *   others         as pg_run ()
 */
int fenced_take (struct fenced *f, idt_error_t *errp);

/* fenced_create () and fenced_take (). Until it returns, it cannot be stopped. */
struct fenced *fenced_open (const struct fenced_config *config, idt_error_t *errp);

/* NULL is allowed; keeps errno. */
void fenced_close (struct fenced *f);

/* End the function that is running, and all later ones, with ECANCELED. Another thread may call it. */
void fenced_stop (struct fenced *f);

/* What each statement can refer to: the store is $1, the term $2. Parameters of the caller begin at FENCED_FIRST. */
#define FENCED_FIRST 4

/* Begin the parameters of a statement. */
void fenced_params (const struct fenced *f, struct pg_params *p);

/* Run a write. 'body' follows "WITH fence AS (UPDATE ... RETURNING serial)" and names the relation 'fence', which has
 * one row if the write counts, else none. For example:
 *     ", gone AS (DELETE FROM idtree.jobs USING fence WHERE id <= $4) SELECT serial FROM fence"
 * The last part must be a SELECT that returns a row if and only if 'fence' has one. Returns 0 if the write is done and
 * durable, once. Returns -1 with errno set and 'errp' filled:
 *   ESTALE     another root leads. No later write will be done; if '*unsure' is true, this one may be done
 *   STATE_REFUSED  the store has lost commits that it had acknowledged; '*unsure' as with ESTALE
 *   ENOTSUP    a commit would not be on a second server. Nothing was done
 *   ECANCELED  fenced_stop () was called. If '*unsure' is true, the write may be done
 *   others     as pg_run (). Nothing was done
 * It waits as long as the outcome is unknown, and shows that in fenced_is_unsure ().
 */
int fenced_write (struct fenced *f, const char *body, struct pg_params *p, bool *unsure, idt_error_t *errp);

/* Whether a write waits for the outcome of an earlier attempt. 'why' (may be NULL) gets the last failure. Another
 * thread may call it.
 */
bool fenced_is_unsure (struct fenced *f, idt_error_t *why);

/* Run a read. 'sql' should contain FENCED_HOLDS, so that a root that was replaced reads nothing. It is tried once more
 * if the connection had ended. Returns like pg_run ().
 */
#define FENCED_HOLDS "EXISTS (SELECT FROM idtree.fence WHERE store = $1 AND term = $2)"
int fenced_read (struct fenced *f, const char *sql, const struct pg_params *p, struct pg_rows *rows, idt_error_t *errp);

/* The server, as pg_server (). */
const char *fenced_server (const struct fenced *f);

#endif /* PG_FENCED_H */
