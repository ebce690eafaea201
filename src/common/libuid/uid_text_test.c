/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid_text_test.c - stored forms, compared with the golden vectors of the original and of its older releases (uid.json)
 */
#include "test/ids/uid_vectors.h"

static struct uid_node own_node (void)
{
    return uid_node_named (OWN_NODE);
}

static bool fits (const struct uid *id)
{
    return id->a >= 0 && id->a <= UID_A_MAX && id->b >= 0 && id->b <= UID_B_MAX && id->c >= 0 && id->c <= UID_C_MAX
           && id->sequence >= 0 && id->sequence <= UID_SEQUENCE_MAX;
}

/* The errno for fields that do not fit: EOVERFLOW for a time, EINVAL for a sequence. */
static int refusal (const struct uid *id)
{
    bool time = id->a >= 0 && id->a <= UID_A_MAX && id->b >= 0 && id->b <= UID_B_MAX && id->c >= 0
                && id->c <= UID_C_MAX;
    return time ? EINVAL : EOVERFLOW;
}

static bool encode_row_holds (json_t *row)
{
    json_t *drift = json_object_get (row, "drift"), *decoded = json_object_get (row, "decoded");
    const struct uid_node self = own_node ();
    struct uid_codec codec = { .drift = drift ? (int)json_integer_value (drift) : 8, .self = &self };
    uint8_t bytes[UID_GLOBAL_SIZE];
    char text[UID_TEXT_MAX];
    struct uid id, read;
    size_t pos;

    if (!vector_value (json_object_get (row, "in"), &id))
        return false;
    codec.flags = UID_WRAP;
    int n = uid_to_bytes (&id, &codec, bytes, sizeof (bytes)), len = uid_format (&id, &codec, text, sizeof (text));
    if (n < 0 || !is_hex (bytes, (size_t)n, get_s (row, "hex")) || strcmp (text, get_s (row, "text"))
        || len != (int)strlen (text))
        return false;
    if (uid_from_bytes (bytes, (size_t)n, &codec, &read) < 0 || !is_value (&read, decoded)
        || uid_parse (text, (size_t)len, &codec, &read, &pos) < 0 || !is_value (&read, decoded))
        return false;
    codec.flags = 0;
    int strict = uid_to_bytes (&id, &codec, bytes, sizeof (bytes));
    return fits (&id) ? strict == n
                      : strict < 0 && errno == refusal (&id) && uid_format (&id, &codec, text, sizeof (text)) < 0;
}

static void test_encode (json_t *vectors, const char *section)
{
    struct tally t = { .section = section };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, section), i, row)
        tally (&t, NULL, encode_row_holds (row));
    tally_end (&t,
               "an id has the bytes and the text of the original, and can be read; fields that do not fit are refused "
               "without UID_WRAP");
}

static void test_bad_drift (json_t *vectors)
{
    struct tally t = { .section = "encode_bad_drift" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "encode_bad_drift"), i, row) {
        struct uid_codec codec = { .drift = (int)get_i (row, "drift") };
        json_t *expected = json_object_get (json_object_get (row, "result"), "ok");
        struct uid id = { .kind = expected ? UID_LOCAL : UID_GLOBAL, .a = 1, .b = 2, .c = 1024, .sequence = 5 };
        uint8_t bytes[UID_GLOBAL_SIZE];
        int n = uid_to_bytes (&id, &codec, bytes, sizeof (bytes));
        tally (&t, expected ? NULL : "the original never returns for a drift outside 5-10",
               expected ? n == 8 && is_hex (bytes, 8, json_string_value (expected)) : n < 0 && errno == EINVAL);
    }
    tally_end (&t, "a drift outside 5-10 is refused for global ids, and ignored for local ids");
}

static void test_node_length (json_t *vectors)
{
    struct tally t = { .section = "encode_node_length" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "encode_node_length"), i, row) {
        json_t *node = json_pack ("{s:s}", "hex", get_s (row, "node_hex"));
        struct uid id = { .kind = UID_GLOBAL, .a = 1795, .b = 225412, .c = 581632, .sequence = 42 };
        uint8_t bytes[UID_GLOBAL_SIZE];
        if (!vector_node (node, &id.node))
            tally (&t, "the original crashes or writes malformed ids", true);
        else
            tally (&t, NULL,
                   uid_to_bytes (&id, NULL, bytes, sizeof (bytes)) == 12
                       && is_hex (bytes, 12, get_s (json_object_get (row, "result"), "ok")));
        json_decref (node);
    }
    tally_end (&t, "an id can be written only with a node of 4 bytes");
    ok (t.passed == 1, "the vectors have exactly one valid row with a node of 4 bytes");
}

