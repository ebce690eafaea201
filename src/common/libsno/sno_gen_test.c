/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_gen_test.c - the generator: the scripts of the original (sno.json), limits, waiting, random clocks
 *
 * Time is a script: each reading of the clock takes the next value, and sleeping takes no time unless 'sleep_moves'.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "idtree/sno.h"
#include "test/failing_alloc.h"
#include "test/failing_pages.h"
#include "test/signals.h"
#include "test/ids/vectors.h"

#define CLOCK_MAX 64

struct script {
    uint64_t unit[CLOCK_MAX]; /* successive readings; the last one repeats */
    size_t count, next;
    int64_t slept_ns;
    bool sleep_moves; /* sleeping advances the readings by the same time */
    int64_t offset_ns;
};

static int64_t script_now (void *arg)
{
    struct script *s = arg;
    size_t i = s->next < s->count ? s->next++ : s->count - 1;
    return (int64_t)s->unit[i] * SNO_UNIT_NS + SNO_EPOCH_NS + s->offset_ns;
}

static void script_sleep (void *arg, int64_t for_ns)
{
    struct script *s = arg;
    s->slept_ns += for_ns;
    if (s->sleep_moves)
        s->offset_ns += for_ns;
}

static struct sno_time script_time (struct script *s)
{
    return (struct sno_time){ script_now, script_sleep, s };
}

static void script_set (struct script *s, uint64_t unit)
{
    *s = (struct script){ .unit = { unit }, .count = 1, .sleep_moves = s->sleep_moves };
}

static void script_load (struct script *s, json_t *readings)
{
    json_t *reading;
    size_t i;

    *s = (struct script){ 0 };
    json_array_foreach (readings, i, reading)
        if (s->count < CLOCK_MAX)
            s->unit[s->count++] = (uint64_t)json_integer_value (reading);
}

/* --- scripts of the original ------------------------------------------------------------- */

static bool state_is (struct sno_gen *gen, struct script *clock, json_t *state)
{
    struct sno_snapshot s;
    struct script saved = *clock;

    /* a snapshot contains the sequence only if the clock is in unit wall_hi */
    script_set (clock, (uint64_t)get_i (state, "wall_hi"));
    sno_gen_snapshot (gen, &s);
    *clock = saved;
    return s.sequence == get_i (state, "seq_internal") && s.wall_hi == get_i (state, "wall_hi")
           && s.wall_safe == get_i (state, "wall_safe") && s.drifts == get_i (state, "drifts")
           && s.partition == get_i (state, "partition") && s.sequence_min == get_i (state, "seq_min")
           && s.sequence_max == get_i (state, "seq_max");
}

static bool id_is (const sno_t *id, json_t *step)
{
    char text[SNO_TEXT_MAX];
    const char *expected = get_s (step, "text");

    sno_format (id, text, sizeof (text));
    return is_hex (id->bytes, SNO_SIZE, get_s (step, "id")) && (!expected || !strcmp (text, expected));
}

static bool step_holds (struct sno_gen *gen, struct script *clock, json_t *step)
{
    const char *op = get_s (step, "op");
    sno_t id;

    script_load (clock, json_object_get (step, "clock"));
    if (!strcmp (op, "new"))
        return sno_gen_make (gen, (uint8_t)get_i (step, "meta"), -1, &id) == 0 && id_is (&id, step);
    if (!strcmp (op, "with_time"))
        return sno_gen_make_at (gen, (uint8_t)get_i (step, "meta"), get_i (step, "unix_s") * 1000000000, &id) == 0
               && id_is (&id, step);
    if (!strcmp (op, "sequence"))
        return sno_gen_sequence (gen) == get_i (step, "sequence");
    if (!strcmp (op, "len"))
        return sno_gen_len (gen) == get_i (step, "len") && sno_gen_cap (gen) == get_i (step, "cap");
    if (!strcmp (op, "snapshot")) {
        char json[SNO_SNAPSHOT_TEXT_MAX];
        struct sno_snapshot s;
        sno_gen_snapshot (gen, &s);
        sno_snapshot_format (&s, json, sizeof (json));
        return !strcmp (json, get_s (step, "snapshot"));
    }
    return false;
}

