/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_test.c - values, text and generator, compared with the golden vectors of the original (flax.json) */
#include <errno.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "idtree/flax.h"
#include "test/ids/vectors.h"

static bool same (const flax_t *a, const flax_t *b)
{
    return flax_compare (a, b) == 0;
}

static bool text_is (const flax_t *id, const char *expected)
{
    char text[FLAX_TEXT_MAX];
    flax_t read;

    return flax_format (id, text, sizeof (text)) == FLAX_TEXT_LEN && !strcmp (text, expected)
           && flax_parse (text, strlen (text), &read, NULL) == 0 && same (&read, id);
}

static void test_encode (json_t *vectors)
{
    struct tally t = { .section = "encode" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "encode"), i, row) {
        flax_t id, joined;
        struct flax_fields f;
        bool fits = unhex (get_s (row, "num_hex24"), id.bytes, FLAX_SIZE) == FLAX_SIZE;
        f = flax_split (&id);
        tally (&t, NULL,
               fits && text_is (&id, get_s (row, "id")) && flax_join (&f, &joined) == 0 && same (&id, &joined)
                   && flax_from_bytes (id.bytes, FLAX_SIZE, &joined) == 0 && same (&id, &joined));
    }
    tally_end (&t, "each id has the text of the original, and can be read, split and joined");
}

/* The time of a row, converted with our functions: a double if it was one, else whole seconds. */
static int time_of (json_t *row, uint64_t *ms)
{
    const char *hex = get_s (row, "timestamp_f64_hex");
    uint64_t bits;
    double seconds;

    if (!hex)
        return flax_ms_at (strtoll (get_s (row, "timestamp_s"), NULL, 10) * 1000, ms);
    bits = strtoull (hex, NULL, 16);
    memcpy (&seconds, &bits, sizeof (seconds));
    return flax_ms_at_seconds (seconds, ms);
}

static uint64_t fixed_random (void *arg)
{
    return *(uint64_t *)arg;
}

static void test_generate (json_t *vectors)
{
    struct tally t = { .section = "generate" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "generate"), i, row) {
        uint64_t ms, random = strtoull (get_s (row, "random56_hex"), NULL, 16);
        struct flax_gen_config config = { .bits = { fixed_random, &random } };
        struct flax_gen *gen = flax_gen_create (&config);
        flax_t id;
        tally (&t, NULL,
               time_of (row, &ms) == 0 && (int64_t)ms == get_i (row, "ms_since_epoch")
                   && flax_gen_reserve (gen, (int64_t)ms + FLAX_EPOCH_MS, 1, &id) == 1
                   && is_hex (id.bytes, FLAX_SIZE, get_s (row, "num_hex24")) && text_is (&id, get_s (row, "id"))
                   && flax_split (&id).random == random);
        flax_gen_destroy (gen);
    }
    tally_end (&t, "a time as a double gives the millisecond and the id of the original");
}

static void test_out_of_range (json_t *vectors)
{
    struct tally t = { .section = "out_of_range" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "out_of_range"), i, row) {
        uint64_t ms = 99;
        int64_t unix_ms = get_i (row, "ms_since_epoch") + FLAX_EPOCH_MS;
        bool refused = time_of (row, &ms) < 0 && errno == EOVERFLOW;
        tally (&t, "the original makes an id that sorts and decodes wrongly",
               refused && flax_ms_at (unix_ms, &ms) < 0 && errno == EOVERFLOW && ms == 99);
    }
    tally_end (&t, "a time that the original converts wrongly is refused");
}

static int64_t fixed_now (void *arg)
{
    return 1500000000250;
}

static uint64_t five (void *arg)
{
    return 5;
}

