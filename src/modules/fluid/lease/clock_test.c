/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* clock_test.c - the instance's time never decreases, and its error bound holds */
#include "test/tap.h"
#include "modules/fluid/lease/clock.h"

#define SECOND UINT64_C (1000000)
#define HOUR (3600 * SECOND)

static void test_root (void)
{
    struct clock c;

    clock_start (&c, 500, 7 * SECOND);
    ok (clock_read (&c, 500) == 7 * SECOND, "the root's clock starts at the given time");
    ok (clock_read (&c, 400) == 7 * SECOND, "a time before the root's start is read as the time of the start");
    ok (clock_read (&c, 500 + HOUR) == 7 * SECOND + HOUR, "the root's clock advances with CLOCK_BOOTTIME");

    clock_discipline (&c, 500, 8 * SECOND);
    ok (clock_read (&c, 500) == 7 * SECOND, "a wall clock that is ahead causes no step of the root's clock");
    ok (clock_read (&c, 500 + SECOND) == 8 * SECOND + 500,
        "the root's clock is slewed by 500 ppm towards a wall clock that is ahead");
    ok (clock_read (&c, 500 + HOUR) == 8 * SECOND + HOUR, "the root's clock is not slewed beyond the wall clock");

    clock_start (&c, 0, 10 * SECOND);
    clock_discipline (&c, 0, -5 * (int64_t)SECOND);
    ok (clock_read (&c, SECOND) == 11 * SECOND - 500,
        "the root's clock is slowed by 500 ppm if the wall clock is behind, even before the epoch");
    ok (clock_estimate (&c, SECOND) == clock_read (&c, SECOND),
        "the root's estimate of the time is the reading of its clock");
    ok (clock_bound (&c, HOUR) == CLOCK_GRAIN_US, "the root's bound of the error is the grain of an id");
}

static struct idt_clock_sample sample (uint64_t sent, uint64_t got, uint64_t answered, uint64_t received)
{
    return (struct idt_clock_sample){
        .sent_us = sent, .peer_received_us = got, .peer_sent_us = answered, .received_us = received
    };
}

static void test_child (void)
{
    struct clock c = { 0 };
    struct idt_clock_sample s = sample (1000, 50000, 50400, 1600);

    clock_forward (&c, 100, 99 * SECOND);
    ok (!c.known, "a clock that does not know the time makes no step");
    clock_sample (&c, &s);
    ok (c.known && clock_read (&c, 1600) == 50400, "the first sample sets a child's clock to the parent's reading");
    ok (clock_estimate (&c, 1600) == 50500,
        "a child's estimate adds half of the delay of the sample to the parent's reading");
    ok (clock_read (&c, 1600 + SECOND) == 50500 + SECOND, "a child's clock is slewed to its estimate");
    ok (clock_bound (&c, 1600) == 100 + 1000 + 100,
        "a child's bound is half of the delay, a millisecond, and the slew that remains");
    ok (clock_bound (&c, 1600 + SECOND) == 1100 + 600, "a child's bound grows by 600 ppm after a sample");

    s = sample (1600 + SECOND, 60500 + SECOND, 60500 + SECOND, 1600 + SECOND);
    clock_sample (&c, &s);
    ok (clock_read (&c, 1600 + SECOND) == 60500 + SECOND && c.steps == 1,
        "a child's clock that is behind the estimate steps forward");

    uint64_t at = 1600 + SECOND;
    s = sample (at, 50500 + SECOND, 50500 + SECOND, at);
    clock_sample (&c, &s);
    ok (clock_read (&c, at) == 60500 + SECOND, "a child's clock that is ahead of the estimate does not step back");
    ok (clock_read (&c, at + SECOND) == 60000 + 2 * SECOND,
        "a child's clock that is ahead of the estimate runs slower by 500 ppm");
    ok (clock_bound (&c, at) == 11000 && clock_bound (&c, at + SECOND) == 1000 + 600 + 9500,
        "a child's bound includes the slew that remains");
    ok (clock_estimate (&c, at) == 50500 + SECOND && clock_estimate_bound (&c, at) == 1000,
        "the bound of a child's estimate does not include the slew that remains");

    clock_forward (&c, at, 70500 + SECOND);
    ok (clock_read (&c, at) == 70500 + SECOND && clock_estimate (&c, at) == 50500 + SECOND,
        "if a clock steps forward because of an id, the estimate does not change");
    clock_forward (&c, at, 5);
    ok (clock_read (&c, at) == 70500 + SECOND, "a clock does not step to an earlier time because of an id");
}

static void test_bad_samples (void)
{
    struct clock c = { 0 };
    struct idt_clock_sample s = sample (0, 1000, 1000, 0);

    clock_sample (&c, &s);
    uint64_t before = clock_read (&c, SECOND);
    s = sample (0, 900000, 900000, SECOND); /* 0.9 to 1.9 s */
    clock_sample (&c, &s);
    ok (clock_read (&c, SECOND) == before, "an answer that took a second does not improve the estimate");
    s = sample (SECOND, 0, 0, 0);
    clock_sample (&c, &s);
    s = sample (0, 900 * SECOND, 800 * SECOND, SECOND);
    clock_sample (&c, &s);
    ok (clock_read (&c, SECOND) == before, "samples with impossible times are ignored");
    s = sample (0, 100 * SECOND, 100 * SECOND, SECOND);
    clock_sample (&c, &s);
    ok (clock_read (&c, SECOND) == 100 * SECOND, "a child adopts the time of another root that is ahead immediately");
    s = sample (SECOND, 101 * SECOND, 101 * SECOND, SECOND);
    clock_sample (&c, &s);
    before = clock_read (&c, SECOND + 20000);
    s = sample (SECOND, 99 * SECOND, 99 * SECOND, SECOND + 20000);
    clock_sample (&c, &s);
    ok (clock_read (&c, SECOND + 20000) == before,
        "a child's clock does not go back if another root is behind the previous one");
    ok (clock_estimate (&c, SECOND + 20000) == 99 * SECOND + 10000 && clock_bound (&c, SECOND + 20000) > 2 * SECOND,
        "if another root is behind the previous one, a child's estimate follows it, and the bound includes how far "
        "the clock is ahead");
}

