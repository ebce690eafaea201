/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_test.c - rounded times fall on few moments */
#include <stdlib.h>

#include "libutil/clock.h"
#include "test/tap.h"

#define NOW UINT64_C (123456789012)
#define NEAR 65536 /* us: times up to this are exact */

static void test_near (void)
{
    bool exact = true;

    for (uint64_t us = 0; us < NEAR; us++)
        exact = exact && clock_moment (NOW, NOW + us) == NOW + us;
    ok (exact && clock_moment (NOW, 0) == 0 && clock_moment (NOW, UINT64_MAX) == UINT64_MAX,
        "clock_moment () does not change a time that is near, has passed, or is UINT64_MAX");
}

static void test_late (void)
{
    bool good = true;

    for (int i = 0; i < 1000000; i++) {
        uint64_t us = (uint64_t)rand () << (rand () % 16) >> (rand () % 16),
                 late = clock_moment (NOW, NOW + us) - (NOW + us);

        good = good && late < CLOCK_MOMENT_US && late <= us / CLOCK_MOMENT_PART;
    }
    ok (good, "clock_moment () makes no time earlier, or later than the bound");
}

static void test_few (void)
{
    unsigned moments = 0;

    for (uint64_t us = 1000000, last = 0; us < 2000000; us++) {
        uint64_t at_us = clock_moment (NOW, NOW + us);

        moments += at_us != last;
        last = at_us;
    }
    ok (moments > 1 && moments <= 130, "clock_moment () moves the times of one second to %u different moments",
        moments);
}

int main (void)
{
    srand (1);
    test_near ();
    test_late ();
    test_few ();
    return done_testing ();
}
