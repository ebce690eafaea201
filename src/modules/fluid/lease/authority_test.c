/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authority_test.c - the authority alone: its disk, its clocks, its stop, and the handover to the next one
 *
 * grants_test.c tests the table of grants, node_test.c the node beside an authority.
 */
#include <stdlib.h>
#include <string.h>

#include <idtree/module.h>

#include "test/tap.h"
#include "modules/fluid/lease/authority.h"

#define CHILD "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define MS UINT64_C (1000)
#define SECOND UINT64_C (1000000)
#define T0 (100 * SECOND)
#define WALL ((int64_t)(110 * SECOND)) /* at T0: instance time 10 s */

struct world {
    struct authority *a;
    int stores, logs;
    struct lease_record record; /* the last one */
};

static void horizon_store_cb (void *arg, const struct lease_record *record)
{
    struct world *w = arg;

    w->stores++;
    w->record = *record;
}

static void positions_cb (void *arg, uint64_t now_us, struct report *all)
{
}

static void log_cb (void *arg, int level, const char *text)
{
    ((struct world *)arg)->logs++;
}

static const struct authority_ops ops = { horizon_store_cb, positions_cb, log_cb };
static const struct authority_config config = { .max_generators = 10, .lease_ms = 60000, .epoch_ms = 100000 };

static void create (struct world *w, const struct lease_record *stored, const void *past, size_t size)
{
    struct authority_start start = { .wall_us = WALL, .stored = stored, .past = past, .past_size = size };

    *w = (struct world){ .stores = 0 };
    w->a = authority_create (&config, &ops, w, T0, &start);
}

static void create_new (struct world *w)
{
    create (w, &(struct lease_record){ 0 }, NULL, 0);
}

static struct lease_answer ask (struct world *w, uint64_t at_us, uint32_t rank, uint64_t number, uint64_t end_ms)
{
    struct want want = { .rank = rank, .incarnation = CHILD, .number = number, .size = BOX_WHOLE, .end_ms = end_ms };
    struct lease_answer answer;

    authority_answer (w->a, at_us, &(struct lease_request){ .want = &want, .nwant = 1 }, &answer);
    return answer;
}

static struct authority_status status (struct world *w, uint64_t at_us)
{
    struct authority_status s;

    authority_status (w->a, at_us, &s);
    return s;
}

static uint64_t time_ms (struct world *w, uint64_t at_us)
{
    return clock_read (authority_clock (w->a), at_us) / 1000;
}

static void test_store (void)
{
    struct world w;
    uint64_t at = T0;

    create_new (&w);
    ok (w.stores == 1 && w.record.horizon_ms == 130000, "a new authority first stores a horizon two leases ahead");
    ok (ask (&w, at, 5, 1, 0).ngrant == 0 && w.stores == 1,
        "the authority grants nothing before the horizon is durable");
    ok (authority_deadline (w.a) == T0 + 15 * SECOND,
        "after a quarter of a lease the authority checks whether the store has succeeded");
    authority_tick (w.a, T0 + 15 * SECOND);
    ok (status (&w, at).store == AUTHORITY_STORE_SLOW && w.logs == 1,
        "a store that lasts a quarter of a lease is reported as slow");
    at = T0 + 16 * SECOND;
    for (uint64_t ms = 100; ms <= 3200; ms *= 2) {
        authority_store_failed (w.a, at);
        int stores = w.stores;
        authority_tick (w.a, at + ms * MS - 1);
        at += ms * MS;
        ok (w.stores == stores && authority_deadline (w.a) == at, "after a failed store the authority waits for %d ms",
            (int)ms);
        authority_tick (w.a, at);
        ok (w.stores == stores + 1, "after the pause the authority stores the horizon again");
    }
    ok (status (&w, at).store == AUTHORITY_STORE_FAILING,
        "the status of the authority shows that the store is failing");
    at += 3 * MS;
    authority_stored (w.a, at, w.record.horizon_ms);
    ok (status (&w, at).store == AUTHORITY_STORE_GOOD && w.logs == 2,
        "the status of the authority is good again when the horizon is stored");
    struct lease_answer answer = ask (&w, at, 5, 2, 0);
    ok (answer.ngrant == 1 && answer.grant[0].box.range.hi_ms <= w.record.horizon_ms && answer.has_time
            && answer.has_epoch && answer.epoch_ms == 100000 && answer.lease_ms == 60000,
        "when the horizon is durable the authority grants ranges, with the time, the epoch and the length of a lease");
    const struct authority_stats stats = *authority_stats (w.a);
    ok (stats.stores == (uint64_t)w.stores && stats.store_failures == 6,
        "the authority counts its stores and their failures");
    ok (stats.commits.sum_us == 3 * MS && stats.commits.count[metrics_bucket (3 * MS)] == 1,
        "the duration of a store that succeeded is counted from the begin of the last attempt");
    authority_destroy (w.a);
}

