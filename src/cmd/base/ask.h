/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.h - one request, its answer, or the end of the program with a sentence */
#ifndef CMD_ASK_H
#define CMD_ASK_H

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/cmd.h"

/* Connect, send 'request' (stolen; NULL: no payload) and remember whom it is for.  Returns NULL with errno set where it
 * cannot be sent.
 */
idt_future_t *ask_send (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* The same for a stream of answers.  It tells of itself when there is something to tell: only its first answer may be
 * waited for with ask_ready (), and only where one comes at once; all others with ask_next ().
 */
idt_future_t *ask_stream (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* Remember whom a request is for that is sent in another way. */
void ask_note (struct cmd *cmd, const char *topic, uint32_t nodeid);

/* Wait until 'f' (which may be NULL: it could not be sent) is fulfilled, by a result or an error, and return it.  Where
 * that takes longer than --timeout find out who does not answer, and end the program with "WHAT: no answer ...".
 */
idt_future_t *ask_ready (const struct cmd *cmd, idt_future_t *f, const char *what);

/* The same for what may take as long as it likes: --timeout is nothing to it. */
idt_future_t *ask_next (const struct cmd *cmd, idt_future_t *f, const char *what);

/* As ask_ready (); where it is an error end the program with "WHAT: why". */
idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what);

/* What there is of us in Flux, behind "serves". */
#define ASK_IN_FLUX \
    "fluids alone: flux exec -r all flux module load .../idtree/flux/idtree-flux.so (doc/design/flux.md)"

/* Where 'f' (fulfilled) says that nobody serves it, and the broker is one of Flux's, end the program with a sentence
 * that says what is served there.
 */
void ask_check_flux (const struct cmd *cmd, const idt_future_t *f, const char *what);

/* End the program for want of an answer: "WHAT: no answer within 30 s: ...". */
void ask_blame (const struct cmd *cmd, const char *what) __attribute__ ((noreturn));

/* How long to wait yet, in ms, for the answer to what was asked at 'since_ms' (clock_ms ()); negative: for ever. */
double ask_left_ms (const struct cmd *cmd, uint64_t since_ms);

/* Wait as above for the answer of 'f' (stolen) and return its object, a new reference; an empty answer is an empty
 * object.
 */
json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Connect, send 'request' (stolen; NULL: no payload) to 'nodeid' and return the answer's object: all of the above.
 */
json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what);

/* For jansson: digits of real numbers, so many that they do not tell how it was computed: 0.3, and not
 * 0.30000000000000004.
 */
#define ASK_REALS JSON_REAL_PRECISION (15)

/* Print an answer on one line, as JSON. */
void ask_print (const struct cmd *cmd, const json_t *answer);

/* Print each element of an array on a line of its own, as all commands that list things do. */
void ask_print_lines (const struct cmd *cmd, const json_t *array);

/* Print the members of an object for people, one a line: 'prefix' and its key, filled up to 'columns' (0: as many as
 * the longest needs) by one blank at least, then the text that it is, or its JSON (with 'flags' of jansson).  null is
 * -, a list has commas, the members of an object follow its key, and an array of objects is a table, behind all others.
 */
void ask_print_members (const json_t *o, const char *prefix, int columns, size_t flags);

#endif /* CMD_ASK_H */
