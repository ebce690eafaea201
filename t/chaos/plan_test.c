/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan_test.c - plans are functions of their seed, keep their limits, and contain all faults */
#include <string.h>

#include "test/tap.h"
#include "plan.h"

#define STEPS 3000

/* Write all fields of a step as text. Comparing memory would fail, because steps have padding. */
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

    plan_init (&a, seed_a, 8, 2, 1000, FAULTS_ALL);
    plan_init (&b, seed_b, 8, 2, 1000, FAULTS_ALL);
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

    plan_init (&p, 1, size, fanout, 1000, FAULTS_ALL);
    for (int i = 0; i < STEPS; i++) {
        plan_next (&p, &step);
        if (step.ranks == 0 || (size < 64 && step.ranks >> size != 0) || step.gap_ms == 0 || step.gap_ms > 1000
            || step.hold_ms > 7000)
            return false;
    }
    return true;
}

static bool bags_are_whole (uint32_t faults)
{
    struct plan p;
    struct step step;
    size_t bag = plan_bag (faults);

    plan_init (&p, 1, 8, 2, 1000, faults);
    for (size_t n = 0; n < STEPS / bag; n++) {
        uint32_t seen = 0;

        for (size_t i = 0; i < bag; i++) {
            plan_next (&p, &step);
            seen |= UINT32_C (1) << step.fault;
        }
        if (seen != faults)
            return false;
    }
    return true;
}

/* Whether kills of a subtree are complete: in kary:2 of 8 ranks the subtree of rank 1 is 1, 3, 4, 7. */
static bool kills_subtrees (void)
{
    struct plan p;
    struct step step;

    plan_init (&p, 1, 8, 2, 1000, FAULTS_ALL);
    for (int i = 0; i < STEPS; i++) {
        plan_next (&p, &step);
        if (step.fault == FAULT_KILL && step.ranks == 0x9a)
            return true;
    }
    return false;
}

int main (void)
{
    static const char *const lists[] = { "all", "kill", "boot,liar,reload", "liar,all" };

    ok (differences (1, 1) == 0, "two plans with the same seed are the same");
    ok (differences (1, 2) > STEPS * 9 / 10, "two plans with different seeds are different");
    for (uint32_t size = 1; size <= 64; size += 7)
        for (uint32_t fanout = 1; fanout <= 4; fanout += 3)
            ok (is_within (size, fanout), "the steps of a plan for %u ranks, kary:%u, use existing ranks",
                (unsigned)size, (unsigned)fanout);
    ok (plan_bag (FAULTS_ALL) <= sizeof (((struct plan *)0)->bag), "the bag of a plan has space for all faults");
    for (size_t i = 0; i < sizeof (lists) / sizeof (lists[0]); i++)
        ok (faults_parse (lists[i]) != 0 && bags_are_whole (faults_parse (lists[i])),
            "each %zu steps of a plan contain each of %s", plan_bag (faults_parse (lists[i])), lists[i]);
    ok (faults_parse ("kill,cut") == (1U << FAULT_KILL | 1U << FAULT_CUT),
        "a list of faults contains the named faults");
    ok (!faults_parse ("") && !faults_parse ("kill,") && !faults_parse ("kil") && !faults_parse ("kill,,cut")
            && !faults_parse ("alls"),
        "a list of faults with an unknown name is refused");
    ok (kills_subtrees (), "a plan kills subtrees");
    return done_testing ();
}
