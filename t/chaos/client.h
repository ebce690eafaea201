/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* client.h - a thread that asks one broker for ids without pause
 *
 * It keeps a few requests under way, of sizes from 1 to 65536 ids, each for ids above the largest that it had.  When
 * its broker is gone it opens another connection; there some clients go on from what they had, and some forget it, as
 * one who goes on is refused by brokers whose time went back.  The first client of a rank also asks what the broker
 * says of itself (fluid.info, fluid.watermark).
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
    uint64_t lent;   /* as in its history */
    uint64_t seed;   /* of the sizes */
    bool asks_info;
    bool forgets;
    int stop_fd; /* readable: stop when all requests have ended */
};

struct client;

/* Start.  Ends the program where that fails. */
struct client *client_start (const struct client_config *config);

/* Answers so far, with ids or that there are no more; may be called from any thread. */
uint64_t client_answers (const struct client *c);

/* Has it ended?  It does so after stop_fd has become readable. */
bool client_ended (const struct client *c);

/* Wait for the end.  The history is borrowed until client_destroy (). */
const struct history *client_join (struct client *c);
void client_destroy (struct client *c);

/* CLOCK_MONOTONIC in microseconds: the histories' scale of time. */
uint64_t client_now_us (void);

#endif /* CHAOS_CLIENT_H */
