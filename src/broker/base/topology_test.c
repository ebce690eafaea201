/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology_test.c - computed topologies are compared with trees that are built rank by rank from their definitions */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/base/topology.h"
#include "test/tap.h"

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
                                 "mincri",  "binomial:", "binomial:2", "Binomial",     "custom",
                                 "custom:" };
    static const char *good[][2] = { { "kary:1", "kary:1" },       { "kary:1048576", "kary:1048576" },
                                     { "kary:007", "kary:7" },     { "mincrit", "mincrit:0" },
                                     { "mincrit:0", "mincrit:0" }, { "mincrit:1048576", "mincrit:1048576" },
                                     { "binomial", "binomial" } };
    idt_error_t err;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        errno = 0;
        err.text[0] = '\0';
        ok (!topo_create (bad[i], 8, &err) && errno == EINVAL && strstr (err.text, bad[i]),
            "the topology '%s' is refused: %s", bad[i], err.text);
    }
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++) {
        struct topo *t = topo_create (good[i][0], 8, NULL);

        ok (t && t->size == 8 && strcmp (t->name, good[i][1]) == 0, "the topology '%s' is accepted, and its name is %s",
            good[i][0], good[i][1]);
        topo_destroy (t);
    }
    topo_destroy (NULL);
}

/* --- shapes: parents as their definitions say ---------------------------------------------------------- */

/* Assign children rank by rank, each to the first rank that has fewer than 'k'. */
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

/* The first ranks are routers. The other ranks are assigned to the routers in turn. */
static void make_mincrit (uint32_t *parent, uint32_t size, uint32_t k)
{
    uint32_t turn = 0;

    for (uint32_t rank = 1; rank < size; rank++) {
        parent[rank] = rank <= k || k == 0 ? 0 : 1 + turn;
        if (parent[rank] > 0)
            turn = (turn + 1) % k;
    }
}

/* A tree of order n is a tree of order n - 1 whose root gets one more child: the root of another tree of order n - 1.
 */
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
        bail_out ("out of memory");
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
    ok (kary, "the topologies kary:1 to kary:9 are complete trees, for up to 300 ranks");
    ok (mincrit, "the topologies mincrit:0 to mincrit:9 assign ranks to routers in turn, for up to 300 ranks");
    ok (binomial, "the topology binomial consists of binomial trees, for up to 300 ranks");
}

/* The number of routers that mincrit chooses. */
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

/* Whether 'rank' is on the path from 'to' to the root. */
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

/* Whether the children of a rank are exactly the ranks whose parent it is, in order, and its level is one more than the
 * level of its parent.
 */
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
        ok (size == 131,
            "%s: the path from each rank to each other rank leads down to the right child, in trees of up to 130 ranks",
            uris[i]);
    }
}

/* --- large ------------------------------------------------------------------------------------------------ */

static uint32_t random_below (uint64_t *seed, uint32_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 32) % limit;
}

/* Check a rank, at most 50 of its children from each end of the list, and the path to another rank. */
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
    ok (good, "%s: in trees of up to 2^32 - 1 ranks, the parent of each child is the rank whose child it is", uri);
}

static const char *large_uris[] = {
    "kary:2", "kary:32", "kary:1048576", "mincrit", "mincrit:5", "mincrit:0", "binomial"
};

static void test_large (void)
{
    struct topo *t = create ("kary:1048576", UINT32_MAX);

    ok (topo_child_count (t, 4294967290U) == 0,
        "a high rank has no children, because their ranks are computed without overflow");
    ok (topo_maxlevel (t) == 2, "a kary tree of 2^32 - 1 ranks and a large fanout has 3 levels");
    topo_destroy (t);
    for (size_t i = 0; i < sizeof (large_uris) / sizeof (large_uris[0]); i++)
        test_random (large_uris[i]);
}

/* --- custom ----------------------------------------------------------------------------------------------- */

static char file[64], file_uri[80];

static void write_file (const char *text)
{
    FILE *f = fopen (file, "w");

    if (!f || fputs (text, f) < 0 || fclose (f) < 0)
        bail_out ("cannot write a file");
}

static void write_parents (const uint32_t *parent, uint32_t size)
{
    FILE *f = fopen (file, "w");

    if (!f)
        bail_out ("cannot write a file");
    fprintf (f, "[null");
    for (uint32_t rank = 1; rank < size; rank++)
        fprintf (f, ",%s%" PRIu32, rank % 16 == 0 ? "\n" : " ", parent[rank]);
    fprintf (f, "]\n");
    if (fclose (f) < 0)
        bail_out ("cannot write a file");
}

