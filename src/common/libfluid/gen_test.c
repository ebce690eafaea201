/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* gen_test.c - all short histories of a generator in a small world, and long random ones
 *
 * A checker that shares no code with the generator remembers each id. It checks that no id is made twice, that no id is
 * outside the current range or below an earlier timestamp, and that a millisecond is not refused if it may be used.
 */
#include <errno.h>
#include <string.h>

#include "idtree/fluid.h"
#include "test/tap.h"

#define GENERATOR 4711

/* --- the checker ----------------------------------------------------------------------- */

struct world {
    struct fluid_gen gen;
    uint64_t base_ms; /* the milliseconds of the world are base_ms + 0 ... span - 1 */
    uint64_t span;
    uint64_t lo_ms, hi_ms;                 /* the range that was set last */
    uint64_t floor_ms;                     /* the latest timestamp issued or advanced to */
    unsigned char (*issued)[FLUID_PER_MS]; /* [ms - base_ms][sequence]: 1 = issued */
    uint64_t total;
    const char *fault; /* the first rule that was broken */
};

static void world_reset (struct world *w)
{
    if (fluid_gen_init (&w->gen, &(struct fluid_gen_config){ .generator = GENERATOR }) < 0)
        w->fault = "init";
    memset (w->issued, 0, w->span * sizeof (w->issued[0]));
    w->lo_ms = w->hi_ms = w->floor_ms = w->total = 0;
}

static void expect (struct world *w, bool good, const char *rule)
{
    if (!good && !w->fault)
        w->fault = rule;
}

static void world_set_range (struct world *w, uint64_t lo_ms, uint64_t hi_ms)
{
    expect (w, fluid_gen_set_range (&w->gen, lo_ms, hi_ms) == 0, "a range is accepted");
    w->lo_ms = lo_ms;
    w->hi_ms = hi_ms;
}

static void world_advance (struct world *w, uint64_t ms)
{
    fluid_gen_advance (&w->gen, ms);
    if (ms > w->floor_ms)
        w->floor_ms = ms;
}

/* The number of ids of 'now_ms' that were not issued; 'now_ms' must be in the world. */
static uint32_t left_over (const struct world *w, uint64_t now_ms)
{
    uint32_t left = 0;

    for (uint32_t s = 0; s < FLUID_PER_MS; s++)
        left += w->issued[now_ms - w->base_ms][s] == 0;
    return left;
}

static int expected_errno (const struct world *w, uint64_t now_ms)
{
    if (now_ms >> 40 != 0)
        return EOVERFLOW;
    if (now_ms < w->lo_ms || now_ms >= w->hi_ms)
        return ERANGE;
    return now_ms < w->floor_ms || left_over (w, now_ms) == 0 ? EAGAIN : 0;
}

static void world_reserve (struct world *w, uint64_t now_ms, uint32_t want)
{
    fluid_t first = 99;
    int why = expected_errno (w, now_ms);

    errno = 0;
    int n = fluid_gen_reserve (&w->gen, now_ms, want, &first);
    if (why != 0) {
        expect (w, n == -1 && errno == why, "a refusal has the right errno");
        expect (w, first == 99, "a refusal leaves the output unchanged");
        return;
    }
    uint32_t left = left_over (w, now_ms);
    expect (w, n == (int)(want < left ? want : left), "as many ids are returned as were requested, or as are left");
    if (n < 1 || n > (int)FLUID_PER_MS)
        return;

    struct fluid_fields fields = fluid_split (first);
    expect (w, fields.timestamp_ms == now_ms && fields.generator == GENERATOR, "the ids have the right fields");
    expect (w, fields.sequence + n <= FLUID_PER_MS, "all ids of a call are in one millisecond");
    if (w->fault)
        return;
    unsigned char *issued = w->issued[now_ms - w->base_ms] + fields.sequence;
    expect (w, memchr (issued, 1, n) == NULL, "no id is made twice");
    memset (issued, 1, n);
    w->floor_ms = now_ms;
    w->total += n;
}

