/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.h - ranks that an option names, and a question to each of them */
#ifndef CMD_RANKS_H
#define CMD_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/base/ask.h"

/* In increasing order, each once. */
struct ranks {
    uint32_t *rank;
    size_t n;
};

/* Whether 'text' (NULL: no) names several ranks, or may: it is no single number. */
bool ranks_are_many (const char *text);

/* Read "all", or ranks such as 0-3,17; connects.  Ends the program where 'text' is neither (CMD_USAGE), or names a rank
 * that the instance does not have.
 */
struct ranks ranks_read (struct cmd *cmd, const char *text);
void ranks_fini (struct ranks *r);

/* Called for each rank, in order: 'f' is fulfilled, by a result or an error; NULL: no answer came within --timeout. */
typedef void (*ranks_f) (uint32_t rank, idt_future_t *f, void *arg);

/* Ask all for 'topic' ('request' is borrowed; NULL: without a payload), some hundreds at the same time. */
void ranks_ask (struct cmd *cmd, const struct ranks *r, const char *topic, json_t *request, ranks_f take, void *arg);

/* Note in 'failed', an object, that a rank failed: 'f' is an error, or NULL.  Returns whether it did. */
bool ranks_note (json_t *failed, uint32_t rank, const idt_future_t *f);

/* The ranks that were noted, as ranges by why: a new reference. */
json_t *ranks_noted_new (struct cmd *cmd, const json_t *failed);

/* An array of ranks as ranges such as 0-3,17: a new reference. */
json_t *ranks_text_new (struct cmd *cmd, const json_t *ranks);

#endif /* CMD_RANKS_H */
