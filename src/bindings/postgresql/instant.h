/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instant.h - PostgreSQL's times as idtree counts them */
#ifndef POSTGRESQL_INSTANT_H
#define POSTGRESQL_INSTANT_H

#include "postgres.h" /* before all else */

#include "datatype/timestamp.h"

/* Unix milliseconds of a time that is not infinite; what is between two is the later one's. */
int64 instant_to_unix_ms (TimestampTz at);

TimestampTz instant_of_unix_ms (int64 unix_ms);

/* Read a date of ISO 8601, to the millisecond: 2026-01-01, 2026-01-01 01:00:00.000+01, 2026-01-01T00:00:00Z.  Without a
 * zone it is UTC.  No setting of a session (timezone, DateStyle) changes what is read.  Returns false for other texts.
 */
bool instant_read (const char *text, int64 *unix_ms);

#endif /* POSTGRESQL_INSTANT_H */
