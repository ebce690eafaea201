/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* visibility_test.c - the line rises, and jobs become visible when a group has ended */
#include "test/tap.h"
#include "modules/ingest/root/visibility.h"

int main (void)
{
    struct visibility l;

    visibility_init (&l, 100, 100);
    ok (l.shown == 100, "jobs up to the first line are visible immediately");
    visibility_watermark (&l, 50);
    ok (l.shown == 100, "a watermark below the line changes nothing");
    visibility_watermark (&l, 201);
    ok (l.shown == 200, "jobs with ids below the watermark are visible, and one with the watermark's id is not");
    visibility_watermark (&l, 150);
    ok (l.shown == 200, "a watermark that is below the last one is ignored");

    ok (visibility_begin (&l) == 200, "jobs of a group are late at or below the present line");
    visibility_watermark (&l, 301);
    ok (l.shown == 200, "while a group is being stored no further jobs become visible");
    visibility_end (&l, 0);
    ok (l.shown == 300, "when the group is stored, jobs below the watermark become visible");

    ok (visibility_begin (&l) == 300, "jobs of the next group are late at or below the new line");
    visibility_end (&l, 400);
    ok (l.shown == 400, "after a refused job the line is not below its id");
    ok (visibility_begin (&l) == 400, "jobs of the next group are late at or below the line that the refusal raised");
    visibility_end (&l, 350);
    ok (l.shown == 400, "a refused job below the line changes nothing");
    visibility_watermark (&l, 402);
    ok (l.shown == 401, "the watermark raises the line further");

    visibility_init (&l, 100, 100);
    visibility_time (&l, 50);
    ok (l.shown == 100, "the settle time changes nothing before the line's time");
    visibility_time (&l, 1100);
    ok (l.shown == (UINT64_C (1000) << 24) - 1, "jobs older than the settle time are visible");
    visibility_late (&l, UINT64_C (900) << 24, 1100);
    visibility_time (&l, 1300);
    ok (l.shown == (UINT64_C (1000) << 24) - 1, "after a late job the line waits");
    visibility_time (&l, 1500);
    ok (l.shown == (UINT64_C (1100) << 24) - 1,
        "after a late job the line stays behind by twice the time that the job was late");
    visibility_time (&l, 11101);
    visibility_time (&l, 21102);
    visibility_time (&l, 31103);
    ok (l.shown == (UINT64_C (31003) << 24) - 1,
        "without further late jobs the line follows the time more closely again");
    visibility_late (&l, 1, 100000);
    visibility_time (&l, 100000);
    ok (l.shown == (UINT64_C (99900) << 24) - 1, "a job that is more than a minute late does not hold back the line");

    visibility_init (&l, UINT64_MAX, 100);
    ok (visibility_begin (&l) == UINT64_MAX && l.shown == UINT64_MAX, "the line may be at the largest id");
    return done_testing ();
}
