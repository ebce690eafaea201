/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history.h - run a history of a document's sessions that is chosen by bytes, and check all results
 *
 * For tests and fuzz targets. A history has a few clients and one total order of ranges and ghost sessions. Clients
 * make ids, announce them, receive the order late, lose announcements, are stored and resumed, and are replaced by new
 * clients that load a summary. A plain model has one entry for each final id and needs no search. From the part of the
 * order that a client has received, the model computes what each conversion by this client must return.
 */
#ifndef COMPRESSOR_HISTORY_H
#define COMPRESSOR_HISTORY_H

#include <stddef.h>

/* Run the history that 'data' describes. Returns NULL, or a constant text that describes the first error. */
const char *history_run (const unsigned char *data, size_t size);

#endif /* COMPRESSOR_HISTORY_H */
