/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <stddef.h>

#include "http/server/guests.h"
#include "test/tap.h"

int main (void)
{
    struct guests g;
    struct guest a, b, c;
    uint64_t t = 1000000;

    guests_init (&g);
    ok (!guests_late (&g, 0) && !guests_late (&g, t), "nobody is late where nobody is");
    guests_add (&g, &a, 1, t);
    guests_add (&g, &b, 2, t + 1);
    guests_add (&g, &c, 3, t + 2);
    ok (!guests_late (&g, t + GUESTS_ASK_MS - 1), "who asks has its time");
    guests_turn (&g, &b, GUEST_WAITS, t + 10);
    guests_turn (&g, &c, GUEST_TAKES, t + 10);
    ok (guests_late (&g, t + GUESTS_ASK_MS) == &a && !guests_late (&g, t + GUESTS_ASK_MS),
        "and no more, which is said once");
    ok (!guests_late (&g, t + GUESTS_TAKE_MS + 9) && guests_late (&g, t + GUESTS_TAKE_MS + 10) == &c
            && !guests_late (&g, t * 1000),
        "so has who takes an answer; who waits for one has any");
    guests_turn (&g, &b, GUEST_ASKS, t * 2);
    guests_remove (&g, &a);
    ok (guests_late (&g, t * 2 + GUESTS_ASK_MS) == &b && b.fd == 2, "the next request has its time from then on");
    guests_remove (&g, &b);
    guests_remove (&g, &c);
    ok (!guests_late (&g, UINT64_MAX), "who is gone is not late");
    return done_testing ();
}