static void test_odd_arguments (json_t *vectors)
{
    struct flax_gen_config config = { .time = { .now_ms = fixed_now }, .bits = { .random = five } };
    struct flax_gen *gen = flax_gen_create (&config);
    struct tally t = { .section = "odd_arguments" };
    json_t *row;
    uint64_t ms;
    size_t i;
    flax_t id;

    json_array_foreach (vectors_section (vectors, "odd_arguments"), i, row) {
        const char *timestamp = get_s (row, "timestamp");
        if (json_object_get (row, "clock_s"))
            tally (&t, "an argument that means \"now\" in the original is a separate function here",
                   flax_gen_make (gen, &id) == 0 && text_is (&id, get_s (json_object_get (row, "result"), "ok")));
        else if (timestamp)
            tally (&t, NULL, flax_ms_at_seconds (strtod (timestamp, NULL), &ms) < 0 && errno == EINVAL);
        else
            tally (&t, "integers that do not fit into an id cannot be passed here",
                   json_object_get (row, "base64_lex_encode_of") != NULL);
    }
    tally_end (&t, "a text that the original refuses is refused");
    ok (flax_ms_at_seconds (NAN, &ms) < 0 && errno == EINVAL && flax_ms_at_seconds (INFINITY, &ms) < 0
            && errno == EINVAL && flax_ms_at_seconds (-INFINITY, &ms) < 0 && errno == EINVAL,
        "a time in seconds that is not finite fails with EINVAL");
    ok (flax_ms_at_seconds (0, &ms) < 0 && errno == EOVERFLOW,
        "a time of 0 s means 1970, not \"now\", and fails with EOVERFLOW");
    ok (flax_ms_at_seconds (1e300, &ms) < 0 && errno == EOVERFLOW && flax_ms_at_seconds (-1e300, &ms) < 0
            && errno == EOVERFLOW,
        "a time in seconds beyond any integer fails with EOVERFLOW");
    flax_gen_destroy (gen);
}

static void test_order (json_t *vectors)
{
    json_t *row, *sort = vectors_section (vectors, "sort");
    json_t *in = json_object_get (sort, "in"), *out = json_object_get (sort, "out_bytewise");
    size_t i, good = 0, n = json_array_size (in);
    flax_t ids[256], last = { { 0 } }, id;
    struct tally t = { .section = "ordering" };

    json_array_foreach (vectors_section (vectors, "ordering"), i, row) {
        tally (&t, NULL,
               flax_parse (get_s (row, "id"), 16, &id, NULL) == 0 && flax_split (&id).ms == (uint64_t)get_i (row, "ms")
                   && flax_compare (&last, &id) < 0);
        last = id;
    }
    tally_end (&t, "an id that the original made later is greater");
    json_array_foreach (in, i, row)
        if (n > 256 || flax_parse (json_string_value (row), 16, &ids[i], NULL) < 0)
            bail_out ("cannot read section sort");
    flax_sort (ids, n);
    json_array_foreach (out, i, row)
        good += text_is (&ids[i], json_string_value (row));
    ok (good == n, "section sort: sorted ids have the recorded order (%zu)", n);
}

static void test_strict (json_t *vectors)
{
    json_t *row, *example = vectors_section (vectors, "readme_example");
    struct tally t = { .section = "regex" }, seeded = { .section = "cpython_seeded" };
    size_t i;
    flax_t id;

    json_array_foreach (vectors_section (vectors, "regex"), i, row) {
        json_t *text = json_object_get (row, "text");
        bool canonical = json_is_true (json_object_get (row, "canonical_16"));
        bool taken_there = json_is_true (json_object_get (row, "match"));
        bool taken = flax_parse (json_string_value (text), json_string_length (text), &id, NULL) == 0;
        tally (&t, taken_there != canonical ? "the original's pattern accepts texts that are not ids" : NULL,
               taken == canonical);
    }
    tally_end (&t, "of the texts exactly the canonical ones are accepted");
    ok (flax_parse (get_s (example, "id"), 16, &id, NULL) == 0 && is_hex (id.bytes, 12, get_s (example, "num_hex24"))
            && flax_unix_ms (&id) == get_i (example, "ms_since_epoch") + FLAX_EPOCH_MS,
        "the example id in the original's README is read");
    json_array_foreach (vectors_section (vectors, "cpython_seeded"), i, row) {
        json_t *text;
        size_t k;
        json_array_foreach (json_object_get (row, "ids"), k, text)
            tally (&seeded, NULL,
                   flax_parse (json_string_value (text), 16, &id, NULL) == 0
                       && flax_unix_ms (&id) == get_i (row, "timestamp_s") * 1000);
    }
    tally_end (&seeded, "the time of each id of the original is read");
}

