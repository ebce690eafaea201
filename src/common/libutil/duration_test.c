/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* duration_test.c - valid lengths of time and dates are read, other texts are refused */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "libutil/duration.h"
#include "test/tap.h"

static void test_durations (void)
{
    static const struct {
        const char *s;
        uint64_t ms;
    } good[] = { { "60", 60000 },
                 { "0", 0 },
                 { "1.5s", 1500 },
                 { "250ms", 250 },
                 { "2m", 120000 },
                 { "1h", 3600000 },
                 { "400d", 400 * 86400000ULL },
                 { "0.0015", 1 },
                 { "2.25m", 135000 },
                 { "0.5ms", 0 },
                 { "1.123456789h", 4044444 } };
    static const char *bad[] = { "", " 1", "1 ", "-1", "+1", "s", "1.", ".5", "1x", "1sec", "1e3", "0x10", "1s ", "١" };
    uint64_t ms = 0;

    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++)
        ok (parse_duration (good[i].s, UINT64_MAX, &ms) == 0 && ms == good[i].ms, "the duration '%s' is %llu ms",
            good[i].s, (unsigned long long)good[i].ms);
    ms = 7;
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        ok (parse_duration (bad[i], UINT64_MAX, &ms) < 0 && errno == EINVAL && ms == 7, "the duration '%s' is refused",
            bad[i]);
    ok (parse_duration ("61", 60000, &ms) < 0 && errno == ERANGE, "a duration above the maximum fails with ERANGE");
    ok (parse_duration ("99999999999999999999", UINT64_MAX, &ms) < 0 && errno == ERANGE,
        "a duration beyond 64 bits fails with ERANGE");
    ok (parse_duration ("18446744073709551615d", UINT64_MAX, &ms) < 0 && errno == ERANGE,
        "a duration whose milliseconds exceed 64 bits fails with ERANGE");
}

static void test_numbers (void)
{
    uint64_t n = 7;

    ok (parse_number ("16384", 1, 16384, &n) == 0 && n == 16384, "a number within its limits is read");
    ok (parse_number ("18446744073709551615", 0, UINT64_MAX, &n) == 0 && n == UINT64_MAX,
        "the largest 64-bit number is read");
    ok (parse_number ("18446744073709551616", 0, UINT64_MAX, &n) < 0 && errno == ERANGE,
        "a number beyond 64 bits fails with ERANGE");
    ok (parse_number ("0", 1, 5, &n) < 0 && errno == ERANGE && parse_number ("6", 1, 5, &n) < 0 && errno == ERANGE
            && parse_number ("6", 1, 4, &n) < 0 && errno == ERANGE,
        "a number outside its limits fails with ERANGE");
    ok (parse_number ("5x", 1, 9, &n) < 0 && errno == EINVAL && parse_number ("", 1, 9, &n) < 0 && errno == EINVAL,
        "reading a number fails with EINVAL if the text is not a number");
}

static void test_dates (void)
{
    static const struct {
        const char *s;
        int64_t ms;
    } good[] = { { "1970-01-01T00:00:00Z", 0 },
                 { "2026-01-01T00:00:00Z", 1767225600000 },
                 { "2026-01-01", 1767225600000 },
                 { "2024-02-29T12:34:56.789Z", 1709210096789 },
                 { "2026-01-01t01:30:00.2509+01:30", 1767225600250 },
                 { "2025-12-31 19:00:00-05:00", 1767225600000 },
                 { "9999-12-31T23:59:59.999Z", 253402300799999 } };
    static const char *bad[] = { "",
                                 "2026",
                                 "2026-01",
                                 "2026-01-01 ",
                                 "2026-01-01T",
                                 "2026-02-30",
                                 "1969-12-31",
                                 "+026-01-01",
                                 "2026-01-01T00:00:00",
                                 "2026-13-01T00:00:00Z",
                                 "2026-02-29T00:00:00Z",
                                 "2026-00-10T00:00:00Z",
                                 "2026-01-00T00:00:00Z",
                                 "1969-12-31T00:00:00Z",
                                 "2026-01-01T24:00:00Z",
                                 "2026-01-01T00:60:00Z",
                                 "2026-01-01T00:00:00.Z",
                                 "2026-01-01T00:00:00Zx",
                                 "2026-1-1T00:00:00Z",
                                 "2026-01-01T00:00:00+1:00",
                                 "1900-02-29T00:00:00Z",
                                 "1970-01-01T00:00:00+00:01",
                                 "9999-12-31T23:59:59-00:01" };
    int64_t ms;
    int wrong = 0;

    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++)
        ok (parse_date (good[i].s, &ms) == 0 && ms == good[i].ms, "the date %s is %lld", good[i].s,
            (long long)good[i].ms);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        ok (parse_date (bad[i], &ms) < 0 && errno == EINVAL, "the text '%s' is not a date", bad[i]);
    for (int64_t day = 0; day < 2932896; day++) { /* to the end of the year 9999 */
        char text[DATE_SIZE], expect[DATE_SIZE];
        time_t t = day * 86400 + day % 86400;
        struct tm tm;

        gmtime_r (&t, &tm);
        strftime (expect, sizeof (expect), "%Y-%m-%dT%H:%M:%S.123Z", &tm);
        format_date (t * 1000 + 123, text);
        if (strcmp (text, expect) != 0 || parse_date (text, &ms) < 0 || ms != t * 1000 + 123)
            wrong++;
    }
    ok (wrong == 0, "each day of the years 1970 to 9999 is written and read correctly");
    char text[DATE_SIZE];
    ok (strcmp (format_date (-1, text), "1969-12-31T23:59:59.999Z") == 0, "a time before 1970 is written correctly");
}

static void test_switches (void)
{
    static const char *const on[] = { "true", "on", "yes", "1" }, *const off[] = { "false", "off", "no", "0" };
    static const char *const bad[] = { "", "2", "t", "yesno", "on ", " on", "-1", "maybe" };
    bool value = false;

    for (size_t i = 0; i < 4; i++)
        ok (parse_switch (on[i], &value) == 0 && value && parse_switch (off[i], &value) == 0 && !value,
            "the switch '%s' is true and '%s' is false", on[i], off[i]);
    value = true;
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        ok (parse_switch (bad[i], &value) < 0 && errno == EINVAL && value, "the switch '%s' is refused", bad[i]);
}

int main (void)
{
    test_switches ();
    test_durations ();
    test_numbers ();
    test_dates ();
    return done_testing ();
}
