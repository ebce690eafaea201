/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history.h - let bytes decide what the sessions of a document do, and check all that they answer
 *
 * For tests and fuzz targets.  A history has a few clients and one total order of ranges and ghost
 * sessions.  Clients make ids, announce them, hear of the order late, lose what they sent, are
 * stored and resumed, and are replaced by new ones that load a summary.  A plain model, with one
 * entry for each final id and no search, says what each client must answer at its place in the
 * order.
 */
#ifndef COMPRESSOR_HISTORY_H
#define COMPRESSOR_HISTORY_H

#include <stddef.h>

/* Run the history that 'data' tells.  Returns NULL, or what was wrong first (constant). */
const char *history_run (const unsigned char *data, size_t size);

#endif /* COMPRESSOR_HISTORY_H */
