/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conn_limits.c - time limits of connections */
#include <stddef.h>

#include "http/server/conn_limits.h"

void conn_limits_init (struct conn_limits *g)
{
    for (int i = 0; i < GUEST_TURNS; i++)
        TAILQ_INIT (&g->turns[i]);
}

void conn_limits_add (struct conn_limits *g, struct guest *guest, int fd, uint64_t now_ms)
{
    *guest = (struct guest){ .fd = fd, .turn = GUEST_ASKS, .since_ms = now_ms };
    TAILQ_INSERT_TAIL (&g->turns[GUEST_ASKS], guest, link);
}

void conn_limits_remove (struct conn_limits *g, struct guest *guest)
{
    TAILQ_REMOVE (&g->turns[guest->turn], guest, link);
}

void conn_limits_turn (struct conn_limits *g, struct guest *guest, enum guest_turn turn, uint64_t now_ms)
{
    conn_limits_remove (g, guest);
    guest->turn = turn;
    guest->since_ms = now_ms;
    TAILQ_INSERT_TAIL (&g->turns[turn], guest, link);
}

static struct guest *first_late (struct conn_limits *g, enum guest_turn turn, uint64_t since_ms)
{
    struct guest *guest = TAILQ_FIRST (&g->turns[turn]);

    return guest && guest->since_ms <= since_ms ? guest : NULL;
}

struct guest *conn_limits_late (struct conn_limits *g, uint64_t now_ms)
{
    struct guest *guest = now_ms > CONN_LIMITS_ASK_MS ? first_late (g, GUEST_ASKS, now_ms - CONN_LIMITS_ASK_MS) : NULL;

    if (!guest && now_ms > CONN_LIMITS_TAKE_MS)
        guest = first_late (g, GUEST_TAKES, now_ms - CONN_LIMITS_TAKE_MS);
    if (guest)
        conn_limits_turn (g, guest, GUEST_WAITS, now_ms);
    return guest;
}
