/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peers.h - looks, in a thread, whether another candidate of rank 0 accepts connections
 *
 * Only a candidate that leads, or that hangs after it has led, listens.
 */
#ifndef BROKER_PEERS_H
#define BROKER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX 8
#define PEERS_ENDPOINT_SIZE 256

struct peer_list {
    uint32_t count;
    char endpoint[PEERS_MAX][PEERS_ENDPOINT_SIZE]; /* "tcp://HOST:PORT" */
};

struct peers;

/* Copies the list. NULL with errno set. */
struct peers *peers_create (const struct peer_list *list);
void peers_destroy (struct peers *p); /* NULL is allowed; keeps errno */

/* Begin to look. At most one look may be under way. It takes at most a second, and the time of a name server. */
void peers_begin (struct peers *p);

/* Readable when a look has ended. */
int peers_fd (const struct peers *p);

/* Get the result of a look that has ended. Returns false if none has. */
bool peers_result (struct peers *p, bool *one_serves);

#endif /* BROKER_PEERS_H */