static void test_decode (json_t *vectors)
{
    const struct uid_node self = own_node ();
    struct tally t = { .section = "decode" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "decode"), i, row) {
        struct uid_codec codec = { .drift = (int)get_i (row, "drift"), .self = &self };
        json_t *expected = json_object_get (json_object_get (row, "result"), "ok");
        uint8_t bytes[64];
        size_t n = unhex (get_s (row, "hex"), bytes, sizeof (bytes));
        struct uid id;
        int rc = uid_from_bytes (bytes, n, &codec, &id);
        if (n == 12 && (codec.drift < UID_DRIFT_MIN || codec.drift > UID_DRIFT_MAX))
            tally (&t, "the original reads with a drift that it cannot write", rc < 0 && errno == EINVAL);
        else
            tally (&t, NULL, expected ? rc == 0 && is_value (&id, expected) : rc < 0 && errno == EMSGSIZE);
    }
    tally_end (&t, "bytes are read as the values of the original, and the own node by its name");
    ok (t.excepted[0].count > 0, "the vectors have rows with a drift that the original cannot write");
}

static void test_decode64 (json_t *vectors)
{
    static const char long_text[] = "the original accepts texts of 17 characters";
    static const char spare_bits[] =
        "the original drops surplus bits of a local text; this library does so with UID_LENIENT";
    const struct uid_node self = own_node ();
    size_t surplus = 0;
    struct tally t = { .section = "decode64" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "decode64"), i, row) {
        struct uid_codec codec = { .drift = (int)get_i (row, "drift"), .self = &self };
        json_t *expected = json_object_get (json_object_get (row, "result"), "ok");
        char text[64];
        size_t len = unhex (get_s (row, "text_hex"), text, sizeof (text)), pos;
        struct uid id;
        int rc = uid_parse (text, len, &codec, &id, &pos);
        if (len == 17 && expected) {
            tally (&t, long_text, rc < 0 && errno == EMSGSIZE && pos == 16);
            continue;
        }
        bool spare = expected && rc < 0 && len == 11 && errno == EINVAL && pos == 10;
        if (spare) {
            codec.flags = UID_LENIENT;
            rc = uid_parse (text, len, &codec, &id, &pos);
        }
        surplus += spare;
        tally (&t, spare ? spare_bits : NULL, expected ? rc == 0 && is_value (&id, expected) : rc < 0);
    }
    tally_end (&t, "a text is read as the values of the original, or is refused as by the original");
    ok (surplus > 0, "the vectors have rows with surplus bits");
    struct uid id;
    size_t pos;
    ok (uid_parse (".5.tXVEf8n4vPN.0.", 17, NULL, &id, &pos) < 0 && errno == EMSGSIZE && pos == 16,
        "a text of 17 characters is refused; the original ignores the last one");
}

static void test_base64 (json_t *vectors)
{
    struct tally t = { .section = "b64_encode" }, u = { .section = "b64_decode" };
    json_t *row;
    size_t i;
    uint8_t bytes[256], back[256];
    char text[512];

    json_array_foreach (vectors_section (vectors, "b64_encode"), i, row) {
        size_t n = unhex (get_s (row, "hex"), bytes, sizeof (bytes));
        ssize_t len = uid_base64_format (bytes, n, text, sizeof (text));
        tally (&t, NULL,
               !strcmp (text, get_s (row, "text")) && len == (ssize_t)strlen (text)
                   && uid_base64_parse (text, (size_t)len, back, n, NULL) == (ssize_t)n && !memcmp (bytes, back, n));
    }
    tally_end (&t, "base64 has the text of the original, and can be read");
    json_array_foreach (vectors_section (vectors, "b64_decode"), i, row) {
        size_t len = unhex (get_s (row, "text_hex"), text, sizeof (text));
        const char *expected = get_s (json_object_get (row, "result"), "ok");
        ssize_t rc = uid_base64_parse (text, len, back, sizeof (back), NULL);
        tally (&u, NULL, expected ? is_hex (back, (size_t)rc, expected) : rc < 0 && errno == EINVAL);
    }
    tally_end (&u, "base64 is read as the bytes of the original, or is refused as by the original");
}

