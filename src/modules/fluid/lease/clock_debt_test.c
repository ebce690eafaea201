/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_debt_test.c - any number of crashes puts rank 0 ahead of the wall clock by a limited time */
#include "test/tap.h"
#include "modules/fluid/lease/clock.h"

#define LEASE 60000U

/* A root starts at the horizon, stores another one, runs for 'up_ms', and crashes; repeatedly. */
struct loop {
    uint64_t horizon_ms, stored_ms, wall_ms, waited_ms;
    struct ahead a;
};

static void crash (struct loop *l, uint64_t up_ms)
{
    int64_t ahead_ms = (int64_t)(l->horizon_ms - l->wall_ms);
    uint64_t now_ms = l->horizon_ms > l->wall_ms ? l->horizon_ms : l->wall_ms;
    uint64_t wait_ms = clock_debt_start (&l->a, LEASE, l->wall_ms * 1000, l->stored_ms, ahead_ms);

    l->waited_ms = wait_ms;
    l->wall_ms += wait_ms + up_ms;
    now_ms += up_ms;
    l->horizon_ms = now_ms + clock_debt_reach (&l->a, l->wall_ms * 1000);
    l->stored_ms = clock_debt_stored (&l->a, now_ms, l->horizon_ms, (int64_t)(now_ms - l->wall_ms));
}

static uint64_t ahead (const struct loop *l)
{
    return l->horizon_ms - l->wall_ms;
}

int main (void)
{
    struct loop l = { .wall_ms = 1000000 };

    crash (&l, 0);
    ok (ahead (&l) == 2 * LEASE && l.waited_ms == 0, "a root without crashes stores a horizon two leases ahead");
    for (int i = 1; i < 20; i++)
        crash (&l, 10);
    ok (ahead (&l) <= AHEAD_MAX_MS (LEASE) + LEASE / 12,
        "twenty crashes cause a clock debt of at most eight leases: %llu s", (unsigned long long)(ahead (&l) / 1000));
    for (int i = 0; i < 1000; i++)
        crash (&l, 10);
    ok (ahead (&l) <= AHEAD_MAX_MS (LEASE) + LEASE / 6 && l.waited_ms <= LEASE / 12,
        "a thousand further crashes do not increase the clock debt: %llu s, each start waits %llu ms",
        (unsigned long long)(ahead (&l) / 1000), (unsigned long long)l.waited_ms);
    ok (clock_debt_reach (&l.a, l.a.start_us) == LEASE / 12,
        "a root with the largest clock debt stores the horizon a twelfth of a lease ahead");
    ok (clock_debt_reach (&l.a, l.a.start_us + UINT64_C (480000000)) == LEASE
            && clock_debt_reach (&l.a, l.a.start_us + UINT64_C (9000000000)) == 2 * LEASE,
        "a root with clock debt stores the horizon further ahead the longer it has been up");
    l.wall_ms = l.horizon_ms;
    crash (&l, 0);
    ok (ahead (&l) == 2 * LEASE, "the clock debt is 0 when the wall clock has reached the horizon");

    uint64_t up = 0, worst = 0;
    l = (struct loop){ .wall_ms = 1000000 };
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t ms = i * UINT64_C (2654435761) % 700000;
        crash (&l, ms);
        up += ms;
        uint64_t over = ahead (&l) > AHEAD_MAX_MS (LEASE) + up / 8 ? ahead (&l) - AHEAD_MAX_MS (LEASE) - up / 8 : 0;
        worst = over > worst ? over : worst;
    }
    ok (worst <= LEASE / 6,
        "crashes after lives of any length increase the clock debt by at most an eighth of these lives");

    struct ahead a;
    ok (clock_debt_start (&a, LEASE, 0, 0, 3600000) == 0 && clock_debt_reach (&a, 0) == 2 * LEASE,
        "a horizon that is ahead for another reason than crashes, such as a wrong wall clock, is no clock debt");
    return done_testing ();
}
