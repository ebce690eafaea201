/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.h - the life of a broker; a thinking part
 *
 *     join ----joined----> run ----stop----> cleanup ----no children----> shutdown ----left----> exit
 *       `-------stop---------------------------^          (or timeout)              (or timeout)
 *
 * Starts root first: a broker runs when its parent does.  Stops leaf first: cleanup lasts until the children are gone,
 * shutdown until the parent let us go; both are bounded by broker.shutdown-timeout.
 */
#ifndef BROKER_STATE_H
#define BROKER_STATE_H

#include <stdbool.h>

enum state { STATE_JOIN, STATE_RUN, STATE_CLEANUP, STATE_SHUTDOWN, STATE_EXIT };

enum state_input {
    STATE_JOINED,      /* the parent took us in (root: at once), and all modules run */
    STATE_STOP,        /* a signal, a request, the parent: stop */
    STATE_NO_CHILDREN, /* nobody below us is left */
    STATE_LEFT,        /* the parent let us go, or there is none */
    STATE_TIMEOUT,     /* of cleanup or shutdown */
};

/* The state that follows 'state' on 'input'; the same where it changes nothing. */
enum state state_next (enum state state, enum state_input input);

const char *state_name (enum state state); /* "join", ... */

#endif /* BROKER_STATE_H */
