/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* line_test.c - the line rises, and what is shown follows it when a group has ended */
#include "test/tap.h"
#include "modules/ingest/root/line.h"

int main (void)
{
    struct line l;

    line_init (&l, 100, 100);
    ok (line_shown (&l) == 100, "all up to the first line may be shown at once");
    line_watermark (&l, 50);
    ok (line_shown (&l) == 100, "a watermark below changes nothing");
    line_watermark (&l, 201);
    ok (line_shown (&l) == 200, "what is below the watermark is shown, and not its own id");
    line_watermark (&l, 150);
    ok (line_shown (&l) == 200, "one that goes back is not heard");

    ok (line_begin (&l) == 200, "a group is judged by the line as it is");
    line_watermark (&l, 301);
    ok (line_shown (&l) == 200, "while it is under way nothing more is shown");
    line_end (&l, 0);
    ok (line_shown (&l) == 300, "... and when it has ended, what the watermark allows");

    ok (line_begin (&l) == 300, "the next is judged by the new line");
    line_end (&l, 400);
    ok (line_shown (&l) == 400, "what was refused is below the line");
    ok (line_begin (&l) == 400, "... for the group that follows, too");
    line_end (&l, 350);
    ok (line_shown (&l) == 400, "a refusal below the line changes nothing");
    line_watermark (&l, 402);
    ok (line_shown (&l) == 401, "the watermark passes it");

    line_init (&l, 100, 100);
    line_time (&l, 50);
    ok (line_shown (&l) == 100, "a time that is younger than what settles changes nothing");
    line_time (&l, 1100);
    ok (line_shown (&l) == (UINT64_C (1000) << 24) - 1, "what is older than that is shown");
    line_late (&l, UINT64_C (900) << 24, 1100);
    line_time (&l, 1300);
    ok (line_shown (&l) == (UINT64_C (1000) << 24) - 1, "after a job that was late the line waits,");
    line_time (&l, 1500);
    ok (line_shown (&l) == (UINT64_C (1100) << 24) - 1, "... and is twice as far behind as that one was");
    line_time (&l, 11101);
    line_time (&l, 21102);
    line_time (&l, 31103);
    ok (line_shown (&l) == (UINT64_C (31003) << 24) - 1, "in calm it comes nearer again");
    line_late (&l, 1, 100000);
    line_time (&l, 100000);
    ok (line_shown (&l) == (UINT64_C (99900) << 24) - 1, "one that is a minute late does not hold it back");

    line_init (&l, UINT64_MAX, 100);
    ok (line_begin (&l) == UINT64_MAX && line_shown (&l) == UINT64_MAX, "the line may be where no id is above");
    return done_testing ();
}
