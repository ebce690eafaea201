/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan_test.c - plans are functions of their seed, within their limits, and leave no fault out */
#include <string.h>

#include "libutil/tap.h"
#include "plan.h"

#define STEPS 3000
#define BAG 34

/* All that a step says, as text: steps have padding. */
static void draw (struct plan *p, char *text, size_t size)
{
    struct step step;
    int n;

    plan_next (p, &step);
    n = snprintf (text, size, "%u ", (unsigned)step.gap_ms);
    step_print (&step, text + n, size - n);
}

static int differences (uint64_t seed_a, uint64_t seed_b)
{
    struct plan a, b;
    char text_a[512], text_b[512];
    int n = 0;

    plan_init (&a, seed_a, 8, 2, 1000);
    plan_init (&b, seed_b, 8, 2, 1000);
    for (int i = 0; i < STEPS; i++) {
        draw (&a, text_a, sizeof (text_a));
        draw (&b, text_b, sizeof (text_b));
        n += strcmp (text_a, text_b) != 0;
    }
    return n;
}

static bool is_within (uint32_t size, uint32_t fanout)
{
    struct plan p;
    struct step step;

    plan_init (&p, 1, size, fanout, 1000);
    for (int i = 0; i < STEPS; i++) {
        plan_next (&p, &step);
        if (step.ranks == 0 || (size < 64 && step.ranks >> size != 0) || step.gap_ms == 0 || step.gap_ms > 1000
            || step.hold_ms > 7000)
            return false;
    }
    return true;
}

static bool bags_are_whole (void)
{
    struct plan p;
    struct step step;

    plan_init (&p, 1, 8, 2, 1000);
    for (int bag = 0; bag < STEPS / BAG; bag++) {
        unsigned seen = 0;

        for (int i = 0; i < BAG; i++) {
            plan_next (&p, &step);
            seen |= 1U << step.fault;
        }
        if (seen != (1U << FAULT_COUNT) - 1)
            return false;
    }
    return true;
}

/* In kary:2 of 8 ranks the subtree of 1 is 1, 3, 4, 7. */
static bool kills_subtrees (void)
{
    struct plan p;
    struct step step;

    plan_init (&p, 1, 8, 2, 1000);
    for (int i = 0; i < STEPS; i++) {
        plan_next (&p, &step);
        if (step.fault == FAULT_KILL && step.ranks == 0x9a)
            return true;
    }
    return false;
}

int main (void)
{
    ok (differences (1, 1) == 0, "a seed makes the same plan each time");
    ok (differences (1, 2) > STEPS * 9 / 10, "another seed makes another one");
    for (uint32_t size = 1; size <= 64; size += 7)
        for (uint32_t fanout = 1; fanout <= 4; fanout += 3)
            ok (is_within (size, fanout), "with %u ranks, kary:%u, steps hit ranks that there are", (unsigned)size,
                (unsigned)fanout);
    ok (bags_are_whole (), "each %d steps hold each fault", BAG);
    ok (kills_subtrees (), "subtrees are killed");
    return done_testing ();
}
