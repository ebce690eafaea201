/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_test.c - all combinations of edge values of the fields, and the edges of time ranges */
#include <errno.h>

#include "idtree/fluid.h"
#include "test/tap.h"

#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

static bool same_fields (struct fluid_fields a, struct fluid_fields b)
{
    return a.timestamp_ms == b.timestamp_ms && a.generator == b.generator && a.sequence == b.sequence;
}

static void test_combinations (void)
{
    static const uint64_t timestamps[] = { 0, 1, 2, 0xffffffff, UINT64_C (1) << 39, FLUID_TIMESTAMP_MAX };
    static const uint32_t generators[] = { 0, 1, 2, 255, 256, 8191, 8192, 16382, FLUID_GENERATOR_MAX };
    bool layout = true, back = true, ordered = true;
    fluid_t previous = 0;
    bool started = false;

    for (size_t t = 0; t < COUNT (timestamps); t++) {
        for (size_t g = 0; g < COUNT (generators); g++) {
            for (uint32_t s = 0; s <= FLUID_SEQUENCE_MAX; s++) {
                struct fluid_fields fields = { timestamps[t], generators[g], s };
                fluid_t id = 0;

                layout &= fluid_join (&fields, &id) == 0;
                layout &= id == timestamps[t] * 16777216 + generators[g] * 1024 + s;
                back &= same_fields (fluid_split (id), fields);
                ordered &= !started || id > previous;
                previous = id;
                started = true;
            }
        }
    }
    ok (layout, "an id is 40 bits of time, 14 of generator and 10 of sequence");
    ok (back, "splitting an id gives the fields that were joined");
    ok (ordered, "ids are ordered by time, then by generator, then by sequence");
    ok (previous == UINT64_MAX, "the largest fields make the largest id");
}

static bool join_fails (uint64_t timestamp_ms, uint32_t generator, uint32_t sequence, int errnum)
{
    struct fluid_fields fields = { timestamp_ms, generator, sequence };
    fluid_t id = 77;

    errno = 0;
    return fluid_join (&fields, &id) == -1 && errno == errnum && id == 77;
}

static void test_misfits (void)
{
    ok (join_fails (FLUID_TIMESTAMP_MAX + 1, 0, 0, EOVERFLOW), "an id with a timestamp of 2^40 fails with EOVERFLOW");
    ok (join_fails (UINT64_MAX, 0, 0, EOVERFLOW), "an id with a timestamp of 2^64 - 1 fails with EOVERFLOW");
    ok (join_fails (0, FLUID_GENERATOR_MAX + 1, 0, EINVAL), "an id with generator 16384 fails with EINVAL");
    ok (join_fails (0, UINT32_MAX, 0, EINVAL), "an id with generator 2^32 - 1 fails with EINVAL");
    ok (join_fails (0, 0, FLUID_SEQUENCE_MAX + 1, EINVAL), "an id with sequence 1024 fails with EINVAL");
    ok (join_fails (0, 0, UINT32_MAX, EINVAL), "an id with sequence 2^32 - 1 fails with EINVAL");
}

static bool range_is (uint64_t from_ms, uint64_t to_ms)
{
    fluid_t lower = 1, upper = 1;

    return fluid_range (from_ms, to_ms, &lower, &upper) == 0
           && same_fields (fluid_split (lower), (struct fluid_fields){ from_ms, 0, 0 })
           && same_fields (fluid_split (upper), (struct fluid_fields){ to_ms, 0, 0 });
}

static bool range_fails (uint64_t from_ms, uint64_t to_ms, int errnum)
{
    fluid_t lower = 7, upper = 8;

    errno = 0;
    return fluid_range (from_ms, to_ms, &lower, &upper) == -1 && errno == errnum && lower == 7 && upper == 8;
}

static void test_ranges (void)
{
    ok (range_is (0, 1), "the range of millisecond 0 has the 2^24 lowest ids");
    ok (range_is (5, 9),
        "a range of milliseconds extends from the first id of its first millisecond to the first id after its last");
    ok (range_is (7, 7), "an empty range of time has two equal ids");
    ok (range_is (0, FLUID_TIMESTAMP_MAX), "a range of time may end at the last millisecond");
    ok (range_fails (0, FLUID_TIMESTAMP_MAX + 1, EOVERFLOW) && range_fails (UINT64_MAX, 0, EOVERFLOW),
        "a range of time that ends after 2^40 - 1 fails with EOVERFLOW");
    ok (range_fails (2, 1, EINVAL), "a range of time that ends before it begins fails with EINVAL");
}

int main (void)
{
    test_combinations ();
    test_misfits ();
    test_ranges ();
    return done_testing ();
}
