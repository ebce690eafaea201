/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <stddef.h>

#include "http/server/conn_limits.h"
#include "test/tap.h"

int main (void)
{
    struct conn_limits g;
    struct guest a, b, c;
    uint64_t t = 1000000;

    conn_limits_init (&g);
    ok (!conn_limits_late (&g, 0) && !conn_limits_late (&g, t), "without connections no connection is late");
    conn_limits_add (&g, &a, 1, t);
    conn_limits_add (&g, &b, 2, t + 1);
    conn_limits_add (&g, &c, 3, t + 2);
    ok (!conn_limits_late (&g, t + CONN_LIMITS_ASK_MS - 1), "a connection that sends a request is not late before "
                                                            "its time");
    conn_limits_turn (&g, &b, GUEST_WAITS, t + 10);
    conn_limits_turn (&g, &c, GUEST_TAKES, t + 10);
    ok (conn_limits_late (&g, t + CONN_LIMITS_ASK_MS) == &a && !conn_limits_late (&g, t + CONN_LIMITS_ASK_MS),
        "a connection whose request is late is reported once");
    ok (!conn_limits_late (&g, t + CONN_LIMITS_TAKE_MS + 9) && conn_limits_late (&g, t + CONN_LIMITS_TAKE_MS + 10) == &c
            && !conn_limits_late (&g, t * 1000),
        "a connection that reads a response is late after its own time; a connection that waits for the server has "
        "no limit");
    conn_limits_turn (&g, &b, GUEST_ASKS, t * 2);
    conn_limits_remove (&g, &a);
    ok (conn_limits_late (&g, t * 2 + CONN_LIMITS_ASK_MS) == &b && b.fd == 2,
        "the next request of a connection has the full time again");
    conn_limits_remove (&g, &b);
    conn_limits_remove (&g, &c);
    ok (!conn_limits_late (&g, UINT64_MAX), "a closed connection is not late");
    return done_testing ();
}