/* --- all short histories --------------------------------------------------------------- */

#define SPAN 4 /* milliseconds */
#define STEPS 4
#define WANTS 3
#define RANGES (SPAN * (SPAN + 1) / 2)
#define OPERATIONS (SPAN * WANTS + SPAN + RANGES)

static void do_range (struct world *w, int number)
{
    for (int lo = 0; lo < SPAN; lo++)
        for (int hi = lo; hi < SPAN; hi++)
            if (number-- == 0)
                world_set_range (w, lo, hi);
}

static void do_operation (struct world *w, int number)
{
    static const uint32_t wants[WANTS] = { 1, FLUID_PER_MS - 1, 5000 };

    if (number < SPAN * WANTS)
        world_reserve (w, number / WANTS, wants[number % WANTS]);
    else if ((number -= SPAN * WANTS) < SPAN)
        world_advance (w, number);
    else
        do_range (w, number - SPAN);
}

static void test_short_histories (void)
{
    static unsigned char issued[SPAN][FLUID_PER_MS];
    struct world w = { .span = SPAN, .issued = issued };
    int count = 1;

    for (int i = 0; i < STEPS; i++)
        count *= OPERATIONS;
    for (int history = 0; history < count && !w.fault; history++) {
        world_reset (&w);
        world_set_range (&w, 0, SPAN);
        for (int step = 0, rest = history; step < STEPS; step++, rest /= OPERATIONS)
            do_operation (&w, rest % OPERATIONS);
        if (w.fault)
            diag ("history %d broke the rule: %s", history, w.fault);
    }
    ok (!w.fault, "all %d histories of %d steps of %d kinds keep the rules of a generator", count, STEPS, OPERATIONS);
}

/* --- long random histories ------------------------------------------------------------- */

static uint64_t next_random (uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A clock that mostly stands still or advances slowly and sometimes jumps in either direction, and time ranges that
 * change.
 */
static void random_step (struct world *w, uint64_t *now_ms, uint64_t *seed)
{
    uint64_t r = next_random (seed);
    uint64_t amount = next_random (seed);

    switch (r % 64) {
    case 0:
        world_set_range (w, *now_ms, *now_ms);
        break;
    case 1:
    case 2: {
        uint64_t lo = *now_ms - amount % 16;
        world_set_range (w, lo, lo + amount / 16 % 64);
        break;
    }
    case 3:
        world_advance (w, *now_ms + amount % 4);
        break;
    case 4:
        *now_ms -= amount % 20;
        break;
    case 5:
        *now_ms += amount % 20;
        break;
    default:
        *now_ms += amount % 4 == 0;
        world_reserve (w, *now_ms, 1 + amount / 4 % (r / 64 % 2 ? 16 : 2048));
    }
}

static void random_history (struct world *w, uint64_t seed)
{
    uint64_t now_ms = w->base_ms + 64;

    world_reset (w);
    while (now_ms < w->base_ms + w->span - 64 && !w->fault) {
        random_step (w, &now_ms, &seed);
        if (now_ms < w->base_ms + 64)
            now_ms = w->base_ms + 64;
    }
    if (w->fault)
        diag ("broken rule: %s", w->fault);
}

static void test_random_histories (void)
{
    static const uint64_t bases[] = { 0, 1, UINT64_C (1) << 32, (UINT64_C (1) << 40) - 2048 };
    struct world w = { .span = 2048 };
    uint64_t total = 0;

    if (!(w.issued = malloc (w.span * sizeof (w.issued[0]))))
        bail_out ("out of memory");
    for (uint64_t i = 0; i < 40 && !w.fault; i++) {
        w.base_ms = bases[i % 4];
        random_history (&w, (i + 1) * UINT64_C (0x9e3779b97f4a7c15));
        total += w.total;
    }
    free (w.issued);
    diag ("%llu ids", (unsigned long long)total);
    ok (!w.fault && total > 1000000, "long random histories keep the rules of a generator");
}

/* --- single rules ---------------------------------------------------------------------- */

static bool fills_millisecond (uint32_t want)
{
    struct fluid_gen gen;
    fluid_t first = 0, next = 5 * UINT64_C (16777216);
    int n;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .lo_ms = 5, .hi_ms = 6 });
    while ((n = fluid_gen_reserve (&gen, 5, want, &first)) > 0) {
        if (first != next)
            return false;
        next += n;
    }
    return errno == EAGAIN && next == 5 * UINT64_C (16777216) + FLUID_PER_MS;
}

