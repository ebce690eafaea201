/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.c - make a connection to the server that accepts writes, by a deadline
 *
 * libpq tries the hosts of a connection string one after the other, and has no time limit for each if the caller waits
 * itself. A host that has vanished would use up all of the time. So each host gets a connection of its own, all are
 * tried at the same time, and the first that is ready is used.
 *
 * Names of hosts are looked up by libpq, which blocks as long as the system's resolver does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "libpg/connect.h"
#include "libpg/wait.h"
#include "libutil/clock.h"
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

#define NO_PASSWORD "no password supplied" /* libpq */

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
    if (strstr (line, NO_PASSWORD))
        return errsetf (errp, errnum, "%.300s: set PGPASSFILE to the file that has the password (mode 0600)", line);
    return errsetf (errp, errnum, "%s", line[0] ? line : "PostgreSQL: the connection failed");
}

/* Of several failures, one that an operator must mend says more than that a server is away or a copy. */
static int weight (int errnum)
{
    return errnum == 0 ? 0 : errnum == ETIMEDOUT ? 1 : errnum == ECONNREFUSED ? 2 : errnum == EROFS ? 3 : 4;
}

/* --- the hosts of a connection string --------------------------------------------------------------------- */

struct hosts {
    const struct libpq *pq;
    PQconninfoOption *options;
    int n; /* 1: the connection string is used as it is */
    const char *host[PG_HOSTS_MAX], *addr[PG_HOSTS_MAX], *port[PG_HOSTS_MAX]; /* NULL: as in the connection string */
};

/* Split a list at its commas. An empty item becomes 'otherwise'. Returns how many items it has; PG_HOSTS_MAX + 1 if
 * there are more, or one is empty and 'otherwise' is NULL.
 */
static int split (char *list, const char *otherwise, const char *item[PG_HOSTS_MAX])
{
    int n = 0;

    for (char *s; (s = strsep (&list, ",")); n++) {
        if (n == PG_HOSTS_MAX || (!*s && !otherwise))
            return PG_HOSTS_MAX + 1;
        item[n] = *s ? s : otherwise;
    }
    return n;
}

/* The connection string may name a service, which only libpq reads. It refuses an unknown sslmode after it has read
 * all options, and before it looks up a host.
 */
static PQconninfoOption *read_options (const struct libpq *pq, const char *conninfo)
{
    const char *const keywords[] = { "dbname", "sslmode", NULL };
    const char *const values[] = { conninfo, "-", NULL };
    PGconn *conn = pq->PQconnectStartParams (keywords, values, 1);
    PQconninfoOption *options = conn ? pq->PQconninfo (conn) : NULL;

    pq->PQfinish (conn);
    return options;
}

static void hosts_init (struct hosts *h, const struct libpq *pq, const char *conninfo)
{
    int nhosts = 0, naddrs = 0, nports = 0;

    *h = (struct hosts){ .pq = pq, .options = read_options (pq, conninfo) };
    for (PQconninfoOption *o = h->options; o && o->keyword; o++) {
        if (!o->val || !o->val[0])
            continue;
        if (strcmp (o->keyword, "host") == 0)
            nhosts = split (o->val, NULL, h->host);
        else if (strcmp (o->keyword, "hostaddr") == 0)
            naddrs = split (o->val, NULL, h->addr);
        else if (strcmp (o->keyword, "port") == 0)
            nports = split (o->val, "5432", h->port); /* libpq's own default, which no option changes */
    }
    h->n = naddrs ? naddrs : nhosts;
    if (h->n < 2 || h->n > PG_HOSTS_MAX || (naddrs && nhosts && nhosts != h->n) || (nports > 1 && nports != h->n))
        h->n = 1;
    for (int i = 1; nports == 1 && i < h->n; i++)
        h->port[i] = h->port[0];
}

static void hosts_fini (struct hosts *h)
{
    h->pq->PQconninfoFree (h->options);
}

/* --- the connections ---------------------------------------------------------------------------------------- */

struct attempt {
    PGconn *conn; /* NULL: it failed */
    PostgresPollingStatusType status;
};

struct connecting {
    const struct libpq *pq;
    const struct pg_connect_config *config;
    struct hosts hosts;
    struct attempt attempt[PG_HOSTS_MAX];
    int errnum; /* of the weightiest failure */
    idt_error_t error;
};

/* An option replaces the same option before it, and dbname stands for all options of the connection string. libpq
 * ignores an option that is empty.
 */
static PGconn *start_one (const struct connecting *c, int i)
{
    const struct hosts *h = &c->hosts;
    const char *const keywords[] = {
        "target_session_attrs", "dbname", "application_name", "client_encoding", "host", "hostaddr", "port", NULL
    };
    const char *const values[] = { "read-write",
                                   c->config->conninfo,
                                   c->config->application,
                                   "UTF8",
                                   h->n > 1 ? h->host[i] : NULL,
                                   h->n > 1 ? h->addr[i] : NULL,
                                   h->n > 1 ? h->port[i] : NULL,
                                   NULL };

    return c->pq->PQconnectStartParams (keywords, values, 1);
}

static void note_failure (struct connecting *c, int errnum, const idt_error_t *error)
{
    if (weight (errnum) <= weight (c->errnum))
        return;
    c->errnum = errnum;
    c->error = *error;
}

