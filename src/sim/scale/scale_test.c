/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale_test.c - small runs of the simulator at size, and properties that each run must have */
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

/* Whether the run is sound: each request ended once, each id was made once, and all brokers have joined. */
static bool is_sound (const struct scale_result *r)
{
    return r->started && r->violation[0] == '\0' && r->asked == r->answered + r->failed + r->dropped && r->asked > 0
           && r->seen_ids == r->ids;
}

static void plays (const struct scale_config *c, const char *what)
{
    struct scale_result r = play (c, NULL);

    ok (is_sound (&r), "%s: each of %d requests ends once, and none of %d ids is a duplicate %s", what, (int)r.asked,
        (int)r.seen_ids, r.violation);
    ok (r.failed == 0 && r.ids == 3 * r.answered, "%s: no request fails", what);
}

static void test_calm (void)
{
    struct scale_config c = make_config (1, "kary:2", 1);

    plays (&c, "one rank");
    c = make_config (200, "kary:4", 16368);
    plays (&c, "all ranks make ids");
    c = make_config (200, "kary:4", 20);
    plays (&c, "most ranks are idle");
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
    ok (is_sound (&r), "%s: each of %d requests ends once (%d dropped), and none of %d ids is a duplicate %s", what,
        (int)r.asked, (int)r.dropped, (int)r.seen_ids, r.violation);
}

static void test_losses (void)
{
    loses (2, UINT64_MAX, "an inner rank is lost");
    loses (2, 1000, "an inner rank is restarted");
    loses (0, 1000, "rank 0 is restarted");
    loses (0, UINT64_MAX, "rank 0 is lost");
    loses (199, 100, "a leaf is lost");
}

/* Only rank 0 makes ids. Each of its children has many ranks below, which all send requests at the same time. */
static void test_combining (void)
{
    struct scale_config c = make_config (1000, "kary:8", 1);

    c.load.rate = 0;
    c.load.burst = 4;
    c.load.askers = ASKERS_IDLE;
    struct scale_result r = play (&c, NULL);
    ok (is_sound (&r), "one rank makes ids for a thousand ranks: %d answers", (int)r.answered);
    ok (r.most_under_way <= 2, "no rank has more than %d forwards under way", (int)r.most_under_way);
    ok (r.root_asked * 10 < r.answered, "rank 0 receives only its children's requests: %d for %d answers",
        (int)r.root_asked, (int)r.answered);
}

/* All ranks start together. For each round of requests, rank 0 receives one message from each child. */
static void test_cold_start (void)
{
    struct scale_config c = make_config (3000, "kary:8", 16368);

    c.load.rate = 1;
    c.lease_ms = 60000;
    struct scale_result r = play (&c, NULL);
    ok (is_sound (&r) && r.root_leases >= 8 && r.root_leases < 20 * 8,
        "when 3000 brokers start, rank 0 gets %d messages from its 8 children", (int)r.root_leases);
    c.topology = "kary:2";
    r = play (&c, NULL);
    ok (is_sound (&r) && r.root_leases >= 2 && r.root_leases < 20 * 2,
        "when 3000 brokers start, rank 0 gets %d messages from its 2 children", (int)r.root_leases);
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
    ok (strcmp (text[0], text[1]) == 0, "two runs with the same seed have the same result, to the last digit");
    free (text[0]);
    free (text[1]);
    struct scale_result a = play (&c, NULL);
    c.seed = 2;
    struct scale_result b = play (&c, NULL);
    ok (a.events != b.events, "two runs with different seeds have different results");
}

/* A process hosts many ranks: they have one thread, links in memory and heartbeats in moments, and start from the top.
 */