static struct sno_gen *script_gen (json_t *row, struct script *clock)
{
    struct sno_snapshot config;
    const char *json = get_s (row, "snapshot_in");
    struct sno_time told = script_time (clock);

    if (sno_snapshot_parse (json, strlen (json), &config, NULL) < 0)
        bail_out ("cannot read a snapshot in the vectors");
    return sno_gen_create (&(struct sno_gen_config){ .start = config, .time = told });
}

static bool script_holds (json_t *row)
{
    struct script clock = { .count = 1 };
    struct sno_gen *gen = script_gen (row, &clock);
    json_t *step;
    size_t i;
    bool good = gen != NULL;

    json_array_foreach (json_object_get (row, "steps"), i, step) {
        json_t *state = json_object_get (step, "state_after");
        if (good && (!step_holds (gen, &clock, step) || (state && !state_is (gen, &clock, state)))) {
            diag ("%s: step %zu", get_s (row, "name"), i);
            good = false;
        }
    }
    sno_gen_destroy (gen);
    return good;
}

/* The original stores times outside the format modulo 2^39; this library refuses them. */
static bool refuses_times (json_t *row)
{
    struct script clock = { .count = 1 };
    struct sno_gen *gen = script_gen (row, &clock);
    bool good = true;
    json_t *step;
    size_t i;

    json_array_foreach (json_object_get (row, "steps"), i, step) {
        sno_t id;
        script_load (&clock, json_object_get (step, "clock"));
        if (clock.unit[0] > SNO_UNIT_MAX) {
            /* units before 2010 are negative, stored modulo 2^64 */
            int64_t unix_ns = (int64_t)(clock.unit[0] * (uint64_t)SNO_UNIT_NS + (uint64_t)SNO_EPOCH_NS);
            good = good && sno_gen_reserve (gen, 0, unix_ns, 1, &id, NULL) < 0 && errno == EOVERFLOW;
        }
        else
            good = good && sno_gen_try (gen, (uint8_t)get_i (step, "meta"), &id, NULL) == 0 && id_is (&id, step);
    }
    sno_gen_destroy (gen);
    return good;
}

static void test_scripts (json_t *vectors)
{
    struct tally t = { .section = "generator_scripts" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "generator_scripts"), i, row) {
        const char *name = get_s (row, "name");
        if (!strcmp (name, "clock_max") || !strcmp (name, "clock_before_epoch"))
            tally (&t, "the original wraps times outside the format", refuses_times (row));
        else
            tally (&t, NULL, script_holds (row));
        diag ("script %s", name);
    }
    tally_end (&t, "a generator makes the ids of the original, and has the state of the original after each call");
}

/* --- ids for specific times -------------------------------------------------------------- */

/* Whether a time is from 2010 to the end of the format, which is within second 3461327255. */
static bool new_at_fits (json_t *row)
{
    int64_t s = get_i (row, "unix_s");

    return s >= 1262304000 && (s < 3461327255 || (s == 3461327255 && get_i (row, "unix_nsec") < 552000000));
}

static bool new_at_row_holds (json_t *row)
{
    struct sno_snapshot config = { .partition = 0xabcd, .sequence_min = 16, .sequence_max = 31 };
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = config });
    int64_t s = get_i (row, "unix_s"), nsec = get_i (row, "unix_nsec");
    int64_t ns = s < INT64_MAX / 1000000000 && s > INT64_MIN / 1000000000 ? s * 1000000000 + nsec : -1;
    sno_t id;

    int rc = sno_gen_make_at (gen, (uint8_t)get_i (row, "in_meta"), ns, &id);
    bool good = new_at_fits (row) ? rc == 0 && is_hex (id.bytes, SNO_SIZE, get_s (row, "hex"))
                                  : rc < 0 && errno == EOVERFLOW;
    sno_gen_destroy (gen);
    return good;
}

