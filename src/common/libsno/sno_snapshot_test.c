/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_snapshot_test.c - bounds and JSON of a generator's state, compared with the golden vectors (sno.json) */
#include <errno.h>
#include <string.h>

#include "idtree/sno.h"
#include "test/ids/vectors.h"

static bool bounds_row_holds (json_t *row)
{
    json_t *in = json_object_get (row, "in"), *out = json_object_get (row, "out");
    struct sno_snapshot given = {
        .sequence_min = (uint16_t)get_i (in, "sequenceMin"),
        .sequence_max = (uint16_t)get_i (in, "sequenceMax"),
        .sequence = (uint32_t)get_i (in, "sequence"),
    };
    struct sno_snapshot s = given, before = given;
    const char *why = NULL;
    int rc = sno_snapshot_sanitize (&given, &s, &why);

    if (memcmp (&given, &before, sizeof (given)))
        return false;
    if (!json_is_null (json_object_get (row, "err")))
        return rc < 0 && errno == EINVAL && why && !memcmp (&s, &before, sizeof (s));
    if (rc < 0 || s.sequence_min != get_i (out, "sequenceMin") || s.sequence_max != get_i (out, "sequenceMax")
        || s.sequence != get_i (out, "sequence"))
        return false;
    struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = given });
    sno_t first;
    bool good = gen && sno_gen_cap (gen) == get_i (out, "cap") && sno_gen_make_at (gen, 0, SNO_EPOCH_NS, &first) == 0
                && sno_split (&first).sequence == s.sequence_min;
    sno_gen_destroy (gen);
    return good;
}

/* Whether our reason corresponds to the original's, which says "at least 4" and means 6. */
static bool reason_fits (json_t *row)
{
    json_t *in = json_object_get (row, "in");
    struct sno_snapshot s = { .sequence_min = (uint16_t)get_i (in, "sequenceMin"),
                              .sequence_max = (uint16_t)get_i (in, "sequenceMax"),
                              .sequence = (uint32_t)get_i (in, "sequence") };
    const char *why = "", *msg = get_s (json_object_get (row, "err"), "msg");

    sno_snapshot_sanitize (&s, &s, &why);
    if (strstr (msg, "identical"))
        return strstr (why, "identical") != NULL;
    if (strstr (msg, "underflows"))
        return strstr (why, "below its lower bound") != NULL;
    return strstr (why, "too close") != NULL && strstr (why, "at least 6");
}

static void test_bounds (json_t *vectors)
{
    struct tally t = { .section = "bounds" };
    json_t *row;
    size_t i, refused = 0, reasons = 0;

    json_array_foreach (vectors_section (vectors, "bounds"), i, row) {
        tally (&t, NULL, bounds_row_holds (row));
        if (!json_is_null (json_object_get (row, "err"))) {
            refused++;
            reasons += reason_fits (row);
        }
    }
    tally_end (
        &t, "a snapshot gives the bounds of the original or is refused as by the original, and the input is unchanged");
    ok (reasons == refused && refused > 0,
        "each refused snapshot has the same reason as in the original; the minimal pool is 6, where the original's "
        "text says 4");
}

static void test_json (json_t *vectors)
{
    struct tally t = { .section = "snapshot_json" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "snapshot_json"), i, row) {
        struct sno_snapshot s;
        char json[SNO_SNAPSHOT_TEXT_MAX];
        const char *text = get_s (row, "json");
        tally (&t, NULL,
               sno_snapshot_parse (text, strlen (text), &s, NULL) == 0 && s.partition == 0x410a && s.sequence_max == 500
                   && s.now == get_i (row, "now") && s.wall_hi == 9 && s.drifts == 3
                   && sno_snapshot_format (&s, json, sizeof (json)) == (int)strlen (text) && !strcmp (json, text));
    }
    tally_end (&t, "a snapshot of the original is read and written back unchanged");
}

static void test_partition (json_t *vectors)
{
    struct tally t = { .section = "partition" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "partition"), i, row) {
        char json[SNO_SNAPSHOT_TEXT_MAX], expected[64];
        struct sno_snapshot s = { .partition = (uint16_t)get_i (row, "uint16") }, read;
        size_t len = (size_t)sno_snapshot_format (&s, json, sizeof (json));
        snprintf (expected, sizeof (expected), "{\"partition\":%s,", get_s (row, "json"));
        tally (&t, NULL,
               !strncmp (json, expected, strlen (expected)) && sno_snapshot_parse (json, len, &read, NULL) == 0
                   && read.partition == get_i (row, "as_uint16")
                   && (uint32_t)read.partition << 16 == get_i (row, "internal_u32"));
    }
    tally_end (&t, "a partition is two bytes, the higher one first");
}

