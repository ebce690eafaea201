/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instant.h - convert PostgreSQL's times to idtree's */
#ifndef POSTGRESQL_INSTANT_H
#define POSTGRESQL_INSTANT_H

#include "postgres.h" /* before all others */

#include "datatype/timestamp.h"

/* Unix milliseconds of a finite time, rounded up. */
int64 instant_to_unix_ms (TimestampTz at);

TimestampTz instant_of_unix_ms (int64 unix_ms);

/* Read a date of ISO 8601, to the millisecond: 2026-01-01, 2026-01-01 01:00:00.000+01, 2026-01-01T00:00:00Z. Without a
 * zone it is UTC. No setting of a session (timezone, DateStyle) changes the result. Returns false for other texts.
 */
bool instant_read (const char *text, int64 *unix_ms);

#endif /* POSTGRESQL_INSTANT_H */
