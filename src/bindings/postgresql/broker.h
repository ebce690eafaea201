/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - ids and the epoch by message, from a backend
 *
 * A call waits idtree.timeout at most.  A query that is cancelled meanwhile ends within a second, and the connection
 * stays as good as it was.
 */
#ifndef POSTGRESQL_BROKER_H
#define POSTGRESQL_BROKER_H

#include "extension.h"

/* Get 'n' ids, in increasing order.  With 'patient' a broker that is not there is waited for, too. */
void broker_ids (uint32 n, fluid_t *ids, bool patient);

/* The text that says the epoch of the instance, for the caller to pfree (). */
char *broker_epoch (bool patient);

/* The UUID of the instance, "": it has none.  Borrowed until broker_leave (). */
const char *broker_instance (void);

/* End the connection, if there is one. */
void broker_leave (void);

#endif /* POSTGRESQL_BROKER_H */
