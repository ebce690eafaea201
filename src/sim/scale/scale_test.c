/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale_test.c - small runs of the simulator at size: what must hold of any */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "sim/scale/scale.h"

static void give_up (const char *why)
{
    fprintf (stderr, "scale_test: %s\n", why);
    exit (1);
}

static struct scale_config make_config (uint32_t size, const char *topology, uint32_t generators)
{
    struct scale_config c = { .seed = 1,
                              .size = size,
                              .topology = topology,
                              .max_generators = generators,
                              .lease_ms = 6000,
                              .backlog_ms = 2000,
                              .timeout_ms = 5000,
                              .max_waiting = 8192,
                              .load = { .rate = 20, .count = 3, .period_ms = 500 },
                              .fault = { .restart_ms = UINT64_MAX },
                              .warm_up_ms = 1000,
                              .measure_ms = 4000,
                              .drift_ppm = 50,
                              .cores = 2,
                              .check = true };
    idt_error_t err;

    if (costs_read (&c.costs, SCALE_COSTS, &err) < 0)
        give_up (err.text);
    return c;
}

static struct scale_result play (const struct scale_config *c, FILE *report)
{
    idt_error_t err;
    struct scale *s = scale_create (c, &err);
    struct scale_result r;

    if (!s)
        give_up (err.text);
    scale_run (s, &r);
    if (report)
        scale_report (s, report);
    scale_destroy (s);
    return r;
}

/* Each request has one end, ids of each come once, all brokers came up. */
static bool is_sound (const struct scale_result *r)
{
    return r->started && r->violation[0] == '\0' && r->asked == r->answered + r->failed + r->dropped && r->asked > 0
           && r->seen_ids == r->ids;
}

static void plays (const struct scale_config *c, const char *what)
{
    struct scale_result r = play (c, NULL);

    ok (is_sound (&r), "%s: each of %d requests has one end, no id of %d comes twice %s", what, (int)r.asked,
        (int)r.seen_ids, r.violation);
    ok (r.failed == 0 && r.ids == 3 * r.answered, "%s: none failed", what);
}

static void test_calm (void)
{
    struct scale_config c = make_config (1, "kary:2", 1);

    plays (&c, "one rank");
    c = make_config (200, "kary:4", 16368);
    plays (&c, "all make ids");
    c = make_config (200, "kary:4", 20);
    plays (&c, "most are idle");
    c.one_host = true;
    plays (&c, "on one host");
    c = make_config (12, "kary:1", 1);
    plays (&c, "a chain");
    c = make_config (300, "kary:8", 8);
    c.load.burst = 5;
    c.start_spread_ms = 500;
    plays (&c, "bursts");
}

static void loses (uint32_t rank, uint64_t restart_ms, const char *what)
{
    struct scale_config c = make_config (200, "kary:4", 30);

    c.fault = (struct scale_fault){ true, rank, restart_ms };
    struct scale_result r = play (&c, NULL);
    ok (is_sound (&r), "%s: each of %d requests has one end (%d none), no id of %d comes twice %s", what, (int)r.asked,
        (int)r.dropped, (int)r.seen_ids, r.violation);
}

static void test_losses (void)
{
    loses (2, UINT64_MAX, "an inner rank is lost");
    loses (2, 1000, "it comes back");
    loses (0, 1000, "rank 0 comes back");
    loses (0, UINT64_MAX, "it does not");
    loses (199, 100, "a leaf is lost");
}

/* Rank 0 alone makes ids; below each of its children are many, who all ask at once. */
static void test_combining (void)
{
    struct scale_config c = make_config (1000, "kary:8", 1);

    c.load.rate = 0;
    c.load.burst = 4;
    c.load.askers = ASKERS_IDLE;
    struct scale_result r = play (&c, NULL);
    ok (is_sound (&r), "one makes ids for a thousand: %d answers", (int)r.answered);
    ok (r.most_under_way <= 2, "no rank has more than %d forwards under way", (int)r.most_under_way);
    ok (r.root_asked * 10 < r.answered, "rank 0 was asked %d times for %d: by its children, not by those below",
        (int)r.root_asked, (int)r.answered);
}

/* What rank 0 hears when all start at once is as much as it has children, for each round of wants. */
static void test_cold_start (void)
{
    struct scale_config c = make_config (3000, "kary:8", 16368);

    c.load.rate = 1;
    c.lease_ms = 60000;
    struct scale_result r = play (&c, NULL);
    ok (is_sound (&r) && r.root_leases >= 8 && r.root_leases < 20 * 8,
        "3000 brokers that start cost rank 0 %d messages of 8 children", (int)r.root_leases);
    c.topology = "kary:2";
    r = play (&c, NULL);
    ok (is_sound (&r) && r.root_leases >= 2 && r.root_leases < 20 * 2, "or %d of 2 children", (int)r.root_leases);
}

static void test_again (void)
{
    struct scale_config c = make_config (150, "kary:3", 20);
    char *text[2] = { NULL, NULL };

    for (int i = 0; i < 2; i++) {
        size_t size;
        FILE *f = open_memstream (&text[i], &size);

        play (&c, f);
        fclose (f);
    }
    ok (strcmp (text[0], text[1]) == 0, "a seed plays the same run again, to the last digit");
    free (text[0]);
    free (text[1]);
    struct scale_result a = play (&c, NULL);
    c.seed = 2;
    struct scale_result b = play (&c, NULL);
    ok (a.events != b.events, "another seed another one");
}