/* Make a tree: add ranks in random order, each below one of the last 'reach' ranks that were added. */
static uint32_t *make_random (uint32_t size, uint32_t reach, uint64_t *seed)
{
    uint32_t *parent = calloc (size, sizeof (parent[0])), *order = calloc (size, sizeof (order[0]));

    if (!parent || !order)
        bail_out ("out of memory");
    for (uint32_t i = 1; i < size; i++) {
        uint32_t at = 1 + random_below (seed, i);

        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 1; i < size; i++)
        parent[order[i]] = order[i < reach ? random_below (seed, i) : i - 1 - random_below (seed, reach)];
    free (order);
    return parent;
}

static void test_random_custom (void)
{
    uint64_t seed = 7;
    bool good = true;

    for (uint32_t size = 1; good && size <= 130; size++) {
        uint32_t *parent = make_random (size, 1 + random_below (&seed, size + 3), &seed);
        struct topo *t;

        write_parents (parent, size);
        t = create (file_uri, size);
        good = same_parents (t, parent) && tree_agrees (t);
        topo_destroy (t);
        free (parent);
    }
    ok (good, "topology custom: a file can describe a tree of each size up to 130, also with parents whose ranks are "
              "above their children's");
}

/* The largest table that a file can describe. */
static void test_large_custom (void)
{
    uint64_t seed = 8;
    uint32_t size = 1000000, *parent = make_random (size, size, &seed);
    struct topo *t;
    bool good = true;

    write_parents (parent, size);
    t = create (file_uri, size);
    good = same_parents (t, parent);
    for (int i = 0; good && i < 20000; i++)
        good = place_agrees (t, random_below (&seed, size) >> random_below (&seed, 20), random_below (&seed, size));
    ok (good, "topology custom: a file can describe a tree of a million ranks");
    topo_destroy (t);
    free (parent);
}

/* Trees that differ in one rank have different names. */
static void test_custom_names (void)
{
    static const char *texts[] = { "[null, 0, 1, 1]", "[null,\n0,1,1 ]", "[null, 0, 1, 0]", "[null, 0, 0, 1]",
                                   "[null, 2, 0, 1]" };
    char names[5][TOPO_NAME_SIZE];
    int same = 0;

    for (int i = 0; i < 5; i++) {
        struct topo *t;

        write_file (texts[i]);
        t = create (file_uri, 4);
        snprintf (names[i], sizeof (names[i]), "%s", t->name);
        topo_destroy (t);
        for (int j = 0; j < i; j++)
            same += strcmp (names[i], names[j]) == 0;
    }
    ok (same == 1 && strcmp (names[0], names[1]) == 0,
        "topology custom: the name depends on the tree, not on the formatting of the file");
}

static bool is_refused (const char *uri, uint32_t size, const char *why)
{
    idt_error_t err = { "" };
    struct topo *t = topo_create (uri, size, &err);

    topo_destroy (t);
    if (t || !strstr (err.text, why) || strncmp (err.text, "topology 'custom:/", 18) != 0)
        diag ("the error is: %s", t ? "nothing" : err.text);
    return !t && strstr (err.text, why) && strncmp (err.text, "topology 'custom:/", 18) == 0;
}

static void test_malformed (void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "", "is not JSON: line 1" },
        { "[null, 0, 0, ", "is not JSON: line 1, column 13" },
        { "[null, 0, 0, 1]]", "is not JSON" },
        { "null 0 0 1", "is not JSON" },
        { "[null, 0, 0, 99999999999999999999]", "is not JSON" },
        { "{}", "is not a JSON list of parents, as in [null, 0, 0, 1]" },
        { "[]", "is a list of 0 parents, but there are 4 brokers" },
        { "[null, 0, 0]", "is a list of 3 parents, but there are 4 brokers" },
        { "[null, 0, 0, 1, 1]", "is a list of 5 parents, but there are 4 brokers" },
        { "[0, 0, 0, 1]", "rank 0 is the root: its parent must be null" },
        { "[1, null, 0, 1]", "rank 0 is the root: its parent must be null" },
        { "[null, 0, null, 1]", "rank 2 has no parent: only rank 0 is the root" },
        { "[null, 0, \"0\", 1]", "the parent of rank 2 is not a whole number" },
        { "[null, 0, 1.0, 1]", "the parent of rank 2 is not a whole number" },
        { "[null, 0, [0], 1]", "the parent of rank 2 is not a whole number" },
        { "[null, 0, 4, 1]", "the parent of rank 2 is 4: must be 0 to 3" },
        { "[null, 0, -1, 1]", "the parent of rank 2 is -1: must be 0 to 3" },
        { "[null, 0, 4294967296, 1]", "the parent of rank 2 is 4294967296: must be 0 to 3" },
        { "[null, 0, 0, 3]", "the parents of rank 3 form a cycle: they do not lead to rank 0" },
        { "[null, 0, 3, 2]", "the parents of rank 2 form a cycle" },
        { "[null, 3, 1, 2]", "the parents of rank 1 form a cycle" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        write_file (cases[i].text);
        ok (is_refused (file_uri, 4, cases[i].why), "the file of a topology %s is refused: %s", cases[i].text,
            cases[i].why);
    }
}

