/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* client.h - a thread that requests ids from one broker without pause
 *
 * It keeps a few requests pending, for 1 to 65,536 ids each, and all for ids above the largest that it got. If its
 * broker ends, it opens another connection. Some clients then continue from their largest id. The others forget it,
 * because a broker whose time went back refuses clients that continue. The first client of a rank also requests
 * fluid.info and fluid.watermark.
 */
#ifndef CHAOS_CLIENT_H
#define CHAOS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "history.h"

struct client_config {
    const char *uri; /* borrowed */
    uint32_t rank;
    uint32_t client; /* number of the client */
    uint64_t makers; /* as in struct history */
    uint32_t ranks;  /* as in struct history */
    uint64_t seed;   /* decides on the sizes of requests */
    bool asks_info;
    bool forgets;
    int stop_fd; /* when it is readable, stop after all requests have ended */
};

struct client;

/* Start the thread. Ends the program on failure. */
struct client *client_start (const struct client_config *config);

/* Return the number of answers so far that have ids, or say that the time of ids is over. May be called by any thread.
 */
uint64_t client_answers (const struct client *c);

/* Whether the client has ended. It ends some time after stop_fd has become readable. */
bool client_ended (const struct client *c);

/* Wait until the client has ended, and return its history, borrowed until client_destroy (). */
const struct history *client_join (struct client *c);
void client_destroy (struct client *c);

/* Return CLOCK_MONOTONIC in microseconds, which is the time scale of the histories. */
uint64_t client_now_us (void);

#endif /* CHAOS_CLIENT_H */
