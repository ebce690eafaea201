/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guard.h - a bound on what waits for a broker inside of a library, where no deadline can be given
 *
 * A handle can't be asked to give up while it fetches an attribute; a broker that is stopped would hold the command for
 * ever.
 */
#ifndef CMD_GUARD_H
#define CMD_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/base/cmd.h"

struct guard {
    const struct cmd *cmd;
    bool armed; /* the thread watches */
    pthread_t thread;
    uint64_t until_ms; /* of CLOCK_MONOTONIC */
    int ended_fd;      /* an eventfd */
};

/* From now on the program ends after --timeout, with a sentence about its broker.  'g' stays where it is until
 * guard_end ().
 */
void guard_begin (struct guard *g, const struct cmd *cmd);

/* The broker has answered. */
void guard_end (struct guard *g);

#endif /* CMD_GUARD_H */
