/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.h - read the ranks that an option names, and send a request to each */
#ifndef CMD_RANKS_H
#define CMD_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/base/ask.h"

/* in increasing order, without duplicates */
struct ranks {
    uint32_t *rank;
    size_t n;
};

/* Whether 'text' (NULL: no) may name several ranks: it is not a single number. */
bool ranks_are_many (const char *text);

/* Read "all", or ranks such as 0-3,17.  Connects to the broker.  Ends the program if 'text' is neither (CMD_USAGE), or
 * names a rank that the instance does not have.
 */
struct ranks ranks_read (struct cmd *cmd, const char *text);
void ranks_fini (struct ranks *r);

/* Called for each rank, in order.  'f' is fulfilled, by a result or an error.  NULL: no answer arrived within
 * --timeout.
 */
typedef void (*ranks_f) (uint32_t rank, idt_future_t *f, void *arg);

/* Send 'topic' to all ranks ('request' is borrowed; NULL: without a payload), up to 512 of them concurrently. */
void ranks_ask (struct cmd *cmd, const struct ranks *r, const char *topic, json_t *request, ranks_f take, void *arg);

/* If 'f' is NULL or an error, add the rank to 'failed', an object.  Returns whether the rank failed. */
bool ranks_note (json_t *failed, uint32_t rank, const idt_future_t *f);

/* The ranks in 'failed' as ranges by reason: a new reference. */
json_t *ranks_noted_new (struct cmd *cmd, const json_t *failed);

/* An array of ranks as text with ranges such as 0-3,17: a new reference. */
json_t *ranks_text_new (struct cmd *cmd, const json_t *ranks);

#endif /* CMD_RANKS_H */
