/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.h - one request, its answer, or the end of the program with a sentence */
#ifndef CMD_ASK_H
#define CMD_ASK_H

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/cmd.h"

/* Wait for the answer of 'f' (which may be NULL: it could not be sent) and return it.  Where it
 * is an error end the program with "WHAT: why".
 */
idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Send 'request' (stolen; NULL: no payload).  Returns NULL with errno set where it cannot be sent. */
idt_future_t *ask_send (idt_t *h, const char *topic, uint32_t nodeid, json_t *request);

/* Wait as above for the answer of 'f' (stolen) and return its object, a new reference; an empty answer is an empty
 * object.
 */
json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Connect, send 'request' (stolen; NULL: no payload) to 'nodeid' and return the answer's object: all of the above.
 */
json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what);

/* Print an answer on one line, as JSON. */
void ask_print (const struct cmd *cmd, const json_t *answer);

/* Print the members of an object, one a line: 'prefix' and its key, filled up to 'columns' by one blank at least,
 * then the
 * text that it is, or its JSON (with 'flags' of jansson).
 */
void ask_print_members (const json_t *o, const char *prefix, int columns, size_t flags);

#endif /* CMD_ASK_H */
