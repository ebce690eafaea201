/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - get ids and other data of a broker by message, from a backend
 *
 * A call waits for at most idtree.timeout. If the query is cancelled meanwhile, the call ends within a second, and the
 * connection stays usable.
 */
#ifndef POSTGRESQL_BROKER_H
#define POSTGRESQL_BROKER_H

#include "extension.h"

/* The behaviour of a call without a broker. */
enum need {
    NEED_NOT, /* the call soon returns false */
    NEED,     /* the query ends with an error */
    NEED_WAIT /* like NEED, but the broker was there before, so the call waits for it */
};

/* Get up to 'n' ids in increasing order, as many as are available. '*asked_ms' is when they were requested: now, or at
 * broker_ask_ahead (n), if that was the last call of this file. Returns their number; 0: none.
 */
uint32 broker_ids (uint32 n, fluid_t *ids, int64 *asked_ms, enum need need);

/* Request 'n' ids in advance, after broker_ids () got some: they arrive while those are used. */
void broker_ask_ahead (uint32 n);

/* Whether the broker answers now; then its instance is known. */
bool broker_is_there (void);

/* The number of generators of the broker (fluid.lanes); 0: there was no broker. */
int broker_lanes (void);

/* The epoch of the instance as text, which the caller must pfree (). 'need' must not be NEED_NOT. */
char *broker_epoch (enum need need);

/* The UUID of the instance; "": it has none. Borrowed until session_leave (). */
const char *broker_instance (void);

/* Close the connection, if there is one. */
void session_leave (void);

#endif /* POSTGRESQL_BROKER_H */
