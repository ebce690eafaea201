/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid_test.c - nodes, values and vector clocks, compared with the golden vectors of the original (uid.json) */
#include "test/ids/uid_vectors.h"

/* Shared libraries, too, call the functions of libc that a test replaces. */
#pragma GCC visibility push(default)

static size_t compared; /* compared names: linked with --wrap=strcmp */

int __real_strcmp (const char *a, const char *b);
int __wrap_strcmp (const char *a, const char *b);
int __wrap_strcmp (const char *a, const char *b)
{
    compared++;
    return __real_strcmp (a, b);
}

static void test_node_hash (json_t *vectors)
{
    struct tally t = { .section = "node_hash" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "node_hash"), i, row) {
        char name[2048], hex[9];
        size_t len = unhex (get_s (row, "utf8_hex"), name, sizeof (name));
        uint32_t h = uid_fingerprint (name, len);
        snprintf (hex, sizeof (hex), "%08x", h);
        tally (&t, NULL,
               len <= sizeof (name) && h == get_i (row, "phash2") && !strcmp (hex, get_s (row, "fingerprint_hex"))
                   && uid_fingerprint_legacy (name, len) == get_i (row, "legacy_phash"));
    }
    tally_end (&t, "a name has the fingerprints of the original, old and new, including carries out of bit 31");
    ok (uid_fingerprint ("svc-0@svc-0.svc.default.svc.cluster.local", 41)
            == uid_fingerprint ("svc-1@svc-1.svc.default.svc.cluster.local", 41),
        "the names of two numbered nodes can have the same fingerprint, because of the hash function");
    ok (uid_fingerprint ("\xc3", 1) == 0xc3 && uid_fingerprint ("\xc3\x41", 2) == 0xc3 * 16 + 0x41,
        "the hash of a name that is cut within a character does not read beyond the length");
}

static void test_cast (json_t *vectors)
{
    const struct uid_node self = uid_node_named (OWN_NODE);
    struct tally t = { .section = "cast" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "cast"), i, row) {
        const char *fn = get_s (row, "fn");
        json_t *expected = json_object_get (json_object_get (row, "result"), "ok");
        struct uid id = { 0 }, out;
        int rc = 0;
        if (strcmp (fn, "z/0") && !vector_value (json_object_get (row, "in"), &id)) {
            tally (&t, NO_FINGERPRINT, true);
            continue;
        }
        if (!strcmp (fn, "l/1"))
            rc = uid_localize (&id, &self, &out);
        else if (!strcmp (fn, "g/1"))
            uid_globalize (&id, &self, &out);
        else if (!strcmp (fn, "gtol/1"))
            rc = uid_strip (&id, &out);
        else
            out = id;
        tally (&t, NULL, expected ? rc == 0 && is_value (&out, expected) : rc < 0 && errno == EINVAL);
    }
    tally_end (&t, "the casts l, g, gtol and z give the ids of the original");
    ok (t.excepted[0].count < t.passed, "few rows of the vectors about casts of ids have to be left out");
}

static void test_distance (json_t *vectors)
{
    struct tally t = { .section = "distance" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "distance"), i, row) {
        struct uid a, b, out;
        json_t *expected = json_object_get (json_object_get (row, "result"), "ok");
        bool read = vector_value (json_object_get (row, "a"), &a) && vector_value (json_object_get (row, "b"), &b);
        int rc = read ? uid_distance (&a, &b, &out) : 0;
        tally (&t, NULL, read && (expected ? rc == 0 && is_value (&out, expected) : rc < 0 && errno == EINVAL));
    }
    tally_end (&t, "two ids have the difference of the original, or are refused as by the original");
    struct uid big = { .a = 1 << 20 }, out, none = { 0 };
    ok (uid_distance (&big, &none, &out) < 0 && errno == EOVERFLOW, "a field of an id of 2^20 is refused");
    int refused = 0;
    for (int field = 0; field < 8; field++) {
        struct uid least = none;
        int64_t *fields[] = { &least.a, &least.b, &least.c, &least.sequence };
        *fields[field / 2] = INT64_MIN;
        refused += (field & 1 ? uid_distance (&none, &least, &out) : uid_distance (&least, &none, &out)) < 0
                   && errno == EOVERFLOW;
    }
    ok (refused == 8, "the distance of ids fails if any field is INT64_MIN");
    ok (uid_vclock_diff (&none, 1, &big, 1, &out) < 0 && errno == EOVERFLOW,
        "the difference of vector clocks fails if it exceeds the range of a field");
}

