/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* source.h - choose the source of a session's ids
 *
 * If the broker shares its page, ids come from the page one by one, so each is above all earlier ids. Otherwise they
 * come from a block that is requested by message, and which grows while blocks are used up fast. Blocks are also used
 * if the ids of the page's generator in a millisecond are used up and the broker has more generators (fluid.lanes).
 */
#ifndef POSTGRESQL_SOURCE_H
#define POSTGRESQL_SOURCE_H

#include "extension.h"

/* A new id, above all that this session got before. */
fluid_t source_next (void);

/* If a broker is there, learn its instance when a query is planned, before the workers of the query need it. */
void source_prepare (void);

/* The epoch of the instance in Unix milliseconds: idtree.epoch, or the broker's, which is asked once. */
int64 source_epoch_ms (void);

#endif /* POSTGRESQL_SOURCE_H */
