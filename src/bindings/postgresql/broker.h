/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - ids and what else a broker knows, by message, from a backend
 *
 * A call waits idtree.timeout at most.  A query that is cancelled meanwhile ends within a second, and the connection
 * stays as good as it was.
 */
#ifndef POSTGRESQL_BROKER_H
#define POSTGRESQL_BROKER_H

#include "extension.h"

/* What is done where there is no broker. */
enum need {
    NEED_NOT, /* the call returns false, and soon */
    NEED,     /* the query ends */
    NEED_WAIT /* so, but it was there before, and is waited for */
};

/* Get up to 'n' ids, as many as may be had at once, in increasing order, that were asked for at '*asked_ms': now, or
 * when broker_ask_ahead (n) was called, if that was the last call here.  Returns how many; 0: none.
 */
uint32 broker_ids (uint32 n, fluid_t *ids, int64 *asked_ms, enum need need);

/* Ask for 'n' ids, after broker_ids () got some: they come while those are used. */
void broker_ask_ahead (uint32 n);

/* Whether it answers, now; then its instance is known. */
bool broker_is_there (void);

/* How many generators the broker has (fluid.lanes); 0: it was not there. */
int broker_lanes (void);

/* The text that says the epoch of the instance, for the caller to pfree ().  Not with NEED_NOT. */
char *broker_epoch (enum need need);

/* The UUID of the instance, "": it has none.  Borrowed until session_leave (). */
const char *broker_instance (void);

/* End the connection, if there is one. */
void session_leave (void);

#endif /* POSTGRESQL_BROKER_H */
