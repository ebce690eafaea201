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

/* Read a date that a broker wrote. */
int64 instant_of_text (const char *text);

#endif /* POSTGRESQL_INSTANT_H */
