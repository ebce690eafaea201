/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pg.c - a connection to a PostgreSQL server, which runs one statement at a time
 *
 * libpq never blocks here: the functions wait for its socket, for the deadline, and for pg_stop ().
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"

#include "libpg/pg.h"

#ifdef HAVE_LIBPQ

#include "libpg/connect.h"
#include "libpg/wait.h"

#define BYTES_PER_MS 1024 /* of parameters, that the slowest server stores */

struct pg {
    const struct libpq *pq;
    struct pg_config config; /* with texts of its own */
    int stop_fd;
    PGconn *conn;
    uint64_t session;
    char server[PG_SERVER_SIZE];
    char avoid[PG_SERVER_SIZE]; /* the server that did not answer the last statement; "": none */
    bool warned;                /* a warning came with the answer */
    uint64_t patience_ms;       /* of the statement */
    idt_error_t warning;
};

/* --- the connection string ------------------------------------------------------------------------------ */

#define EXAMPLE "; an example is postgresql://idtree@db1,db2/idtree"

static int check_options (const PQconninfoOption *options, idt_error_t *errp)
{
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (!o->val || !o->val[0])
            continue;
        if (strcmp (o->keyword, "password") == 0 || strcmp (o->keyword, "sslpassword") == 0)
            return errsetf (
                errp, EINVAL,
                "the connection string has a %s, which all users could read: use ~/.pgpass, PGPASSFILE or a "
                "service file",
                o->keyword);
    }
    return 0;
}

int pg_check (const char *conninfo, idt_error_t *errp)
{
    const struct libpq *pq = libpq_load (errp);
    char *why = NULL;
    PQconninfoOption *options;
    int rc;

    if (!pq)
        return -1;
    if (!(options = pq->PQconninfoParse (conninfo, &why))) {
        if (why)
            why[strcspn (why, "\n")] = '\0';
        errsetf (errp, why ? EINVAL : ENOMEM, "%s%s", why ? why : "out of memory", why ? EXAMPLE : "");
        pq->PQfreemem (why);
        return -1;
    }
    rc = check_options (options, errp);
    pq->PQconninfoFree (options);
    return rc;
}

/* --- open and close ------------------------------------------------------------------------------------- */

/* Keeps errno. */
static void disconnect (struct pg *pg)
{
    int saved = errno;

    if (pg->conn)
        pg->pq->PQfinish (pg->conn);
    pg->conn = NULL;
    errno = saved;
}

void pg_close (struct pg *pg)
{
    if (!pg)
        return;
    int saved = errno;
    disconnect (pg);
    if (pg->stop_fd >= 0)
        close (pg->stop_fd);
    free ((char *)pg->config.conninfo);
    free ((char *)pg->config.application);
    free (pg);
    errno = saved;
}

struct pg *pg_open (const struct pg_config *config, idt_error_t *errp)
{
    struct pg *pg;

    if (pg_check (config->conninfo, errp) < 0)
        return NULL;
    if (!(pg = calloc (1, sizeof (*pg))))
        return errsetf_null (errp, ENOMEM, "PostgreSQL: out of memory");
    pg->pq = libpq_load (errp);
    pg->config.timeout_ms = config->timeout_ms;
    pg->config.conninfo = strdup (config->conninfo);
    pg->config.application = strdup (config->application);
    pg->stop_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf (pg->server, sizeof (pg->server), "-");
    if (pg->config.conninfo && pg->config.application && pg->stop_fd >= 0)
        return pg;
    errprintf (errp, "PostgreSQL: %s", strerror (errno));
    pg_close (pg);
    return NULL;
}

void pg_stop (struct pg *pg)
{
    uint64_t one = 1;
    ssize_t rc = write (pg->stop_fd, &one, sizeof (one));

    (void)rc; /* fails only if the counter is full: then it is readable already */
}

const char *pg_server (const struct pg *pg)
{
    return pg->server;
}

