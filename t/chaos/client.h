/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* client.h - a thread that requests ids from one broker without pause
 *
 * It keeps a few requests pending, of 1 to 65536 ids each, all for ids above the largest that it got. If its broker
 * ends it opens another connection; some clients then continue from their largest id, and some forget it, because a
 * broker whose time went back refuses clients that continue. The first client of a rank also requests fluid.info and
 * fluid.watermark.
 */
#ifndef CHAOS_CLIENT_H
#define CHAOS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "history.h"

struct client_config {
    const char *uri; /* borrowed */
    uint32_t rank;
    uint32_t client; /* number */
    uint64_t lent;   /* as in struct history */
    uint64_t seed;   /* of the sizes */
    bool asks_info;
    bool forgets;
    int stop_fd; /* readable: stop when all requests have ended */
};

struct client;

/* Start the thread. Ends the program on failure. */
struct client *client_start (const struct client_config *config);

/* Answers so far, with ids or that the time of ids is over; may be called from any thread. */
uint64_t client_answers (const struct client *c);

/* Whether it has ended, which it does after stop_fd became readable. */
bool client_ended (const struct client *c);

/* Wait for its end. The history is borrowed until client_destroy (). */
const struct history *client_join (struct client *c);
void client_destroy (struct client *c);

/* CLOCK_MONOTONIC in microseconds: the time scale of the histories. */
uint64_t client_now_us (void);

#endif /* CHAOS_CLIENT_H */
