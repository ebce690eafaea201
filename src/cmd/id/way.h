/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* way.h - the path of one request for ids: fluid.trace (modules/fluid/service/service.h) as text, JSON and spans */
#ifndef CMD_ID_WAY_H
#define CMD_ID_WAY_H

#include <idtree/fluid.h>

#include "cmd/base/cmd.h"

struct way;

/* Get 'n' ids (1 ... IDT_FLUID_MAX_COUNT) from 'rank' (IDT_NODEID_ANY: the nearest) into 'ids', and the path of the
 * request.  Its parent span is from TRACEPARENT, if that is set.  Ends the program if no ids arrive.
 */
struct way *way_ask (struct cmd *cmd, uint32_t rank, uint32_t n, fluid_t *ids);
void way_destroy (struct way *w); /* NULL is fine */

/* Print it: a table on stderr, as stdout has the ids; with --json one object on stdout. */
void way_print (const struct cmd *cmd, const struct way *w);

/* Append its spans to a file, as a line of OTLP's JSON (ExportTraceServiceRequest).  Ends the program if it cannot be
 * written.
 */
void way_write_spans (const struct cmd *cmd, const struct way *w, const char *file);

#endif /* CMD_ID_WAY_H */