static void test_new_at (json_t *vectors)
{
    struct tally t = { .section = "new_with_time" };
    json_t *row, *call;
    size_t i, j;

    json_array_foreach (vectors_section (vectors, "new_with_time"), i, row)
        tally (&t, new_at_fits (row) ? NULL : "the original wraps times outside the format", new_at_row_holds (row));
    tally_end (&t, "a generator makes the ids of the original");
    json_array_foreach (vectors_section (vectors, "new_with_time_rollover"), i, row) {
        struct sno_snapshot config = { .sequence_min = (uint16_t)get_i (row, "min"),
                                       .sequence_max = (uint16_t)get_i (row, "max") };
        struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = config });
        json_t *sequences = json_object_get (row, "sequences");
        int64_t calls = get_i (row, "calls");
        size_t skipped = (size_t)calls - json_array_size (sequences);
        sno_t id;
        bool same = true;
        json_array_foreach (sequences, j, call) {
            if (skipped && j == 3)
                for (size_t k = 0; k < skipped; k++)
                    sno_gen_make_at (gen, 0, SNO_EPOCH_NS, &id);
            same = same && sno_gen_make_at (gen, 0, SNO_EPOCH_NS, &id) == 0
                   && sno_split (&id).sequence == json_integer_value (call);
        }
        ok (same, "with bounds %d-%d the sequence wraps as in the original", config.sequence_min, config.sequence_max);
        sno_gen_destroy (gen);
    }
    struct sno_gen *gen = sno_gen_create (NULL);
    sno_t id;
    ok (sno_gen_make_at (gen, 0, 0, &id) < 0 && errno == EOVERFLOW, "a time of 1970 is refused; the original wraps");
    sno_gen_destroy (gen);
}

/* --- limits ------------------------------------------------------------------------------ */

static void test_used_up (void)
{
    struct sno_snapshot config = { .sequence_min = 0, .sequence_max = 5 };
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = config });
    int64_t t = SNO_EPOCH_NS + 100 * SNO_UNIT_NS + 1000000, wait = 0;
    sno_t id;

    ok (sno_gen_reserve (gen, 7, t, 4, &id, NULL) == 4 && sno_split (&id).sequence == 0,
        "four of six ids of a pool are returned");
    ok (sno_gen_reserve (gen, 7, t, 4, &id, NULL) == 2 && sno_split (&id).sequence == 4,
        "the last two of six ids of a pool are returned");
    ok (sno_gen_reserve (gen, 7, t, 1, &id, &wait) < 0 && errno == EAGAIN && wait == 3000000,
        "when a pool is used up the time to wait is the rest of the unit");
    ok (sno_gen_reserve (gen, 7, t + wait, 100, &id, NULL) == 6 && sno_split (&id).unit == 101,
        "when the unit is over six more ids of a pool can be made");
    sno_gen_destroy (gen);

    gen = sno_gen_create (NULL);
    ok (sno_gen_reserve (gen, 0, t, 1000000, &id, NULL) == 65536, "a unit has 65536 ids");
    ok (sno_gen_reserve (gen, 0, t, 1, &id, NULL) < 0 && errno == EAGAIN,
        "after the 65536 ids of a unit no further one can be made");
    sno_gen_destroy (gen);
}

