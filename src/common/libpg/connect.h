/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.h - make a connection to the server that accepts writes, by a deadline */
#ifndef PG_CONNECT_H
#define PG_CONNECT_H

#include <stdint.h>

#include "libpg/libpq.h"
#include "libpg/pg.h"

/* Returns NULL with errno set and 'errp' filled as by pg_run (). */
PGconn *pg_connect (const struct libpq *pq, const struct pg_config *config, int stop_fd, uint64_t deadline_ms,
                    idt_error_t *errp);

/* The errno for the SQLSTATE of an error; NULL is EIO. */
int pg_errno (const char *sqlstate);

#endif /* PG_CONNECT_H */
