/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lanes_test.c - several generators used as one: ids in order, up to the last one, none made twice */
#include <errno.h>
#include <stdlib.h>

#include "test/tap.h"
#include "modules/fluid/node/lanes.h"

/* Take all ids of a millisecond, 'want' at a time. Returns how many there were, or 0 if they were not in order. */
static uint32_t take_all (struct lanes *l, uint64_t ms, uint32_t want, fluid_t *last)
{
    uint32_t sum = 0;
    fluid_t first;
    int n;

    while ((n = lanes_reserve (l, ms, want, &first)) > 0) {
        struct fluid_fields f = fluid_split (first);

        if (first <= *last || f.timestamp_ms != ms || !lanes_own (l, f.generator)
            || f.sequence + (uint32_t)n > FLUID_PER_MS || lanes_left (l, ms) != lanes_per_ms (l) - sum - (uint32_t)n)
            return 0;
        sum += (uint32_t)n;
        *last = first + (uint32_t)n - 1;
    }
    return errno == EAGAIN ? sum : 0;
}

static void test_order (void)
{
    struct lanes l;
    fluid_t last = 0, first;

    lanes_init (&l, 5, 100, 3);
    ok (lanes_reserve (&l, 7, 1, &first) < 0 && errno == ERANGE, "lanes without a range of time make no id");
    lanes_set_range (&l, 10, 20);
    ok (lanes_per_ms (&l) == 3072 && lanes_left (&l, 10) == 3072, "three lanes make 3072 ids in a millisecond");
    ok (take_all (&l, 10, 700, &last) == 3072 && fluid_split (last).generator == 205,
        "all 3072 ids of a millisecond are made, in order");
    ok (lanes_left (&l, 10) == 0 && lanes_left (&l, 11) == 3072,
        "when the ids of a millisecond are used up, no id of the next millisecond is made before its time");
    ok (take_all (&l, 11, 5000, &last) == 3072, "the next millisecond begins with the first lane");
    lanes_reserve (&l, 12, 1500, &first);
    lanes_reserve (&l, 12, 1500, &first);
    ok (fluid_split (first).generator == 105, "a request may end in the middle of the second lane");
    ok (lanes_reserve (&l, 20, 1, &first) < 0 && errno == ERANGE && lanes_left (&l, 12) == 1024,
        "lanes make no id at or after the end of their range");
    lanes_set_range (&l, 10, 30);
    ok (lanes_reserve (&l, 12, 1, &first) == 1 && fluid_split (first).generator == 205
            && fluid_split (first).sequence == 0,
        "with another range the lanes continue where they were");
    ok (lanes_reserve (&l, 11, 1, &first) < 0 && errno == EAGAIN, "lanes make no id before the begin of their range");
    lanes_advance (&l, 15);
    ok (lanes_reserve (&l, 14, 1, &first) < 0 && errno == EAGAIN,
        "lanes make no id below the time to which they were advanced");
    last = first;
    ok (take_all (&l, 15, 1, &last) == 3072, "in the millisecond to which they were advanced lanes make all ids");
    ok (lanes_reserve (&l, 16, 0, &first) < 0 && errno == EINVAL && lanes_left (&l, 15) == 0,
        "a request for 0 ids is refused");
    fluid_join (&(struct fluid_fields){ 17, 4, 1023 }, &last);
    lanes_follow (&l, last);
    ok (lanes_reserve (&l, 17, 1, &first) == 1 && first > last,
        "after an id of a lower generator lanes make ids in the same millisecond");
    fluid_join (&(struct fluid_fields){ 17, 105, 1 }, &last);
    lanes_follow (&l, last);
    ok (lanes_reserve (&l, 17, 1, &first) < 0 && errno == EAGAIN && lanes_reserve (&l, 18, 1, &first) == 1,
        "after an id of one of their own generators or of a higher one lanes make ids in the next millisecond");
    lanes_set_range (&l, 0, 0);
    ok (lanes_reserve (&l, 17, 1, &first) < 0 && errno == ERANGE, "a range of 0 milliseconds closes the lanes");
}

