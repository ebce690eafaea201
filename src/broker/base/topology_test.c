/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology_test.c - small trees are enumerated whole and compared with what parent pointers say */
#include <errno.h>
#include <string.h>

#include "broker/base/topology.h"
#include "libutil/tap.h"

static void test_parse (void)
{
    static const char *bad[] = { "",        "kary",     "kary:",   "kary:0",      "kary:-1",
                                 "kary:0x", "kary:0x2", "kary: 2", "kary:2 ",     "kary:99999999999999999999",
                                 "binary",  "KARY:2",   "kary:+2", "kary:1048577" };
    struct topo t;
    idt_error_t err;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        errno = 0;
        err.text[0] = '\0';
        ok (topo_parse (&t, bad[i], 8, &err) < 0 && errno == EINVAL && strstr (err.text, bad[i]),
            "topology '%s' is refused: %s", bad[i], err.text);
    }
    ok (topo_parse (&t, "kary:1", 8, NULL) == 0 && t.k == 1 && t.size == 8, "kary:1 is taken");
    ok (topo_parse (&t, "kary:1048576", 8, NULL) == 0, "the largest fanout is taken");
}

/* Is 'rank' on the way from 'to' to the root? */
static bool is_above (const struct topo *t, uint32_t rank, uint32_t to)
{
    for (; to != TOPO_NONE; to = topo_parent (t, to))
        if (to == rank)
            return true;
    return false;
}

static bool rank_agrees (const struct topo *t, uint32_t rank)
{
    uint32_t below = 0, children = 0;

    for (uint32_t to = 0; to < t->size; to++) {
        uint32_t next = topo_child_toward (t, rank, to);

        below += is_above (t, rank, to);
        children += topo_parent (t, to) == rank;
        if ((to != rank && is_above (t, rank, to)) != (next != TOPO_NONE))
            return false;
        if (next != TOPO_NONE && (topo_parent (t, next) != rank || !is_above (t, next, to)))
            return false;
    }
    for (uint32_t i = 0; i < topo_child_count (t, rank); i++)
        if (topo_parent (t, topo_child (t, rank, i)) != rank)
            return false;
    return below == topo_subtree_size (t, rank) && children == topo_child_count (t, rank);
}

static void test_trees (void)
{
    bool good = true;
    char uri[32];

    for (uint32_t k = 1; k <= 7; k++) {
        for (uint32_t size = 1; size <= 40; size++) {
            struct topo t;

            snprintf (uri, sizeof (uri), "kary:%u", k);
            if (topo_parse (&t, uri, size, NULL) < 0)
                bail_out ("topo_parse failed");
            for (uint32_t rank = 0; rank < size; rank++)
                good = good && rank_agrees (&t, rank);
        }
    }
    ok (good, "in every tree of up to 40 ranks and fanout up to 7, routes lead down to where they should");
}

static void test_large (void)
{
    struct topo t;

    topo_parse (&t, "kary:1048576", UINT32_MAX, NULL);
    ok (topo_child_count (&t, 4294967290U) == 0, "a high rank has no children and nothing wraps");
    ok (topo_subtree_size (&t, 0) == UINT32_MAX, "the root's subtree is everything");
    ok (topo_level (&t, t.size - 1) == 2, "a million-fold tree of 2^32 - 1 ranks has 3 levels");
}

int main (void)
{
    test_parse ();
    test_trees ();
    test_large ();
    return done_testing ();
}