static void test_time (void)
{
    struct world w;

    create_new (&w);
    struct authority_news before = authority_news (w.a);
    authority_lost_time (w.a, T0 + SECOND, (int64_t)(9 * SECOND), (int64_t)(4 * SECOND));
    ok (time_ms (&w, T0 + SECOND) == 15000, "the instance's time steps by the missed time that two clocks agree on");
    authority_wall (w.a, T0 + SECOND, WALL + (int64_t)(7 * SECOND));
    ok (time_ms (&w, T0 + SECOND) == 17000,
        "the instance's time steps by the missed time that the wall clock confirms");
    ok (authority_news (w.a).steps == before.steps + 2,
        "readers of the instance's time can see how many steps there were");
    authority_wall (w.a, T0 + SECOND, WALL + (int64_t)(500 * SECOND));
    ok (time_ms (&w, T0 + SECOND) == 20000, "the instance's time does not step by more than the missed time");
    authority_lost_time (w.a, T0 + SECOND, 0, 0);
    authority_lost_time (w.a, T0 + 61 * SECOND, -(int64_t)(60 * SECOND), 0);
    ok (time_ms (&w, T0 + 61 * SECOND) == 20000,
        "a clock of the host that went too far does not move the instance's time");
    authority_destroy (w.a);
}

/* A rank with another size would use generators that are other ranks' lanes. */
static void test_size (void)
{
    struct authority_config four = config;
    struct authority_start start = { .wall_us = WALL, .stored = &(struct lease_record){ 0 } };
    struct want want = { .rank = 3, .incarnation = CHILD, .number = 1, .size = BOX_WHOLE, .ranks = 5 };
    const struct lease_request req = { .want = &want, .nwant = 1 };
    struct lease_answer answer;
    struct world w = { 0 };

    four.size = 4;
    w.a = authority_create (&four, &ops, &w, T0, &start);
    authority_stored (w.a, T0, w.record.horizon_ms);
    authority_answer (w.a, T0, &req, &answer);
    ok (answer.ngrant == 0 && w.logs == 1,
        "a rank with lanes for a larger size than the instance's gets no lease, and the log says so");
    want.ranks = 3;
    authority_answer (w.a, T0, &req, &answer);
    ok (answer.ngrant == 0 && w.logs == 1,
        "a rank with lanes for a smaller size than the instance's gets no lease, and the log says it only once");
    want.ranks = 4;
    authority_answer (w.a, T0, &req, &answer);
    ok (answer.ngrant == 1, "a rank with lanes for the instance's size gets a lease");
    want.rank = 2;
    want.ranks = 0;
    authority_answer (w.a, T0, &req, &answer);
    ok (answer.ngrant == 1, "a rank without lanes gets a lease");
    want.rank = 4;
    authority_answer (w.a, T0, &req, &answer);
    ok (answer.ngrant == 0,
        "a rank that is not below the instance's size gets no lease, because its generator may be another rank's lane");
    authority_destroy (w.a);
}

/* The grant of generator 5 at 'at_us' is [lo_ms, hi_ms). */
static bool gives (struct world *w, uint64_t at_us, uint64_t number, uint64_t lo_ms, uint64_t hi_ms)
{
    struct lease_answer answer = ask (w, at_us, 5, number, 0);

    return answer.ngrant == 1 && answer.grant[0].box.generator == 5 && answer.grant[0].box.granules == UINT64_MAX
           && answer.grant[0].box.range.lo_ms == lo_ms && answer.grant[0].box.range.hi_ms == hi_ms;
}

