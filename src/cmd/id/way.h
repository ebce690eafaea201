/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* way.h - the path of one request for ids: fluid.trace (modules/fluid/service/service.h) as text, JSON and spans */
#ifndef CMD_ID_WAY_H
#define CMD_ID_WAY_H

#include <idtree/fluid.h>

#include "cmd/base/cmd.h"

struct way;

/* Get 'n' ids (1 ... IDT_FLUID_MAX_COUNT) from 'rank' (IDT_NODEID_ANY: from the nearest rank) into 'ids', and the path
 * of this request.  If TRACEPARENT is set, it names the parent span of the request.  Ends the program if no ids arrive.
 */
struct way *way_ask (struct cmd *cmd, uint32_t rank, uint32_t n, fluid_t *ids);
void way_destroy (struct way *w); /* 'w' may be NULL */

/* Print the path: as a table on stderr, because stdout has the ids; with --json as one object on stdout. */
void way_print (const struct cmd *cmd, const struct way *w);

/* Append the spans of the path to a file, as a line of OTLP's JSON (ExportTraceServiceRequest).  Ends the program if
 * the file cannot be written.
 */
void way_write_spans (const struct cmd *cmd, const struct way *w, const char *file);

#endif /* CMD_ID_WAY_H */
