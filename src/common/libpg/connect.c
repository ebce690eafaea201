/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.c - make a connection to the server that accepts writes, by a deadline
 *
 * Names of hosts are looked up by libpq, which blocks as long as the system's resolver does.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "libpg/connect.h"
#include "libpg/wait.h"
#include "libutil/errprintf.h"

int pg_errno (const char *s)
{
    static const struct {
        const char *prefix;
        int errnum;
    } table[] = {
        { "28", EACCES },          { "42501", EACCES },                            /* authorization; privilege */
        { "25006", EROFS },                                                        /* read-only transaction */
        { "53100", ENOSPC },                                                       /* disk full */
        { "3D000", ENOENT },       { "3F000", ENOENT },                            /* database; schema */
        { "42P01", ENOENT },       { "42703", ENOENT },                            /* table; column */
        { "23505", EEXIST },       { "42P06", EEXIST },       { "42P07", EEXIST }, /* row; schema; table */
        { "57P03", ECONNREFUSED }, { "53300", ECONNREFUSED }, /* it starts or stops; too many connections */
    };

    for (size_t i = 0; s && i < sizeof (table) / sizeof (table[0]); i++)
        if (strncmp (s, table[i].prefix, strlen (table[i].prefix)) == 0)
            return table[i].errnum;
    return EIO;
}

/* --- why a connection could not be made ---------------------------------------------------------------- */

/* Find the next SQLSTATE in a message. A server's error says "FATAL:  28P01: password authentication failed". */
static const char *find_state (const char *text)
{
    while ((text = strstr (text, ":  "))) {
        text += 3;
        if (strspn (text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && text[5] == ':')
            return text;
    }
    return NULL;
}

/* Copy a message of libpq in one line, without SQLSTATEs and places in the server's source code. */
static void tidy (char *out, size_t size, const char *text)
{
    size_t n = 0;

    while (*text && n + 3 < size) {
        if (strncmp (text, "\nLOCATION:", 10) == 0)
            text += 1 + strcspn (text + 1, "\n");
        else if (*text == '\n') {
            text += strspn (text, "\n\t ");
            n += (size_t)sprintf (out + n, "%s", *text ? "; " : "");
        }
        else if (find_state (text) == text + 3) {
            n += (size_t)sprintf (out + n, ": ");
            text += 10;
        }
        else
            out[n++] = *text++;
    }
    out[n] = '\0';
}

/* Of several hosts, the failure that somebody must mend says most. */
static int explain (const struct libpq *pq, PGconn *conn, idt_error_t *errp)
{
    const char *text = pq->PQerrorMessage (conn);
    int errnum = strstr (text, "read-only") || strstr (text, "hot standby") ? EROFS : ECONNREFUSED;
    char line[sizeof (errp->text)];

    if (pq->PQconnectionNeedsPassword (conn))
        errnum = EACCES;
    for (const char *state = text; (state = find_state (state));)
        if (pg_errno (state) != EIO && pg_errno (state) != ECONNREFUSED)
            errnum = pg_errno (state);
    tidy (line, sizeof (line), text);
    return errsetf (errp, errnum, "%s", line[0] ? line : "PostgreSQL: the connection failed");
}

/* --- the connection ------------------------------------------------------------------------------------- */

static PGconn *start (const struct libpq *pq, const struct pg_config *config)
{
    /* What comes after dbname replaces what dbname says; what comes before it is replaced. */
    const char *const keywords[] = { "target_session_attrs", "dbname", "application_name", NULL };
    const char *const values[] = { "read-write", config->conninfo, config->application, NULL };

    return pq->PQconnectStartParams (keywords, values, 1);
}

PGconn *pg_connect (const struct libpq *pq, const struct pg_config *config, int stop_fd, uint64_t deadline_ms,
                    idt_error_t *errp)
{
    PGconn *conn = start (pq, config);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    if (!conn)
        return errsetf_null (errp, ENOMEM, "PostgreSQL: out of memory");
    if (pq->PQstatus (conn) == CONNECTION_BAD)
        status = PGRES_POLLING_FAILED;
    pq->PQsetErrorVerbosity (conn, PQERRORS_VERBOSE);
    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        if (pg_wait (pq->PQsocket (conn), status == PGRES_POLLING_READING ? POLLIN : POLLOUT, stop_fd, deadline_ms)
            < 0) {
            errprintf (errp, "PostgreSQL %s:%s: %s", pq->PQhost (conn), pq->PQport (conn),
                       errno == ETIMEDOUT ? "no connection in time" : strerror (errno));
            goto error;
        }
        status = pq->PQconnectPoll (conn);
    }
    if (status == PGRES_POLLING_OK)
        return conn;
    explain (pq, conn, errp);
error:;
    int saved = errno;
    pq->PQfinish (conn);
    errno = saved;
    return NULL;
}
