/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.c - the states of a broker, as a table */
#include "config.h"

#include <stddef.h>

#include "broker/state.h"

static const struct {
    enum state from;
    enum state_input input;
    enum state to;
} transitions[] = {
    { STATE_JOIN, STATE_JOINED, STATE_RUN },          { STATE_JOIN, STATE_STOP, STATE_CLEANUP },
    { STATE_RUN, STATE_STOP, STATE_CLEANUP },         { STATE_CLEANUP, STATE_NO_CHILDREN, STATE_SHUTDOWN },
    { STATE_CLEANUP, STATE_TIMEOUT, STATE_SHUTDOWN }, { STATE_SHUTDOWN, STATE_LEFT, STATE_EXIT },
    { STATE_SHUTDOWN, STATE_TIMEOUT, STATE_EXIT },
};

enum state state_next (enum state state, enum state_input input)
{
    for (size_t i = 0; i < sizeof (transitions) / sizeof (transitions[0]); i++)
        if (transitions[i].from == state && transitions[i].input == input)
            return transitions[i].to;
    return state;
}

const char *state_name (enum state state)
{
    static const char *names[] = { "join", "run", "cleanup", "shutdown", "exit" };

    return names[state];
}
