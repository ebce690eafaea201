/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.h - send one request and return its answer, or end the program with a message */
#ifndef CMD_ASK_H
#define CMD_ASK_H

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/cmd.h"

/* Connect, send 'request' (stolen; NULL: no payload) and remember its service and rank for the message of a timeout.
 * Returns NULL with errno set if it cannot be sent.
 */
idt_future_t *ask_send (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* The same for a stream of answers.  An answer of a stream may take any time: wait for the first one with ask_ready ()
 * only if the service sends it immediately, and for all others with ask_next ().
 */
idt_future_t *ask_stream (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* Remember the service and rank of a request that the caller sends itself. */
void ask_note (struct cmd *cmd, const char *topic, uint32_t nodeid);

/* Wait until 'f' is fulfilled, by a result or an error, and return it.  'f' may be NULL if the request could not be
 * sent.  After --timeout find out which broker or service does not answer, and end the program with "WHAT: no answer
 * ...".
 */
idt_future_t *ask_ready (const struct cmd *cmd, idt_future_t *f, const char *what);

/* The same without a limit of time: --timeout does not apply. */
idt_future_t *ask_next (const struct cmd *cmd, idt_future_t *f, const char *what);

/* As ask_ready (); if the answer is an error, end the program with "WHAT: why". */
idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what);

/* The part of idtree that runs inside Flux.  It follows "serves" in a sentence. */
#define ASK_IN_FLUX "only fluids: flux exec -r all flux module load .../idtree/flux/idtree-flux.so (doc/design/flux.md)"

/* If 'f' (fulfilled) failed with ENOSYS and the broker belongs to Flux, end the program with a sentence that says what
 * is served there.
 */
void ask_check_flux (const struct cmd *cmd, const idt_future_t *f, const char *what);

/* End the program because no answer arrived: "WHAT: no answer within 30 s: ...". */
void ask_blame (const struct cmd *cmd, const char *what) __attribute__ ((noreturn));

/* The remaining time in ms to wait for the answer to a request that was sent at 'since_ms' (clock_ms ()).  Negative:
 * without end.
 */
double ask_left_ms (const struct cmd *cmd, uint64_t since_ms);

/* Wait as above for the answer of 'f' (stolen) and return its object, a new reference.  An empty answer becomes an
 * empty object.
 */
json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Connect, send 'request' (stolen; NULL: no payload) to 'nodeid', wait for the answer and return its object, a new
 * reference.
 */
json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what);

/* Digits of real numbers, for jansson: few enough that rounding errors do not show (0.3, and not 0.30000000000000004).
 */
#define ASK_REALS JSON_REAL_PRECISION (15)

/* Print an answer on one line, as JSON. */
void ask_print (const struct cmd *cmd, const json_t *answer);

/* Print each element of an array on its own line.  All commands that list something use this. */
void ask_print_lines (const struct cmd *cmd, const json_t *array);

/* Print the members of an object for people, one a line: 'prefix' and the key, padded to 'columns' (0: to the longest
 * one) and followed by at least one blank, then the text of the value, or its JSON (with 'flags' of jansson).  null is
 * printed as -, a list with commas, the members of an object behind its key, and an array of objects as a table after
 * all others.
 */
void ask_print_members (const json_t *o, const char *prefix, int columns, size_t flags);

#endif /* CMD_ASK_H */