static void test_clock_limits (void)
{
    struct sno_gen *gen = sno_gen_create (NULL);
    int64_t end = SNO_EPOCH_NS + (int64_t)(SNO_UNIT_MAX + 1) * SNO_UNIT_NS;
    sno_t id;

    ok (sno_gen_reserve (gen, 0, SNO_EPOCH_NS - 1, 1, &id, NULL) < 0 && errno == EOVERFLOW,
        "a time before 2010 fails with EOVERFLOW");
    ok (sno_gen_reserve (gen, 0, end - 1, 1, &id, NULL) == 1 && sno_split (&id).unit == SNO_UNIT_MAX,
        "ids of the last unit of the format can be made");
    ok (sno_gen_reserve (gen, 0, end, 1, &id, NULL) < 0 && errno == EOVERFLOW,
        "a time after the last unit of the format fails with EOVERFLOW");
    sno_gen_set_range (gen, 10, 20);
    ok (sno_gen_reserve (gen, 0, SNO_EPOCH_NS + 10 * SNO_UNIT_NS - 1, 1, &id, NULL) < 0 && errno == ERANGE,
        "a time below the range fails with ERANGE");
    ok (sno_gen_reserve (gen, 0, SNO_EPOCH_NS + 10 * SNO_UNIT_NS, 1, &id, NULL) == 1,
        "an id in the first unit of the range can be made");
    ok (sno_gen_reserve (gen, 0, SNO_EPOCH_NS + 20 * SNO_UNIT_NS, 1, &id, NULL) < 0 && errno == ERANGE,
        "an id at the end of the range fails with ERANGE");
    ok (sno_gen_set_range (gen, 20, 10) < 0 && errno == EINVAL, "a range that ends before it begins fails with EINVAL");
    sno_gen_destroy (gen);
    ok (!sno_gen_create (&(struct sno_gen_config){ .start = { .wall_hi = -1 } }) && errno == EOVERFLOW
            && !sno_gen_create (&(struct sno_gen_config){ .start = { .wall_hi = (int64_t)SNO_UNIT_MAX + 1 } })
            && !sno_gen_create (&(struct sno_gen_config){ .start = { .wall_safe = (int64_t)SNO_UNIT_MAX + 1 } }),
        "a generator with a wall outside the format is refused");
    ok (!sno_gen_create (&(struct sno_gen_config){ .start = { .sequence_min = 5, .sequence_max = 5 } })
            && errno == EINVAL,
        "a generator with invalid bounds of the sequence is refused");
    sno_gen_destroy (NULL);
}

/* --- waiting ----------------------------------------------------------------------------- */

struct told {
    struct sno_overflow overflow[16], last;
    size_t count;
};

static void told_cb (const struct sno_overflow *overflow, void *arg)
{
    struct told *told = arg;
    told->last = *overflow;
    if (told->count < 16)
        told->overflow[told->count++] = *overflow;
}

static void test_waiting (void)
{
    struct script script = { .unit = { 100 }, .count = 1, .sleep_moves = true };
    struct sno_time time = script_time (&script);
    struct sno_gen *gen = sno_gen_create (
        &(struct sno_gen_config){ .start = { .sequence_min = 1, .sequence_max = 6 }, .time = time });
    struct told told = { .count = 0 };
    sno_t id;
    int64_t wait = 0;

    sno_gen_on_overflow (gen, told_cb, &told);
    for (int i = 0; i < 6; i++)
        sno_gen_make (gen, 0, 0, &id);
    ok (script.slept_ns == 0 && told.count == 0, "six ids of a pool of six need no waiting");
    ok (sno_gen_try (gen, 0, &id, &wait) < 0 && errno == EAGAIN && wait == SNO_UNIT_NS && script.slept_ns == 0,
        "for the seventh id the non-blocking call returns the time to the next unit");
    ok (sno_gen_make (gen, 0, SNO_UNIT_NS - 1, &id) < 0 && errno == EAGAIN && script.slept_ns == 0,
        "for the seventh id of a pool of six a call with a timeout that is too short returns immediately");
    ok (sno_gen_make (gen, 0, SNO_UNIT_NS, &id) == 0 && script.slept_ns == SNO_UNIT_NS && sno_split (&id).unit == 101
            && sno_split (&id).sequence == 1,
        "for the seventh id of a pool of six a call with a sufficient timeout waits exactly one unit");
    ok (told.count == 2 && told.overflow[0].blocked == 1 && told.overflow[0].ticks == 1 && told.overflow[1].blocked == 0
            && told.overflow[1].ticks == 5,
        "the callback of a generator reports one blocked call, and the end of the overflow");
    sno_gen_destroy (gen);
}

/* A clock that threads share; sleeping advances it. */
static int64_t shared_now (void *arg)
{
    return atomic_load ((_Atomic int64_t *)arg);
}

static void shared_sleep (void *arg, int64_t for_ns)
{
    atomic_fetch_add ((_Atomic int64_t *)arg, for_ns);
}

#define CROWD 8
#define CROWD_IDS 500

struct crowd {
    struct sno_gen *gen;
    sno_t ids[CROWD * CROWD_IDS];
};

struct member {
    struct crowd *crowd;
    int index;
};

static void *member_thread (void *arg)
{
    struct member *m = arg;
    for (int i = 0; i < CROWD_IDS; i++)
        if (sno_gen_make (m->crowd->gen, 0, -1, &m->crowd->ids[m->index * CROWD_IDS + i]) < 0)
            abort ();
    return NULL;
}