/* In the last millisecond of time each lane is used up, and no lane begins again. */
static void test_end_of_time (void)
{
    const uint64_t end_ms = FLUID_TIMESTAMP_MAX + 1;
    struct lanes l;
    fluid_t id, last = 0;
    uint32_t made = 0;
    int n, wrong = 0;

    lanes_init (&l, FLUID_GENERATOR_MAX - 200, 100, 3);
    lanes_set_range (&l, 0, end_ms);
    while ((n = lanes_reserve (&l, FLUID_TIMESTAMP_MAX, 1000, &id)) > 0) {
        wrong += id <= last;
        last = id + (uint32_t)n - 1;
        made += (uint32_t)n;
    }
    ok (wrong == 0 && errno == EAGAIN && made == 3 * FLUID_PER_MS && last == UINT64_MAX,
        "the last id of three lanes is the last one of the format with their generators");
    lanes_follow (&l, UINT64_MAX);
    ok (lanes_reserve (&l, FLUID_TIMESTAMP_MAX, 1, &id) < 0 && errno == EAGAIN,
        "after the last id of the format lanes make no id");
    lanes_advance (&l, UINT64_MAX);
    lanes_advance (&l, 0);
    ok (lanes_reserve (&l, FLUID_TIMESTAMP_MAX, 1, &id) < 0 && errno == EAGAIN && lanes_reserve (&l, end_ms, 1, &id) < 0
            && errno == EOVERFLOW,
        "after the last id of the format lanes make no id even if they are advanced");
}

static void test_own (void)
{
    struct lanes l, none = { 0 };
    uint32_t own = 0;
    fluid_t id;

    lanes_init (&l, 5, 100, 3);
    for (uint32_t g = 0; g <= FLUID_GENERATOR_MAX; g++)
        own += lanes_own (&l, g);
    ok (own == 3 && lanes_own (&l, 5) && lanes_own (&l, 105) && lanes_own (&l, 205),
        "a rank with three lanes owns three generators");
    lanes_init (&l, 5, 0, 1);
    ok (lanes_own (&l, 5) && !lanes_own (&l, 6) && !lanes_own (&l, 4), "a rank with one lane owns one generator");
    ok (!lanes_own (&none, 0) && lanes_reserve (&none, 0, 1, &id) < 0 && errno == ERANGE && lanes_left (&none, 0) == 0,
        "a rank without lanes owns no generator");
}

/* Random calls: ids always increase, and are in the range. */
static void test_random (void)
{
    uint64_t seed = 1, lo = 0, hi = 0;
    struct lanes l;
    fluid_t last = 0, first;
    uint64_t made = 0;
    int wrong = 0;

    lanes_init (&l, 1, 4, 5);
    for (int i = 0; i < 200000; i++) {
        seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407;
        uint64_t at = (uint64_t)i / 100 + (seed >> 40) % 3;
        if ((seed >> 33) % 50 == 0) {
            lo = at;
            hi = lo + (seed >> 45) % 30;
            lanes_set_range (&l, lo, hi);
        }
        if ((seed >> 20) % 300 == 0)
            lanes_advance (&l, at + 1);
        int n = lanes_reserve (&l, at, 1 + (seed >> 50) % 900, &first);
        if (n < 0)
            continue;
        wrong += first <= last || fluid_split (first).timestamp_ms != at || at < lo || at >= hi;
        last = first + (uint32_t)n - 1;
        made += (uint64_t)n;
    }
    ok (wrong == 0 && made > 5000000, "%d ids of random calls to lanes increase, and are in the range", (int)made);
}

int main (void)
{
    test_order ();
    test_own ();
    test_end_of_time ();
    test_random ();
    return done_testing ();
}
