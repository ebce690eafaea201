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

/* Wait as above for the answer of 'f' (stolen) and return its object, a new reference; an empty answer is an empty object.
 */
json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Send 'request' (stolen; NULL: no payload) and return the answer's object: both of the above.
 */
json_t *ask_new (const struct cmd *cmd, idt_t *h, const char *topic, uint32_t nodeid, json_t *request,
                 const char *what);

/* "rank 3", "the broker" in 'buf', for messages.  Returns 'buf'. */
const char *ask_whom (uint32_t nodeid, char buf[32]);

#endif /* CMD_ASK_H */