static void test_crowd (void)
{
    static struct crowd crowd;
    static _Atomic int64_t now_ns = SNO_EPOCH_NS + 1000 * SNO_UNIT_NS;
    struct sno_time time = { shared_now, shared_sleep, (void *)&now_ns };
    struct sno_snapshot config = { .sequence_min = 1, .sequence_max = 6 };
    struct told told = { .count = 0 };
    struct member members[CROWD];
    pthread_t threads[CROWD];
    size_t repeated = 0;

    crowd.gen = sno_gen_create (&(struct sno_gen_config){ .start = config, .time = time });
    sno_gen_on_overflow (crowd.gen, told_cb, &told);
    for (int i = 0; i < CROWD; i++) {
        members[i] = (struct member){ &crowd, i };
        pthread_create (&threads[i], NULL, member_thread, &members[i]);
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join (threads[i], NULL);
    sno_sort (crowd.ids, CROWD * CROWD_IDS);
    for (size_t i = 1; i < CROWD * CROWD_IDS; i++)
        repeated += sno_compare (&crowd.ids[i - 1], &crowd.ids[i]) == 0;
    ok (repeated == 0, "%d threads that wait for a pool of six ids make no id twice", CROWD);
    ok (told.count > 1 && told.overflow[0].blocked > 0 && told.overflow[0].blocked <= CROWD && told.last.blocked == 0,
        "the callback of a generator reports blocked calls, and at the end that no call is blocked");
    sno_gen_destroy (crowd.gen);
}

static void test_unsafe_past (void)
{
    struct script script = { .unit = { 940 }, .count = 1, .sleep_moves = true };
    struct sno_time time = script_time (&script);
    struct sno_snapshot config = { .wall_hi = 950, .wall_safe = 1000, .drifts = 1 };
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = config, .time = time });
    int64_t wait = 0;
    sno_t id;

    ok (sno_gen_try (gen, 0, &id, &wait) < 0 && errno == ESTALE && wait == 10 * SNO_UNIT_NS,
        "between the walls of both timelines the time to wait is up to the newest id's unit");
    ok (sno_gen_make (gen, 0, -1, &id) == 0 && sno_split (&id).unit == 950 && sno_split (&id).tick == 1
            && script.slept_ns == 10 * SNO_UNIT_NS,
        "between the walls of both timelines a blocking call sleeps once up to the newest id's unit, and does not "
        "swap timelines");
    sno_gen_destroy (gen);

    script_set (&script, 990);
    config = (struct sno_snapshot){ .wall_hi = 1100, .wall_safe = 1000, .drifts = 1 };
    gen = sno_gen_create (&(struct sno_gen_config){ .start = config, .time = time });
    ok (sno_gen_make (gen, 0, -1, &id) == 0 && sno_split (&id).unit == 1001 && sno_split (&id).tick == 0,
        "above both walls the time to wait is up to the first unit that the other timeline has not used");
    sno_gen_destroy (gen);

    config = (struct sno_snapshot){ .wall_hi = 9, .wall_safe = (int64_t)SNO_UNIT_MAX };
    script_set (&script, 8);
    gen = sno_gen_create (&(struct sno_gen_config){ .start = config, .time = time });
    ok (sno_gen_make (gen, 0, 1000, &id) < 0 && errno == ESTALE, "a timeout ends a wait for the clock to catch up");
    sno_gen_destroy (gen);
}

