/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pg.h - a connection to a PostgreSQL server, which runs one statement at a time, each with a deadline
 *
 * libpq is loaded when the first connection is opened, so a program that uses none runs without it. There are no
 * transactions of several statements: no row stays locked between two messages, whatever happens to this process.
 *
 * A connection has one user at a time; it may pass from thread to thread. All functions that talk to the server block,
 * but they end with ECANCELED after pg_stop (), and when nothing came or went for 'timeout_ms' and another millisecond
 * for each KiB of the parameters.
 */
#ifndef PG_PG_H
#define PG_PG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "libpg/params.h"

struct pg;

struct pg_config {
    const char *conninfo;    /* in the syntax of libpq: a URI, or words such as "service=idtree" */
    const char *application; /* as others see it in pg_stat_activity, such as "idtree jobs" */
    uint64_t timeout_ms;     /* for a connection, and for a statement */
};

/* What is known about a statement that failed. */
enum pg_fate {
    PG_NOT_DONE, /* the server refused it, or it was not sent: it changed nothing, and never will */
    PG_UNKNOWN,  /* no answer came, or a warning with it: it may be done, now or later, or be lost yet */
};

/* Check a connection string without a connection. Returns 0, or -1 with errno set and 'errp' filled:
 *   EINVAL  it is malformed, or has a password: attributes can be read by all users (use PGPASSFILE)
 *   ENOSYS  libpq is not installed
 */
int pg_check (const char *conninfo, idt_error_t *errp);

/* Prepare a connection, which pg_run () makes when it is needed. Copies '*config'. Returns NULL like pg_check (). */
struct pg *pg_open (const struct pg_config *config, idt_error_t *errp);

/* NULL is allowed; keeps errno. */
void pg_close (struct pg *pg);

/* Make the function that is running, and all later ones, return ECANCELED. Another thread may call it. */
void pg_stop (struct pg *pg);

/* The rows of an answer; all values are in binary form. */
struct pg_rows {
    void *result; /* NULL: none */
    int count;
};

/* Run one statement. 'params' (NULL: none) are $1, $2, ... Without a connection it is made first. 'rows' (NULL: not
 * wanted) must be freed by pg_rows_free (), and is empty after a failure. Returns 0, or -1 with errno set, 'errp'
 * filled and the fate in '*fate' (NULL: not wanted):
 *   ECANCELED   pg_stop () was called
 *   ETIMEDOUT   no answer came in time; the connection is closed
 *   ECONNRESET  the connection ended
 *   ECONNREFUSED  no server could be reached that accepts writes
 *   EACCES      the server refuses this user or its password
 *   EROFS       the server is a copy, or accepts no writes at the moment
 *   ENOSPC      its disk is full
 *   ENOENT      a table, schema or database does not exist
 *   EEXIST      a row or table exists already
 *   EIO         all other errors of the server
 *   EAGAIN      the answer came with a warning: it is not sure that a second server has it (PG_UNKNOWN)
 * The text names the host and what the server says.
 */
int pg_run (struct pg *pg, const char *sql, const struct pg_params *params, struct pg_rows *rows, enum pg_fate *fate,
            idt_error_t *errp);

void pg_rows_free (struct pg_rows *rows);

/* A value; row and column must exist. pg_int () reads a bool, int2, int4 or int8; NULL is 0. pg_bytes () returns the
 * bytes of a text or bytea, which end in a NUL that '*size' does not count, and are valid as long as the rows.
 */
int64_t pg_int (const struct pg_rows *rows, int row, int column);
const char *pg_bytes (const struct pg_rows *rows, int row, int column, size_t *size);
bool pg_is_null (const struct pg_rows *rows, int row, int column);

/* "HOST:PORT" of the server of the last connection; "-" if there was none. Valid until the next call of pg_run (). */
const char *pg_server (const struct pg *pg);

/* The number of connections that were made. Two statements ran in the same session if it is the same after both. */
uint64_t pg_session (const struct pg *pg);

#endif /* PG_PG_H */
