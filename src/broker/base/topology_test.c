/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology_test.c - what is computed is compared with trees that are made, rank by rank, from who is whose parent */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "broker/base/topology.h"
#include "libutil/tap.h"

static struct topo *create (const char *uri, uint32_t size)
{
    struct topo *t = topo_create (uri, size, NULL);

    if (!t)
        bail_out (uri);
    return t;
}

static void test_names (void)
{
    static const char *bad[] = { "",        "kary",      "kary:",      "kary:0",       "kary:-1",
                                 "kary:0x", "kary:0x2",  "kary: 2",    "kary:2 ",      "kary:99999999999999999999",
                                 "binary",  "KARY:2",    "kary:+2",    "kary:1048577", "karyx:2",
                                 "k:2",     ":",         "mincrit:",   "mincrit:-1",   "mincrit:1048577",
                                 "mincri",  "binomial:", "binomial:2", "Binomial" };
    static const char *good[][2] = { { "kary:1", "kary:1" },       { "kary:1048576", "kary:1048576" },
                                     { "kary:007", "kary:7" },     { "mincrit", "mincrit:0" },
                                     { "mincrit:0", "mincrit:0" }, { "mincrit:1048576", "mincrit:1048576" },
                                     { "binomial", "binomial" } };
    idt_error_t err;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        errno = 0;
        err.text[0] = '\0';
        ok (!topo_create (bad[i], 8, &err) && errno == EINVAL && strstr (err.text, bad[i]), "'%s' is refused: %s",
            bad[i], err.text);
    }
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++) {
        struct topo *t = topo_create (good[i][0], 8, NULL);

        ok (t && t->size == 8 && strcmp (t->name, good[i][1]) == 0, "'%s' is taken, its name is %s", good[i][0],
            good[i][1]);
        topo_destroy (t);
    }
    topo_destroy (NULL);
}

/* --- shapes: parents as their definitions say ---------------------------------------------------------- */

/* Children are given away rank by rank, each to the first that has less than 'k'. */
static void make_kary (uint32_t *parent, uint32_t size, uint32_t k)
{
    uint32_t next = 0, given = 0;

    for (uint32_t rank = 1; rank < size; rank++) {
        if (given == k) {
            next++;
            given = 0;
        }
        parent[rank] = next;
        given++;
    }
}

/* The routers come first, then each rank goes to the next router. */
static void make_mincrit (uint32_t *parent, uint32_t size, uint32_t k)
{
    uint32_t turn = 0;

    for (uint32_t rank = 1; rank < size; rank++) {
        parent[rank] = rank <= k || k == 0 ? 0 : 1 + turn;
        if (parent[rank] > 0)
            turn = (turn + 1) % k;
    }
}

/* A tree of order n is one of order n - 1 whose root has one more child, the root of another such. */
static void make_binomial (uint32_t *parent, uint32_t size, uint32_t unused)
{
    for (uint32_t half = 1; half < size; half *= 2) {
        parent[half] = 0;
        for (uint32_t rank = 1; rank < half && half + rank < size; rank++)
            parent[half + rank] = half + parent[rank];
    }
}

static bool same_parents (const struct topo *t, const uint32_t *parent)
{
    bool good = topo_parent (t, 0) == TOPO_NONE;

    for (uint32_t rank = 1; rank < t->size; rank++)
        good = good && topo_parent (t, rank) == parent[rank];
    return good;
}

static bool has_shape (const char *uri, uint32_t size, void (*make) (uint32_t *, uint32_t, uint32_t), uint32_t k)
{
    uint32_t *parent = calloc (size, sizeof (parent[0]));
    struct topo *t = create (uri, size);
    bool good;

    if (!parent)
        bail_out ("no memory");
    make (parent, size, k);
    good = same_parents (t, parent);
    topo_destroy (t);
    free (parent);
    return good;
}

static void test_shapes (void)
{
    bool kary = true, mincrit = true, binomial = true;
    char uri[32];

    for (uint32_t size = 1; size <= 300; size++) {
        for (uint32_t k = 0; k <= 9; k++) {
            snprintf (uri, sizeof (uri), "kary:%" PRIu32, k);
            kary = kary && (k == 0 || has_shape (uri, size, make_kary, k));
            snprintf (uri, sizeof (uri), "mincrit:%" PRIu32, k);
            mincrit = mincrit && has_shape (uri, size, make_mincrit, k);
        }
        mincrit = mincrit && has_shape ("mincrit:1048576", size, make_mincrit, 1048576);
        binomial = binomial && has_shape ("binomial", size, make_binomial, 0);
    }
    ok (kary, "kary:1 to kary:9 are complete trees up to 300 ranks");
    ok (mincrit, "mincrit:0 to mincrit:9 give ranks to routers by turns, up to 300 ranks");
    ok (binomial, "binomial is made of binomial trees, up to 300 ranks");
}