static void test_horizon (void)
{
    struct lease_record last;
    struct world w;

    create_new (&w);
    authority_tick (w.a, T0 + SECOND);
    ok (w.stores == 1, "while a store is under way no further store is requested");
    authority_stored (w.a, T0, w.record.horizon_ms);
    ok (authority_deadline (w.a) == T0 + 30 * SECOND + MS, "the next store is due half a lease later");
    authority_tick (w.a, T0 + 30 * SECOND);
    ok (w.stores == 1, "no higher horizon is stored before that");
    authority_tick (w.a, T0 + 30 * SECOND + MS);
    ok (w.stores == 2 && w.record.horizon_ms == 160001,
        "the horizon is raised when it is less than one and a half leases away");
    ok (gives (&w, T0 + 100 * SECOND, 1, w.record.watermark_ms, 130000)
            && ask (&w, T0 + 100 * SECOND, 10, 1, 0).ngrant == 0,
        "until a higher horizon is stored, ranges end at the durable horizon");
    authority_close (w.a, T0 + 100 * SECOND, &last);
    ok (last.horizon_ms == 130000, "the record of a clean stop is not below the end of a range");
    authority_destroy (w.a);

    create (&w, &(struct lease_record){ .horizon_ms = 50000 }, NULL, 0);
    authority_close (w.a, T0, &last);
    ok (last.horizon_ms == 50000, "a clean stop without grants stores the horizon of the start");
    authority_destroy (w.a);
}

static void test_end_of_time (void)
{
    const uint64_t end = UINT64_C (1) << 40;
    struct lease_record last, stored = { .horizon_ms = end - 10000 };
    struct world w;

    create (&w, &stored, NULL, 0);
    authority_tick (w.a, T0 + 5 * SECOND);
    ok (w.stores == 1 && w.record.horizon_ms == end, "no horizon above the end of time is stored");
    authority_stored (w.a, T0 + 5 * SECOND, w.record.horizon_ms);
    authority_tick (w.a, T0 + 6 * SECOND);
    ok (w.stores == 1 && authority_deadline (w.a) == UINT64_MAX,
        "when the horizon is at the end of time, no further store is requested");
    ok (gives (&w, T0 + 7 * SECOND, 1, end - 10000, end) && ask (&w, T0 + 20 * SECOND, 5, 2, 0).ngrant == 0,
        "no range above the end of time is granted");
    authority_close (w.a, T0 + 20 * SECOND, &last);
    ok (last.horizon_ms == end, "a clean stop stores no horizon above the end of time");
    authority_destroy (w.a);
    stored.horizon_ms = end;
    create (&w, &stored, NULL, 0);
    authority_tick (w.a, T0 + 100 * SECOND);
    ok (w.stores == 0 && ask (&w, T0 + 100 * SECOND, 5, 1, 0).ngrant == 0,
        "a root that starts at the end of time grants nothing and stores nothing");
    authority_destroy (w.a);
}

static void test_foreign (void)
{
    struct world w;
    uint64_t ms;

    create_new (&w);
    authority_stored (w.a, T0, w.record.horizon_ms);
    ok (authority_watermark (w.a, T0, &ms), "an authority with a durable horizon publishes a watermark");
    ok (ask (&w, T0, 4, 1, w.record.horizon_ms).ngrant == 1 && !status (&w, T0).fenced_by_foreign,
        "a rank that reports a lease up to the durable horizon got that lease from this root");
    ask (&w, T0, 5, 1, w.record.horizon_ms + 1);
    struct authority_status s = status (&w, T0);
    ok (s.fenced_by_foreign && authority_news (w.a).fenced_by_foreign && !s.foreign.has_epoch
            && s.foreign.hi_ms == w.record.horizon_ms + 1,
        "a lease that ends above the horizon is recognized as a lease from another root");
    ok (ask (&w, T0, 6, 1, 0).ngrant == 0 && !authority_watermark (w.a, T0, &ms)
            && strstr (authority_excuse (w.a), "another statedir"),
        "after a lease from another root was seen the authority grants nothing and publishes no watermark");
    struct lease_record last;
    size_t size;
    authority_close (w.a, T0, &last);
    ok (!authority_leave (w.a, &last, &size) && size == 0,
        "after a lease from another root was seen the authority leaves no handover");
    authority_destroy (w.a);
}

