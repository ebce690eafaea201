/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guests.c - connections, and how long each may take */
#include <stddef.h>

#include "http/server/guests.h"

void guests_init (struct guests *g)
{
    for (int i = 0; i < GUEST_TURNS; i++)
        TAILQ_INIT (&g->turns[i]);
}

void guests_add (struct guests *g, struct guest *guest, int fd, uint64_t now_ms)
{
    *guest = (struct guest){ .fd = fd, .turn = GUEST_ASKS, .since_ms = now_ms };
    TAILQ_INSERT_TAIL (&g->turns[GUEST_ASKS], guest, link);
}

void guests_remove (struct guests *g, struct guest *guest)
{
    TAILQ_REMOVE (&g->turns[guest->turn], guest, link);
}

void guests_turn (struct guests *g, struct guest *guest, enum guest_turn turn, uint64_t now_ms)
{
    guests_remove (g, guest);
    guest->turn = turn;
    guest->since_ms = now_ms;
    TAILQ_INSERT_TAIL (&g->turns[turn], guest, link);
}

static struct guest *first_late (struct guests *g, enum guest_turn turn, uint64_t since_ms)
{
    struct guest *guest = TAILQ_FIRST (&g->turns[turn]);

    return guest && guest->since_ms <= since_ms ? guest : NULL;
}

struct guest *guests_late (struct guests *g, uint64_t now_ms)
{
    struct guest *guest = now_ms > GUESTS_ASK_MS ? first_late (g, GUEST_ASKS, now_ms - GUESTS_ASK_MS) : NULL;

    if (!guest && now_ms > GUESTS_TAKE_MS)
        guest = first_late (g, GUEST_TAKES, now_ms - GUESTS_TAKE_MS);
    if (guest)
        guests_turn (g, guest, GUEST_WAITS, now_ms);
    return guest;
}
