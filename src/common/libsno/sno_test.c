/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_test.c - values, stored forms and partitions, compared with the golden vectors of the original (sno.json) */
#include <errno.h>
#include <string.h>

#include "idtree/sno.h"
#include "test/ids/vectors.h"

static sno_t from_hex (const char *hex)
{
    sno_t id;
    if (unhex (hex, id.bytes, SNO_SIZE) != SNO_SIZE)
        bail_out ("an id in the vectors does not have 10 bytes");
    return id;
}

static bool same (const sno_t *a, const sno_t *b)
{
    return sno_compare (a, b) == 0;
}

static bool codec_row_holds (json_t *row)
{
    sno_t id = from_hex (get_s (row, "hex")), read;
    struct sno_fields f = sno_split (&id);
    char text[SNO_TEXT_MAX], json[SNO_JSON_TEXT_MAX];
    uint64_t unit;

    int len = sno_format (&id, text, sizeof (text)), json_len = sno_json_format (&id, json, sizeof (json));
    return f.unit == (uint64_t)get_i (row, "units") && f.tick == get_i (row, "tick") && f.meta == get_i (row, "meta")
           && f.partition == get_i (row, "partition") && f.sequence == get_i (row, "sequence")
           && sno_unix_ns (&id) == get_i (row, "unix_ns")
           && sno_is_zero (&id) == json_is_true (json_object_get (row, "is_zero"))
           && !strcmp (text, get_s (row, "text")) && !strcmp (text, get_s (row, "marshal_text"))
           && !strcmp (json, get_s (row, "json")) && (int)strlen (json) == json_len && len == SNO_TEXT_LEN
           && !strcmp (get_s (row, "sql_value_hex"), get_s (row, "hex")) && sno_join (&f, &read) == 0
           && same (&id, &read) && sno_unit_at (sno_unix_ns (&id), &unit) == 0 && unit == f.unit
           && sno_parse (text, strlen (text), &read, NULL) == 0 && same (&id, &read)
           && sno_json_parse (json, (size_t)json_len, &read, NULL) == 0 && same (&id, &read)
           && sno_from_bytes (id.bytes, SNO_SIZE, &read) == 0 && same (&id, &read)
           && sno_from_sql (SNO_SQL_BYTES, id.bytes, SNO_SIZE, &read) == 0 && same (&id, &read)
           && sno_from_sql (SNO_SQL_TEXT, text, SNO_TEXT_LEN, &read) == 0 && same (&id, &read);
}

static void test_codec (json_t *vectors)
{
    struct tally t = { .section = "codec" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "codec"), i, row)
        tally (&t, NULL, codec_row_holds (row));
    tally_end (&t, "each id can be split, joined, written and read in all forms");
}

/* Calls our function that corresponds to the original's 'fn'. */
static int parse (const char *fn, json_t *row, sno_t *id)
{
    uint8_t bytes[256];
    const char *text = get_s (row, "input_text"), *hex = get_s (row, "input_hex");
    size_t len = hex ? unhex (hex, bytes, sizeof (bytes)) : text ? strlen (text) : 0;
    const void *input = hex ? (const void *)bytes : text;

    if (!strcmp (fn, "UnmarshalText") || !strncmp (fn, "FromEncoded", 11))
        return sno_parse (input, len, id, NULL);
    if (!strcmp (fn, "FromBinaryBytes") || !strcmp (fn, "UnmarshalBinary"))
        return sno_from_bytes (input, len, id);
    if (!strcmp (fn, "Scan(string)"))
        return sno_from_sql (SNO_SQL_TEXT, input, len, id);
    if (!strcmp (fn, "Scan(bytes)"))
        return sno_from_sql (SNO_SQL_BYTES, input, len, id);
    if (!strcmp (fn, "Scan(other)"))
        return sno_from_sql (strcmp (get_s (row, "input_go_type"), "<nil>") ? SNO_SQL_OTHER : SNO_SQL_NULL, NULL, 0,
                             id);
    if (!strncmp (fn, "UnmarshalJSON", 13))
        return sno_json_parse (text, len, id, NULL);
    errno = ENOSYS;
    return -1;
}

/* A document {"id":TOKEN}: find the token with a JSON reader, then parse it. */
static int parse_document (json_t *row, sno_t *id)
{
    json_t *document = json_loads (get_s (row, "input_text"), 0, NULL);
    json_t *member = json_object_get (document, "id");
    char *token = member ? json_dumps (member, JSON_ENCODE_ANY) : NULL;
    int rc = token ? sno_json_parse (token, strlen (token), id, NULL) : 0;

    free (token);
    json_decref (document);
    return rc;
}

static bool quotes_missing (json_t *row)
{
    const char *text = get_s (row, "input_text");
    return !strncmp (get_s (row, "fn"), "UnmarshalJSON", 13) && strlen (text) == 18
           && (text[0] != '"' || text[17] != '"');
}