static void test_snapshot (void)
{
    struct script script = { .unit = { 50 }, .count = 1 };
    struct sno_time time = script_time (&script);
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 3 }, .time = time });
    struct sno_snapshot s;
    sno_t last, id;

    sno_gen_try (gen, 0, &last, NULL);
    sno_gen_try (gen, 0, &last, NULL);
    sno_gen_snapshot (gen, &s);
    sno_gen_destroy (gen);
    gen = sno_gen_create (&(struct sno_gen_config){ .start = s, .time = time });
    ok (sno_gen_try (gen, 0, &id, NULL) == 0 && sno_compare (&id, &last) > 0,
        "a generator made from a snapshot continues after the last id in the same unit");
    script_set (&script, 51);
    sno_gen_snapshot (gen, &s);
    sno_gen_destroy (gen);
    script_set (&script, 50);
    gen = sno_gen_create (&(struct sno_gen_config){ .start = s, .time = time });
    ok (sno_gen_try (gen, 0, &last, NULL) < 0 && errno == EAGAIN,
        "a snapshot from another unit has no sequence, so the newest unit counts as used up");
    sno_gen_destroy (gen);

    ok (sno_snapshot_raise (&s, 60) == 0
            && (gen = sno_gen_create (&(struct sno_gen_config){ .start = s, .time = time })),
        "a snapshot can be raised to a later unit");
    unsigned refused = 0;
    for (unsigned unit = 40; unit < 60; unit++) {
        script_set (&script, unit);
        refused += sno_gen_try (gen, 0, &id, NULL) < 0;
    }
    script_set (&script, 60);
    ok (refused == 20 && sno_gen_try (gen, 0, &id, NULL) == 0,
        "a generator made from a snapshot that was raised to unit 60 makes no id below 60 on either timeline");
    ok (sno_snapshot_raise (&s, 0) < 0 && sno_snapshot_raise (&s, SNO_UNIT_MAX + 1) < 0 && errno == EOVERFLOW,
        "raising a snapshot to a unit outside the format is refused");
    sno_gen_destroy (gen);
}

/* --- random clocks in small worlds: each id is checked ----------------------------------- */

#define WORLD 64 /* units */

static unsigned random_step (uint64_t *state, unsigned below)
{
    *state = *state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (unsigned)(*state >> 33) % below;
}

static bool world_is_free_of_duplicates (uint64_t seed)
{
    static unsigned char seen[WORLD][2][8];
    struct sno_snapshot s = { .sequence_min = 1, .sequence_max = 6 };
    struct script script = { .count = 1 };
    struct sno_time time = script_time (&script);
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = s, .time = time });
    uint64_t unit = WORLD / 2;
    bool good = true;

    memset (seen, 0, sizeof (seen));
    for (int step = 0; step < 400; step++) {
        unsigned kind = random_step (&seed, 8);
        if (kind < 4)
            unit = unit + (kind == 0) < WORLD ? unit + (kind == 0) : unit;
        else if (kind == 4)
            unit = random_step (&seed, WORLD);
        sno_t id;
        int64_t t = SNO_EPOCH_NS + (int64_t)unit * SNO_UNIT_NS;
        int n = sno_gen_reserve (gen, 0, t, 1 + random_step (&seed, 4), &id, NULL);
        for (int i = 0; i < n; i++, sno_next (&id)) {
            struct sno_fields f = sno_split (&id);
            good = good && f.unit == unit && f.sequence >= 1 && f.sequence <= 6
                   && seen[f.unit][f.tick][f.sequence]++ == 0;
        }
        if (kind >= 6) {
            script_set (&script, kind == 6 ? unit : random_step (&seed, WORLD));
            sno_gen_snapshot (gen, &s);
            sno_gen_destroy (gen);
            gen = sno_gen_create (&(struct sno_gen_config){ .start = s, .time = time });
        }
    }
    sno_gen_destroy (gen);
    return good;
}

static void test_worlds (void)
{
    unsigned good = 0, n = 2000;

    for (unsigned seed = 1; seed <= n; seed++)
        good += world_is_free_of_duplicates (seed);
    ok (good == n, "in %u histories of 64 units with jumping clocks and restarted generators no id is made twice", n);
}

