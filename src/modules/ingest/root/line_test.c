/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* line_test.c - the line rises, and jobs become visible when a group has ended */
#include "test/tap.h"
#include "modules/ingest/root/line.h"

int main (void)
{
    struct line l;

    line_init (&l, 100, 100);
    ok (line_shown (&l) == 100, "jobs up to the first line are visible immediately");
    line_watermark (&l, 50);
    ok (line_shown (&l) == 100, "a watermark below the line changes nothing");
    line_watermark (&l, 201);
    ok (line_shown (&l) == 200, "jobs below the watermark are visible, its own id is not");
    line_watermark (&l, 150);
    ok (line_shown (&l) == 200, "a watermark that goes back is ignored");

    ok (line_begin (&l) == 200, "a group is judged by the current line");
    line_watermark (&l, 301);
    ok (line_shown (&l) == 200, "while a group is under way no further jobs become visible");
    line_end (&l, 0);
    ok (line_shown (&l) == 300, "when the group has ended jobs below the watermark become visible");

    ok (line_begin (&l) == 300, "the next group is judged by the new line");
    line_end (&l, 400);
    ok (line_shown (&l) == 400, "a refused job is at or below the line");
    ok (line_begin (&l) == 400, "the next group is judged by the line that the refusal raised");
    line_end (&l, 350);
    ok (line_shown (&l) == 400, "a refusal below the line changes nothing");
    line_watermark (&l, 402);
    ok (line_shown (&l) == 401, "the watermark raises the line further");

    line_init (&l, 100, 100);
    line_time (&l, 50);
    ok (line_shown (&l) == 100, "a time below the settle time changes nothing");
    line_time (&l, 1100);
    ok (line_shown (&l) == (UINT64_C (1000) << 24) - 1, "jobs older than the settle time are visible");
    line_late (&l, UINT64_C (900) << 24, 1100);
    line_time (&l, 1300);
    ok (line_shown (&l) == (UINT64_C (1000) << 24) - 1, "after a late job the line waits");
    line_time (&l, 1500);
    ok (line_shown (&l) == (UINT64_C (1100) << 24) - 1, "the line stays twice as far behind as the job was late");
    line_time (&l, 11101);
    line_time (&l, 21102);
    line_time (&l, 31103);
    ok (line_shown (&l) == (UINT64_C (31003) << 24) - 1, "without late jobs the line follows more closely again");
    line_late (&l, 1, 100000);
    line_time (&l, 100000);
    ok (line_shown (&l) == (UINT64_C (99900) << 24) - 1,
        "a job that is more than a minute late does not hold back the line");

    line_init (&l, UINT64_MAX, 100);
    ok (line_begin (&l) == UINT64_MAX && line_shown (&l) == UINT64_MAX, "the line may be at the largest id");
    return done_testing ();
}
