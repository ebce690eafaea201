/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guests.h - connections, and how long each may take; a thinking part
 *
 * libmicrohttpd ends a connection on which nothing moves.  One on which a byte moves now and then would stay for ever:
 * so a request has to be there in GUESTS_ASK_MS, and its answer to be taken in GUESTS_TAKE_MS.
 */
#ifndef HTTP_SERVER_GUESTS_H
#define HTTP_SERVER_GUESTS_H

#include <stdint.h>
#include <sys/queue.h>

#define GUESTS_ASK_MS 60000
#define GUESTS_TAKE_MS 300000

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

struct guests {
    TAILQ_HEAD (guest_list, guest) turns[GUEST_TURNS]; /* who is at it for longest is first */
};

void guests_init (struct guests *g);

/* A connection begins, is at something else, ends. */
void guests_add (struct guests *g, struct guest *guest, int fd, uint64_t now_ms);
void guests_turn (struct guests *g, struct guest *guest, enum guest_turn turn, uint64_t now_ms);
void guests_remove (struct guests *g, struct guest *guest);

/* One whose time is over, each once; NULL: nobody's. */
struct guest *guests_late (struct guests *g, uint64_t now_ms);

#endif /* HTTP_SERVER_GUESTS_H */