static void test_timestamp_ms (json_t *vectors)
{
    struct tally t = { .section = "timestamp_ms" };
    json_t *row;
    size_t i;

    json_array_foreach (vectors_section (vectors, "timestamp_ms"), i, row) {
        struct uid id;
        tally (&t, NULL, vector_value (json_object_get (row, "in"), &id) && uid_unix_ms (&id) == get_i (row, "ms"));
    }
    tally_end (&t, "an id has the millisecond of the original");
}

/* --- vector clocks ----------------------------------------------------------------------- */

#define MAX 64

/* Returns the number of entries, or -1 if an entry has a fingerprint that is not valid here. */
static int load_clock (json_t *array, struct uid *clock)
{
    json_t *entry;
    size_t i;

    if (json_array_size (array) > MAX)
        bail_out ("a clock in the vectors is larger than expected");
    json_array_foreach (array, i, entry)
        if (!vector_value (entry, &clock[i]))
            return -1;
    return (int)i;
}

static bool is_clock (const struct uid *clock, int count, json_t *expected)
{
    json_t *entry;
    size_t i;

    if (count < 0 || (size_t)count != json_array_size (expected))
        return false;
    json_array_foreach (expected, i, entry)
        if (!is_value (&clock[i], entry))
            return false;
    return true;
}

static bool vclock_row_holds (json_t *row, const struct uid *a, int na, const struct uid *b, int nb)
{
    const struct uid_node node = uid_node_named ("a@h");
    struct uid out[2 * MAX];
    int n = uid_vclock_join (a, (size_t)na, b, (size_t)nb, out);
    bool good = is_clock (out, n, json_object_get (row, "join"));

    n = uid_vclock_diff (a, (size_t)na, b, (size_t)nb, out);
    return good && is_clock (out, n, json_object_get (row, "diff"))
           && uid_vclock_descends (a, (size_t)na, b, (size_t)nb) == json_is_true (json_object_get (row, "descend"))
           && uid_vclock_descends_without (&node, a, (size_t)na, b, (size_t)nb)
                  == json_is_true (json_object_get (row, "descend3_a_at_h"));
}

static void test_vclock (json_t *vectors)
{
    struct tally t = { .section = "vclock" };
    json_t *row;
    size_t i;
    struct uid a[MAX], b[MAX];

    json_array_foreach (vectors_section (vectors, "vclock"), i, row) {
        int na = load_clock (json_object_get (row, "a"), a);
        int nb = load_clock (json_object_get (row, "b"), b);
        if (na < 0 || nb < 0)
            tally (&t, NO_FINGERPRINT, true);
        else
            tally (&t, NULL, vclock_row_holds (row, a, na, b, nb));
    }
    tally_end (&t, "join, descend and diff of vector clocks give the results of the original");
    ok (t.passed > 4 * t.excepted[0].count, "few rows of the vectors about vector clocks have to be left out");
}

static void test_tick (json_t *vectors)
{
    json_t *generator = vectors_section (vectors, "generator"), *row;
    struct uid in[MAX], out[MAX + 1], fresh;
    struct tally t = { .section = "generator.vclock1" };
    size_t i;

    vector_value (json_array_get (json_object_get (generator, "vclock0"), 0), &fresh);
    ok (uid_vclock_tick (&fresh, NULL, 0, out) == 1 && same_value (&out[0], &fresh), "a new vector clock has one id");
    json_array_foreach (json_object_get (generator, "vclock1"), i, row) {
        int n = load_clock (json_object_get (row, "in"), in);
        int m = n < 0 ? -1 : (int)uid_vclock_tick (&fresh, in, (size_t)n, out);
        tally (&t, n < 0 ? NO_FINGERPRINT : NULL, n < 0 || is_clock (out, m, json_object_get (row, "out")));
    }
    tally_end (&t, "a tick adds the new id in front and removes the first entry of the same node");
}