static void test_room (void)
{
    const struct uid local = { .b = 1 }, global = { .kind = UID_GLOBAL, .b = 1 };
    uint8_t bytes[UID_GLOBAL_SIZE] = { 77 };
    char text[UID_TEXT_MAX] = "#";
    size_t pos;

    ok (uid_to_bytes (&local, NULL, bytes, 7) < 0 && errno == ENOSPC && uid_to_bytes (&global, NULL, bytes, 11) < 0
            && errno == ENOSPC && bytes[0] == 77,
        "a buffer of 7 or 11 bytes is too small for an id, and is not changed");
    ok (uid_format (&local, NULL, text, 11) < 0 && errno == ENOSPC && uid_format (&global, NULL, text, 16) < 0
            && errno == ENOSPC && text[0] == '#' && uid_format (&local, NULL, text, 12) == 11,
        "writing the text of an id needs space for the NUL");
    strcpy (text, "#");
    ok (uid_base64_format (bytes, 3, text, 4) < 0 && errno == ENOSPC && text[0] == '#'
            && uid_base64_parse ("zzzz", 4, bytes, 2, &pos) < 0 && errno == ENOSPC && bytes[0] == 77
            && uid_base64_parse ("zz!z", 4, bytes, 3, &pos) < 0 && errno == EINVAL && pos == 2,
        "writing base64 and its bytes needs buffers of sufficient size");
}

/* --- order and ranges -------------------------------------------------------------------- */

struct stored {
    uint8_t bytes[UID_GLOBAL_SIZE];
    char text[UID_TEXT_MAX];
    struct uid id;
};

static int bytes_cb (const void *a, const void *b)
{
    return memcmp (a, b, UID_GLOBAL_SIZE);
}

static void test_order (json_t *vectors)
{
    json_t *row, *value;
    size_t i, j, good = 0;

    json_array_foreach (vectors_section (vectors, "order"), i, row) {
        struct uid_codec codec = { .drift = (int)get_i (row, "drift") };
        json_t *in = json_object_get (row, "in"), *sorted = json_object_get (row, "sorted_by_encoding");
        struct stored ids[64];
        size_t n = json_array_size (in);
        bool same = n <= 64;
        json_array_foreach (in, j, value)
            same = same && vector_value (value, &ids[j].id)
                   && uid_to_bytes (&ids[j].id, &codec, ids[j].bytes, sizeof (ids[j].bytes)) == UID_GLOBAL_SIZE
                   && uid_format (&ids[j].id, &codec, ids[j].text, sizeof (ids[j].text)) == UID_GLOBAL_TEXT_LEN;
        qsort (ids, n, sizeof (ids[0]), bytes_cb);
        json_array_foreach (sorted, j, value)
            same = same && is_value (&ids[j].id, value) && (!j || strcmp (ids[j - 1].text, ids[j].text) <= 0);
        good += same;
    }
    ok (good == i, "section order: bytes and texts of ids sort in the same order (%zu drifts)", good);
}

static void test_readme (json_t *vectors)
{
    const struct uid_node self = own_node ();
    json_t *readme = vectors_section (vectors, "readme"), *row = json_array_get (readme, 0);
    struct uid_codec codec = { .drift = 8, .self = &self }, legacy = { .drift = 8, .self = &self, .version = UID_V134 };
    const char *theirs;
    char text[UID_TEXT_MAX];
    struct uid id, read;

    row = row ? row : readme;
    theirs = get_s (row, "readme_text");
    ok (vector_value (json_object_get (row, "global"), &id) && uid_format (&id, NULL, text, sizeof (text)) == 16
            && !strcmp (text, get_s (row, "code_text")),
        "the example id in the original's code has the same text");
    ok (uid_parse (theirs, 16, &codec, &read, NULL) == 0 && read.node.name == NULL
            && uid_parse (theirs, 16, &legacy, &read, NULL) == 0 && same_value (&read, &id),
        "the example id in the original's README has the older fingerprint, so it is the own node's only if read as "
        "version 1.3.4");
}

static bool legacy_row_holds (json_t *row, enum uid_version version)
{
    const struct uid_node self = own_node ();
    struct uid_codec codec = { .drift = 8, .version = version, .self = &self };
    const char *node = get_s (row, "node"), *text = get_s (row, "text");
    json_t *t = json_object_get (row, "t");
    struct uid expected = { .kind = node ? UID_GLOBAL : UID_LOCAL, .sequence = get_i (row, "seq") }, id;
    uint8_t bytes[UID_GLOBAL_SIZE];
    size_t n = unhex (get_s (row, "hex"), bytes, sizeof (bytes)), pos;

    expected.a = json_integer_value (json_array_get (t, 0));
    expected.b = json_integer_value (json_array_get (t, 1));
    expected.c = json_integer_value (json_array_get (t, 2)) / 1024 * 1024;
    if (node && !strncmp (node, "hex:", 4)) {
        unsigned fingerprint;
        sscanf (node + 4, "%8x", &fingerprint);
        expected.node.fingerprint = fingerprint;
    }
    else if (node)
        expected.node = self;
    if (uid_from_bytes (bytes, n, &codec, &id) < 0 || !same_value (&id, &expected))
        return false;
    if (!text)
        return uid_parse ("...........", 11, &codec, &id, &pos) < 0 && errno == ENOTSUP;
    return uid_parse (text, strlen (text), &codec, &id, &pos) == 0 && same_value (&id, &expected);
}

