/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <stdlib.h>
#include <string.h>

#include "http/live/ranks.h"
#include "test/tap.h"

static json_t *load (const char *text)
{
    json_t *o = json_loads (text, 0, NULL);

    if (!o)
        bail_out (text);
    return o;
}

static void topology (struct live_ranks *r, const char *text)
{
    json_t *o = load (text);

    if (ranks_take_topology (r, o) < 0)
        bail_out ("no topology");
    json_decref (o);
}

static void survey (struct live_ranks *r, const char *status, const char *fluid)
{
    char text[500];

    snprintf (text, sizeof (text), "{\"ranks\":{\"status\":%s,\"fluid_state\":%s}}", status, fluid);
    json_t *o = load (text);
    ranks_take_survey (r, o);
    json_decref (o);
}

static void tell (struct live_ranks *r, uint32_t rank, const char *info, long ids, uint32_t parent, double now_s)
{
    json_t *o = load (info), *stats = json_pack ("{s:I s:I}", "ids", (json_int_t)ids, "requests", (json_int_t)ids);
    json_t *overlay = json_pack ("{s:I}", "parent-rank", (json_int_t)parent);

    ranks_take_info (r, rank, o, now_s);
    ranks_take_stats (r, rank, stats, now_s);
    ranks_take_overlay (r, rank, overlay);
    json_decref (o);
    json_decref (stats);
    json_decref (overlay);
}

/* Rank 0 has the children 1 and 2, rank 1 has the children 3 and 4. */
static const char five[] = "{\"size\":5,\"rank\":0,\"children\":[{\"rank\":1,\"children\":[{\"rank\":3},{\"rank\":4}]},"
                           "{\"rank\":2}]}";
static const char active[] = "{\"state\":\"active\",\"served_by\":3,\"generator\":7,\"timestamp_ms\":\"1000\","
                             "\"lease\":[\"0\",\"61000\"],\"granted\":{\"ranks\":\"4-5\"}}";

/* List one key of each rank of a tree, in the order of the tree. */
static char *column (struct live_ranks *r, uint32_t rank, unsigned depth, const char *key)
{
    static char text[500];
    json_t *o = ranks_tree_new (r, rank, depth, 100), *row;
    size_t i;

    text[0] = '\0';
    json_array_foreach (json_object_get (o, "ranks"), i, row) {
        char *value = json_dumps (json_object_get (row, key), JSON_ENCODE_ANY | JSON_COMPACT);

        snprintf (text + strlen (text), sizeof (text) - strlen (text), "%s%d:%s", i > 0 ? " " : "",
                  (int)json_integer_value (json_object_get (row, "rank")), value ? value : "-");
        free (value);
    }
    json_decref (o);
    return text;
}

static bool shows (struct live_ranks *r, uint32_t rank, unsigned depth, const char *key, const char *want)
{
    const char *text = column (r, rank, depth, key);

    if (strcmp (text, want) == 0)
        return true;
    diag ("%s is %s, not %s", key, text, want);
    return false;
}

