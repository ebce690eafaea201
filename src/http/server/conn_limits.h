/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conn_limits.h - time limits of connections; no I/O
 *
 * libmicrohttpd ends a connection without traffic. A connection that transfers a byte now and then would stay forever,
 * so a request must be complete after CONN_LIMITS_ASK_MS, and its answer must be read after CONN_LIMITS_TAKE_MS.
 */
#ifndef HTTP_SERVER_CONN_LIMITS_H
#define HTTP_SERVER_CONN_LIMITS_H

#include <stdint.h>
#include <sys/queue.h>

#define CONN_LIMITS_ASK_MS 60000
#define CONN_LIMITS_TAKE_MS 300000

enum guest_card { GUEST_NOT_SEEN, GUEST_GOOD, GUEST_BAD };

/* The state of a connection: it waits for the server, sends a request, or reads the answer. */
enum guest_turn { GUEST_WAITS, GUEST_ASKS, GUEST_TAKES, GUEST_TURNS };

struct guest {
    TAILQ_ENTRY (guest) link;
    enum guest_turn turn;
    uint64_t since_ms;
    int fd;               /* its socket */
    enum guest_card card; /* whether its certificate is valid; checked once */
};

struct conn_limits {
    TAILQ_HEAD (guest_list, guest) turns[GUEST_TURNS]; /* the one that has been in its state for longest is first */
};

void conn_limits_init (struct conn_limits *g);

/* A connection begins, changes its state, ends. */
void conn_limits_add (struct conn_limits *g, struct guest *guest, int fd, uint64_t now_ms);
void conn_limits_turn (struct conn_limits *g, struct guest *guest, enum guest_turn turn, uint64_t now_ms);
void conn_limits_remove (struct conn_limits *g, struct guest *guest);

/* A connection whose time is over, each only once. NULL if no connection is late. */
struct guest *conn_limits_late (struct conn_limits *g, uint64_t now_ms);

#endif /* HTTP_SERVER_CONN_LIMITS_H */
