/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pace_test.c - a time that was set is reached, even if events want the task again before */
#include "modules/ingest/root/visibility.h"
#include "test/tap.h"

/* Want the watermark in 20 ms after each millisecond, as a busy rank 0 does. Returns when the task is due; 0: never. */
static uint64_t busy (struct pace *p, uint64_t from_ms, uint64_t upto_ms)
{
    for (uint64_t now_ms = from_ms; now_ms < upto_ms; now_ms++) {
        if (pace_take (p, PACE_ASK, now_ms))
            return now_ms;
        pace_want (p, PACE_ASK, true, now_ms, 20);
    }
    return 0;
}

int main (void)
{
    struct pace p = { { 0 } };

    ok (pace_due (&p) == UINT64_MAX && !pace_take (&p, PACE_ASK, 1000), "a task that was not wanted is not due");
    ok (busy (&p, 1000, 15000) == 1020, "wanting a task again does not move its present time");
    ok (busy (&p, 1021, 15000) == 1041, "wanting a task again after it was due does not move its next time");

    pace_want (&p, PACE_AGAIN, true, 2000, 200);
    pace_want (&p, PACE_ASK, true, 2100, 20);
    ok (pace_due (&p) == 2120, "the earlier of two wanted tasks is due first");
    ok (!pace_take (&p, PACE_AGAIN, 2120) && pace_take (&p, PACE_ASK, 2120) && pace_due (&p) == 2200,
        "the later of two wanted tasks is due at its own time");
    ok (!pace_take (&p, PACE_AGAIN, 2199) && pace_take (&p, PACE_AGAIN, 2300), "a task whose time has passed is due");
    ok (!pace_take (&p, PACE_AGAIN, 2300) && pace_due (&p) == UINT64_MAX, "a task is due once");

    pace_want (&p, PACE_ASK, true, 3000, 20);
    pace_want (&p, PACE_ASK, false, 3010, 20);
    ok (pace_due (&p) == UINT64_MAX, "a cancelled task is not due");
    pace_want (&p, PACE_ASK, true, 3015, 20);
    ok (pace_due (&p) == 3035, "a cancelled task that is wanted again gets a new time");
    pace_want (&p, PACE_ASK, false, 0, 0);
    pace_want (&p, PACE_SLOW, true, 4000, 5000);
    ok (pace_due (&p) == 9000 && !pace_take (&p, PACE_SLOW, 8999) && pace_take (&p, PACE_SLOW, 9000),
        "the task for a slow disk has its own time");
    pace_want (&p, PACE_AGAIN, true, 0, 0);
    ok (pace_due (&p) == 1, "a task that is wanted at time 0 is due at 1");
    return done_testing ();
}