static void end_one (struct connecting *c, struct attempt *a)
{
    idt_error_t error;

    explain (c->pq, a->conn, &error);
    note_failure (c, errno, &error);
    c->pq->PQfinish (a->conn);
    a->conn = NULL;
}

static int start_all (struct connecting *c, idt_error_t *errp)
{
    for (int i = 0; i < c->hosts.n; i++) {
        struct attempt *a = &c->attempt[i];

        if (!(a->conn = start_one (c, i)))
            return errsetf (errp, ENOMEM, "PostgreSQL: out of memory");
        c->pq->PQsetErrorVerbosity (a->conn, PQERRORS_VERBOSE);
        a->status = PGRES_POLLING_WRITING;
        if (c->pq->PQstatus (a->conn) == CONNECTION_BAD)
            end_one (c, a);
    }
    return 0;
}

static bool is_avoided (const struct connecting *c, const struct attempt *a)
{
    char server[PG_SERVER_SIZE];

    pg_server_name (c->pq, a->conn, server);
    return strcmp (server, c->config->avoid) == 0;
}

/* The connection to use. A server that did not answer before is used only if no other can be, or half of the time is
 * over. 'ready' is the one that is held back, if any.
 */
static struct attempt *choose (struct connecting *c, uint64_t now_ms)
{
    struct attempt *held = NULL;
    bool others = false;

    for (int i = 0; i < c->hosts.n; i++) {
        struct attempt *a = &c->attempt[i];

        if (!a->conn)
            continue;
        if (a->status != PGRES_POLLING_OK)
            others = true;
        else if (!is_avoided (c, a))
            return a;
        else
            held = a;
    }
    return !others || now_ms >= c->config->half_ms ? held : NULL;
}

/* Wait until a connection can go on, and let it. Returns 0, or -1 with errno set. */
static int step_all (struct connecting *c, uint64_t until_ms)
{
    struct pollfd fds[PG_HOSTS_MAX];

    for (int i = 0; i < c->hosts.n; i++) {
        const struct attempt *a = &c->attempt[i];

        fds[i].fd = a->conn && a->status != PGRES_POLLING_OK ? c->pq->PQsocket (a->conn) : -1;
        fds[i].events = a->status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    }
    if (pg_wait_all (fds, (nfds_t)c->hosts.n, c->config->stop_fd, until_ms) < 0)
        return -1;
    for (int i = 0; i < c->hosts.n; i++) {
        struct attempt *a = &c->attempt[i];

        if (fds[i].fd < 0 || !fds[i].revents)
            continue;
        if ((a->status = c->pq->PQconnectPoll (a->conn)) == PGRES_POLLING_FAILED)
            end_one (c, a);
    }
    return 0;
}

static bool any_is_left (const struct connecting *c)
{
    for (int i = 0; i < c->hosts.n; i++)
        if (c->attempt[i].conn)
            return true;
    return false;
}

static void note_silence (struct connecting *c)
{
    for (int i = 0; i < c->hosts.n; i++) {
        const struct attempt *a = &c->attempt[i];
        char server[PG_SERVER_SIZE];
        idt_error_t error;

        if (!a->conn)
            continue;
        pg_server_name (c->pq, a->conn, server);
        errprintf (&error, "PostgreSQL %s: no connection in time", server);
        note_failure (c, ETIMEDOUT, &error);
    }
}

/* Returns the connection to use, or NULL with errno set and 'errp' filled. */
static struct attempt *wait_for_one (struct connecting *c, idt_error_t *errp)
{
    struct attempt *a;

    while (any_is_left (c)) {
        uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);

        if ((a = choose (c, now_ms)))
            return a;
        if (step_all (c, now_ms < c->config->half_ms ? c->config->half_ms : c->config->deadline_ms) == 0)
            continue;
        if (errno != ETIMEDOUT)
            return errsetf_null (errp, errno, "PostgreSQL: %s", strerror (errno));
        if (clock_ms (CLOCK_MONOTONIC) >= c->config->deadline_ms) {
            note_silence (c);
            break;
        }
    }
    return errsetf_null (errp, c->errnum, "%s", c->error.text);
}

void pg_server_name (const struct libpq *pq, PGconn *conn, char server[PG_SERVER_SIZE])
{
    const char *host = pq->PQhost (conn), *port = pq->PQport (conn);

    snprintf (server, PG_SERVER_SIZE, "%s:%s", host ? host : "", port ? port : "");
}

PGconn *pg_connect (const struct libpq *pq, const struct pg_connect_config *config, idt_error_t *errp)
{
    struct connecting c = { .pq = pq, .config = config };
    struct attempt *a = NULL;
    PGconn *conn = NULL;

    hosts_init (&c.hosts, pq, config->conninfo);
    if (start_all (&c, errp) == 0 && (a = wait_for_one (&c, errp))) {
        conn = a->conn;
        a->conn = NULL;
    }
    int saved = errno;
    for (int i = 0; i < c.hosts.n; i++)
        if (c.attempt[i].conn)
            pq->PQfinish (c.attempt[i].conn);
    hosts_fini (&c.hosts);
    errno = saved;
    return conn;
}