static bool parse_row_holds (json_t *row)
{
    const char *fn = get_s (row, "fn");
    json_t *err = json_object_get (row, "err");
    const char *before = get_s (row, "receiver_before"), *after = get_s (row, "receiver_after");
    sno_t id = from_hex (before ? before : "00000000000000000000");
    sno_t expected = from_hex (after ? after : get_s (row, "result"));
    int rc = strcmp (fn, "encoding/json document") ? parse (fn, row, &id) : parse_document (row, &id);

    if (json_is_null (err))
        return rc == 0 && same (&id, &expected);
    if (!strcmp (get_s (err, "type"), "InvalidDataSizeError"))
        return rc < 0 && errno == EMSGSIZE && same (&id, &expected);
    return rc < 0 && errno == ENOTSUP && same (&id, &expected);
}

static void test_parse (json_t *vectors)
{
    struct tally t = { .section = "parse" };
    json_t *row;
    size_t i;
    sno_t id;

    json_array_foreach (vectors_section (vectors, "parse"), i, row) {
        const char *text = get_s (row, "input_text");
        if (quotes_missing (row))
            tally (&t, "the original accepts a JSON token without its quotes",
                   sno_json_parse (text, strlen (text), &id, NULL) < 0 && errno == EINVAL);
        else
            tally (&t, NULL, parse_row_holds (row));
    }
    tally_end (&t, "a text gives the id, the error and the receiver of the original");
    ok (t.excepted[0].count > 0, "the vectors have JSON tokens without quotes, which only the original accepts");
}

static void test_invalid_chars (json_t *vectors)
{
    struct tally t = { .section = "invalid_chars" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "invalid_chars"), i, row) {
        char text[64];
        sno_t before = from_hex ("0102030405060708090a"), id = before;
        size_t pos, len = unhex (get_s (row, "input_hex"), text, sizeof (text));
        size_t expected = 0;
        while (expected < len && (text[expected] & 0x80) == 0
               && memchr ("23456789abcdefghijklmnopqrstuvwx", text[expected], 32))
            expected++;
        tally (&t, "the original accepts characters outside the alphabet",
               sno_parse (text, len, &id, &pos) < 0 && errno == EINVAL && pos == expected && same (&id, &before));
    }
    tally_end (&t, "an invalid text is refused at the position of the error");
}

static void test_order (json_t *vectors)
{
    json_t *row, *sort = vectors_section (vectors, "sort");
    json_t *in = json_object_get (sort, "in"), *out = json_object_get (sort, "out");
    size_t i, good = 0, n = json_array_size (in);
    struct tally t = { .section = "compare" };
    sno_t ids[256];

    json_array_foreach (vectors_section (vectors, "compare"), i, row) {
        sno_t a = from_hex (get_s (row, "a")), b = from_hex (get_s (row, "b"));
        tally (&t, NULL, sno_compare (&a, &b) == get_i (row, "compare"));
    }
    tally_end (&t, "two ids have the order of the original");
    if (n > 256)
        bail_out ("section sort is larger than expected");
    json_array_foreach (in, i, row)
        ids[i] = from_hex (json_string_value (row));
    sno_sort (ids, n);
    json_array_foreach (out, i, row)
        good += is_hex (ids[i].bytes, SNO_SIZE, json_string_value (row));
    ok (good == n, "section sort: sorted ids have the order of the original (%zu ids)", n);
}

static void test_partitions (json_t *vectors)
{
    struct sno_partitions pool;
    uint16_t partition;
    json_t *row, *first;
    struct tally t = { .section = "partition_seed_formula" };
    size_t i, j, good;

    json_array_foreach (vectors_section (vectors, "partition_seed_formula"), i, row) {
        sno_partitions_init (&pool, (uint64_t)get_i (row, "units_now"));
        tally (&t, NULL, sno_partitions_deal (&pool, &partition) == 0 && partition == get_i (row, "seed"));
    }
    tally_end (&t, "a start time gives the first partition of the original");
    json_array_foreach (vectors_section (vectors, "auto_partition"), i, row) {
        sno_partitions_init (&pool, (uint64_t)get_i (row, "seed"));
        good = 0;
        json_array_foreach (json_object_get (row, "first_five_then_sixth_after_a_snapshot_generator"), j, first)
            good += sno_partitions_deal (&pool, &partition) == 0 && partition == json_integer_value (first);
        for (; j < 65536; j++)
            sno_partitions_deal (&pool, &partition);
        ok (good == 6 && partition == get_i (row, "the_65536th"),
            "seed %d deals the partitions of section auto_partition, including the last one", (int)get_i (row, "seed"));
        ok (sno_partitions_deal (&pool, &partition) < 0 && errno == ENOSPC
                && sno_partitions_deal (&pool, &partition) < 0 && errno == ENOSPC,
            "after the 65536th partition no partition is left");
    }
}

