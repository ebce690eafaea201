/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* runs_test.c - local runs, compared with the vectors and with all subsets of a small world */

#include "space.h"
#include "test_vectors.h"

static bool equals (const struct idcomp_run *v, size_t n, const json_t *want)
{
    bool same = n == json_array_size (want);

    for (size_t i = 0; same && i < n; i++) {
        const json_t *run = json_array_get (want, i);
        same = v[i].first == int_at (run, 0) && v[i].count == int_at (run, 1);
    }
    return same;
}

static bool cuts_match (const struct idruns *runs, const json_t *queries)
{
    bool good = json_array_size (queries) > 0;
    size_t i;
    json_t *q;

    json_array_foreach (queries, i, q) {
        struct idcomp_run *cut;
        size_t n;
        good &= idruns_cut (runs, int_at (q, 0), int_at (q, 1), &cut, &n) == 0
                && equals (cut, n, json_array_get (q, 2));
        free (cut);
    }
    return good;
}

static void check_vector (const json_t *v, size_t number)
{
    struct idruns runs = { 0 };
    const json_t *contains = json_object_get (v, "contains");
    bool good = json_array_size (contains) > 0;
    size_t i;
    json_t *run;

    json_array_foreach (json_object_get (v, "add"), i, run)
        idruns_append (&runs, int_at (run, 0), int_at (run, 1));
    ok (equals (runs.v, runs.n, json_object_get (v, "merged")), "vector %zu: adjacent runs are merged", number);
    for (i = 0; i < json_array_size (contains); i++)
        good &= idruns_contain (&runs, i) == (int_at (contains, i) == 1);
    ok (good, "vector %zu: the counts in the runs are found, and no others", number);
    ok (cuts_match (&runs, json_object_get (v, "q")), "vector %zu: a cut of the runs is exact at both ends", number);
    idruns_fini (&runs);
}

/* Whether a cut equals the bits of 'set' from first to last. */
static bool cut_is (const struct idruns *runs, unsigned int set, int first, int last)
{
    struct idcomp_run *cut;
    size_t n;
    unsigned int bits = 0;

    if (idruns_cut (runs, first, last, &cut, &n) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        for (int64_t g = cut[i].first; g < cut[i].first + cut[i].count; g++)
            bits |= 1U << g;
    free (cut);
    return bits == (set & ((2U << last) - 1) & ~((1U << first) - 1));
}

static bool world_is_right (unsigned int set)
{
    struct idruns runs = { 0 };
    bool good = true;

    for (int g = 1; g <= 10; g++)
        if (set & 1U << g)
            good &= idruns_append (&runs, g, 1) == 0;
    for (int g = 0; g <= 11; g++)
        good &= idruns_contain (&runs, g) == (set >> g & 1);
    for (int first = 1; first <= 10; first++)
        for (int last = first; last <= 10; last++)
            good &= cut_is (&runs, set, first, last);
    idruns_fini (&runs);
    return good;
}

int main (void)
{
    json_t *root = vectors_load ("idcomp");
    const json_t *vectors = json_object_get (root, "rangesBetween");
    bool good = true;
    size_t i;
    json_t *v;

    if (json_is_array (vectors)) {
        json_array_foreach (vectors, i, v)
            check_vector (v, i);
    }
    else
        check_vector (vectors, 0);
    for (unsigned int set = 0; set < 1U << 11; set += 2)
        good &= world_is_right (set);
    ok (good, "runs of each set of counts up to 10 have the right members and cuts");
    json_decref (root);
    return done_testing ();
}
