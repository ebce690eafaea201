/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* queue_test.c - events are ordered by time, and events of the same time by when they were pushed */
#include <stdlib.h>

#include "test/tap.h"
#include "sim/scale/private.h"

static uint64_t below (uint64_t *random, uint64_t n)
{
    *random = *random * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (*random >> 33) % n;
}

/* Push and pop at random. No event is pushed before the time of the last pop, so the popped times must never go back.
 */
static void test_order (uint64_t seed, uint64_t times)
{
    struct queue q = { 0 };
    struct scale_event e, last = { 0 };
    uint64_t pushed = 0, popped = 0, wrong = 0;

    for (int i = 0; i < 100000; i++) {
        if (below (&seed, 100) < 55) {
            queue_push (&q, (struct scale_event){ .t_ns = last.t_ns + below (&seed, times), .with.n = ++pushed });
            continue;
        }
        if (!queue_pop (&q, &e))
            continue;
        popped++;
        wrong += e.t_ns < last.t_ns || (e.t_ns == last.t_ns && e.order < last.order) || e.with.n != e.order;
        last = e;
    }
    while (queue_pop (&q, &e)) {
        popped++;
        wrong += e.t_ns < last.t_ns || (e.t_ns == last.t_ns && e.order < last.order);
        last = e;
    }
    ok (wrong == 0 && popped == pushed, "%d events of %d times are popped in order, each once", (int)pushed,
        (int)times);
    queue_fini (&q);
}

int main (void)
{
    struct queue q = { 0 };
    struct scale_event e;

    ok (!queue_pop (&q, &e), "an empty queue has no event");
    queue_push (&q, (struct scale_event){ .t_ns = 7, .rank = 3 });
    ok (queue_pop (&q, &e) && e.t_ns == 7 && e.rank == 3 && !queue_pop (&q, &e),
        "an event that was pushed into an empty queue is popped");
    queue_fini (&q);
    test_order (1, 1);
    test_order (2, 10);
    test_order (3, 1000000);
    return done_testing ();
}
