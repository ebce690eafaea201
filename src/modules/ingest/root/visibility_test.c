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
    ok (l.shown == 200, "jobs below the watermark are visible, its own id is not");
    visibility_watermark (&l, 150);
    ok (l.shown == 200, "a watermark that goes back is ignored");

    ok (visibility_begin (&l) == 200, "a group is judged by the current line");
    visibility_watermark (&l, 301);
    ok (l.shown == 200, "while a group is under way no further jobs become visible");
    visibility_end (&l, 0);
    ok (l.shown == 300, "when the group has ended jobs below the watermark become visible");

    ok (visibility_begin (&l) == 300, "the next group is judged by the new line");
    visibility_end (&l, 400);
    ok (l.shown == 400, "a refused job is at or below the line");
    ok (visibility_begin (&l) == 400, "the next group is judged by the line that the refusal raised");
    visibility_end (&l, 350);
    ok (l.shown == 400, "a refusal below the line changes nothing");
    visibility_watermark (&l, 402);
    ok (l.shown == 401, "the watermark raises the line further");

    visibility_init (&l, 100, 100);
    visibility_time (&l, 50);
    ok (l.shown == 100, "a time below the settle time changes nothing");
    visibility_time (&l, 1100);
    ok (l.shown == (UINT64_C (1000) << 24) - 1, "jobs older than the settle time are visible");
    visibility_late (&l, UINT64_C (900) << 24, 1100);
    visibility_time (&l, 1300);
    ok (l.shown == (UINT64_C (1000) << 24) - 1, "after a late job the line waits");
    visibility_time (&l, 1500);
    ok (l.shown == (UINT64_C (1100) << 24) - 1, "the line stays twice as far behind as the job was late");
    visibility_time (&l, 11101);
    visibility_time (&l, 21102);
    visibility_time (&l, 31103);
    ok (l.shown == (UINT64_C (31003) << 24) - 1, "without late jobs the line follows more closely again");
    visibility_late (&l, 1, 100000);
    visibility_time (&l, 100000);
    ok (l.shown == (UINT64_C (99900) << 24) - 1, "a job that is more than a minute late does not hold back the line");

    visibility_init (&l, UINT64_MAX, 100);
    ok (visibility_begin (&l) == UINT64_MAX && l.shown == UINT64_MAX, "the line may be at the largest id");
    return done_testing ();
}