static void test_whole_millisecond (void)
{
    bool all = true;

    for (uint32_t want = 1; want <= 1100; want++)
        all &= fills_millisecond (want);
    ok (all, "a millisecond has 1024 ids in order, for any number of ids per call");
    ok (fills_millisecond (UINT32_MAX), "a request for 2^32 - 1 ids returns the ids that are left in the millisecond");
}

static void test_end_of_time (void)
{
    struct fluid_gen gen;
    fluid_t id = 7;

    ok (fluid_gen_init (&gen, &(struct fluid_gen_config){ .generator = FLUID_GENERATOR_MAX }) == 0,
        "generator number 16383 is valid");
    ok (fluid_gen_set_range (&gen, 0, FLUID_TIMESTAMP_MAX + 1) == 0, "a range may end at timestamp 2^40");
    ok (fluid_gen_reserve (&gen, FLUID_TIMESTAMP_MAX + 1, 1, &id) == -1 && errno == EOVERFLOW && id == 7,
        "a request at timestamp 2^40 fails with EOVERFLOW");
    ok (fluid_gen_reserve (&gen, FLUID_TIMESTAMP_MAX, 2000, &id) == 1024 && id == UINT64_MAX - FLUID_SEQUENCE_MAX,
        "the last 1024 ids of all time can be made");
    ok (fluid_gen_reserve (&gen, UINT64_MAX, 1, &id) == -1 && errno == EOVERFLOW,
        "after the last millisecond a request at any time fails with EOVERFLOW");
}

static void test_refused_arguments (void)
{
    struct fluid_gen gen;
    fluid_t id = 7;

    ok (fluid_gen_init (&gen, &(struct fluid_gen_config){ .generator = FLUID_GENERATOR_MAX + 1 }) == -1
            && errno == EINVAL,
        "a generator number of 16384 fails with EINVAL");
    ok (fluid_gen_init (&gen, &(struct fluid_gen_config){ .lo_ms = 2, .hi_ms = 1 }) == -1 && errno == EINVAL
            && fluid_gen_init (&gen, &(struct fluid_gen_config){ .hi_ms = FLUID_TIMESTAMP_MAX + 2 }) == -1
            && errno == EOVERFLOW,
        "a generator with an invalid range is refused");
    ok (fluid_gen_init (&gen, NULL) == 0 && gen.generator == 0, "the default configuration has generator number 0");
    ok (fluid_gen_reserve (&gen, 0, 1, &id) == -1 && errno == ERANGE && id == 7, "a new generator has an empty range");
    fluid_gen_set_range (&gen, 10, 20);
    ok (fluid_gen_reserve (&gen, 12, 0, &id) == -1 && errno == EINVAL && id == 7
            && fluid_gen_reserve (&gen, 11, 1, &id) == 1,
        "a request for 0 ids fails with EINVAL and changes nothing");
    ok (fluid_gen_set_range (&gen, 2, 1) == -1 && errno == EINVAL,
        "a range that ends before it begins fails with EINVAL");
    ok (fluid_gen_set_range (&gen, 0, FLUID_TIMESTAMP_MAX + 2) == -1 && errno == EOVERFLOW,
        "a range that ends after 2^40 fails with EOVERFLOW");
    ok (fluid_gen_reserve (&gen, 9, 1, &id) == -1 && errno == ERANGE && fluid_gen_reserve (&gen, 20, 1, &id) == -1
            && errno == ERANGE && fluid_gen_reserve (&gen, 19, 1, &id) == 1,
        "after an invalid range the generator keeps its range");
    fluid_gen_set_range (&gen, 0, 19);
    ok (fluid_gen_reserve (&gen, 18, 1, &id) == -1 && errno == EAGAIN,
        "in a range that ends before a used timestamp no id is made");
    fluid_gen_advance (&gen, UINT64_MAX);
    fluid_gen_set_range (&gen, 0, FLUID_TIMESTAMP_MAX + 1);
    ok (fluid_gen_reserve (&gen, FLUID_TIMESTAMP_MAX, 1, &id) == -1 && errno == EAGAIN,
        "a generator that was advanced beyond the end of time makes no id");
}