static void test_hostile (void)
{
    const char good_text[] = "0RdKJcxqVBiAiQr0";
    unsigned taken = 0, good = 0;
    flax_t id;
    size_t pos;

    for (int place = 0; place < FLAX_TEXT_LEN; place++)
        for (int c = 0; c < 256; c++) {
            char text[FLAX_TEXT_MAX];
            memcpy (text, good_text, sizeof (text));
            text[place] = (char)c;
            if (flax_parse (text, FLAX_TEXT_LEN, &id, &pos) == 0) {
                taken++;
                good += text_is (&id, text);
            }
            else
                good += errno == EINVAL && pos == (size_t)place;
        }
    ok (good == 16 * 256 && taken == 16 * 64,
        "each byte at each position of an id is refused there, or the id that is read has the same text");
    ok (flax_parse (good_text, 15, &id, &pos) < 0 && errno == EMSGSIZE && pos == 15
            && flax_parse (good_text, 17, &id, &pos) < 0 && errno == EMSGSIZE && pos == 16
            && flax_parse (good_text, 0, &id, &pos) < 0 && pos == 0,
        "texts of another length than an id are refused at their end");
    char text[FLAX_TEXT_MAX] = "#";
    ok (flax_format (&id, text, FLAX_TEXT_LEN) < 0 && errno == ENOSPC && text[0] == '#',
        "writing an id into a buffer that is too small fails with ENOSPC and leaves the buffer unchanged");
    ok (flax_from_bytes (good_text, 11, &id) < 0 && errno == EMSGSIZE,
        "a number of bytes that no id has fails with EMSGSIZE");
}

static void test_limits (void)
{
    struct flax_fields f = { FLAX_MS_MAX, FLAX_RANDOM_MAX };
    flax_t id, lower, upper;
    uint64_t ms;
    const int64_t end = FLAX_EPOCH_MS + (int64_t)FLAX_MS_MAX + 1;

    ok (flax_join (&f, &id) == 0 && text_is (&id, "zzzzzzzzzzzzzzzz"), "the largest fields make the largest id");
    f.random++;
    ok (flax_join (&f, &id) < 0 && errno == EINVAL, "random bits above 56 are refused");
    f = (struct flax_fields){ FLAX_MS_MAX + 1, 0 };
    ok (flax_join (&f, &id) < 0 && errno == EOVERFLOW, "a time above 40 bits is refused");
    ok (flax_ms_at (FLAX_EPOCH_MS, &ms) == 0 && ms == 0 && flax_ms_at (end - 1, &ms) == 0 && ms == FLAX_MS_MAX,
        "an id may have the times 2015-01-01 and 2049-11-03T19:53:47.775Z");
    ok (flax_ms_at (FLAX_EPOCH_MS - 1, &ms) < 0 && errno == EOVERFLOW && flax_ms_at (end, &ms) < 0
            && flax_ms_at (INT64_MIN, &ms) < 0 && flax_ms_at (INT64_MAX, &ms) < 0 && errno == EOVERFLOW,
        "an id cannot have a time one millisecond before 2015-01-01 or after 2049-11-03T19:53:47.775Z");
    ok (flax_range (FLAX_EPOCH_MS + 1, FLAX_EPOCH_MS + 3, &lower, &upper) == 0
            && is_hex (lower.bytes, 12, "000000000100000000000000")
            && is_hex (upper.bytes, 12, "000000000300000000000000"),
        "the keys of an interval of time are ids of its ends with a random part of zero");
    ok (flax_range (FLAX_EPOCH_MS + 3, FLAX_EPOCH_MS + 1, &lower, &upper) < 0 && errno == EINVAL
            && flax_range (0, FLAX_EPOCH_MS, &lower, &upper) < 0 && errno == EOVERFLOW,
        "an interval that ends before it begins, or begins before 2015, is refused");
}

/* --- increasing -------------------------------------------------------------------------- */

