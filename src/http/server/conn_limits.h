/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conn_limits.h - time limits of connections; no I/O
 *
 * libmicrohttpd ends a connection without traffic. But a connection that transfers a byte now and then would stay
 * forever. So a client must send its whole request within CONN_LIMITS_ASK_MS, and must read the whole answer within
 * CONN_LIMITS_TAKE_MS.
 */
#ifndef HTTP_SERVER_CONN_LIMITS_H
#define HTTP_SERVER_CONN_LIMITS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define CONN_LIMITS_ASK_MS 60000
#define CONN_LIMITS_TAKE_MS 300000

enum guest_card { GUEST_NOT_SEEN, GUEST_GOOD, GUEST_BAD };

/* The state of a connection: its request waits for the server, the client sends a request, or the client reads the
 * answer.
 */
enum guest_turn { GUEST_WAITS, GUEST_ASKS, GUEST_TAKES, GUEST_TURNS };

struct guest {
    TAILQ_ENTRY (guest) link;
    enum guest_turn turn;
    uint64_t since_ms;
    int fd;               /* socket of the connection */
    enum guest_card card; /* whether the client's certificate is valid; checked only once */
};

struct conn_limits {
    TAILQ_HEAD (guest_list, guest) turns[GUEST_TURNS]; /* one list for each state; longest in the state first */
};

static inline void conn_limits_init (struct conn_limits *g)
{
    for (int i = 0; i < GUEST_TURNS; i++)
        TAILQ_INIT (&g->turns[i]);
}

/* Add a connection, change its state, remove it. */
static inline void conn_limits_add (struct conn_limits *g, struct guest *guest, int fd, uint64_t now_ms)
{
    *guest = (struct guest){ .fd = fd, .turn = GUEST_ASKS, .since_ms = now_ms };
    TAILQ_INSERT_TAIL (&g->turns[GUEST_ASKS], guest, link);
}

static inline void conn_limits_remove (struct conn_limits *g, struct guest *guest)
{
    TAILQ_REMOVE (&g->turns[guest->turn], guest, link);
}

static inline void conn_limits_turn (struct conn_limits *g, struct guest *guest, enum guest_turn turn, uint64_t now_ms)
{
    assert (guest->since_ms <= now_ms);
    conn_limits_remove (g, guest);
    guest->turn = turn;
    guest->since_ms = now_ms;
    TAILQ_INSERT_TAIL (&g->turns[turn], guest, link);
}

static inline struct guest *conn_limits_first_late (struct conn_limits *g, enum guest_turn turn, uint64_t since_ms)
{
    struct guest *guest = TAILQ_FIRST (&g->turns[turn]);

    return guest && guest->since_ms <= since_ms ? guest : NULL;
}

/* Return a connection whose time is over, or NULL if no connection is late. Each late connection is returned only once,
 * because its state becomes GUEST_WAITS.
 */
static inline struct guest *conn_limits_late (struct conn_limits *g, uint64_t now_ms)
{
    struct guest *guest = now_ms > CONN_LIMITS_ASK_MS
                              ? conn_limits_first_late (g, GUEST_ASKS, now_ms - CONN_LIMITS_ASK_MS)
                              : NULL;

    if (!guest && now_ms > CONN_LIMITS_TAKE_MS)
        guest = conn_limits_first_late (g, GUEST_TAKES, now_ms - CONN_LIMITS_TAKE_MS);
    if (guest)
        conn_limits_turn (g, guest, GUEST_WAITS, now_ms);
    return guest;
}

#endif /* HTTP_SERVER_CONN_LIMITS_H */