uint64_t pg_session (const struct pg *pg)
{
    return pg->session;
}

/* --- errors --------------------------------------------------------------------------------------------- */

static const char *field (const struct pg *pg, const PGresult *result, int code)
{
    const char *text = pg->pq->PQresultErrorField (result, code);

    return text ? text : "";
}

static void notice_cb (void *arg, const PGresult *notice)
{
    struct pg *pg = arg;

    if (strcmp (field (pg, notice, PG_DIAG_SEVERITY_NONLOCALIZED), "WARNING") != 0)
        return;
    pg->warned = true;
    errprintf (&pg->warning, "%s", field (pg, notice, PG_DIAG_MESSAGE_PRIMARY));
}

/* An error ends a statement that has changed nothing, unless the server ends the session with it: it may do so after
 * the commit.
 */
static enum pg_fate fate_of (const struct pg *pg, const PGresult *result)
{
    const char *state = field (pg, result, PG_DIAG_SQLSTATE);

    return strcmp (field (pg, result, PG_DIAG_SEVERITY_NONLOCALIZED), "ERROR") != 0 || strncmp (state, "08", 2) == 0
                   || strcmp (state, "40003") == 0
               ? PG_UNKNOWN
               : PG_NOT_DONE;
}

/* The connection ended, or libpq failed. */
static int lost (struct pg *pg, idt_error_t *errp)
{
    const char *text = pg->pq->PQerrorMessage (pg->conn);

    return errsetf (errp, ECONNRESET, "PostgreSQL %s: %.*s", pg->server, (int)strcspn (text, "\n"), text);
}

static int explain (struct pg *pg, const PGresult *result, enum pg_fate *fate, idt_error_t *errp)
{
    const char *text = field (pg, result, PG_DIAG_MESSAGE_PRIMARY);

    if (!*text)
        return lost (pg, errp);
    *fate = fate_of (pg, result);
    return errsetf (errp, *fate == PG_UNKNOWN ? ECONNRESET : pg_errno (field (pg, result, PG_DIAG_SQLSTATE)),
                    "PostgreSQL %s: %s", pg->server, text);
}

/* --- a statement ---------------------------------------------------------------------------------------- */

/* How long to wait for the next bytes. The server needs time for large parameters. */
static uint64_t patience_of (const struct pg *pg, const struct pg_params *p)
{
    uint64_t bytes = 0;

    for (int i = 0; i < p->count; i++)
        bytes += (uint64_t)p->size[i];
    return pg->config.timeout_ms + bytes / BYTES_PER_MS;
}

static int wait_socket (struct pg *pg, short events, idt_error_t *errp)
{
    uint64_t deadline_ms = clock_ms (CLOCK_MONOTONIC) + pg->patience_ms;

    if (pg_wait (pg->pq->PQsocket (pg->conn), events, pg->stop_fd, deadline_ms) == 0)
        return 0;
    return errprintf (errp, "PostgreSQL %s: %s", pg->server,
                      errno == ETIMEDOUT ? "no answer in time" : strerror (errno));
}

static int send_statement (struct pg *pg, const char *sql, const struct pg_params *p, idt_error_t *errp)
{
    const struct libpq *pq = pg->pq;
    int rc;

    if (!pq->PQsendQueryParams (pg->conn, sql, p->count, p->type, p->value, p->size, p->binary, 1))
        return lost (pg, errp);
    while ((rc = pq->PQflush (pg->conn)) > 0) {
        if (wait_socket (pg, POLLIN | POLLOUT, errp) < 0)
            return -1;
        if (!pq->PQconsumeInput (pg->conn))
            return lost (pg, errp);
    }
    return rc < 0 ? lost (pg, errp) : 0;
}

/* Wait for the next result; NULL in '*result' after the last. */
static int next_result (struct pg *pg, PGresult **result, idt_error_t *errp)
{
    const struct libpq *pq = pg->pq;

    while (pq->PQisBusy (pg->conn)) {
        if (wait_socket (pg, POLLIN, errp) < 0)
            return -1;
        if (!pq->PQconsumeInput (pg->conn))
            return lost (pg, errp);
    }
    *result = pq->PQgetResult (pg->conn);
    return 0;
}