/* Many ranks in a process: one thread, links in memory, heartbeats in moments; and a start from the top. */
static void test_processes (void)
{
    struct scale_config c = make_config (300, "kary:4", 40);

    c.one_host = true;
    struct scale_result apart = play (&c, NULL);
    ok (apart.inside == 0 && apart.outside > 0, "in processes of their own nothing passes inside of one");
    c.processes = 3;
    plays (&c, "in three processes");
    struct scale_result r = play (&c, NULL);
    ok (r.inside > 10 * r.outside, "of their messages %d stay inside of a process, %d do not", (int)r.inside,
        (int)r.outside);
    ok (r.busy_cores < apart.busy_cores, "they take %.3f cores, apart %.3f", r.busy_cores, apart.busy_cores);
    c.fault = (struct scale_fault){ true, 2, 1000 };
    r = play (&c, NULL);
    ok (is_sound (&r), "a rank of them is lost and comes back %s", r.violation);
    c.fault.kill = false;
    c.costs.start_us = 20000;
    c.load.rate = 0.5;
    r = play (&c, NULL);
    ok (r.joined_ns >= 150 * UINT64_C (20000000) && r.joined_ns < 200 * UINT64_C (20000000),
        "brokers of a process are made one after the other: all have joined after %d ms", (int)(r.joined_ns / 1000000));
}

/* Where a process hosts many, what the caches do not hold costs more the more brokers there are: in time, and in
 * waiting.
 */
static void test_growth (void)
{
    struct scale_config c = make_config (300, "kary:4", 40);
    struct scale_result r[2];

    c.one_host = true;
    c.processes = 3;
    c.costs.brokers = (struct cost_grows){ 100, 200 };
    c.costs.cold_us = c.costs.inside_heartbeat_us = (struct cost_grows){ 10, 10 };
    for (int i = 0; i < 2; i++) {
        r[i] = play (&c, NULL);
        c.costs.cold_us.many = c.costs.inside_heartbeat_us.many = 110;
    }
    ok (is_sound (&r[1]) && r[1].busy_cores > 2 * r[0].busy_cores,
        "what grows makes 300 brokers take %.3f cores, not %.3f", r[1].busy_cores, r[0].busy_cores);
    ok (r[1].p50_ns > r[0].p50_ns + 100 * 1000, "and those who ask wait %d us, not %d", (int)(r[1].p50_ns / 1000),
        (int)(r[0].p50_ns / 1000));
}

/* One a second of each that has a parent, on one host or not; where that is in its process one in two. */
static void test_beats (void)
{
    struct scale_config c = make_config (320, "kary:4", 40);

    for (int i = 0; i < 3; i++) {
        c.one_host = i > 0;
        c.processes = i < 2 ? 0 : 1;
        int want = i < 2 ? 319 * 4 : 319 * 2;
        struct scale_result r = play (&c, NULL);
        ok ((int)r.beats >= want - 50 && (int)r.beats <= want + 50, "319 hearts beat %d times in 4 s", (int)r.beats);
    }
}

static void test_shares (void)
{
    struct scale_config c = make_config (120, "kary:4", 10);

    c.load = (struct scale_load){ .rate = 40, .count = 3, .period_ms = 500, .askers = ASKERS_IDLE };
    c.warm_up_ms = 20000; /* who is lent to lends on: that takes its time */
    struct scale_result off = play (&c, NULL);
    ok (off.borrowing == 0 && off.forwards > 1000, "without shares idle ranks ask above, %d times", (int)off.forwards);
    c.share = 1; /* auto */
    plays (&c, "idle ranks borrow");
    struct scale_result r = play (&c, NULL);
    ok (r.borrowing > 50, "%d of 110 do", (int)r.borrowing);
    ok (r.forwards * 4 < off.forwards && r.p50_ns < off.p50_ns, "%d requests go up, and they wait less",
        (int)r.forwards);
    c.fault = (struct scale_fault){ true, 2, 1000 };
    r = play (&c, NULL);
    ok (is_sound (&r), "a lender is lost and comes back %s", r.violation);
    c.share = 64;
    c.load.rate = 1;
    c.fault.kill = false;
    r = play (&c, NULL);
    ok (is_sound (&r) && r.borrowing > 80, "with a size %d borrow whatever they need", (int)r.borrowing);
}

static void refuses (const struct scale_config *c, const char *why)
{
    idt_error_t err = { "" };

    ok (!scale_create (c, &err) && strstr (err.text, why), "refused: %s", err.text);
}

int main (void)
{
    struct scale_config c = make_config (10, "ring", 1);

    refuses (&c, "ring");
    c = make_config (0, "kary:2", 1);
    refuses (&c, "size");
    c = make_config (10, "kary:2", 1);
    c.fault = (struct scale_fault){ .kill = true, .rank = 10 };
    refuses (&c, "rank 10");
    c.fault.kill = false;
    c.processes = 2;
    refuses (&c, "one host");
    c.one_host = true;
    c.processes = 11;
    refuses (&c, "11 processes");
    test_calm ();
    test_losses ();
    test_combining ();
    test_cold_start ();
    test_again ();
    test_processes ();
    test_growth ();
    test_beats ();
    test_shares ();
    return done_testing ();
}