/* A broker keeps IDT_MODULE_KEEP_MAX bytes. What the node of rank 0 and the module add is far below 64 KiB. */
static void test_large (void)
{
    const struct authority_config large = { .max_generators = FLUID_GENERATOR_MAX + 1,
                                            .lease_ms = 60000,
                                            .epoch_ms = 100000 };
    struct lease_record last, none = { 0 };
    const struct authority_start start = { .wall_us = WALL, .stored = &none };
    struct world w = { 0 };
    size_t size = 0;

    w.a = authority_create (&large, &ops, &w, T0, &start);
    authority_stored (w.a, T0, w.record.horizon_ms);
    ok (ask (&w, T0, FLUID_GENERATOR_MAX, 1, 0).ngrant == 1, "the last generator is granted");
    authority_close (w.a, T0, &last);
    free (authority_leave (w.a, &last, &size));
    ok (size > 0 && size < IDT_MODULE_KEEP_MAX - (64 << 10),
        "the handover of an authority that has granted all generators fits into what a broker keeps (%zu bytes)", size);
    authority_destroy (w.a);
}

/* A want that was sent before a clean stop may arrive after the next start (rule HIGHEST_HORIZON). */
static void test_peak (void)
{
    struct want back = { .rank = 5, .incarnation = CHILD, .number = 2, .end_ms = 12000 };
    struct lease_answer answer;
    struct lease_record last;
    struct world w;

    create_new (&w);
    uint64_t peak_ms = w.record.horizon_ms;
    authority_stored (w.a, T0, peak_ms);
    ask (&w, T0, 5, 1, 0);
    authority_answer (w.a, T0 + SECOND, &(struct lease_request){ .want = &back, .nwant = 1 }, &answer);
    authority_close (w.a, T0 + SECOND, &last);
    ok (w.record.peak_ms == peak_ms && last.horizon_ms == 12000 && last.peak_ms == peak_ms,
        "a clean stop lowers the horizon, and keeps the highest horizon that was ever stored");
    authority_destroy (w.a);
    create (&w, &last, NULL, 0);
    ask (&w, T0, 5, 1, peak_ms);
    ok (!status (&w, T0).fenced_by_foreign,
        "after a clean stop a late request may name a lease up to the highest horizon");
    ask (&w, T0, 5, 2, peak_ms + 1);
    ok (status (&w, T0).fenced_by_foreign,
        "after a clean stop a lease above the highest horizon is recognized as a lease from another root");
    authority_destroy (w.a);
    last.peak_ms = 0;
    create (&w, &last, NULL, 0);
    ask (&w, T0, 5, 1, 12001);
    ok (status (&w, T0).fenced_by_foreign, "without a highest horizon the stored horizon is the highest");
    authority_destroy (w.a);
}

/* Another root may take over while this one still runs. */
static void test_takeover (void)
{
    struct authority_config shared = config;
    struct authority_start start = { .wall_us = WALL, .stored = &(struct lease_record){ 0 } };
    struct world w = { .stores = 0 };
    struct lease_record last;

    shared.reach_max_ms = LEASE_USE_MS (shared.lease_ms);
    w.a = authority_create (&shared, &ops, &w, T0, &start);
    ok (w.stores == 1 && w.record.horizon_ms == 10000 + 75000,
        "if another root may take over, the horizon is stored at most one and a quarter leases ahead");
    ok (w.record.settle_ms == 2 * LEASE_AT_MOST_MS (75000),
        "the next root's watermark waits until a replaced root grants nothing, and its leases are not used");
    authority_stored (w.a, T0, w.record.horizon_ms);
    authority_tick (w.a, T0 + 74 * SECOND);
    ok (gives (&w, T0 + 74 * SECOND, 1, w.record.watermark_ms, 85000),
        "a root whose horizon is not raised grants leases that end at the horizon");
    ok (ask (&w, T0 + 75 * SECOND, 6, 1, 0).ngrant == 0, "at the time of the horizon that root grants nothing");
    authority_lost_time (w.a, T0 + 75 * SECOND, (int64_t)(9 * SECOND), 0);
    authority_stored (w.a, T0 + 75 * SECOND, w.record.horizon_ms);
    ok (ask (&w, T0 + 75 * SECOND, 6, 2, 0).ngrant == 0 && authority_news (w.a).missed_us == 9 * SECOND,
        "after time that the clock missed, a write that began before it does not show that no other root took over");
    int stores = w.stores;
    authority_tick (w.a, T0 + 75 * SECOND);
    authority_stored (w.a, T0 + 76 * SECOND, w.record.horizon_ms);
    ok (w.stores >= stores && ask (&w, T0 + 76 * SECOND, 6, 3, 0).ngrant == 1,
        "when a later write is acknowledged, the root grants leases again");
    authority_close (w.a, T0 + 76 * SECOND, &last);
    ok (last.settle_ms == LEASE_AT_MOST_MS (75000),
        "after a clean stop the next root's watermark waits only for leases in use");
    authority_destroy (w.a);
}