static void test_extremes (void)
{
    struct sno_snapshot s = { 65535, 65535, 65535, UINT32_MAX, INT64_MIN, INT64_MIN, INT64_MIN, UINT32_MAX };
    struct sno_snapshot read;
    char json[SNO_SNAPSHOT_TEXT_MAX];
    size_t len = (size_t)sno_snapshot_format (&s, json, sizeof (json)), cut = 0;

    ok (len < SNO_SNAPSHOT_TEXT_MAX && strlen (json) == len, "the buffer has space for the longest snapshot");
    ok (sno_snapshot_format (&s, json, len) < 0 && errno == ENOSPC && strlen (json) == len
            && sno_snapshot_format (&s, json, len + 1) == (int)len,
        "writing a snapshot needs space for the text and its NUL");
    ok (sno_snapshot_parse (json, len, &read, NULL) == 0 && read.now == INT64_MIN && read.sequence == UINT32_MAX
            && read.wall_safe == INT64_MIN,
        "a snapshot with extreme values can be read");
    for (size_t n = 0; n < len; n++)
        cut += sno_snapshot_parse (json, n, &read, NULL) < 0 && errno == EINVAL;
    ok (cut == len, "the text of a snapshot that is cut at any byte is refused");
}

static const struct {
    const char *json;
    int errnum; /* 0: valid */
    size_t pos;
} texts[] = {
    { "{}", 0, 0 },
    { " { \"drifts\" : 3 , \"partition\" : [ 1 , 2 ] } \t", 0, 0 },
    { "{\"now\":-1}", 0, 0 },
    { "", EINVAL, 0 },
    { "null", EINVAL, 0 },
    { "{\"drifts\":3,}", EINVAL, 12 },
    { "{\"drifts\":3,\"drifts\":4}", EINVAL, 20 },
    { "{\"Drifts\":3}", EINVAL, 1 },
    { "{\"more\":3}", EINVAL, 1 },
    { "{\"drifts\":\"3\"}", EINVAL, 10 },
    { "{\"drifts\":-3}", EINVAL, 10 },
    { "{\"drifts\":3.0}", EINVAL, 11 },
    { "{\"drifts\":03}", EINVAL, 11 },
    { "{\"drifts\":4294967295}", 0, 0 },
    { "{\"drifts\":4294967296}", ERANGE, 19 },
    { "{\"sequenceMin\":65536}", ERANGE, 19 },
    { "{\"partition\":[256,0]}", ERANGE, 16 },
    { "{\"partition\":16650}", EINVAL, 13 },
    { "{\"partition\":[1]}", EINVAL, 15 },
    { "{\"partition\":[1,2,3]}", EINVAL, 17 },
    { "{\"wallHi\":9223372036854775807}", 0, 0 },
    { "{\"wallHi\":9223372036854775808}", ERANGE, 28 },
    { "{\"wallHi\":-9223372036854775808}", 0, 0 },
    { "{\"wallHi\":-9223372036854775809}", ERANGE, 29 },
    { "{\"wallHi\":99999999999999999999999}", ERANGE, 28 },
    { "{} {}", EINVAL, 3 },
};

static void test_texts (void)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        struct sno_snapshot s;
        size_t pos = 0;
        int rc = sno_snapshot_parse (texts[i].json, strlen (texts[i].json), &s, &pos);
        if (texts[i].errnum == 0)
            ok (rc == 0, "'%s' is accepted as a snapshot", texts[i].json);
        else
            ok (rc < 0 && errno == texts[i].errnum && pos == texts[i].pos, "'%s' is refused as a snapshot at %zu (%zu)",
                texts[i].json, texts[i].pos, pos);
    }
}

int main (void)
{
    json_t *vectors = vectors_load ("sno");

    test_bounds (vectors);
    test_json (vectors);
    test_partition (vectors);
    test_extremes ();
    test_texts ();
    json_decref (vectors);
    return done_testing ();
}
