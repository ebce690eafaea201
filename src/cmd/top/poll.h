/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* poll.h - each rank of a subtree is asked how it is, and what it counts */
#ifndef CMD_TOP_POLL_H
#define CMD_TOP_POLL_H

#include "cmd/base/cmd.h"
#include "cmd/top/top_model.h"

struct round {
    struct cmd *cmd;
    struct top_model *board;
    unsigned waiting; /* for so many answers; 0: no round goes on */
    void (*done) (void *arg);
    void *arg;
};

/* Ask all below 'root'; 'done' is called once, from the reactor, when the board has ended its round.  Not while one
 * goes on.
 */
void round_begin (struct round *r, uint32_t root);

#endif /* CMD_TOP_POLL_H */
