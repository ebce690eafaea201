/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* poll.h - get the state and the counters of each rank of a subtree */
#ifndef CMD_TOP_POLL_H
#define CMD_TOP_POLL_H

#include "cmd/base/cmd.h"
#include "cmd/top/top_model.h"

struct round {
    struct cmd *cmd;
    struct top_model *board;
    unsigned waiting; /* number of answers that are still missing; 0: no round is running */
    void (*done) (void *arg);
    void *arg;
};

/* Begin a round: send requests to 'root' and all ranks below it.  'done' is called once, from the reactor, when the
 * model has ended its round.  No other round may be running.
 */
void round_begin (struct round *r, uint32_t root);

#endif /* CMD_TOP_POLL_H */
