/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan_test.c - each rank is hosted once, processes host similar numbers of ranks, and other processes know exactly the
 * ranks that they need
 */
#include <string.h>

#include "broker/base/plan.h"
#include "libutil/minmax.h"
#include "test/tap.h"

#define SIZE_MAX_TESTED 18000

static const char *const shapes[] = {
    "kary:1", "kary:2", "kary:32", "kary:1000000", "mincrit", "mincrit:7", "binomial"
};

/* Properties of a plan, computed only from what its functions return. */
struct found {
    bool sound;     /* each rank is in exactly one process, the one that the plan returns for it */
    bool known;     /* other processes know exactly the ranks that they need */
    uint32_t most;  /* number of ranks of the largest process */
    uint32_t cross; /* number of links between processes */
};

static bool is_hosted_as_listed (const struct plan *p, uint32_t process, uint32_t *total)
{
    uint32_t count = plan_count (p, process);

    for (uint32_t i = 0; i < count; i++)
        if (plan_process (p, plan_rank (p, process, i)) != process
            || (i > 0 && plan_rank (p, process, i) <= plan_rank (p, process, i - 1)))
            return false;
    *total += count;
    return count > 0;
}

static bool is_known_as_needed (const struct plan *p, const struct topo *t, uint32_t *cross)
{
    static bool known[SIZE_MAX_TESTED];
    bool good = true;

    memset (known, 0, sizeof (known));
    for (uint32_t rank = 1; rank < t->size; rank++) {
        known[rank] |= plan_process (p, rank) != plan_process (p, topo_parent (t, rank));
        *cross += plan_process (p, rank) != plan_process (p, topo_parent (t, rank));
        for (uint32_t up = rank; up > 0;) {
            up = topo_parent (t, up);
            known[up] |= plan_process (p, up) != plan_process (p, rank);
        }
    }
    for (uint32_t rank = 0; rank < t->size; rank++)
        good = good && plan_is_known (p, rank) == known[rank];
    return good;
}

static struct found look_at (const struct plan *p, const struct topo *t)
{
    struct found f = { .sound = plan_process (p, 0) == 0 };
    uint32_t total = 0;

    for (uint32_t i = 0; i < plan_processes (p); i++) {
        f.sound = f.sound && is_hosted_as_listed (p, i, &total);
        f.most = max_u64 (f.most, plan_count (p, i));
    }
    f.sound = f.sound && total == t->size;
    f.known = is_known_as_needed (p, t, &f.cross);
    return f;
}

static struct plan *make (const char *shape, uint32_t size, uint32_t processes, struct topo **t)
{
    struct plan *p;

    if (!(*t = topo_create (shape, size, NULL)) || !(p = plan_create (size, processes, *t, NULL)))
        bail_out ("cannot make a plan");
    return p;
}

static void test_shape (const char *shape)
{
    static const uint32_t sizes[] = { 1, 2, 3, 10, 64, 100, 300 };
    int sound = 0, known = 0, even = 0, plans = 0;

    for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++) {
        for (uint32_t processes = 1; processes <= min_u64 (sizes[i], 20); processes++, plans++) {
            struct topo *t;
            struct plan *p = make (shape, sizes[i], processes, &t);
            struct found f = look_at (p, t);
            uint32_t fair = (sizes[i] - 1) / processes + 1;

            sound += f.sound && plan_processes (p) <= processes;
            known += f.known;
            even += f.most <= 2 * fair;
            plan_destroy (p);
            topo_destroy (t);
        }
    }
    ok (sound == plans, "%s: each rank is in one process, in %d plans", shape, plans);
    ok (known == plans, "%s: the plan knows exactly the ranks that other processes need", shape);
    ok (even == plans, "%s: no process hosts twice its share of the ranks (%d of %d)", shape, even, plans);
}

static void test_large (const char *shape, uint32_t size, uint32_t processes, uint32_t most, uint32_t cross)
{
    struct topo *t;
    struct plan *p = make (shape, size, processes, &t);
    struct found f = look_at (p, t);

    ok (f.sound && f.known && plan_processes (p) == processes && f.most <= most && f.cross <= cross,
        "%s: a plan puts %u ranks into %u processes: at most %u in one, %u links between processes", shape, size,
        processes, f.most, f.cross);
    plan_destroy (p);
    topo_destroy (t);
}

/* A root with four subtrees of five ranks each, where the fair share is four ranks. */
static void test_whole (void)
{
    struct topo *t;
    struct plan *p = make ("kary:4", 21, 6, &t);
    struct found f = look_at (p, t);

    ok (f.sound && f.most <= 6 && f.cross <= 4,
        "a subtree with a quarter more ranks than the share stays in one process: at most %u in one process, %u "
        "links between processes",
        f.most, f.cross);
    plan_destroy (p);
    topo_destroy (t);
}

int main (void)
{
    for (size_t i = 0; i < sizeof (shapes) / sizeof (shapes[0]); i++)
        test_shape (shapes[i]);
    test_whole ();
    test_large ("kary:32", SIZE_MAX_TESTED, 1, 18000, 0);
    test_large ("kary:32", SIZE_MAX_TESTED, 4, 5000, 32);
    test_large ("kary:32", SIZE_MAX_TESTED, 8, 2800, 32);
    test_large ("kary:2", SIZE_MAX_TESTED, 4, 5800, 32);
    test_large ("binomial", SIZE_MAX_TESTED, 4, 5000, 32);
    test_large ("mincrit", SIZE_MAX_TESTED, 4, 5000, 18);
    test_large ("kary:1", TOPO_LEVELS + 1, 4, 163, 4);
    return done_testing ();
}