static bool changes (struct live_ranks *r, const char *want)
{
    json_t *o = ranks_changes_new (r);
    char *text = o ? json_dumps (json_object_get (o, "ranks"), JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    bool same = text ? want && strcmp (text, want) == 0 : !want;

    if (!same)
        diag ("changes are %s, not %s", text ? text : "none", want ? want : "none");
    free (text);
    json_decref (o);
    return same;
}

static void test_tree (void)
{
    struct live_ranks *r = ranks_create ();

    topology (r, five);
    ok (ranks_size (r) == 5 && shows (r, 0, 64, "attached_to", "0:null 1:0 3:1 4:1 2:0"),
        "the tree lists each rank before the ranks below it");
    survey (r, "{\"full\":\"0-4\"}", "{\"active\":\"0-3\",\"idle\":\"4\"}");
    tell (r, 3, active, 10, 1, 99);
    ok (shows (r, 3, 0, "generator", "3:7") && shows (r, 3, 0, "lease_left_s", "3:59.0")
            && shows (r, 3, 0, "granted_to", "3:\"4-5\"") && shows (r, 3, 0, "age_s", "3:1.0"),
        "a rank is shown with its last responses, and the remaining time of its lease");
    tell (r, 3, active, 30, 1, 101);
    ok (shows (r, 3, 0, "ids_per_s", "3:10.0") && shows (r, 3, 0, "ids", "3:\"30\""),
        "a rank is shown with the ids that it made per second");
    ok (shows (r, 0, 1, "folded", "0:false 1:true 2:false"), "levels of the tree below the requested depth are folded");
    ok (shows (r, 1, 0, "below",
               "1:{\"ranks\":2,\"status\":{\"full\":2},\"fluid\":{\"active\":1,\"idle\":1},\"ids_per_s\":10.0,"
               "\"requests_per_s\":10.0}"),
        "the values of folded levels are summed up");
    ok (!ranks_tree_new (r, 5, 0, 0), "a request for the tree of an unknown rank fails");
    ranks_destroy (r);
}

static void test_changes (void)
{
    struct live_ranks *r = ranks_create ();
    uint32_t picked[5];

    topology (r, five);
    survey (r, "{\"full\":\"0-4\"}", "{\"active\":\"0-4\"}");
    for (uint32_t rank = 0; rank < 5; rank++)
        tell (r, rank, active, 0, rank > 2 ? 1 : 0, 1);
    ok (changes (r, NULL), "the first data about a rank is not reported as a change");
    ranks_take_host (r, 1, "here");
    (void)ranks_pick (r, picked, 5);
    survey (r, "{\"lost\":\"1\",\"full\":\"0,2-4\"}", "{}");
    ok (ranks_pick (r, picked, 2) == 2 && picked[0] == 3 && picked[1] == 4,
        "ranks whose parent was lost are asked before others");
    tell (r, 3, active, 0, 0, 2);
    ok (changes (r, "[{\"attached_to\":null,\"fluid\":null,\"ids_from\":null,\"rank\":1,\"status\":\"lost\",\"was\":"
                    "{\"attached_to\":0,\"fluid\":\"active\",\"ids_from\":3,\"status\":\"full\"}},"
                    "{\"attached_to\":0,\"rank\":3,\"was\":{\"attached_to\":1}}]"),
        "a lost rank and a rank with a new parent are reported as changes");
    ok (changes (r, NULL), "a change of a rank is reported once");
    ok (shows (r, 0, 64, "attached_to", "0:null 2:0 3:0 1:null 4:1"),
        "a rank without a parent is shown, and so is a rank that is below it as far as is known");
    ok (ranks_pick (r, picked, 5) == 4, "no request is sent to a lost rank");
    ok (shows (r, 1, 0, "host", "1:\"here\"") && !ranks_has_host (r, 1),
        "the host of a lost rank is still shown, and requested again");
    tell (r, 1, active, 7, 0, 3);
    ok (shows (r, 1, 0, "generator", "1:null"), "a response from before a rank was lost changes nothing");
    survey (r, "{\"full\":\"0-4\"}", "{}");
    tell (r, 1, active, 7, 0, 4);
    ok (shows (r, 0, 64, "attached_to", "0:null 1:0 4:1 2:0 3:0"),
        "a rank that has returned is shown below its parent again");
    ranks_take_host (r, 1, "there");
    ok (shows (r, 1, 0, "host", "1:\"there\"") && ranks_has_host (r, 1),
        "a rank that has returned may have another host");
    topology (r, five);
    ok (!ranks_has_host (r, 1), "after a new topology the hosts of all ranks are requested again");
    ranks_destroy (r);
}

static void test_circle (void)
{
    struct live_ranks *r = ranks_create ();

    topology (r, five);
    survey (r, "{\"full\":\"0-4\"}", "{}");
    tell (r, 1, active, 0, 3, 1);
    char *text = column (r, 0, 64, "rank");
    ok (strstr (text, "1:1") && strstr (text, "3:3") && strstr (text, "4:4"),
        "ranks whose parents form a cycle are all shown");
    ranks_destroy (r);
}

/* The watermark does not advance until the lease of a lost rank is over. */
static void test_lost_lease (void)
{
    struct live_ranks *r = ranks_create ();

    topology (r, five);
    survey (r, "{\"full\":\"0-4\"}", "{}");
    tell (r, 3, active, 0, 1, 90);
    tell (r, 4, active, 0, 1, 90);
    tell (r, 2, active, 0, 0, 30);
    json_decref (ranks_rates_new (r, 90));
    survey (r, "{\"lost\":\"2-3\",\"offline\":\"4\",\"full\":\"0-1\"}", "{}");
    ok (shows (r, 3, 0, "lease_left_s", "3:50.0"), "the lease of a lost rank is shown");
    ok (shows (r, 2, 0, "lease_left_s", "2:null") && shows (r, 4, 0, "lease_left_s", "4:null"),
        "the lease of a lost rank is shown until it is over; a returned lease is not shown");
    json_t *rates = ranks_rates_new (r, 100), *row;
    size_t i;

    json_array_foreach (json_object_get (rates, "ranks"), i, row)
        if (json_integer_value (json_object_get (row, "rank")) == 3)
            ok (json_real_value (json_object_get (row, "lease_left_s")) == 50,
                "the rates contain the lease of a lost rank, too");
    json_decref (rates);
    ranks_destroy (r);
}

static void test_rates (void)
{
    struct live_ranks *r = ranks_create ();

    topology (r, five);
    survey (r, "{\"full\":\"0-4\"}", "{}");
    tell (r, 2, active, 0, 0, 1);
    json_t *first = ranks_rates_new (r, 1), *none = ranks_rates_new (r, 2);
    tell (r, 2, active, 50, 0, 2);
    json_t *some = ranks_rates_new (r, 2);
    ok (json_array_size (json_object_get (first, "ranks")) == 1
            && json_array_size (json_object_get (none, "ranks")) == 0,
        "the rates report the same lease of a rank only once");
    ok (json_array_size (json_object_get (some, "ranks")) == 1
            && json_real_value (json_object_get (some, "ids_per_s")) == 50,
        "the ids that ranks make are reported for each second with ids");
    json_decref (first);
    json_decref (none);
    json_decref (some);
    ranks_destroy (r);
}

/* A topology with 'children' ranks below rank 0, each with 'each' children. */
static void plant (struct live_ranks *r, int children, int each)
{
    json_t *top = json_array ();

    for (int i = 0; i < children; i++) {
        json_t *list = json_array ();

        for (int k = 0; k < each; k++)
            json_array_append_new (list, json_pack ("{s:i}", "rank", 1 + children + i * each + k));
        json_array_append_new (top, json_pack ("{s:i s:o}", "rank", 1 + i, "children", list));
    }
    json_t *o = json_pack ("{s:i s:i s:o}", "rank", 0, "size", 1 + children + children * each, "children", top);
    if (ranks_take_topology (r, o) < 0)
        bail_out ("no topology");
    json_decref (o);
}

static json_int_t told (struct live_ranks *r, const char *key)
{
    json_t *o = ranks_tree_new (r, 0, 64, 1);
    json_t *value = json_object_get (o, key);
    json_int_t n = json_is_array (value) ? (json_int_t)json_array_size (value) : json_integer_value (value);

    json_decref (o);
    return n;
}

static void test_bounds (void)
{
    struct live_ranks *r = ranks_create ();
    uint32_t picked[100];
    unsigned times[10 * 101 + 1] = { 0 };
    bool all = true;

    plant (r, 10, 100);
    ok (told (r, "ranks") == 11 && told (r, "depth") == 1 && told (r, "left_out") == 0,
        "a tree that is too large is folded by whole levels");
    for (int i = 0; i < 11; i++)
        for (size_t k = ranks_pick (r, picked, 100); k-- > 0;)
            times[picked[k]]++;
    for (size_t i = 0; i < sizeof (times) / sizeof (times[0]); i++)
        all = all && times[i] >= 1 && times[i] <= 2;
    ok (all, "all ranks of a folded tree are asked in turn");
    survey (r, "{\"full\":\"0-1010\"}", "{}");
    (void)ranks_changes_new (r);
    plant (r, 2000, 0);
    ok (told (r, "ranks") == RANKS_ROWS && told (r, "left_out") == 2001 - RANKS_ROWS,
        "ranks of a level that is too large are left out, and counted");
    ranks_destroy (r);
}

static void test_hostile (void)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"size\":0}",
        "{\"size\":-1,\"rank\":0}",
        "{\"size\":1e9,\"rank\":0}",
        "{\"size\":2000000,\"rank\":0}",
        "{\"size\":2,\"rank\":2}",
        "{\"size\":2,\"rank\":0,\"children\":[{\"rank\":-1}]}",
        "{\"size\":2,\"rank\":0,\"children\":[5]}",
    };
    struct live_ranks *r = ranks_create ();
    bool refused = true;

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        json_t *o = load (texts[i]);

        refused = refused && ranks_take_topology (r, o) < 0;
        ranks_take_survey (r, o);
        json_decref (o);
    }
    ok (refused && ranks_size (r) == 0, "a malformed topology is refused");
    topology (r, "{\"size\":3,\"rank\":0,\"children\":[{\"rank\":0},{\"rank\":1},{\"rank\":1}]}");
    ok (told (r, "ranks") == 3, "a topology that repeats or omits ranks is accepted");
    survey (r, "{\"lost\":\"0-99999\",\"full\":\"x\",\"nonsense\":\"0\"}", "{\"active\":7}");
    ok (told (r, "ranks") == 3, "unknown ranks in the sets of a response are ignored");
    ranks_destroy (r);
}

int main (void)
{
    test_tree ();
    test_changes ();
    test_circle ();
    test_lost_lease ();
    test_rates ();
    test_bounds ();
    test_hostile ();
    return done_testing ();
}