static void test_legacy (json_t *vectors)
{
    static const struct {
        const char *tag;
        enum uid_version version;
    } releases[] = { { "1.2.0", UID_V120 }, { "1.3.3", UID_V133 }, { "1.3.4", UID_V134 } };
    json_t *legacy = vectors_section (vectors, "legacy"), *row;

    for (int r = 0; r < 3; r++) {
        struct tally t = { .section = releases[r].tag };
        size_t i;
        json_t *rows = json_object_get (json_object_get (legacy, releases[r].tag), "rows");
        json_array_foreach (rows, i, row)
            tally (&t, NULL, legacy_row_holds (row, releases[r].version));
        tally_end (&t, "ids that this release wrote can be read");
    }
    struct uid id = { 0 };
    uint8_t bytes[UID_GLOBAL_SIZE];
    ok (uid_to_bytes (&id, &(struct uid_codec){ .drift = 8, .version = UID_V134 }, bytes, sizeof (bytes)) < 0
            && errno == ENOTSUP,
        "an id cannot be written in an older form");
    size_t pos;
    ok (uid_parse ("AGA5igPrJzJ7ab+/", 16, &(struct uid_codec){ .drift = 8, .version = UID_V133 }, &id, &pos) < 0
            && errno == EINVAL && pos == 14,
        "the text of an id of version 1.3.3 is base64url, not base64");
    ok (uid_parse ("AGA5igPrJzJ7ab00", 16, &(struct uid_codec){ .drift = 11 }, &id, &pos) < 0 && errno == EINVAL
            && pos == 16,
        "the error of an invalid drift is after the text");
}

/* Ids of two nodes around the edges of windows, compared with the keys of intervals around the same edges. */
static void test_range (int drift)
{
    struct uid_codec codec = { .drift = drift };
    const int64_t mega = 1000000, base = 1539 * mega * mega, window = 1 << drift;
    const int64_t last = (mega - 1) / window * window; /* the last window of a megasecond may be short */
    const int64_t edges[] = { 0, 1, window - 1, window, window + 1, 3 * window, last - 1, last, mega - 1 };
    uint8_t lower[UID_GLOBAL_SIZE], upper[UID_GLOBAL_SIZE], key[UID_GLOBAL_SIZE];
    unsigned good = 0, n = 0, tight = 0;

    for (int f = 0; f < 9; f++)
        for (int t = f; t < 9; t++) {
            int64_t from = base + edges[f] * mega, to = base + edges[t] * mega + (t % 2 ? 0 : 5000);
            if (uid_range (UID_GLOBAL_SIZE, &codec, from, to, lower, upper) < 0)
                continue;
            for (int e = 0; e < 9; e++)
                for (uint32_t node = 0; node < 2; node++) {
                    struct uid id;
                    int64_t us = base + edges[e] * mega + 2048;
                    uid_make (us, UID_SEQUENCE_MAX, &id);
                    uid_globalize (&id, &(struct uid_node){ .fingerprint = 0 - node }, &id);
                    uid_to_bytes (&id, &codec, key, sizeof (key));
                    bool within = memcmp (key, lower, 12) >= 0 && memcmp (key, upper, 12) < 0;
                    bool far = us < from - (window + 1) * mega || us > to + (window + 1) * mega;
                    good += us >= from && us < to ? within : !far || !within;
                    tight += far;
                    n++;
                }
        }
    struct uid next;
    uid_make (base + window * mega, 0, &next);
    uid_globalize (&next, &(struct uid_node){ 0 }, &next);
    uid_to_bytes (&next, &codec, key, sizeof (key));
    ok (uid_range (UID_GLOBAL_SIZE, &codec, base, base + window * mega, lower, upper) == 0 && !memcmp (upper, key, 12),
        "drift %d: the keys of a whole window are the beginnings of this window and of the next one", drift);
    ok (good == n && n > 300 && tight > 50,
        "drift %d: ids of an interval are between the keys of the interval, and distant ids are not", drift);
}