/* A chain, kary:1, is the only shape without a file whose levels can exceed the limit. */
static void test_chain (void)
{
    struct topo *t = create ("kary:1", TOPO_LEVELS + 1);
    idt_error_t err = { "" };

    ok (topo_maxlevel (t) == TOPO_LEVELS, "topology kary:1 with 513 ranks has 512 levels below rank 0");
    topo_destroy (t);
    errno = 0;
    ok (!topo_create ("kary:1", TOPO_LEVELS + 2, &err) && errno == EINVAL
            && !strcmp (err.text, "topology 'kary:1': the last of 514 brokers is more than 512 levels below rank 0: "
                                  "take kary:2, or more than 2"),
        "topology kary:1 with more than 512 levels below rank 0 is refused: %s", err.text);
    ok (!topo_create ("kary:1", UINT32_MAX, &err) && strstr (err.text, "take kary:2, or more than 2"),
        "topology kary:1 with 2^32 - 1 ranks is refused without a search: %s", err.text);
    for (size_t i = 0; i < sizeof (large_uris) / sizeof (large_uris[0]); i++) {
        t = create (large_uris[i], UINT32_MAX);
        ok (topo_maxlevel (t) <= TOPO_LEVELS,
            "%s has at most 512 levels below rank 0 with 2^32 - 1 ranks: %" PRIu32 " levels", large_uris[i],
            topo_maxlevel (t));
        topo_destroy (t);
    }
}

static void test_levels (void)
{
    uint32_t size = TOPO_LEVELS + 2, *parent = calloc (size, sizeof (parent[0]));
    char why[80];
    struct topo *t;

    for (uint32_t rank = 1; rank < size; rank++)
        parent[rank] = rank - 1;
    write_parents (parent, size);
    snprintf (why, sizeof (why), "rank %" PRIu32 " is more than 512 levels below rank 0", size - 1);
    ok (is_refused (file_uri, size, why), "a file of a topology is refused: %s", why);
    for (uint32_t rank = 1; rank < size; rank++) /* the deepest rank is checked first */
        parent[rank] = rank + 1 < size ? rank + 1 : 0;
    write_parents (parent, size);
    ok (is_refused (file_uri, size, "rank 1 is more than 512 levels below rank 0"),
        "a tree whose rank 1 is more than 512 levels below rank 0 is refused");
    parent[1] = 0;
    write_parents (parent, size);
    t = create (file_uri, size);
    ok (topo_maxlevel (t) == TOPO_LEVELS && same_parents (t, parent),
        "a tree of exactly 512 levels below rank 0 is accepted");
    topo_destroy (t);
    free (parent);
}

static void test_files (void)
{
    char uri[400] = "custom:/";
    struct topo *t;

    unlink (file);
    ok (is_refused (file_uri, 4, "No such file"), "a missing file of a topology is refused");
    if (mkfifo (file, 0600) < 0)
        bail_out ("cannot make a fifo");
    ok (is_refused (file_uri, 4, "is not a regular file"),
        "a fifo as file of a topology is refused, and opening it does not block");
    unlink (file);
    ok (is_refused ("custom:/dev/zero", 4, "is not a regular file"),
        "a device without an end as file of a topology is refused");
    ok (is_refused ("custom:/tmp", 4, "is not a regular file"), "a folder as file of a topology is refused");
    write_file ("");
    if (truncate (file, TOPO_CUSTOM_BYTES) < 0)
        bail_out ("cannot make a large file");
    ok (is_refused (file_uri, 4, "is not JSON"), "a file of a topology may have the largest size");
    if (truncate (file, TOPO_CUSTOM_BYTES + 1) < 0)
        bail_out ("cannot make a large file");
    ok (is_refused (file_uri, 4, "has 16777217 bytes, more than 16777216"),
        "a file of a topology over the largest size is refused");
    memset (uri + 8, 'x', sizeof (uri) - 9);
    ok (is_refused (uri, 4, "File name too long"), "the error for a file with a long path still has the reason");
    write_file ("[null]");
    t = create (file_uri, 1);
    ok (topo_maxlevel (t) == 0 && topo_child_count (t, 0) == 0, "the file of a topology may describe a single broker");
    topo_destroy (t);
}

static void test_custom (void)
{
    int fd;

    snprintf (file, sizeof (file), "/tmp/topology_test.XXXXXX");
    if ((fd = mkstemp (file)) < 0)
        bail_out ("cannot make a file");
    close (fd);
    snprintf (file_uri, sizeof (file_uri), "custom:%s", file);
    test_random_custom ();
    test_large_custom ();
    test_custom_names ();
    test_malformed ();
    test_levels ();
    test_files ();
    unlink (file);
}

int main (void)
{
    test_names ();
    test_shapes ();
    test_routers ();
    test_trees ();
    test_large ();
    test_chain ();
    test_custom ();
    return done_testing ();
}