/* --- granules -------------------------------------------------------------------------- */

/* The lowest permitted sequence number from 'used' on; FLUID_PER_MS: no number is left. */
static uint32_t lowest (uint64_t granules, uint32_t used)
{
    while (used < FLUID_PER_MS && !(granules >> used / FLUID_GRANULE & 1))
        used++;
    return used;
}

/* Take all ids of millisecond 5, 'want' at a time: each must be the lowest one left. */
static bool fills_granules (uint64_t granules, uint32_t want)
{
    struct fluid_gen gen;
    fluid_t first = 99;
    uint32_t used = 0;
    int n;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .lo_ms = 5, .hi_ms = 6 });
    while ((n = fluid_gen_reserve_in (&gen, 5, granules, want, &first)) > 0) {
        for (int i = 0; i < n; i++, used++)
            if ((used = lowest (granules, used)) != fluid_split (first).sequence + (uint32_t)i)
                return false;
        if ((uint32_t)n > want || ((uint32_t)n < want && lowest (granules, used) == used && used < FLUID_PER_MS))
            return false;
    }
    return errno == EAGAIN && lowest (granules, used) == FLUID_PER_MS;
}

static void test_granules (void)
{
    static const uint32_t wants[] = { 1, 5, 16, 17, 40, 5000 };
    static const unsigned places[] = { 0, 1, 2, 31, 32, 61, 62, 63 };
    bool all = true;

    for (uint32_t mask = 0; mask < 256; mask++) {
        uint64_t granules = 0;

        for (unsigned i = 0; i < 8; i++)
            granules |= (uint64_t)(mask >> i & 1) << places[i];
        for (size_t i = 0; i < sizeof (wants) / sizeof (wants[0]); i++)
            all = all && fills_granules (granules, wants[i]) && fills_granules (~granules, wants[i]);
    }
    ok (all, "a generator makes exactly the ids that its granules permit, in order");
}

/* Granules that change within a millisecond, mixed with unrestricted reservations: no id is made twice or without
 * permission.
 */
static void test_changing_granules (void)
{
    struct fluid_gen gen;
    uint64_t seed = 4711, refused = 0;
    bool good = true;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .generator = GENERATOR, .hi_ms = 100000 });
    fluid_t top = 0;
    for (uint64_t ms = 1; ms < 100000 && good; ms += next_random (&seed) % 8 == 0) {
        uint64_t granules = next_random (&seed) & next_random (&seed);
        uint32_t want = 1 + (uint32_t)(next_random (&seed) % 64);
        uint32_t used = fluid_split (top).timestamp_ms == ms ? fluid_split (top).sequence + 1 : 0;
        fluid_t first = 0;
        int n = next_random (&seed) % 16 == 0 ? fluid_gen_reserve (&gen, ms, want, &first)
                                              : fluid_gen_reserve_in (&gen, ms, granules, want, &first);

        if (n < 0) {
            good = errno == EAGAIN && lowest (granules, used) == FLUID_PER_MS;
            refused++;
            continue;
        }
        good = first > top && fluid_split (first + (fluid_t)n - 1).timestamp_ms == ms && n <= (int)want;
        top = first + (fluid_t)n - 1;
    }
    ok (good && refused > 1000, "granules may change from call to call, and ids still increase");
}