/* Receive the answer. The server sends the result before it commits, then an error or a warning of the commit, and then
 * that it is ready. An error replaces the result.
 */
static int receive (struct pg *pg, PGresult **answer, idt_error_t *errp)
{
    PGresult *result = NULL;

    for (;;) {
        if (next_result (pg, &result, errp) < 0)
            return -1;
        if (!result)
            return *answer ? 0 : lost (pg, errp);
        if (*answer && pg->pq->PQresultStatus (result) != PGRES_FATAL_ERROR) {
            pg->pq->PQclear (result);
            continue;
        }
        pg->pq->PQclear (*answer);
        *answer = result;
    }
}

static int talk (struct pg *pg, const char *sql, const struct pg_params *p, PGresult **result, enum pg_fate *fate,
                 idt_error_t *errp)
{
    ExecStatusType status;

    pg->patience_ms = patience_of (pg, p);
    pg->warned = false;
    *fate = PG_UNKNOWN;
    if (send_statement (pg, sql, p, errp) < 0 || receive (pg, result, errp) < 0)
        return -1;
    status = pg->pq->PQresultStatus (*result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        return explain (pg, *result, fate, errp);
    if (pg->pq->PQstatus (pg->conn) != CONNECTION_OK)
        return lost (pg, errp);
    if (pg->warned)
        return errsetf (errp, EAGAIN, "PostgreSQL %s: %s", pg->server, pg->warning.text);
    return 0;
}

/* A statement of a session that has ended goes on in the server as long as it waits for a row. So each session waits
 * for a row no longer than we do. A later isolation level than the usual one would refuse statements that waited.
 */
#define SETTINGS                                                                                     \
    "SELECT set_config (name, CASE vartype WHEN 'integer' THEN $1 ELSE 'read committed' END, false)" \
    " FROM pg_settings WHERE name IN ('lock_timeout', 'default_transaction_isolation')"

static int set_up (struct pg *pg, idt_error_t *errp)
{
    struct pg_params p = { 0 };
    PGresult *result = NULL;
    enum pg_fate fate;
    char ms[24];

    snprintf (ms, sizeof (ms), "%llu", (unsigned long long)pg->config.timeout_ms);
    pg_put_text (&p, ms);
    int rc = talk (pg, SETTINGS, &p, &result, &fate, errp), saved = errno;
    pg->pq->PQclear (result);
    errno = saved;
    return rc;
}

static int make_connection (struct pg *pg, idt_error_t *errp)
{
    if (pg->conn && pg->pq->PQstatus (pg->conn) == CONNECTION_OK)
        return 0;
    disconnect (pg);
    uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    const struct pg_connect_config config = {
        .conninfo = pg->config.conninfo,
        .application = pg->config.application,
        .avoid = pg->avoid,
        .stop_fd = pg->stop_fd,
        .half_ms = now_ms + pg->config.timeout_ms / 2,
        .deadline_ms = now_ms + pg->config.timeout_ms,
    };
    if (!(pg->conn = pg_connect (pg->pq, &config, errp)))
        return -1;
    pg->session++;
    pg_server_name (pg->pq, pg->conn, pg->server);
    pg->pq->PQsetNoticeReceiver (pg->conn, notice_cb, pg);
    pg->pq->PQsetnonblocking (pg->conn, 1);
    return set_up (pg, errp);
}

/* Whether pg_stop () was called. */
static bool is_stopped (const struct pg *pg)
{
    struct pollfd fd = { .fd = pg->stop_fd, .events = POLLIN };

    return poll (&fd, 1, 0) > 0;
}

static int run (struct pg *pg, const char *sql, const struct pg_params *params, PGresult **result, enum pg_fate *fate,
                idt_error_t *errp)
{
    static const struct pg_params none;

    *fate = PG_NOT_DONE;
    if (params && params->failed)
        return errsetf (errp, ENOMEM, "PostgreSQL: out of memory, or the parameters of a statement are too large");
    if (is_stopped (pg))
        return errsetf (errp, ECANCELED, "PostgreSQL: %s", strerror (ECANCELED));
    if (make_connection (pg, errp) < 0) {
        disconnect (pg);
        return -1;
    }
    if (talk (pg, sql, params ? params : &none, result, fate, errp) == 0) {
        pg->avoid[0] = '\0';
        return 0;
    }
    if (errno == ETIMEDOUT)
        memcpy (pg->avoid, pg->server, sizeof (pg->avoid));
    if (*fate == PG_UNKNOWN && errno != EAGAIN)
        disconnect (pg);
    return -1;
}

int pg_run (struct pg *pg, const char *sql, const struct pg_params *params, struct pg_rows *rows, enum pg_fate *fate,
            idt_error_t *errp)
{
    PGresult *result = NULL;
    enum pg_fate ignored;
    int rc = run (pg, sql, params, &result, fate ? fate : &ignored, errp);

    if (rc == 0 && rows)
        *rows = (struct pg_rows){ .result = result, .count = pg->pq->PQntuples (result) };
    else {
        int saved = errno;
        pg->pq->PQclear (result);
        errno = saved;
    }
    if (rc < 0 && rows)
        *rows = (struct pg_rows){ 0 };
    return rc;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

void pg_rows_free (struct pg_rows *rows)
{
    if (rows->result)
        libpq_load (NULL)->PQclear (rows->result);
    *rows = (struct pg_rows){ 0 };
}

const char *pg_bytes (const struct pg_rows *rows, int row, int column, size_t *size)
{
    const struct libpq *pq = libpq_load (NULL);

    if (size)
        *size = (size_t)pq->PQgetlength (rows->result, row, column);
    return pq->PQgetvalue (rows->result, row, column);
}

bool pg_is_null (const struct pg_rows *rows, int row, int column)
{
    return libpq_load (NULL)->PQgetisnull (rows->result, row, column);
}

int64_t pg_int (const struct pg_rows *rows, int row, int column)
{
    size_t size;
    const char *value = pg_bytes (rows, row, column, &size);
    uint64_t n = 0;

    if (size == 0)
        return 0;
    if (size > 1 && (value[0] & 0x80))
        n = UINT64_MAX;
    for (size_t i = 0; i < size; i++)
        n = n << 8 | (unsigned char)value[i];
    return (int64_t)n;
}

#else /* without libpq */

#define ABSENT "this idtree was built without libpq, so it cannot use PostgreSQL: build it where libpq-dev is installed"

int pg_check (const char *conninfo, idt_error_t *errp)
{
    return errsetf (errp, ENOSYS, ABSENT);
}

struct pg *pg_open (const struct pg_config *config, idt_error_t *errp)
{
    return errsetf_null (errp, ENOSYS, ABSENT);
}

void pg_close (struct pg *pg)
{
}

void pg_stop (struct pg *pg)
{
}

int pg_run (struct pg *pg, const char *sql, const struct pg_params *params, struct pg_rows *rows, enum pg_fate *fate,
            idt_error_t *errp)
{
    return errsetf (errp, ENOSYS, ABSENT);
}

void pg_rows_free (struct pg_rows *rows)
{
}

int64_t pg_int (const struct pg_rows *rows, int row, int column)
{
    return 0;
}

const char *pg_bytes (const struct pg_rows *rows, int row, int column, size_t *size)
{
    if (size)
        *size = 0;
    return "";
}

bool pg_is_null (const struct pg_rows *rows, int row, int column)
{
    return true;
}

const char *pg_server (const struct pg *pg)
{
    return "-";
}

uint64_t pg_session (const struct pg *pg)
{
    return 0;
}

#endif