static void test_arguments (void)
{
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 7 } });
    int64_t t = SNO_EPOCH_NS + 100 * SNO_UNIT_NS;
    sno_t id = { { 9 } };

    ok (sno_gen_reserve (gen, 0, t, 0, &id, NULL) == -1 && errno == EINVAL && id.bytes[0] == 9,
        "a request for 0 ids fails with EINVAL");
    ok (sno_gen_reserve (gen, 0, t, 1, &id, NULL) == 1 && sno_split (&id).sequence == 0
            && sno_gen_reserve (gen, 0, t, 1, &id, NULL) == 1 && sno_split (&id).sequence == 1,
        "a request for 0 ids changes nothing");
    ok (sno_gen_set_range (gen, 0, SNO_UNIT_MAX + 2) == -1 && errno == EOVERFLOW
            && sno_gen_set_range (gen, 0, UINT64_MAX) == -1 && errno == EOVERFLOW && sno_gen_set_range (gen, 2, 1) == -1
            && errno == EINVAL,
        "ranges that end after the last unit or before they begin are refused");
    ok (sno_gen_set_range (gen, 0, SNO_UNIT_MAX + 1) == 0 && sno_gen_reserve (gen, 0, t, 1, &id, NULL) == 1,
        "a range may cover the whole time of the format");
    sno_gen_destroy (gen);
}

/* With the system's clock: the first id can be made in 100 ms, and the timeout is 1 s. */
static void test_signals (void)
{
    struct sno_snapshot start = { .partition = 7 };
    struct timespec ts;
    uint64_t unit;
    sno_t id;

    clock_gettime (CLOCK_REALTIME, &ts);
    if (sno_unit_at (ts.tv_sec * INT64_C (1000000000) + ts.tv_nsec, &unit) < 0
        || sno_snapshot_raise (&start, unit + 25) < 0)
        bail_out ("the system's clock is outside the format of sno");
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = start });
    signals_every (1000);
    int rc = sno_gen_make (gen, 0, INT64_C (1000000000), &id);
    signals_every (0);
    ok (rc == 0 && signals_came > 0,
        "signals that interrupt the sleep of a generator do not shorten the wait (%d arrived)", (int)signals_came);
    sno_gen_destroy (gen);
}

/* The errno of an attempt to make ids in a child process, in one of four ways; 0: an id was made. */
static int child_gets (struct sno_gen *gen, int64_t t, int way)
{
    int status = 0, rc = -1;
    pid_t pid = fork ();
    sno_t id;

    if (pid == 0) {
        if (way == 0)
            rc = sno_gen_reserve (gen, 0, t, 1, &id, NULL);
        else if (way == 1)
            rc = sno_gen_try (gen, 0, &id, NULL);
        else if (way == 2)
            rc = sno_gen_make (gen, 0, 0, &id);
        else
            rc = sno_gen_make_at (gen, 0, t, &id);
        int errnum = rc < 0 ? errno : 0;
        sno_gen_destroy (gen);
        _exit (errnum);
    }
    waitpid (pid, &status, 0);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void test_fork (void)
{
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 7 } });
    int64_t t = SNO_EPOCH_NS + 100 * SNO_UNIT_NS;
    int refused = 0;
    sno_t id;

    for (int way = 0; way < 4; way++)
        refused += child_gets (gen, t, way) == EPERM;
    ok (refused == 4, "a child process makes no ids, because they would be its parent's ids");
    ok (sno_gen_reserve (gen, 0, t, 1, &id, NULL) == 1, "the parent of a forked process continues to make ids");
    sno_gen_destroy (gen);
}

/* If the kernel does not wipe pages, a child process is detected by its process id. */
static void test_fork_told_by_ids (void)
{
    int64_t t = SNO_EPOCH_NS + 100 * SNO_UNIT_NS;
    int refused = 0;
    sno_t id;

    no_wiping = true;
    struct sno_gen *gen = sno_gen_create (NULL);
    ok (sno_gen_reserve (gen, 0, t, 1, &id, NULL) == 1 && sno_gen_make_at (gen, 0, t, &id) == 0,
        "without pages that the kernel wipes at a fork, ids are made");
    generation++;
    refused += sno_gen_reserve (gen, 0, t, 1, &id, NULL) < 0 && errno == EPERM;
    refused += sno_gen_try (gen, 0, &id, NULL) < 0 && errno == EPERM;
    refused += sno_gen_make (gen, 0, 0, &id) < 0 && errno == EPERM;
    refused += sno_gen_make_at (gen, 0, t, &id) < 0 && errno == EPERM;
    ok (refused == 4, "without wiped pages, a process with another id makes no ids");
    generation--;
    no_wiping = false;
    sno_gen_destroy (gen);
}