/* Laws for all clocks with one entry for each node. */
static void test_clock_laws (void)
{
    const char *const names[] = { "a@h", "b@h", "c@h", "d@h" };
    struct uid a[4], b[4], ab[8], ba[8];
    unsigned good = 0, n = 1000;
    uint64_t state = 7;

    for (unsigned i = 0; i < n; i++) {
        size_t na = 0, nb = 0;
        for (int k = 0; k < 4; k++) {
            state = state * UINT64_C (6364136223846793005) + 1;
            struct uid id = { .kind = UID_GLOBAL, .node = uid_node_named (names[k]), .b = (int64_t)(state >> 62) };
            if (state >> 40 & 1)
                a[na++] = id;
            id.b = (int64_t)(state >> 60 & 3);
            if (state >> 41 & 1)
                b[nb++] = id;
        }
        size_t nab = (size_t)uid_vclock_join (a, na, b, nb, ab), nba = (size_t)uid_vclock_join (b, nb, a, na, ba);
        bool same = nab == nba;
        for (size_t k = 0; same && k < nab; k++)
            same = same_value (&ab[k], &ba[k]);
        good += same && uid_vclock_descends (ab, nab, a, na) && uid_vclock_descends (ab, nab, b, nb)
                && (uid_vclock_descends (a, na, b, nb) == (uid_vclock_diff (a, na, b, nb, ba) == 0));
    }
    ok (good == n,
        "a join of vector clocks is the same in both orders and descends from both; an empty difference means that "
        "a clock descends from another");
    ok (uid_vclock_join (a, UID_VCLOCK_MAX + 1, b, 0, ab) < 0 && errno == EINVAL,
        "a vector clock above the size limit is refused");
}

/* The join by its definition: the entries of each clock by node, in their order; of two entries at the same place the
 * greater one.
 */
static size_t join_slowly (const struct uid *a, size_t na, const struct uid *b, size_t nb, uint32_t nnodes,
                           struct uid *out)
{
    size_t n = 0;

    for (uint32_t node = 0; node < nnodes; node++) {
        for (size_t i = 0, k = 0;; i++, k++) {
            while (i < na && a[i].node.fingerprint != node)
                i++;
            while (k < nb && b[k].node.fingerprint != node)
                k++;
            if (i >= na && k >= nb)
                break;
            out[n++] = k >= nb || (i < na && uid_compare (&a[i], &b[k]) >= 0) ? a[i] : b[k];
        }
    }
    return n;
}

static void fill_clock (struct uid *clock, size_t count, uint32_t nnodes, uint64_t *state)
{
    for (size_t i = 0; i < count; i++) {
        *state = *state * UINT64_C (6364136223846793005) + 1;
        clock[i] = (struct uid){ .kind = UID_GLOBAL,
                                 .node = { .fingerprint = (uint32_t)(*state >> 33) % nnodes },
                                 .b = (int64_t)(*state >> 44) };
    }
}

static void test_long_clocks (void)
{
    enum { N = 600 };
    static struct uid a[N], b[N], out[2 * N], slowly[2 * N];
    uint64_t state = 5;
    int good = 0, n = 0;

    for (uint32_t nnodes = 1; nnodes <= 2 * N; nnodes = nnodes * 3 / 2 + 1, n++) {
        fill_clock (a, N, nnodes, &state);
        fill_clock (b, N - n, nnodes, &state);
        size_t count = join_slowly (a, N, b, (size_t)(N - n), nnodes, slowly);
        bool same = (size_t)uid_vclock_join (a, N, b, (size_t)(N - n), out) == count;
        for (size_t i = 0; same && i < count; i++)
            same = same_value (&out[i], &slowly[i]);
        good += same;
    }
    ok (good == n, "joins of long vector clocks agree with the definition (%d)", n);
}

/* Counts comparisons of names; a quadratic join would need 8 million. */
static void test_cost_of_join (void)
{
    enum { N = UID_VCLOCK_MAX };
    static char names[N][8];
    static struct uid a[N], b[N], out[2 * N];

    for (unsigned i = 0; i < N; i++) {
        snprintf (names[i], sizeof (names[i]), "n%u", i * 1237 % N);
        a[i] = b[N - 1 - i] = (struct uid){ .kind = UID_GLOBAL, .node = { .name = names[i] } };
    }
    compared = 0;
    int n = uid_vclock_join (a, N, b, N, out);
#ifdef __s390x__
    if (compared == 0) {
        skip ("comparisons of a join are counted", "this compiler writes strcmp () as instructions");
        return;
    }
#endif
    ok (n == N && compared >= N && compared < 2 * N * 50,
        "joining two vector clocks of %d entries needs %zu comparisons", N, compared);
}