/* A root that takes over, lives for a minute, and is lost right after it has stored a horizon. Its host's wall clock is
 * off by 'off_s', the database's is right. Returns the horizon minus the right time, in seconds.
 */
static int64_t live (struct lease_record *record, uint64_t at_us, int64_t off_s)
{
    struct authority_config shared = config;
    int64_t right_us = WALL + (int64_t)(at_us - T0), own_us = right_us + off_s * (int64_t)SECOND;
    struct authority_start start = { .wall_us = own_us < right_us ? own_us : right_us,
                                     .limit_us = right_us,
                                     .stored = record };
    struct world w = { .stores = 0 };

    shared.reach_max_ms = LEASE_USE_MS (shared.lease_ms);
    w.a = authority_create (&shared, &ops, &w, at_us, &start);
    for (int s = 0; s <= 60; s++, at_us += SECOND, own_us += (int64_t)SECOND, right_us += (int64_t)SECOND) {
        int stores = w.stores;

        authority_wall (w.a, at_us, own_us);
        if (w.stores > stores || s == 0)
            authority_stored (w.a, at_us, w.record.horizon_ms);
    }
    *record = w.record;
    authority_destroy (w.a);
    return (int64_t)record->horizon_ms / 1000 - (right_us / (int64_t)SECOND - config.epoch_ms / 1000);
}

static void test_takeovers (void)
{
    static const struct {
        int64_t off_s[2]; /* of two hosts that take turns */
        const char *what;
    } cases[] = { { { 0, 0 }, "with right clocks" },
                  { { 3600, 0 }, "one of which is an hour ahead" },
                  { { -3600, 0 }, "one of which is an hour behind" },
                  { { 3600, -3600 }, "one an hour ahead, the other one an hour behind" },
                  { { -100000, -100000 }, "both before the epoch" } };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        struct lease_record record = { .horizon_ms = 10000, .peak_ms = 10000 };
        int64_t ahead_s = 0, most_s = 8 * 60 + 610 / 8 + 10;

        for (uint64_t n = 0; n < 10; n++)
            ahead_s = live (&record, T0 + n * 61 * SECOND, cases[i].off_s[n % 2]);
        ok (ahead_s <= most_s, "ten takeovers in ten minutes by two hosts %s: %lld s ahead, not above %lld",
            cases[i].what, (long long)ahead_s, (long long)most_s);
    }
}

static void test_close (void)
{
    struct want back = { .rank = 5, .incarnation = CHILD, .number = 2, .end_ms = 12000 };
    struct lease_record last;
    struct lease_answer answer;
    struct world w;

    create_new (&w);
    authority_stored (w.a, T0, w.record.horizon_ms);
    ask (&w, T0, 5, 1, 0);
    authority_answer (w.a, T0 + SECOND, &(struct lease_request){ .want = &back, .nwant = 1 }, &answer);
    authority_close (w.a, T0 + SECOND, &last);
    ok (last.horizon_ms == 12000 && last.watermark_ms == 12000,
        "at a clean stop the record has the end of all time that was used");
    ok (ask (&w, T0 + SECOND, 5, 3, 0).ngrant == 0 && authority_deadline (w.a) == UINT64_MAX,
        "a closed authority grants nothing, and has no deadline");
    int stores = w.stores, logs = w.logs;
    authority_wall (w.a, T0 + SECOND, WALL + (int64_t)(60 * SECOND));
    authority_lost_time (w.a, T0 + SECOND, (int64_t)SECOND, (int64_t)SECOND);
    authority_tick (w.a, T0 + 100 * SECOND);
    ok (w.stores == stores && w.logs == logs && time_ms (&w, T0 + SECOND) == 11000,
        "calls of a closed authority have no effect");
    authority_destroy (w.a);
}

