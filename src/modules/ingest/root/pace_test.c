/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pace_test.c - a time that was set is reached, whatever happens until then */
#include "modules/ingest/root/pace.h"
#include "test/tap.h"

/* Work ends each millisecond, and wants the watermark in 20 each time.  Returns when that is asked for; 0: never. */
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

    ok (pace_due (&p) == UINT64_MAX && !pace_take (&p, PACE_ASK, 1000), "nothing is due that nobody wanted");
    ok (busy (&p, 1000, 15000) == 1020, "events that want the same again do not push its time forward");
    ok (busy (&p, 1021, 15000) == 1041, "... nor that of the next");

    pace_want (&p, PACE_AGAIN, true, 2000, 200);
    pace_want (&p, PACE_ASK, true, 2100, 20);
    ok (pace_due (&p) == 2120, "the earlier of two is due first");
    ok (!pace_take (&p, PACE_AGAIN, 2120) && pace_take (&p, PACE_ASK, 2120) && pace_due (&p) == 2200,
        "... and the other at its own time");
    ok (!pace_take (&p, PACE_AGAIN, 2199) && pace_take (&p, PACE_AGAIN, 2300), "what is late is due, too");
    ok (!pace_take (&p, PACE_AGAIN, 2300) && pace_due (&p) == UINT64_MAX, "... once");

    pace_want (&p, PACE_ASK, true, 3000, 20);
    pace_want (&p, PACE_ASK, false, 3010, 20);
    ok (pace_due (&p) == UINT64_MAX, "what is no longer wanted has no time");
    pace_want (&p, PACE_ASK, true, 3015, 20);
    ok (pace_due (&p) == 3035, "... and gets one of its own when it is wanted again");
    pace_want (&p, PACE_ASK, false, 0, 0);
    pace_want (&p, PACE_SLOW, true, 4000, 5000);
    ok (pace_due (&p) == 9000 && !pace_take (&p, PACE_SLOW, 8999) && pace_take (&p, PACE_SLOW, 9000),
        "a disk that does not answer has a time, too");
    pace_want (&p, PACE_AGAIN, true, 0, 0);
    ok (pace_due (&p) == 1, "a clock at its beginning is none that is not set");
    return done_testing ();
}
