/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* date_test.c - dates as people and brokers write them */
#include <errno.h>
#include <string.h>

#include "cmd/id/date.h"
#include "test/tap.h"

static bool reads (const char *s, int64_t expect)
{
    int64_t ms = -1;

    return date_parse (s, &ms) == 0 && ms == expect;
}

int main (void)
{
    static const char *const bad[] = {
        "",
        "today",
        "2026",
        "2026-11",
        "2026-1-01",
        "2026-02-30",
        "2026-13-01",
        "1969-12-31",
        "2026-11-21 ",
        "2026-11-21T00:00:00",
        "2026-11-21T24:00:00Z",
        "2026-11-21T00:60:00Z",
        "2026-11-21 00:00:00Z",
        "2026-11-21T00:00:00.00Z",
        "2026-11-21T00:00:00.0000Z",
        "2026-11-21T00:00:00+00:00",
        "+026-11-21",
        "2026-11-21T-1:00:00Z",
        "2026-11-21T00:00:60Z",
    };
    char buf[DATE_SIZE];
    int refused = 0, same = 0, n = sizeof (bad) / sizeof (bad[0]);

    ok (reads ("1970-01-01", 0), "1970-01-01 is 0");
    ok (reads ("2026-11-21", INT64_C (1795219200000)), "a day is its first millisecond");
    ok (reads ("2026-11-21T10:11:12Z", INT64_C (1795255872000)), "a second needs no fraction");
    ok (reads ("2026-11-21T10:11:12.345Z", INT64_C (1795255872345)), "a fraction has three digits");
    ok (reads ("2024-02-29", INT64_C (1709164800000)), "a leap day is a day");
    for (int i = 0; i < n; i++) {
        int64_t ms = 5;
        bool good = date_parse (bad[i], &ms) < 0 && errno == EINVAL && ms == 5;

        if (!good)
            diag ("'%s' was taken", bad[i]);
        refused += good;
    }
    ok (refused == n, "EINVAL: %d texts that are no date", n);
    for (int64_t ms = 1; ms < INT64_C (250000000000000); ms *= 7)
        same += reads (format_date (ms, buf), ms) ? 0 : 1;
    ok (same == 0, "what is written is read as the same, up to year 9892");
    return done_testing ();
}
