/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* source.h - where this session's ids come from
 *
 * From the page that the broker shares, if it does; else from a block that was asked for by message, which grows while
 * it is used up soon.  The page is tried first, and looked for again each second.
 */
#ifndef POSTGRESQL_SOURCE_H
#define POSTGRESQL_SOURCE_H

#include "extension.h"

/* A new id, above all that this session got before. */
fluid_t source_next (void);

/* The epoch of the instance in Unix milliseconds: idtree.epoch, or what the broker said once. */
int64 source_epoch_ms (void);

#endif /* POSTGRESQL_SOURCE_H */
