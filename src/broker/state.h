/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.h - the states of a broker; a core
 *
 *     join ----joined----> run ----stop----> cleanup ----no children----> shutdown ----left----> exit
 *       `-------stop---------------------------^          (or timeout)              (or timeout)
 *
 * Brokers start from the root: a broker runs after its parent. Brokers stop from the leaves: cleanup lasts until all
 * children have left, shutdown until the parent has released the broker. broker.shutdown-timeout limits both.
 */
#ifndef BROKER_STATE_H
#define BROKER_STATE_H

#include <stdbool.h>

enum state { STATE_JOIN, STATE_RUN, STATE_CLEANUP, STATE_SHUTDOWN, STATE_EXIT };

enum state_input {
    STATE_JOINED,      /* the parent has accepted it (root: at start), and all modules run */
    STATE_STOP,        /* a signal, a request or the parent orders a stop */
    STATE_NO_CHILDREN, /* no child is connected */
    STATE_LEFT,        /* the parent has released the broker, or it has no parent */
    STATE_TIMEOUT,     /* of cleanup or shutdown */
};

/* The state that follows 'state' on 'input'; 'state' if the input has no effect there. */
enum state state_next (enum state state, enum state_input input);

const char *state_name (enum state state); /* "join", ... */

#endif /* BROKER_STATE_H */