static void test_make (json_t *vectors)
{
    json_t *generator = vectors_section (vectors, "generator"), *row;
    const struct uid_node self = uid_node_named (OWN_NODE);
    struct tally rows = { .section = "generator.single" };
    size_t i;
    struct uid id;

    json_array_foreach (json_object_get (generator, "single"), i, row) {
        json_t *t = json_object_get (row, "os_timestamp");
        int64_t us = (json_integer_value (json_array_get (t, 0)) * 1000000 + json_integer_value (json_array_get (t, 1)))
                         * 1000000
                     + json_integer_value (json_array_get (t, 2));
        uint64_t counter = (uint64_t)get_i (row, "counter_before");
        uint8_t bytes[UID_GLOBAL_SIZE];
        char text[UID_TEXT_MAX];
        bool l = uid_make (us, counter, &id) == 0 && is_value (&id, json_object_get (row, "l"))
                 && uid_to_bytes (&id, NULL, bytes, sizeof (bytes)) == 8 && is_hex (bytes, 8, get_s (row, "l_hex"));
        bool g = uid_make (us, counter + 1, &id) == 0;
        uid_globalize (&id, &self, &id);
        g = g && is_value (&id, json_object_get (row, "g")) && uid_to_bytes (&id, NULL, bytes, sizeof (bytes)) == 12
            && is_hex (bytes, 12, get_s (row, "g_hex")) && uid_format (&id, NULL, text, sizeof (text)) == 16
            && !strcmp (text, get_s (row, "g_text"));
        tally (&rows, NULL, l && g);
    }
    tally_end (&rows, "a time and a counter make the ids of the original");
    ok (uid_make (-1, 0, &id) < 0 && errno == EOVERFLOW && uid_make (UID_UNIX_US_MAX + 1, 0, &id) < 0
            && errno == EOVERFLOW && uid_make (UID_UNIX_US_MAX, 0, &id) == 0 && id.a == UID_A_MAX,
        "times outside the format are refused, and the last time of the format is accepted");
}

/* Values of both kinds, some of them twice. Bits of 'which' choose nodes with or without the name, and values that are
 * differences.
 */
enum {
    NAMED = 1,
    UNNAMED = 2,
    DIFFERENCE = 4,
};

static struct uid some_value (uint64_t *x, int which)
{
    *x = *x * UINT64_C (6364136223846793005) + 1442695040888963407;
    uint64_t bits = *x >> 20;
    bool named = which & NAMED && (!(which & UNNAMED) || bits & 16);
    struct uid id = { .kind = bits & 1 ? UID_GLOBAL : UID_LOCAL, .a = 1600, .b = bits >> 1 & 7, .c = bits >> 8 & 0xf };

    id.sequence = bits >> 12 & 0x3fff;
    if (id.kind == UID_GLOBAL)
        id.node = (struct uid_node){ .name = named ? "a" : NULL, .fingerprint = bits >> 4 & 3 };
    if (which & DIFFERENCE && (bits & 0xf00000) == 0)
        id.c = -id.c;
    return id;
}

/* Whether the values are in order after sorting, and the greatest occurs as often as before. */
static bool sorts (int which)
{
    static struct uid ids[2000];
    size_t n = sizeof (ids) / sizeof (ids[0]), most = 0, there = 0;
    uint64_t x = which;
    bool good = true;

    for (size_t i = 0; i < n; i++)
        ids[i] = some_value (&x, which);
    struct uid last = ids[0];
    for (size_t i = 0; i < n; i++)
        last = uid_compare (&ids[i], &last) > 0 ? ids[i] : last;
    for (size_t i = 0; i < n; i++)
        most += uid_compare (&ids[i], &last) == 0;
    uid_sort (ids, n);
    for (size_t i = 1; i < n; i++)
        good &= uid_compare (&ids[i - 1], &ids[i]) <= 0;
    for (size_t i = 0; i < n; i++)
        there += uid_compare (&ids[i], &last) == 0;
    return good && there == most && uid_compare (&ids[n - 1], &last) == 0;
}

static void sorting (void)
{
    ok (sorts (UNNAMED), "values of nodes without names are sorted");
    ok (sorts (NAMED), "values of one named node are sorted");
    ok (sorts (NAMED | UNNAMED), "values of nodes with and without names are sorted");
    ok (sorts (UNNAMED | DIFFERENCE), "values and differences are sorted");
    uid_sort (NULL, 0);
}

int main (void)
{
    json_t *vectors = vectors_load ("uid");

    test_node_hash (vectors);
    test_cast (vectors);
    test_distance (vectors);
    test_timestamp_ms (vectors);
    test_vclock (vectors);
    test_tick (vectors);
    test_clock_laws ();
    test_long_clocks ();
    test_cost_of_join ();
    test_make (vectors);
    json_decref (vectors);
    sorting ();
    return done_testing ();
}
