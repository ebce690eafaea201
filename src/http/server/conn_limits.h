/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conn_limits.h - connections, and how long each may take; a thinking part
 *
 * libmicrohttpd ends a connection on which nothing moves.  One on which a byte moves now and then would stay for ever:
 * so a request has to be there in CONN_LIMITS_ASK_MS, and its answer to be taken in CONN_LIMITS_TAKE_MS.
 */
#ifndef HTTP_SERVER_CONN_LIMITS_H
#define HTTP_SERVER_CONN_LIMITS_H

#include <stdint.h>
#include <sys/queue.h>

#define CONN_LIMITS_ASK_MS 60000
#define CONN_LIMITS_TAKE_MS 300000

enum guest_card { GUEST_NOT_SEEN, GUEST_GOOD, GUEST_BAD };

/* At what a guest is: the server is to do something, it sends a request, it takes the answer. */
enum guest_turn { GUEST_WAITS, GUEST_ASKS, GUEST_TAKES, GUEST_TURNS };

struct guest {
    TAILQ_ENTRY (guest) link;
    enum guest_turn turn;
    uint64_t since_ms;
    int fd;               /* its socket */
    enum guest_card card; /* whether its certificate is good, which is looked at once */
};

struct conn_limits {
    TAILQ_HEAD (guest_list, guest) turns[GUEST_TURNS]; /* who is at it for longest is first */
};

void conn_limits_init (struct conn_limits *g);

/* A connection begins, is at something else, ends. */
void conn_limits_add (struct conn_limits *g, struct guest *guest, int fd, uint64_t now_ms);
void conn_limits_turn (struct conn_limits *g, struct guest *guest, enum guest_turn turn, uint64_t now_ms);
void conn_limits_remove (struct conn_limits *g, struct guest *guest);

/* One whose time is over, each once; NULL: nobody's. */
struct guest *conn_limits_late (struct conn_limits *g, uint64_t now_ms);

#endif /* HTTP_SERVER_CONN_LIMITS_H */