static void test_limits (void)
{
    struct sno_fields f = { .unit = SNO_UNIT_MAX, 1, 255, 65535, 65535 };
    sno_t id, before = from_hex ("0102030405060708090a");
    uint64_t unit;

    ok (sno_join (&f, &id) == 0 && is_hex (id.bytes, SNO_SIZE, "ffffffffffffffffffff"),
        "the largest fields make the largest id");
    id = before;
    f.unit++;
    ok (sno_join (&f, &id) < 0 && errno == EOVERFLOW && same (&id, &before), "an id with unit 2^39 is refused");
    f = (struct sno_fields){ .tick = 2 };
    ok (sno_join (&f, &id) < 0 && errno == EINVAL, "an id with tick 2 is refused");
    f = (struct sno_fields){ .meta = 256 };
    ok (sno_join (&f, &id) < 0 && errno == EINVAL, "an id with meta 256 is refused");
    f = (struct sno_fields){ .partition = 65536 };
    ok (sno_join (&f, &id) < 0 && errno == EINVAL, "an id with partition 65536 is refused");
    f = (struct sno_fields){ .sequence = 65536 };
    ok (sno_join (&f, &id) < 0 && errno == EINVAL && same (&id, &before), "an id with sequence 65536 is refused");
    ok (sno_unit_at (SNO_EPOCH_NS, &unit) == 0 && unit == 0, "the year 2010 begins with unit 0");
    ok (sno_unit_at (SNO_EPOCH_NS + SNO_UNIT_NS - 1, &unit) == 0 && unit == 0, "times are rounded down to units");
    ok (sno_unit_at (SNO_EPOCH_NS - 1, &unit) < 0 && errno == EOVERFLOW,
        "a time one nanosecond before 2010 is refused; the original wraps");
    int64_t end = SNO_EPOCH_NS + (int64_t)(SNO_UNIT_MAX + 1) * SNO_UNIT_NS;
    ok (sno_unit_at (end - 1, &unit) == 0 && unit == SNO_UNIT_MAX,
        "2079-09-07T15:47:35.551999999Z is the last time that an id can have");
    ok (sno_unit_at (end, &unit) < 0 && errno == EOVERFLOW,
        "a time one nanosecond after the last time of an id is refused");
    ok (sno_unit_at (INT64_MIN, &unit) < 0 && sno_unit_at (INT64_MAX, &unit) < 0,
        "the smallest and the largest int64_t are refused as times");
}

static void test_range (void)
{
    sno_t lower, upper;
    int64_t t = SNO_EPOCH_NS + 5 * SNO_UNIT_NS;

    ok (sno_range (t, t + 2 * SNO_UNIT_NS, &lower, &upper) == 0
            && is_hex (lower.bytes, SNO_SIZE, "000000000a0000000000")
            && is_hex (upper.bytes, SNO_SIZE, "000000000e0000000000"),
        "the keys of the interval [5, 7) are ids of units 5 and 7 with all other fields zero");
    ok (sno_range (t, t, &lower, &upper) == 0 && same (&lower, &upper), "the two keys of an empty interval are equal");
    ok (sno_range (t, t - 1, &lower, &upper) < 0 && errno == EINVAL,
        "an interval that ends before it begins is refused");
    ok (sno_range (SNO_EPOCH_NS - 1, t, &lower, &upper) < 0 && errno == EOVERFLOW,
        "an interval that begins before 2010 is refused");
}

static void test_errpos (void)
{
    sno_t id;
    size_t pos;
    const char *good = "\"brpk4q72xwf2m63l\"";
    char token[SNO_JSON_TEXT_MAX];

    ok (sno_parse ("brpk4q72", 8, &id, &pos) < 0 && errno == EMSGSIZE && pos == 8,
        "the error of a short text is at its end");
    ok (sno_parse ("brpk4q72xwf2m63l2", 17, &id, &pos) < 0 && errno == EMSGSIZE && pos == 16,
        "the error of a long text is after its 16th character");
    for (size_t i = 0; i < 18; i++) {
        memcpy (token, good, sizeof (token));
        token[i] = '!';
        ok (sno_json_parse (token, 18, &id, &pos) < 0 && errno == EINVAL && pos == i,
            "an error at character %zu of a JSON token is reported there", i);
    }
    memset (token, '#', sizeof (token));
    sno_parse (good + 1, SNO_TEXT_LEN, &id, NULL);
    ok (sno_json_format (&id, token, 18) < 0 && errno == ENOSPC && sno_json_format (&(sno_t){ { 0 } }, token, 4) < 0
            && errno == ENOSPC && token[0] == '#' && sno_json_format (&(sno_t){ { 0 } }, token, 5) == 4,
        "a buffer that is too small for a JSON token fails with ENOSPC and is not changed");
    ok (sno_json_parse ("NULL", 4, &id, &pos) < 0 && errno == EMSGSIZE, "a JSON null in upper case is refused");
    ok (sno_from_sql (SNO_SQL_TEXT, "BRPK4Q72XWF2M63L", 16, &id) < 0 && errno == EINVAL && sno_is_zero (&id),
        "a database column with invalid characters gives the zero id and an error");
}

int main (void)
{
    json_t *vectors = vectors_load ("sno");

    test_codec (vectors);
    test_parse (vectors);
    test_invalid_chars (vectors);
    test_order (vectors);
    test_partitions (vectors);
    test_limits ();
    test_range ();
    test_errpos ();
    json_decref (vectors);
    return done_testing ();
}
