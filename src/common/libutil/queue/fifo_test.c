/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fifo_test.c - items come out in the order in which they were added, for each position of the head when the ring grows
 */
#include <stdbool.h>

#include "libutil/queue/fifo.h"
#include "test/tap.h"

static char items[1000];

/* Shift the head by 'skip', then push and pop 'count'. */
static bool round_trip (size_t skip, size_t count)
{
    struct fifo q = { 0 };
    bool good = true;

    for (size_t i = 0; i < skip; i++) {
        good = good && fifo_push (&q, &items[i]) == 0;
        good = good && fifo_pop (&q) == &items[i];
    }
    for (size_t i = 0; i < count; i++)
        good = good && fifo_push (&q, &items[i]) == 0;
    good = good && q.count == count;
    for (size_t i = 0; i < count; i++)
        good = good && fifo_pop (&q) == &items[i];
    good = good && !fifo_pop (&q) && q.count == 0;
    fifo_fini (&q);
    return good;
}

int main (int argc, char *argv[])
{
    bool good = true;

    for (size_t skip = 0; skip < 40; skip++) {
        for (size_t count = 0; count < 100; count++)
            good = good && round_trip (skip, count);
    }
    ok (good, "items leave a fifo in order, from each start and with each size");
    ok (round_trip (7, 1000), "many items leave a fifo in order");
    return done_testing ();
}
