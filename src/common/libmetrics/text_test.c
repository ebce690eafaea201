/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text_test.c - reports as text that Prometheus reads; the rows of the catalog are consistent */
#include <stdlib.h>
#include <string.h>

#include "libmetrics/bounds.h"
#include "libmetrics/text.h"
#include "test/tap.h"

/* Print an array of reports, of the ranks from 'first' on, or if that is below 0 of all ranks. */
static char *print (const char *reports, enum metrics_format format, long first)
{
    json_t *o = json_loads (reports, 0, NULL);
    struct metrics_source sources[4];
    size_t n = json_array_size (o), size;
    char *text = NULL;
    FILE *f = open_memstream (&text, &size);

    for (size_t i = 0; i < n; i++)
        sources[i] = (struct metrics_source){ json_array_get (o, i), first < 0 ? -1 : first + (long)i };
    metrics_print (f, format, sources, n);
    fclose (f);
    json_decref (o);
    return text;
}

static void is (const char *reports, enum metrics_format format, long first, const char *want, const char *why)
{
    char *text = print (reports, format, first);

    if (!ok (strcmp (text, want) == 0, "%s", why))
        diag ("%s", text);
    free (text);
}

static bool has (const char *reports, enum metrics_format format, const char *part)
{
    char *text = print (reports, format, -1);
    bool found = strstr (text, part);

    if (!found)
        diag ("%s", text);
    free (text);
    return found;
}

static void test_samples (void)
{
    is ("[]", METRICS_OPENMETRICS, -1, "# EOF\n", "no reports give a valid text");
    is ("[{\"sum\":{\"fluid_stalls\":7}}]", METRICS_OPENMETRICS, -1,
        "# HELP idtree_fluid_stalls Requests for FLUIDs that had to wait\n# TYPE idtree_fluid_stalls counter\n"
        "idtree_fluid_stalls_total 7\n# EOF\n",
        "a counter's samples have a suffix");
    is ("[{\"sum\":{\"fluid_stalls\":7}}]", METRICS_PROMETHEUS, -1,
        "# HELP idtree_fluid_stalls_total Requests for FLUIDs that had to wait\n"
        "# TYPE idtree_fluid_stalls_total counter\nidtree_fluid_stalls_total 7\n",
        "... and in the older format its family has it, too");
    is ("[{\"sum\":{\"fluid_ids_from_above\":7}},{\"sum\":{\"fluid_ids\":1,\"fluid_ids_from_above\":2}}]",
        METRICS_PROMETHEUS, 3,
        "# HELP idtree_fluid_ids_total FLUIDs that ranks made, or got from an ancestor\n"
        "# TYPE idtree_fluid_ids_total counter\n"
        "idtree_fluid_ids_total{rank=\"4\",origin=\"made\"} 1\n"
        "idtree_fluid_ids_total{rank=\"3\",origin=\"above\"} 7\n"
        "idtree_fluid_ids_total{rank=\"4\",origin=\"above\"} 2\n",
        "the samples of a family are adjacent, for all ranks");
    ok (has ("[{\"max\":{\"fluid_ahead_seconds\":0.3}}]", METRICS_OPENMETRICS,
             "# UNIT idtree_fluid_ahead_seconds seconds\nidtree_fluid_ahead_seconds 0.3\n"),
        "numbers are written in few digits, and have units");
}

static void test_histogram (void)
{
    static const char report[] = "[{\"sum\":{\"fluid_wait_seconds_sum\":0.1},"
                                 "\"buckets\":{\"fluid_wait_seconds\":[5,0,0,1,0,0,0,0,0,0,0,0,2]}}]";

    ok (has (report, METRICS_OPENMETRICS,
             "idtree_fluid_wait_seconds_bucket{le=\"0.0001\"} 5\nidtree_fluid_wait_seconds_bucket{le=\"0.0002\"} 5\n"
             "idtree_fluid_wait_seconds_bucket{le=\"0.0005\"} 5\nidtree_fluid_wait_seconds_bucket{le=\"0.001\"} 6\n")
            && has (report, METRICS_OPENMETRICS,
                    "{le=\"5.0\"} 6\nidtree_fluid_wait_seconds_bucket{le=\"+Inf\"} 8\n"
                    "idtree_fluid_wait_seconds_count 8\nidtree_fluid_wait_seconds_sum 0.1\n# EOF\n"),
        "a bucket of a histogram counts all times up to its end");
    ok (metrics_bucket (0) == 0 && metrics_bucket (100) == 0 && metrics_bucket (101) == 1
            && metrics_bucket (5000000) == METRICS_BOUNDS - 1 && metrics_bucket (UINT64_MAX) == METRICS_BOUNDS,
        "each time is counted in the bucket that contains it");
}

static void test_hostile (void)
{
    ok (has ("[{\"ranks\":{\"status\":{\"a\\\"b\\\\c\\nd\":\"[0-2,7]\"}}}]", METRICS_OPENMETRICS,
             "idtree_ranks{status=\"a\\\"b\\\\c d\"} 4\n"),
        "special characters in a label are escaped");
    is ("[{\"sum\":{\"mine\":7,\"no name\":1,\"x}\":2,\"\":3},\"max\":{\"mine\":1.5},"
        "\"ranks\":{\"mine\":{\"x\":\"0\"}},\"buckets\":{\"mine\":[1]}}]",
        METRICS_OPENMETRICS, -1,
        "# TYPE idtree_other_mine_sum unknown\nidtree_other_mine_sum 7\n"
        "# TYPE idtree_other_mine_max unknown\nidtree_other_mine_max 1.5\n# EOF\n",
        "an unknown name is shown without a type, an invalid one is left out");
}

static void test_catalog (void)
{
    size_t good = 0;

    for (size_t i = 0; i < metrics_catalog_size; i++) {
        const struct metrics_row *row = &metrics_catalog[i];
        size_t len = strlen (row->family), unit = row->unit ? strlen (row->unit) : 0;
        bool first = i == 0 || strcmp (metrics_catalog[i - 1].family, row->family) != 0;
        bool has_unit = !row->unit || (len > unit && strcmp (row->family + len - unit, row->unit) == 0);
        bool counter = row->type != METRICS_COUNTER || !strstr (row->family, "_total");

        if (metrics_row (row->merge, row->name) == row && has_unit && counter && (!first || row->help))
            good++;
        else
            diag ("%s", row->name);
    }
    ok (good == metrics_catalog_size,
        "each metric's name is in the catalog once, has a help text, and ends with its unit (%zu)", good);
}

int main (void)
{
    test_samples ();
    test_histogram ();
    test_hostile ();
    test_catalog ();
    return done_testing ();
}
