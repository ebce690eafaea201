/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* source.h - where this session's ids come from
 *
 * From the page that the broker shares, if it does: one by one, so each is above all that were there when it was asked
 * for.  Else from a block that was asked for by message, which grows while it is used up soon; so it is done also where
 * all that the page's generator has in a millisecond was used, and the broker has more of them (fluid.lanes).
 */
#ifndef POSTGRESQL_SOURCE_H
#define POSTGRESQL_SOURCE_H

#include "extension.h"

/* A new id, above all that this session got before. */
fluid_t source_next (void);

/* Learn whose ids these are, if a broker is there, before workers of a query need to know: when it is planned. */
void source_prepare (void);

/* The epoch of the instance in Unix milliseconds: idtree.epoch, or what the broker said once. */
int64 source_epoch_ms (void);

#endif /* POSTGRESQL_SOURCE_H */