static void test_next (void)
{
    struct lease_record last;
    struct world w;
    size_t size;

    create_new (&w);
    authority_stored (w.a, T0, w.record.horizon_ms);
    ask (&w, T0, 5, 1, 0);
    authority_close (w.a, T0, &last);
    void *past = authority_leave (w.a, &last, &size);
    authority_destroy (w.a);

    create (&w, &last, past, size);
    ok (authority_reopen (w.a, 0, 10001) && time_ms (&w, T0) == 10000,
        "an authority with a handover continues with the time and the table of the previous one");
    authority_destroy (w.a);
    struct authority_start missed = {
        .wall_us = WALL, .stored = &last, .past = past, .past_size = size, .off_us = 5 * SECOND, .sure_us = 5 * SECOND
    };
    w.a = authority_create (&config, &ops, &w, T0, &missed);
    ok (time_ms (&w, T0) == 15000, "an authority with a handover steps by the time that its clock missed meanwhile");
    authority_destroy (w.a);
    missed.off_us = -(int64_t)(5 * SECOND);
    missed.sure_us = 0;
    w.a = authority_create (&config, &ops, &w, T0 + 5 * SECOND, &missed);
    ok (authority_news (w.a).jumped_us == 5 * SECOND && time_ms (&w, T0 + 5 * SECOND) < 11000,
        "an authority with a handover knows by how much its clock went too far meanwhile");
    authority_destroy (w.a);
    create (&w, &last, past, size - 1);
    ok (!authority_reopen (w.a, 0, 10001) && time_ms (&w, T0) == last.horizon_ms,
        "an authority with a truncated handover begins at the stored horizon");
    authority_destroy (w.a);
    for (int i = 0; i < 5; i++) {
        struct lease_record other = last;
        *(uint64_t *[]){ &other.horizon_ms, &other.watermark_ms, &other.settle_ms, &other.ahead_ms,
                         &other.peak_ms }[i] += 1;
        create (&w, &other, past, size);
        ok (!authority_reopen (w.a, 0, 10001), "a handover is not used if another record was stored meanwhile (%d)", i);
        authority_destroy (w.a);
    }
    struct authority_config other[] = { config, config, config, config, config };
    other[0].max_generators++;
    other[1].lease_ms++;
    other[2].epoch_ms++;
    other[3].size++;
    other[4].reach_max_ms++;
    for (int i = 0; i < 5; i++) {
        struct authority_start start = { .wall_us = WALL, .stored = &last, .past = past, .past_size = size };
        w.a = authority_create (&other[i], &ops, &w, T0, &start);
        ok (!authority_reopen (w.a, 0, 10001), "a handover is not used if the configuration has changed (%d)", i);
        authority_destroy (w.a);
    }
    free (past);
}

static void test_debt (void)
{
    struct lease_record crashed = { .horizon_ms = 10000 + 20 * 60000, .ahead_ms = 20 * 60000 };
    struct world w;

    create (&w, &crashed, NULL, 0);
    ok (!authority_clock (w.a)->known && w.stores == 0 && !ask (&w, T0, 5, 1, 0).has_time,
        "an authority with a clock debt above the limit gives no time");
    uint64_t at = authority_deadline (w.a);
    authority_tick (w.a, at);
    ok (at > T0 && at <= T0 + 5 * SECOND && time_ms (&w, at) == crashed.horizon_ms && w.stores == 1,
        "an authority with a clock debt above the limit waits a twelfth of a lease, in which its clock does not "
        "advance");
    authority_destroy (w.a);
}

int main (void)
{
    test_store ();
    test_time ();
    test_size ();
    test_horizon ();
    test_end_of_time ();
    test_foreign ();
    test_large ();
    test_peak ();
    test_takeover ();
    test_takeovers ();
    test_close ();
    test_next ();
    test_debt ();
    return done_testing ();
}
