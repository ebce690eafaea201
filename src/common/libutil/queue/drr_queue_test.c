/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* drr_queue_test.c - the queue agrees with plain lists in random steps */
#include <errno.h>
#include <string.h>

#include "test/tap.h"
#include "libutil/queue/drr_queue.h"

#define FLOWS 5
#define QUANTUM 100
#define MAX_COST 1000
#define DEPTH 64

struct thing {
    uint64_t key;
    uint64_t number; /* place in its flow */
    uint32_t cost;
};

/* The plain model of a flow. */
struct model {
    struct thing things[DEPTH];
    uint64_t put, got;
    bool blocked;
    uint64_t cost;
};

static uint64_t seed = 88172645463325252U;

static uint64_t random_below (uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

static bool put (struct drr_queue *t, struct model *m, uint64_t key)
{
    struct thing *x = &m[key].things[m[key].put % DEPTH];

    if (m[key].put - m[key].got == DEPTH)
        return true;
    *x = (struct thing){ key, m[key].put++, 1 + random_below (MAX_COST) };
    m[key].cost += x->cost;
    return drr_queue_put_of (t, key < 2 ? DRR_QUEUE_ALONE : 7, key, x, x->cost) == 0;
}

static bool take (struct drr_queue *t, struct model *m)
{
    struct thing *x = drr_queue_next (t);
    bool any = false;

    for (int i = 0; i < FLOWS; i++)
        any = any || (!m[i].blocked && m[i].put > m[i].got);
    if (!x)
        return !any;
    m[x->key].cost -= x->cost;
    return !m[x->key].blocked && x->number == m[x->key].got++;
}

static void count (void *item, void *arg)
{
    struct model *m = arg;
    struct thing *x = item;

    if (x->number == m[x->key].got)
        m[x->key].got++;
}

static bool random_steps (void)
{
    struct model m[FLOWS];
    struct drr_queue *t = drr_queue_create (QUANTUM, 0, 0);
    bool good = true;

    memset (m, 0, sizeof (m));
    for (int n = 0; good && n < 300000; n++) {
        uint64_t key = random_below (FLOWS), what = random_below (1000), all = 0, cost = 0;

        if (what < 480)
            good = put (t, m, key);
        else if (what < 960)
            good = take (t, m);
        else if (what < 998)
            drr_queue_ready (t, key, !(m[key].blocked = random_below (2)));
        else {
            drr_queue_drain (t, count, m);
            for (int i = 0; i < FLOWS; i++) {
                good = good && m[i].put == m[i].got;
                m[i].blocked = false;
                m[i].cost = 0;
            }
        }
        good = good && drr_queue_flow_count (t, key) == m[key].put - m[key].got;
        for (int i = 0; i < FLOWS; i++) {
            all += m[i].put - m[i].got;
            cost += m[i].cost;
        }
        good = good && drr_queue_count (t) == all && drr_queue_cost (t) == cost;
    }
    drr_queue_drain (t, count, m);
    for (int i = 0; i < FLOWS; i++)
        good = good && m[i].put == m[i].got;
    drr_queue_destroy (t);
    return good;
}

/* Flows that always have items are served the same at each moment. */
static bool fair (uint32_t smallest, uint32_t largest)
{
    struct drr_queue *t = drr_queue_create (QUANTUM, 0, 0);
    static struct thing things[FLOWS];
    uint64_t served[FLOWS] = { 0 };
    bool good = true;

    for (int i = 0; i < FLOWS; i++) {
        things[i] = (struct thing){ i, 0, i % 2 ? smallest : largest };
        for (int n = 0; n < 2; n++)
            good = good && drr_queue_put (t, i, &things[i], things[i].cost) == 0;
    }
    for (int n = 0; good && n < 100000; n++) {
        struct thing *x = drr_queue_next (t);

        served[x->key] += x->cost;
        good = drr_queue_put (t, x->key, x, x->cost) == 0;
        for (int i = 0; i < FLOWS; i++)
            good = good && served[x->key] <= served[i] + largest + 2 * QUANTUM;
    }
    drr_queue_destroy (t);
    return good;
}

/* A flow without a group and a group of 'members' flows, all of which always have items. */
static bool fair_to_one (uint64_t members, uint32_t smallest, uint32_t largest)
{
    struct drr_queue *t = drr_queue_create (QUANTUM, 0, 0);
    static struct thing things[64];
    uint64_t served[64] = { 0 }, group = 0, most = largest + 2 * QUANTUM;
    bool good = true;

    for (uint64_t i = 0; i <= members; i++) {
        things[i] = (struct thing){ i, 0, i % 2 ? smallest : largest };
        for (int n = 0; n < 2; n++)
            good = good && drr_queue_put_of (t, i > 0 ? 9 : DRR_QUEUE_ALONE, i, &things[i], things[i].cost) == 0;
    }
    for (int n = 0; good && n < 100000; n++) {
        struct thing *x = drr_queue_next (t);

        served[x->key] += x->cost;
        group += x->key > 0 ? x->cost : 0;
        good = drr_queue_put_of (t, x->key > 0 ? 9 : DRR_QUEUE_ALONE, x->key, x, x->cost) == 0
               && group <= served[0] + members * largest + 2 * QUANTUM;
        for (uint64_t i = 1; i <= members; i++)
            good = good && served[x->key] <= served[i] + (x->key ? most : UINT32_MAX);
    }
    good = good && group > served[0] / 2; /* each part of a quantum is rounded to a whole number */
    drr_queue_destroy (t);
    return good;
}

static void test_groups (void)
{
    struct drr_queue *t = drr_queue_create (1, 1000, 0);
    int greedy = 0, modest = 0;

    for (bool more = true; more;) {
        more = false;
        for (uint64_t key = 1; key <= 20; key++)
            if (drr_queue_put_of (t, 5, key, &greedy, 1) == 0) {
                greedy++;
                more = true;
            }
    }
    ok (greedy == 500 && errno == EXFULL, "the flows of a group together get half of the places of the queue");
    while (drr_queue_put (t, 99, &modest, 1) == 0)
        modest++;
    ok (modest == 250, "beside a greedy group a flow still gets places: %d", modest);
    ok (drr_queue_put_of (t, 6, 98, &modest, 1) == 0, "beside a greedy group another group still gets a place");
    drr_queue_drain (t, NULL, NULL);
    ok (drr_queue_count (t) == 0 && drr_queue_put_of (t, 5, 1, &greedy, 1) == 0,
        "the places of drained items are free again");
    drr_queue_destroy (t);
}

/* Put one item of a flow, and count the items of other flows that are served before it. */
static int served_before (struct drr_queue *t, uint64_t group, uint64_t key, struct thing *own, struct thing *others)
{
    int n = 0;

    if (drr_queue_put_of (t, group, key, own, 1) < 0)
        return -1;
    for (struct thing *x; (x = drr_queue_next (t)) != own; n++)
        if (!x || drr_queue_put_of (t, 9, x->key, x, x->cost) < 0)
            return -1;
    return n;
}

/* Sixteen connections of one user always have items; another requester sends a few requests, one at a time. */
static void test_newcomers (void)
{
    struct drr_queue *t = drr_queue_create (QUANTUM, 0, 0);
    static struct thing others[16], own, late;
    int most = 0, sum = 0;

    for (uint64_t i = 0; i < 16; i++) {
        others[i] = (struct thing){ i, 0, QUANTUM / 4 };
        if (drr_queue_put_of (t, 9, i, &others[i], others[i].cost) < 0)
            bail_out ("drr_queue_put_of");
    }
    for (int i = 0; i < 16; i++) /* the user is no longer a newcomer */
        drr_queue_put_of (t, 9, i, drr_queue_next (t), QUANTUM / 4);
    ok (served_before (t, DRR_QUEUE_ALONE, 99, &own, others) == 0,
        "an item of an idle flow is served before the items of flows that wait");
    for (int i = 0; i < 1000; i++) {
        int n = served_before (t, DRR_QUEUE_ALONE, 99, &own, others);
        most = n > most ? n : most;
        sum += n;
    }
    ok (most <= 16 && sum > 0, "a flow that is idle at times waits for at most one round: %d, %d of 1000 times", most,
        sum);
    ok (served_before (t, 9, 98, &late, others) > 0,
        "an idle connection of a user whose other connections wait is not served before others");
    drr_queue_drain (t, NULL, NULL);
    ok (drr_queue_count (t) == 0 && !drr_queue_waiting (t) && !drr_queue_next (t),
        "a flow that is in the round without items can be freed");
    drr_queue_destroy (t);
}

static void test_limits (void)
{
    struct drr_queue *t = drr_queue_create (1, 100, 0);
    int greedy = 0, modest = 0;

    while (drr_queue_put (t, 1, &greedy, 1) == 0)
        greedy++;
    ok (greedy == 50 && errno == EXFULL, "a single greedy flow gets half of the places");
    while (drr_queue_put (t, 2, &modest, 1) == 0)
        modest++;
    ok (modest == 25, "beside a greedy flow another flow still gets places");
    ok (drr_queue_force (t, DRR_QUEUE_ALONE, 3, &t, 1) == 0 && drr_queue_flow_count (t, 3) == 1,
        "an item that is forced into a full queue is not refused");
    ok (drr_queue_next (t) == &greedy && drr_queue_next (t) == &modest && drr_queue_next (t) == &t
            && drr_queue_next (t) == &greedy && drr_queue_next (t) == &modest,
        "flows are served in turn");
    drr_queue_ready (t, 1, false);
    ok (drr_queue_next (t) == &modest && drr_queue_next (t) == &modest && drr_queue_waiting (t),
        "a flow that is not ready is passed over");
    while (drr_queue_waiting (t))
        modest -= drr_queue_next (t) == &modest;
    ok (modest == 4 && !drr_queue_next (t) && !drr_queue_waiting (t) && drr_queue_count (t) == 48,
        "a flow that is not ready keeps its items");
    drr_queue_ready (t, 1, true);
    ok (drr_queue_next (t) == &greedy, "a flow is served when it is ready again");
    drr_queue_destroy (t);
}

/* A flow may have only few items beyond the limits. */
static void test_forced (void)
{
    struct drr_queue *t = drr_queue_create (QUANTUM, 1, 0);
    int n = 0;

    while (n < 100 && drr_queue_force (t, 7, 1, &n, 1) == 0)
        n++;
    ok (n == DRR_QUEUE_MAX_FORCED && errno == EXFULL, "a flow has at most %d forced items", n);
    ok (drr_queue_force (t, 7, 2, &n, 1) == 0, "each flow has its own limit of forced items");
    ok (drr_queue_next (t) && drr_queue_next (t) && drr_queue_force (t, 7, 1, &n, 1) == 0,
        "serving an item frees its place");
    drr_queue_drain (t, NULL, NULL);
    ok (drr_queue_force (t, 7, 1, &n, 1) == 0, "draining an item frees its place");
    drr_queue_destroy (t);
}

int main (int argc, char *argv[])
{
    test_limits ();
    ok (random_steps (), "300,000 random steps agree with plain lists");
    ok (fair (1, 1), "in the long run flows with small items are served the same");
    ok (fair (1, 1000), "in the long run flows whose items cost different amounts are served the same");
    ok (fair (100, 100), "in the long run flows whose items cost a quantum are served the same");
    test_groups ();
    test_forced ();
    test_newcomers ();
    ok (fair_to_one (4, 1, 1), "in the long run a group of 4 flows is served like one flow without a group");
    ok (fair_to_one (16, 50, 80), "in the long run a group of 16 flows is served like one flow without a group");
    ok (fair_to_one (60, 300, 900),
        "in the long run a group whose items cost more than a flow's part of a quantum is served like one flow");
    return done_testing ();
}