static void test_no_memory (void)
{
    countdown = 0;
    ok (!sno_gen_create (NULL) && errno == ENOMEM && failures == 1,
        "without memory a generator of snos cannot be created");
    no_pages = true;
    errno = 0;
    ok (!sno_gen_create (NULL) && errno == ENOMEM, "without a page a generator of snos cannot be created");
    no_pages = false;
}

/* --- other threads act while this one reads the clock ------------------------------------------ */

struct between {
    struct sno_gen *gen;
    uint64_t theirs, mine; /* units */
    int readings;
};

static int64_t unit_ns (uint64_t unit)
{
    return SNO_EPOCH_NS + (int64_t)unit * SNO_UNIT_NS;
}

static int64_t between_now (void *arg)
{
    struct between *b = arg;
    sno_t id;

    if (b->readings++ == 0)
        sno_gen_reserve (b->gen, 0, unit_ns (b->theirs), 1, &id, NULL);
    return unit_ns (b->mine);
}

/* Make an id at unit 'mine' while another thread makes one at unit 'theirs', both after one at unit 100. */
static sno_t make_between (uint64_t theirs, uint64_t mine, int *readings)
{
    struct between b = { .theirs = theirs, .mine = mine };
    sno_t id = { { 0 } };

    b.gen = sno_gen_create (&(struct sno_gen_config){ .time = { between_now, NULL, &b } });
    sno_gen_reserve (b.gen, 0, unit_ns (100), 1, &id, NULL);
    if (sno_gen_try (b.gen, 0, &id, NULL) < 0)
        bail_out ("cannot make an id");
    *readings = b.readings;
    sno_gen_destroy (b.gen);
    return id;
}

static bool is_id (const sno_t *id, uint64_t unit, unsigned tick, unsigned sequence)
{
    struct sno_fields f = sno_split (id);

    return f.unit == unit && f.tick == tick && f.sequence == sequence;
}

static void test_lost_races (void)
{
    int readings;
    sno_t id = make_between (100, 100, &readings);

    ok (is_id (&id, 100, 0, 2) && readings == 1,
        "after an id of another thread in the same unit the next sequence is used");
    id = make_between (101, 102, &readings);
    ok (is_id (&id, 102, 0, 0) && readings == 2,
        "after an id of another thread in another unit the clock is read again");
    id = make_between (50, 60, &readings);
    ok (is_id (&id, 60, 1, 0) && readings == 2,
        "timelines that another thread has swapped are not swapped a second time");
}

static void test_asking (void)
{
    struct script script = { .unit = { 100 }, .count = 1 };
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .time = script_time (&script) });
    sno_t id;

    ok (sno_gen_len (gen) == 0 && sno_gen_sequence (gen) == 0, "a new generator has made no ids");
    for (int i = 0; i < 3; i++)
        sno_gen_try (gen, 0, &id, NULL);
    ok (sno_gen_len (gen) == 3 && sno_gen_sequence (gen) == 2,
        "three ids made in the present unit are counted as three");
    script_set (&script, 101);
    ok (sno_gen_len (gen) == 0 && sno_gen_sequence (gen) == 0, "ids of the next unit are counted from 0");
    script.offset_ns = -101 * SNO_UNIT_NS - 1;
    ok (sno_gen_len (gen) == 0 && sno_gen_sequence (gen) == 0, "no id is counted before 2010");
    sno_gen_destroy (gen);

    id = (sno_t){ { 0 } };
    id.bytes[8] = 1;
    id.bytes[9] = 255;
    sno_next (&id);
    ok (sno_split (&id).sequence == 512,
        "the increment to the next id of a run carries into the upper byte of the sequence");
}

int main (void)
{
    json_t *vectors = vectors_load ("sno");

    test_scripts (vectors);
    test_new_at (vectors);
    test_used_up ();
    test_clock_limits ();
    test_waiting ();
    test_crowd ();
    test_unsafe_past ();
    test_snapshot ();
    test_worlds ();
    test_arguments ();
    test_signals ();
    test_fork ();
    test_fork_told_by_ids ();
    test_no_memory ();
    test_lost_races ();
    test_asking ();
    json_decref (vectors);
    return done_testing ();
}