static void test_refused_granules (void)
{
    struct fluid_gen gen;
    fluid_t id = 7;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .lo_ms = 5, .hi_ms = 7 });
    ok (fluid_gen_reserve_in (&gen, 5, 0, 1, &id) == -1 && errno == EAGAIN && id == 7,
        "a reservation fails with EAGAIN if no granules are permitted");
    ok (fluid_gen_reserve_in (&gen, 6, 0, 1, &id) == -1 && fluid_gen_reserve (&gen, 5, 1, &id) == 1,
        "a refused reservation does not advance the generator");
    ok (fluid_gen_reserve_in (&gen, 5, UINT64_MAX, 0, &id) == -1 && errno == EINVAL
            && fluid_gen_reserve_in (&gen, 4, UINT64_MAX, 1, &id) == -1 && errno == ERANGE
            && fluid_gen_reserve_in (&gen, 7, UINT64_MAX, 1, &id) == -1 && errno == ERANGE
            && fluid_gen_reserve_in (&gen, FLUID_TIMESTAMP_MAX + 1, UINT64_MAX, 1, &id) == -1 && errno == EOVERFLOW,
        "with granules the other errors are the same as without granules");
}

/* --- following ids ----------------------------------------------------------------------- */

/* The lowest id of GENERATOR in millisecond 10 or later that is above both. */
static fluid_t lowest_above (fluid_t mine, fluid_t id)
{
    struct fluid_fields f = { 10, GENERATOR, 0 };
    fluid_t next;

    for (fluid_join (&f, &next); next <= mine || next <= id; fluid_join (&f, &next))
        if (f.sequence++ == FLUID_SEQUENCE_MAX)
            f = (struct fluid_fields){ f.timestamp_ms + 1, GENERATOR, 0 };
    return next;
}

static bool follows (uint64_t ms, uint32_t generator, uint32_t sequence, uint32_t made)
{
    struct fluid_gen gen;
    fluid_t mine = 0, id, next = 0;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .generator = GENERATOR, .lo_ms = 10, .hi_ms = 100 });
    if (made > 0 && fluid_gen_reserve (&gen, 10, made, &mine) < 0)
        return false;
    mine += made > 0 ? made - 1 : 0;
    fluid_join (&(struct fluid_fields){ ms, generator, sequence }, &id);
    fluid_gen_follow (&gen, id);
    for (uint64_t t = 10; t < 20 && fluid_gen_reserve (&gen, t, 1, &next) < 0; t++)
        ;
    return next == lowest_above (mine, id);
}

static void test_follow (void)
{
    static const uint32_t sequences[] = { 0, 1, 500, 1022, 1023 }, mades[] = { 0, 1, 2, 501, 502, 1023, 1024 };
    bool all = true;

    for (uint64_t ms = 9; ms <= 12; ms++)
        for (uint32_t generator = GENERATOR - 1; generator <= GENERATOR + 1; generator++)
            for (size_t i = 0; i < sizeof (sequences) / sizeof (sequences[0]); i++)
                for (size_t k = 0; k < sizeof (mades) / sizeof (mades[0]); k++)
                    all = all && follows (ms, generator, sequences[i], mades[k]);
    ok (all, "a generator that continues after an id makes ids above that id and above its own previous ids");

    struct fluid_gen gen;
    fluid_t id;
    fluid_gen_init (&gen, &(struct fluid_gen_config){ .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
    fluid_gen_follow (&gen, UINT64_MAX);
    ok (fluid_gen_reserve (&gen, FLUID_TIMESTAMP_MAX, 1, &id) == -1 && errno == EAGAIN,
        "a generator whose previous id is the largest makes no id");
}

int main (void)
{
    test_short_histories ();
    test_random_histories ();
    test_whole_millisecond ();
    test_end_of_time ();
    test_refused_arguments ();
    test_granules ();
    test_changing_granules ();
    test_refused_granules ();
    test_follow ();
    return done_testing ();
}