static void test_processes (void)
{
    struct scale_config c = make_config (300, "kary:4", 40);

    c.one_host = true;
    struct scale_result apart = play (&c, NULL);
    ok (apart.inside == 0 && apart.outside > 0, "with a process for each rank all messages are between processes");
    c.processes = 3;
    plays (&c, "in three processes");
    struct scale_result r = play (&c, NULL);
    ok (r.inside > 10 * r.outside,
        "with three processes for all ranks %d messages stay inside a process, and %d do not", (int)r.inside,
        (int)r.outside);
    ok (r.busy_cores < apart.busy_cores, "with three processes for all ranks %.3f cores are used instead of %.3f",
        r.busy_cores, apart.busy_cores);
    c.fault = (struct scale_fault){ true, 2, 1000 };
    r = play (&c, NULL);
    ok (is_sound (&r), "in an instance of three processes a rank is lost and restarted %s", r.violation);
    c.fault.kill = false;
    c.costs.start_us = 20000;
    c.load.rate = 0.5;
    r = play (&c, NULL);
    ok (r.joined_ns >= 150 * UINT64_C (20000000) && r.joined_ns < 200 * UINT64_C (20000000),
        "the brokers of a process start one after the other: all have joined after %d ms",
        (int)(r.joined_ns / 1000000));
}

/* In a process of many ranks, times and waits grow with the number of brokers, because the caches are too small for
 * all.
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
        "if times grow with the number of brokers, 300 brokers use %.3f cores, not %.3f", r[1].busy_cores,
        r[0].busy_cores);
    ok (r[1].p50_ns > r[0].p50_ns + 100 * 1000, "if times grow with the number of brokers, clients wait %d us, not %d",
        (int)(r[1].p50_ns / 1000), (int)(r[0].p50_ns / 1000));
}

/* Each rank with a parent sends one heartbeat a second, also with --one-host. If its parent is in the same process, it
 * sends one in two seconds.
 */
static void test_beats (void)
{
    struct scale_config c = make_config (320, "kary:4", 40);

    for (int i = 0; i < 3; i++) {
        c.one_host = i > 0;
        c.processes = i < 2 ? 0 : 1;
        int want = i < 2 ? 319 * 4 : 319 * 2;
        struct scale_result r = play (&c, NULL);
        ok ((int)r.beats >= want - 50 && (int)r.beats <= want + 50, "319 ranks send %d heartbeats in 4 s",
            (int)r.beats);
    }
}

static void test_shares (void)
{
    struct scale_config c = make_config (120, "kary:4", 10);

    c.load = (struct scale_load){ .rate = 40, .count = 3, .period_ms = 500, .askers = ASKERS_IDLE };
    c.warm_up_ms = 20000; /* ranks that hold parts grant parts of them, which takes some time */
    struct scale_result off = play (&c, NULL);
    ok (off.sharing == 0 && off.forwards > 1000, "without parts idle ranks forward their requests, %d times",
        (int)off.forwards);
    c.share = 1; /* NODE_SHARE_AUTO */
    plays (&c, "idle ranks hold parts");
    struct scale_result r = play (&c, NULL);
    ok (r.sharing > 50, "with fluid.share=auto %d of 110 ranks hold parts", (int)r.sharing);
    ok (r.forwards * 4 < off.forwards && r.p50_ns < off.p50_ns,
        "with parts only %d requests are forwarded, and clients wait less", (int)r.forwards);
    c.fault = (struct scale_fault){ true, 2, 1000 };
    r = play (&c, NULL);
    ok (is_sound (&r), "in an instance with parts a granter is lost and restarted %s", r.violation);
    c.share = 64;
    c.load.rate = 1;
    c.fault.kill = false;
    r = play (&c, NULL);
    ok (is_sound (&r) && r.sharing > 80, "with a fixed size %d ranks hold parts, whatever they need", (int)r.sharing);
}

static void refuses (const struct scale_config *c, const char *why)
{
    idt_error_t err = { "" };

    ok (!scale_create (c, &err) && strstr (err.text, why), "an invalid configuration of the simulation is refused: %s",
        err.text);
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
