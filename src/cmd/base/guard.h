/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guard.h - limit the time that a library function waits for a broker, where the function takes no deadline
 *
 * A handle has no timeout while it gets an attribute: without a guard, a stopped broker would block the command without
 * end.
 */
#ifndef CMD_GUARD_H
#define CMD_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/base/cmd.h"

struct guard {
    const struct cmd *cmd;
    bool armed; /* the thread runs */
    pthread_t thread;
    uint64_t until_ms; /* of CLOCK_MONOTONIC */
    int ended_fd;      /* an eventfd */
};

/* End the program --timeout from now, with a message about its broker.  'g' must stay at its address until guard_end
 * ().  Does nothing if --timeout is 0.
 */
void guard_begin (struct guard *g, const struct cmd *cmd);

/* Stop the thread: the broker has answered.  Keeps errno. */
void guard_end (struct guard *g);

#endif /* CMD_GUARD_H */