static void test_range_local (void)
{
    uint8_t lower[UID_GLOBAL_SIZE], upper[UID_GLOBAL_SIZE];

    ok (uid_range (UID_LOCAL_SIZE, NULL, 1000000 + 1024, 1000000 + 4100, lower, upper) == 0
            && is_hex (lower, 8, "0000000001004000") && is_hex (upper, 8, "0000000001010000"),
        "the keys of local ids are the beginnings of steps");
    ok (uid_range (UID_LOCAL_SIZE, NULL, 2, 1, lower, upper) < 0 && errno == EINVAL,
        "an interval that ends before it begins is refused");
    ok (uid_range (9, NULL, 1, 2, lower, upper) < 0 && errno == EINVAL,
        "the keys of a size that no id has are refused");
    ok (uid_range (UID_GLOBAL_SIZE, &(struct uid_codec){ .drift = 11 }, 1, 2, lower, upper) < 0 && errno == EINVAL,
        "the keys with an invalid drift are refused");
    ok (uid_range (UID_LOCAL_SIZE, NULL, -1, 2, lower, upper) < 0 && errno == EOVERFLOW,
        "the keys of a time before 1970 are refused");
}

/* Each byte at each position: a text is refused, or writing the id again gives the same text. */
static void test_hostile (const char *good_text)
{
    size_t len = strlen (good_text), pos;
    unsigned taken = 0, good = 0;
    char text[UID_TEXT_MAX], back[UID_TEXT_MAX];
    struct uid id;
    struct uid_codec wrap = { .drift = 8, .flags = UID_WRAP };

    for (size_t place = 0; place < len; place++)
        for (int c = 0; c < 256; c++) {
            memcpy (text, good_text, len + 1);
            text[place] = (char)c;
            if (uid_parse (text, len, NULL, &id, &pos) == 0) {
                taken++;
                good += uid_format (&id, &wrap, back, sizeof (back)) == (int)len && !memcmp (text, back, len);
            }
            else
                good += errno == EINVAL && pos == place;
        }
    ok (good == len * 256 && taken == (len == 16 ? 16 * 64 : 10 * 64 + 16),
        "each byte at each position of %s is refused there, or the id that is read has the same text", good_text);
}

/* Ids written with one drift and read with another, which could equal other ids. */
static void test_numbered (void)
{
    uint64_t state = 11;
    int met = 0, own = 0, n = 0;

    for (int i = 0; i < 40000; i++) {
        uint32_t number = (uint32_t)(state >> 38) >> (i & 15);
        state = state * UINT64_C (6364136223846793005) + 1;
        const struct uid id = { .kind = UID_GLOBAL,
                                .node = uid_node_numbered (number),
                                .a = (int64_t)(state >> 44),
                                .b = (int64_t)(state >> 20 & 0xfffff) % (UID_B_MAX + 1),
                                .c = (int64_t)(state & 0x3ff) % 977 * UID_STEP_US,
                                .sequence = (int64_t)(state >> 10 & UID_SEQUENCE_MAX) };
        for (int w = UID_DRIFT_MIN; w <= UID_DRIFT_MAX; w++)
            for (int r = UID_DRIFT_MIN; r <= UID_DRIFT_MAX; r++) {
                uint8_t bytes[UID_GLOBAL_SIZE];
                struct uid other;

                uid_to_bytes (&id, &(struct uid_codec){ .drift = w }, bytes, sizeof (bytes));
                uid_from_bytes (bytes, sizeof (bytes), &(struct uid_codec){ .drift = r }, &other);
                bool numbered = other.node.fingerprint >> 26 == 32;
                met += numbered && r != w;
                own += numbered && r == w;
                n += r == w;
            }
    }
    ok (met == 0 && own == n, "ids of numbered nodes with different drifts are never equal (%d ids)", n);
    ok (uid_node_numbered (0).fingerprint == 0x80000000 && uid_node_numbered (UID_NUMBER_MAX).fingerprint == 0x83ffffff
            && uid_fingerprint ("\xff\xff\xff\xff\xff\xff\xff\xff", 8) < 1U << 28,
        "no configured name has the fingerprint of a numbered node");
}

int main (void)
{
    json_t *vectors = vectors_load ("uid");

    test_encode (vectors, "encode_local");
    test_encode (vectors, "encode_global");
    test_bad_drift (vectors);
    test_node_length (vectors);
    test_decode (vectors);
    test_decode64 (vectors);
    test_base64 (vectors);
    test_room ();
    test_order (vectors);
    test_readme (vectors);
    test_legacy (vectors);
    for (int drift = UID_DRIFT_MIN; drift <= UID_DRIFT_MAX; drift++)
        test_range (drift);
    test_range_local ();
    test_hostile (".6.nR7HD..3");
    test_hostile (".5.tXVEf8n4vPN.0");
    test_numbered ();
    json_decref (vectors);
    return done_testing ();
}