/* How many routers mincrit takes by itself. */
static void test_routers (void)
{
    static const struct {
        uint32_t size, routers;
    } cases[] = { { 1, 0 },    { 2, 0 },    { 1024, 0 }, { 1025, 0 },   { 1026, 2 },      { 2051, 2 },
                  { 2052, 3 }, { 3076, 3 }, { 3077, 4 }, { 18000, 18 }, { 1000000, 976 }, { 1049601, 1024 } };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        ok (has_shape ("mincrit", cases[i].size, make_mincrit, cases[i].routers),
            "mincrit of %" PRIu32 " ranks has %" PRIu32 " routers", cases[i].size, cases[i].routers);
}

/* --- agreement: everything else follows from the parents ------------------------------------------------- */

/* Is 'rank' on the way from 'to' to the root? */
static bool is_above (const struct topo *t, uint32_t rank, uint32_t to)
{
    for (; to != TOPO_NONE; to = topo_parent (t, to))
        if (to == rank)
            return true;
    return false;
}

static bool way_agrees (const struct topo *t, uint32_t rank, uint32_t to)
{
    uint32_t next = topo_child_toward (t, rank, to);

    if (to == rank || !is_above (t, rank, to))
        return next == TOPO_NONE;
    return next != TOPO_NONE && topo_parent (t, next) == rank && is_above (t, next, to);
}

/* Its children are those who say so, in order; it is one level below its parent. */
static bool rank_agrees (const struct topo *t, uint32_t rank, uint32_t *maxlevel)
{
    uint32_t n = 0, count = topo_child_count (t, rank), level = topo_level (t, rank);

    for (uint32_t to = 0; to < t->size; to++)
        if (topo_parent (t, to) == rank && (n == count || topo_child (t, rank, n++) != to))
            return false;
    if (level > *maxlevel)
        *maxlevel = level;
    return n == count && level == (rank == 0 ? 0 : topo_level (t, topo_parent (t, rank)) + 1);
}

static bool tree_agrees (const struct topo *t)
{
    uint32_t maxlevel = 0;

    for (uint32_t rank = 0; rank < t->size; rank++) {
        if (!rank_agrees (t, rank, &maxlevel))
            return false;
        for (uint32_t to = 0; to < t->size; to++)
            if (!way_agrees (t, rank, to))
                return false;
    }
    return maxlevel == topo_maxlevel (t);
}

static void test_trees (void)
{
    static const char *uris[] = { "kary:1",    "kary:2",    "kary:3",    "kary:7",     "kary:32", "mincrit",
                                  "mincrit:0", "mincrit:1", "mincrit:2", "mincrit:11", "binomial" };

    for (size_t i = 0; i < sizeof (uris) / sizeof (uris[0]); i++) {
        uint32_t size = 1;

        for (bool good = true; good && size <= 130; size++) {
            struct topo *t = create (uris[i], size);

            good = tree_agrees (t);
            topo_destroy (t);
        }
        ok (size == 131, "%s: ways lead down to where they should, in each tree of up to 130 ranks", uris[i]);
    }
}

/* --- large ------------------------------------------------------------------------------------------------ */

static uint32_t random_below (uint64_t *seed, uint32_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 32) % limit;
}

/* A rank, its children as far as they can be counted, and a way to another rank. */
static bool place_agrees (const struct topo *t, uint32_t rank, uint32_t to)
{
    uint32_t count = topo_child_count (t, rank);

    for (uint32_t i = 0; i < count && i < 50; i++) {
        uint32_t first = topo_child (t, rank, i), last = topo_child (t, rank, count - 1 - i);

        if (topo_parent (t, first) != rank || topo_parent (t, last) != rank || last >= t->size
            || topo_level (t, first) != topo_level (t, rank) + 1)
            return false;
    }
    return topo_level (t, rank) <= topo_maxlevel (t) && way_agrees (t, rank, to)
           && (rank == 0 || way_agrees (t, topo_parent (t, rank), rank));
}

static void test_random (const char *uri)
{
    uint64_t seed = 1;
    bool good = true;

    for (int i = 0; good && i < 2000; i++) {
        uint32_t size = 1 + random_below (&seed, i % 4 == 0 ? UINT32_MAX : 2000000);
        struct topo *t = create (uri, size);

        for (int n = 0; good && n < 20; n++) {
            uint32_t rank = random_below (&seed, size);

            good = place_agrees (t, n % 2 == 0 ? rank >> random_below (&seed, 32) : rank, random_below (&seed, size));
        }
        topo_destroy (t);
    }
    ok (good, "%s: up to 2^32 - 1 ranks, parents and children agree with each other", uri);
}

static void test_large (void)
{
    static const char *uris[] = {
        "kary:2", "kary:32", "kary:1048576", "mincrit", "mincrit:5", "mincrit:0", "binomial"
    };
    struct topo *t = create ("kary:1048576", UINT32_MAX);

    ok (topo_child_count (t, 4294967290U) == 0, "a high rank has no children and nothing wraps");
    ok (topo_maxlevel (t) == 2, "a million-fold tree of 2^32 - 1 ranks has 3 levels");
    topo_destroy (t);
    for (size_t i = 0; i < sizeof (uris) / sizeof (uris[0]); i++)
        test_random (uris[i]);
}

int main (void)
{
    test_names ();
    test_shapes ();
    test_routers ();
    test_trees ();
    test_large ();
    return done_testing ();
}