static void test_increasing (void)
{
    uint64_t random = 1000;
    struct flax_gen_config config = { .mode = FLAX_INCREASING, .bits = { fixed_random, &random } };
    struct flax_gen *gen = flax_gen_create (&config);
    int64_t t = FLAX_EPOCH_MS + 10;
    flax_t id;

    ok (flax_gen_reserve (gen, t, 0, &id) < 0 && errno == EINVAL, "a request for 0 ids fails with EINVAL");
    flax_gen_reserve (gen, t, 1, &id);
    ok (flax_split (&id).ms == 10 && flax_split (&id).random == 1000, "the first id of a millisecond is random");
    flax_gen_reserve (gen, t, 1, &id);
    ok (flax_split (&id).ms == 10 && flax_split (&id).random == 2001,
        "the next id in a millisecond is above the previous one by a random step");
    flax_gen_reserve (gen, t - 5, 1, &id);
    ok (flax_split (&id).ms == 10 && flax_split (&id).random == 3002,
        "the next id is above the previous one by a random step even if the clock went back");
    random = FLAX_RANDOM_MAX;
    flax_gen_reserve (gen, t + 1, 1, &id);
    random = UINT64_MAX;
    ok (flax_gen_reserve (gen, t + 1, 1, &id) == 1 && flax_split (&id).ms == 12
            && flax_split (&id).random == FLAX_RANDOM_MAX,
        "when the random part is used up, the time of the next id is one millisecond later");
    flax_gen_reserve (gen, FLAX_EPOCH_MS + (int64_t)FLAX_MS_MAX, 1, &id);
    ok (flax_gen_reserve (gen, t, 1, &id) < 0 && errno == EOVERFLOW,
        "at the end of time a request for an id fails with EOVERFLOW");
    ok (flax_gen_reserve (gen, t, 1, &id) < 0 && errno == EOVERFLOW && flax_gen_reserve (gen, 0, 1, &id) < 0,
        "after the end of time each further request fails with EOVERFLOW");
    flax_gen_destroy (gen);
    flax_gen_destroy (NULL);
}

static void test_random_clock (void)
{
    struct flax_gen *gen = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING });
    flax_t last = { { 0 } }, ids[7];
    uint64_t state = 5;
    int64_t t = FLAX_EPOCH_MS + 1000;
    unsigned good = 0, n = 0;

    for (int i = 0; i < 20000; i++) {
        state = state * UINT64_C (6364136223846793005) + 1;
        t += (int64_t)(state >> 60) - 7;
        t = t < FLAX_EPOCH_MS ? FLAX_EPOCH_MS : t;
        flax_gen_reserve (gen, t, 7, ids);
        for (int k = 0; k < 7; k++, n++) {
            good += flax_compare (&last, &ids[k]) < 0;
            last = ids[k];
        }
    }
    ok (good == n, "%u ids increase while the clock jumps", n);
    flax_gen_destroy (gen);
}

/* Parent and child continue in the same millisecond, from the same state. */
static void test_fork (void)
{
    struct flax_gen *gen = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING });
    int64_t t = FLAX_EPOCH_MS + 77;
    flax_t before, mine, theirs = { { 0 } };
    int fds[2], status = 0;

    flax_gen_reserve (gen, t, 1, &before);
    if (pipe (fds) < 0)
        bail_out ("pipe");
    pid_t pid = fork ();
    if (pid == 0) {
        bool good = flax_gen_reserve (gen, t, 1, &theirs) == 1 && write (fds[1], &theirs, FLAX_SIZE) == FLAX_SIZE;
        _exit (good ? 0 : 1);
    }
    waitpid (pid, &status, 0);
    flax_gen_reserve (gen, t, 1, &mine);
    ok (read (fds[0], &theirs, FLAX_SIZE) == FLAX_SIZE && flax_split (&mine).ms == 77 && flax_split (&theirs).ms == 78,
        "a child process continues in a later millisecond than its parent");
    flax_gen_destroy (gen);
}

int main (void)
{
    json_t *vectors = vectors_load ("flax");

    test_encode (vectors);
    test_generate (vectors);
    test_out_of_range (vectors);
    test_odd_arguments (vectors);
    test_order (vectors);
    test_strict (vectors);
    test_hostile ();
    test_limits ();
    test_increasing ();
    test_random_clock ();
    test_fork ();
    json_decref (vectors);
    return done_testing ();
}
