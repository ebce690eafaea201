/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.h - make a connection to the server that accepts writes, by a deadline */
#ifndef PG_CONNECT_H
#define PG_CONNECT_H

#include <stdint.h>

#include "libpg/libpq.h"

#define PG_HOSTS_MAX 16
#define PG_SERVER_SIZE 280

struct pg_connect_config {
    const char *conninfo;
    const char *application;
    const char *avoid;             /* a server that did not answer, as pg_server_name (); "": none */
    int stop_fd;                   /* readable: end with ECANCELED */
    uint64_t half_ms, deadline_ms; /* CLOCK_MONOTONIC; before 'half_ms' the server 'avoid' is not used */
};

/* Returns NULL with errno set and 'errp' filled as by pg_run (). */
PGconn *pg_connect (const struct libpq *pq, const struct pg_connect_config *config, idt_error_t *errp);

/* Write "HOST:PORT". */
void pg_server_name (const struct libpq *pq, PGconn *conn, char server[PG_SERVER_SIZE]);

/* The errno for the SQLSTATE of an error; NULL is EIO. */
int pg_errno (const char *sqlstate);

#endif /* PG_CONNECT_H */
