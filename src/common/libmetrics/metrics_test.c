/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics_test.c - reports are summed up; malformed ones are refused */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmetrics/metrics.h"
#include "test/tap.h"

static int merge (struct metrics *m, const char *text)
{
    json_t *o = json_loads (text, JSON_DECODE_ANY, NULL);
    int rc = metrics_merge (m, o);

    if (!o)
        diag ("malformed JSON: %s", text);
    json_decref (o);
    return rc;
}

/* Whether the report equals 'text', in any order. */
static bool is (struct metrics *m, const char *text)
{
    json_t *report = metrics_report_new (m), *o = json_loads (text, 0, NULL);
    bool same = json_equal (report, o);
    char *s = json_dumps (report, 0);

    if (!same)
        diag ("%s", s ? s : "no report");
    free (s);
    json_decref (o);
    json_decref (report);
    return same;
}

static void test_numbers (void)
{
    struct metrics *m = metrics_create (8);

    ok (is (m, "{}"), "a report without values is empty");
    metrics_put_new (m, METRICS_SUM, "a", json_integer (3));
    metrics_put_new (m, METRICS_MIN, "b", json_real (0.5));
    ok (merge (m, "{\"sum\":{\"a\":4,\"c\":1},\"min\":{\"b\":2},\"max\":{\"d\":-1}}") == 0
            && merge (m, "{\"sum\":{\"a\":0.5},\"min\":{\"b\":-7},\"max\":{\"d\":-3},\"later\":{\"x\":[]}}") == 0
            && is (m, "{\"sum\":{\"a\":7.5,\"c\":1},\"min\":{\"b\":-7},\"max\":{\"d\":-1}}"),
        "values of two reports are added, or the lowest or highest is kept, and unknown sections are ignored");
    ok (merge (m, "{\"sum\":{\"c\":9223372036854775807}}") == 0
            && is (m, "{\"sum\":{\"a\":7.5,\"c\":9223372036854775807},\"min\":{\"b\":-7},\"max\":{\"d\":-1}}"),
        "a sum that would exceed the largest number is the largest number");
    metrics_destroy (m);
}

static void test_zeros (void)
{
    struct metrics *m = metrics_create (8);

    merge (m, "{\"sum\":{\"a\":0,\"b\":1,\"c\":0.0,\"d\":-1},\"max\":{\"a\":0},\"min\":{\"a\":0},"
              "\"buckets\":{\"a\":[0,0],\"b\":[0,1]}}");
    metrics_leave_out_zeros (m);
    ok (is (m, "{\"sum\":{\"b\":1,\"d\":-1},\"max\":{\"a\":0},\"min\":{\"a\":0},\"buckets\":{\"b\":[0,1]}}"),
        "sums and histograms of 0 are left out of a report, and minima and maxima are not");
    metrics_destroy (m);
}

static void test_buckets (void)
{
    struct metrics *m = metrics_create (8);

    metrics_put_new (m, METRICS_BUCKETS, "h", json_pack ("[i,i]", 1, 2));
    ok (merge (m, "{\"buckets\":{\"h\":[10,20,30]}}") == 0 && merge (m, "{\"buckets\":{\"h\":[]}}") == 0
            && is (m, "{\"buckets\":{\"h\":[11,22,30]}}"),
        "histograms are added bucket by bucket, even if one has more buckets");
    metrics_destroy (m);
}

static void test_ranks (void)
{
    struct metrics *m = metrics_create (8);

    metrics_put_rank (m, "state", "good", 7);
    metrics_put_rank (m, "state", "bad", 0);
    ok (merge (m, "{\"ranks\":{\"state\":{\"good\":\"[1-3,5]\",\"ugly\":\"4\"},\"other\":{\"x\":\"\"}}}") == 0
            && is (
                m,
                "{\"ranks\":{\"state\":{\"good\":\"[1-3,5,7]\",\"bad\":\"0\",\"ugly\":\"4\"},\"other\":{\"x\":\"\"}}}"),
        "sets of ranks with the same value are joined");
    metrics_destroy (m);
}

static void test_refused (void)
{
    static const char *const bad[] = {
        "[]",
        "3",
        "{\"sum\":[]}",
        "{\"sum\":{\"a\":\"1\"}}",
        "{\"sum\":{\"\":1}}",
        "{\"min\":{\"a\":null}}",
        "{\"max\":{\"a\":{}}}",
        "{\"sum\":{\"0123456789012345678901234567890123456789012345678901234567890123x\":1}}",
        "{\"buckets\":{\"a\":1}}",
        "{\"buckets\":{\"a\":[1.5]}}",
        "{\"ranks\":{\"a\":\"0\"}}",
        "{\"ranks\":{\"a\":{\"x\":0}}}",
        "{\"ranks\":{\"a\":{\"x\":\"8\"}}}",
        "{\"ranks\":{\"a\":{\"x\":\"0-\"}}}",
        "{\"ranks\":{\"a\":{\"\":\"0\"}}}",
    };
    struct metrics *m = metrics_create (8);

    metrics_put_new (m, METRICS_SUM, "a", json_integer (3));
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        ok (merge (m, bad[i]) < 0 && errno == EPROTO, "a malformed report is refused: %s", bad[i]);
    ok (merge (m, "{\"sum\":{\"a\":1},\"max\":{\"z\":[]}}") < 0 && is (m, "{\"sum\":{\"a\":3}}"),
        "no value of a malformed report is added");
    metrics_destroy (m);
}

static json_t *many_new (int n)
{
    json_t *o = json_object ();
    char name[16];

    for (int i = 0; i < n; i++) {
        snprintf (name, sizeof (name), "m%d", i);
        json_object_set_new (o, name, json_integer (1));
    }
    return o;
}

static void test_bounds (void)
{
    struct metrics *m = metrics_create (8);
    json_t *most = json_pack ("{s:o}", "sum", many_new (METRICS_MAX_NAMES));
    int rounds = 0;

    ok (metrics_merge (m, most) == 0 && metrics_merge (m, most) == 0 && merge (m, "{\"sum\":{\"more\":1}}") < 0
            && errno == EMSGSIZE && merge (m, "{\"min\":{\"more\":1}}") == 0,
        "the number of names in a section is limited");
    json_decref (most);
    while (rounds < 1000 && merge (m, "{\"ranks\":{\"a\":{\"x\":\"0-7\"}}}") == 0)
        rounds++;
    ok (rounds == METRICS_MAX_STATES && errno == EMSGSIZE, "the number of values of a rank is limited (%d)", rounds);
    metrics_destroy (m);

    m = metrics_create (8);
    most = json_pack ("{s:{s:o}}", "buckets", "a", json_array ());
    for (int i = 0; i <= METRICS_MAX_BUCKETS; i++)
        json_array_append_new (json_object_get (json_object_get (most, "buckets"), "a"), json_integer (1));
    ok (metrics_merge (m, most) < 0 && errno == EPROTO, "the number of buckets of a histogram is limited");
    json_decref (most);
    metrics_destroy (m);
}

int main (void)
{
    test_numbers ();
    test_zeros ();
    test_buckets ();
    test_ranks ();
    test_refused ();
    test_bounds ();
    return done_testing ();
}
