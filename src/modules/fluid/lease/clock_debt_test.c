/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_debt_test.c - crashes carry rank 0 ahead of the wall clock by a bound, however many there are */
#include "test/tap.h"
#include "modules/fluid/lease/clock_debt.h"

#define LEASE 60000U

/* A root starts at the horizon, stores another, lives for 'up_ms' with that, and crashes; again and again. */
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
    ok (ahead (&l) == 2 * LEASE && l.waited_ms == 0, "a root that never crashed stores two leases ahead");
    for (int i = 1; i < 20; i++)
        crash (&l, 10);
    ok (ahead (&l) <= AHEAD_MAX_MS (LEASE) + LEASE / 12, "twenty crashes cost eight leases at most: %llu s",
        (unsigned long long)(ahead (&l) / 1000));
    for (int i = 0; i < 1000; i++)
        crash (&l, 10);
    ok (ahead (&l) <= AHEAD_MAX_MS (LEASE) + LEASE / 6 && l.waited_ms <= LEASE / 12,
        "and a thousand more nothing: %llu s, each start waits %llu ms", (unsigned long long)(ahead (&l) / 1000),
        (unsigned long long)l.waited_ms);
    ok (clock_debt_reach (&l.a, l.a.start_us) == LEASE / 12, "what is stored reaches not far then");
    ok (clock_debt_reach (&l.a, l.a.start_us + UINT64_C (480000000)) == LEASE
            && clock_debt_reach (&l.a, l.a.start_us + UINT64_C (9000000000)) == 2 * LEASE,
        "further the longer it stays up");
    l.wall_ms = l.horizon_ms;
    crash (&l, 0);
    ok (ahead (&l) == 2 * LEASE, "when the wall clock has passed it nothing is owed");

    uint64_t up = 0, worst = 0;
    l = (struct loop){ .wall_ms = 1000000 };
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t ms = i * UINT64_C (2654435761) % 700000;
        crash (&l, ms);
        up += ms;
        uint64_t over = ahead (&l) > AHEAD_MAX_MS (LEASE) + up / 8 ? ahead (&l) - AHEAD_MAX_MS (LEASE) - up / 8 : 0;
        worst = over > worst ? over : worst;
    }
    ok (worst <= LEASE / 6, "lives of any length cost an eighth of theirs besides");

    struct ahead a;
    ok (clock_debt_start (&a, LEASE, 0, 0, 3600000) == 0 && clock_debt_reach (&a, 0) == 2 * LEASE,
        "being ahead for another reason, as a wall clock that was wrong, costs nothing");
    return done_testing ();
}