/* The parent's clock stepped forward between its two readings: by them, 5 s passed in a round trip of 1 s. */
static void test_parent_stepped (void)
{
    struct clock c = { 0 };
    struct idt_clock_sample s = sample (0, 95 * SECOND, 100 * SECOND, SECOND);

    clock_sample (&c, &s);
    ok (clock_estimate (&c, SECOND) == 100 * SECOND + SECOND / 2 && clock_bound (&c, SECOND) >= SECOND / 2,
        "a wait that is longer than the round trip is ignored: the bound includes half of the round trip");
}

static void test_lost_time (void)
{
    struct clock c;

    clock_start (&c, 5 * SECOND, 100 * SECOND);
    clock_forward (&c, 9 * SECOND, 200 * SECOND);
    ok (clock_read (&c, 9 * SECOND) == 104 * SECOND, "ids of other ranks do not move the clock of rank 0");
    clock_step (&c, 9 * SECOND, 100 * SECOND);
    clock_lost_time (&c, 7 * SECOND, 2 * SECOND);
    ok (clock_read (&c, 7 * SECOND) == 104 * SECOND && clock_read (&c, 8 * SECOND) == 105 * SECOND,
        "if CLOCK_BOOTTIME went back, the instance's time does not stop");
    clock_lost_time (&c, 20 * SECOND, -10 * SECOND);
    ok (clock_read (&c, 20 * SECOND) == 107 * SECOND,
        "if CLOCK_BOOTTIME jumped ahead, the instance's time does not jump");
    clock_sample (&c, &(struct idt_clock_sample){ 0, 0, 0, 0, 0 });
    c.leads = false;
    ok (clock_bound (&c, 20 * SECOND) >= 12 * SECOND, "if CLOCK_BOOTTIME jumped, the bound grows by the jump");
}

static void test_when (void)
{
    int bad = 0;

    for (int64_t slew = -5000; slew <= 5000; slew += 500)
        for (uint64_t boot = 0; boot < 30000; boot += 777)
            for (uint64_t ahead = 0; ahead < 4000; ahead += 333) {
                struct clock c = { .known = true, .boot_us = 1000, .inst_us = SECOND, .slew_us = slew };
                uint64_t inst = clock_read (&c, boot) + ahead;
                uint64_t when = clock_when (&c, boot, inst);

                if (when < boot || clock_read (&c, when) < inst || clock_read (&c, when) > inst + 3)
                    bad++;
            }
    ok (bad == 0,
        "clock_when () never returns a time that is too early, and for times up to 4 ms ahead at most 3 us too late");
}

static uint64_t next_random (uint64_t *state)
{
    *state = *state * UINT64_C (6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

/* A root whose wall clock is set at random, a child whose host is 80 ppm fast, samples of any delay. */
static void test_random (void)
{
    int backwards = 0, outside = 0;
    uint64_t seed = 1;

    for (int run = 0; run < 200; run++) {
        struct clock root, child = { 0 };
        uint64_t t = SECOND, last_root = 0, last_child = 0;

        clock_start (&root, t, 40 * SECOND);
        for (int i = 0; i < 500; i++) {
            uint64_t there = next_random (&seed) % 20000, back = next_random (&seed) % 20000;
            uint64_t wait = next_random (&seed) % 3000;
            uint64_t sent = t;

            if (next_random (&seed) % 20 == 0)
                clock_discipline (&root, t, (int64_t)(clock_read (&root, t) + next_random (&seed) % 9999) - 5000);
            if (child.known && next_random (&seed) % 50 == 0)
                clock_forward (&child, t + t / 12500, clock_read (&child, t + t / 12500) + 3000);
            t += there + wait + back;
            struct idt_clock_sample s = sample (sent + sent / 12500, clock_read (&root, sent + there),
                                                clock_read (&root, sent + there + wait), t + t / 12500);
            clock_sample (&child, &s);
            t += next_random (&seed) % (3 * SECOND);

            uint64_t r = clock_read (&root, t), c = clock_read (&child, t + t / 12500);
            if (r < last_root || c < last_child)
                backwards++;
            if ((r > c ? r - c : c - r) > clock_bound (&child, t + t / 12500))
                outside++;
            last_root = r;
            last_child = c;
        }
    }
    ok (backwards == 0, "in 100000 steps of random histories no clock of a root or child goes back");
    ok (outside == 0,
        "in random histories the distance between the clocks of child and root is within the child's bound");
}

int main (void)
{
    test_root ();
    test_child ();
    test_bad_samples ();
    test_parent_stepped ();
    test_lost_time ();
    test_when ();
    test_random ();
    return done_testing ();
}
