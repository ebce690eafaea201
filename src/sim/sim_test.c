/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim_test.c - plays a number of simulated histories, and tests the checker */
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "sim/sim_check.h"
#include "sim/sim.h"

static fluid_t make_id (uint64_t ms, uint32_t generator, uint32_t sequence)
{
    return ms << 24 | (uint64_t)generator << 10 | sequence;
}

static void test_judge (void)
{
    struct sim_check *c = sim_check_create ();

    sim_check_hold (c, 3, 1, 10, 20);
    sim_check_hold (c, 3, 1, 10, 30);
    sim_check_hold (c, 3, 2, 30, 40);
    sim_check_issue (c, &(struct id_run){ make_id (29, 3, 0), 1024 });
    sim_check_issue (c, &(struct id_run){ make_id (30, 3, 5), 5 });
    ok (!sim_check_violation (c) && sim_check_ids (c) == 1029, "the checker accepts a correct history");
    sim_check_close (c, 3, 1, 25);
    sim_check_hold (c, 3, 4, 25, 30);
    ok (!sim_check_violation (c), "the checker accepts a range that was returned and is then held by another life");
    sim_check_issue (c, &(struct id_run){ make_id (30, 3, 9), 1 });
    ok (sim_check_violation (c) != NULL, "the checker detects a duplicate id: %s", sim_check_violation (c));
    sim_check_destroy (c);

    c = sim_check_create ();
    sim_check_hold (c, 3, 1, 10, 20);
    sim_check_hold (c, 3, 2, 19, 21);
    ok (sim_check_violation (c) != NULL, "the checker detects two lives that hold the same millisecond: %s",
        sim_check_violation (c));
    sim_check_destroy (c);

    c = sim_check_create ();
    sim_check_hold (c, 3, 1, 10, 20);
    sim_check_issue (c, &(struct id_run){ make_id (20, 3, 0), 1 });
    ok (sim_check_violation (c) != NULL, "the checker detects an id outside all held ranges: %s",
        sim_check_violation (c));
    sim_check_destroy (c);
}

/* Play 'count' histories, beginning with 'seed', and report the first one that fails. */
static void play (uint64_t seed, uint64_t count, uint32_t nodes, uint64_t steps)
{
    struct sim_result sum = { .events = 0 };

    for (uint64_t s = seed; s < seed + count; s++) {
        struct sim_config config = { .seed = s, .nodes = nodes, .steps = steps };

        sim_run (&config, &sum);
        if (sum.violation[0] != '\0') {
            ok (false, "seed %llu: %s (again: fluid-sim -s %llu -c 1 -n %u -e %llu -v)", (unsigned long long)s,
                sum.violation, (unsigned long long)s, (unsigned)nodes, (unsigned long long)steps);
            return;
        }
    }
    ok (sum.ids > 0, "%llu histories: %llu ids, %llu faults, %llu lives of brokers, no duplicate",
        (unsigned long long)count, (unsigned long long)sum.ids, (unsigned long long)sum.faults,
        (unsigned long long)sum.lives);
}

/* As play (), with other roots that take over. */
static void play_standby (uint64_t seed, uint64_t count, uint64_t steps)
{
    struct sim_result sum = { .events = 0 };
    uint64_t s = seed;

    for (; s < seed + count && sum.violation[0] == '\0'; s++)
        sim_run (&(struct sim_config){ .seed = s, .steps = steps, .standby = true }, &sum);
    if (sum.violation[0] != '\0')
        ok (false, "seed %llu: %s (again: fluid-sim -r -s %llu -c 1 -e %llu -v)", (unsigned long long)s - 1,
            sum.violation, (unsigned long long)s - 1, (unsigned long long)steps);
    else
        ok (sum.takeovers > count, "%llu histories with %llu roots that take over: %llu ids, no duplicate",
            (unsigned long long)count, (unsigned long long)sum.takeovers, (unsigned long long)sum.ids);
}

static void test_unfenced (void)
{
    struct sim_result sum = { .events = 0 };

    for (uint64_t s = 1; s <= 60 && sum.violation[0] == '\0'; s++)
        sim_run (&(struct sim_config){ .seed = s, .steps = 20000, .standby = true, .unfenced = true }, &sum);
    ok (sum.violation[0] != '\0', "the simulator finds what happens if a replaced root can write: %s", sum.violation);
}

static void test_again (void)
{
    struct sim_config config = { .seed = 77, .steps = 5000 };
    struct sim_result a = { .events = 0 }, b = { .events = 0 };

    sim_run (&config, &a);
    sim_run (&config, &b);
    ok (a.ids == b.ids && a.events == b.events && a.faults == b.faults && a.answered == b.answered,
        "two runs with the same seed play the same history");
}

int main (void)
{
    test_judge ();
    test_again ();
    play (1, 60, 0, 20000);
    play (1, 2, 64, 60000);
    play (1, 20, 2, 20000);
    play_standby (1, 60, 20000);
    test_unfenced ();
    return done_testing ();
}
