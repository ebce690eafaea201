/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lifecycle_test.c - the next state for each state and input, and properties that follow from these */
#include <string.h>

#include "broker/lifecycle.h"
#include "test/tap.h"

#define STATES (STATE_EXIT + 1)
#define INPUTS (STATE_TIMEOUT + 1)

/* The transitions that lifecycle.h shows. An input without a transition there has no effect. */
static const enum state expected[STATES][INPUTS] = {
    /*                   JOINED          STOP             NO_CHILDREN      LEFT            TIMEOUT */
    [STATE_JOIN] = { STATE_RUN, STATE_CLEANUP, STATE_JOIN, STATE_JOIN, STATE_JOIN },
    [STATE_RUN] = { STATE_RUN, STATE_CLEANUP, STATE_RUN, STATE_RUN, STATE_RUN },
    [STATE_CLEANUP] = { STATE_CLEANUP, STATE_CLEANUP, STATE_SHUTDOWN, STATE_CLEANUP, STATE_SHUTDOWN },
    [STATE_SHUTDOWN] = { STATE_SHUTDOWN, STATE_SHUTDOWN, STATE_SHUTDOWN, STATE_EXIT, STATE_EXIT },
    [STATE_EXIT] = { STATE_EXIT, STATE_EXIT, STATE_EXIT, STATE_EXIT, STATE_EXIT },
};

static void test_transitions (void)
{
    static const char *inputs[] = { "joined", "stop", "no children", "left", "timeout" };

    for (int s = 0; s < STATES; s++)
        for (int i = 0; i < INPUTS; i++)
            ok (state_next (s, i) == expected[s][i], "a broker in state %s changes, on input '%s', to state %s",
                state_name (s), inputs[i], state_name (expected[s][i]));
}

/* Try all sequences of as many inputs as there are states. */
static bool never_back (enum state state, int depth)
{
    for (int i = 0; depth > 0 && i < INPUTS; i++) {
        enum state next = state_next (state, i);

        if (next < state || !never_back (next, depth - 1))
            return false;
    }
    return true;
}

static void test_histories (void)
{
    bool bounded = true;

    ok (never_back (STATE_JOIN, STATES + 1), "no sequence of inputs leads a broker back to an earlier state");
    for (int s = STATE_JOIN; s < STATES; s++) {
        enum state end = state_next (s, STATE_STOP);

        end = state_next (state_next (end, STATE_TIMEOUT), STATE_TIMEOUT);
        bounded = bounded && end == STATE_EXIT;
    }
    ok (bounded, "from each state of a broker a stop and two timeouts lead to the exit");
}

int main (void)
{
    test_transitions ();
    test_histories ();
    ok (strcmp (state_name (STATE_JOIN), "join") == 0 && strcmp (state_name (STATE_RUN), "run") == 0
            && strcmp (state_name (STATE_CLEANUP), "cleanup") == 0
            && strcmp (state_name (STATE_SHUTDOWN), "shutdown") == 0 && strcmp (state_name (STATE_EXIT), "exit") == 0,
        "the states of a broker have the names that clients see");
    return done_testing ();
}
