/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_queue.h - a queue of requests of one kind: requesters take turns, and each one's requests are served in order
 *
 * A request becomes current in its turn, and stays current until it is answered or forwarded. So each queue makes the
 * ids of one request at a time.
 */
#ifndef FLAKE_SCHEME_QUEUE_H
#define FLAKE_SCHEME_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "libutil/queue/drr_queue.h"
#include "modules/flake/node.h"

struct scheme_queue;
struct batch;

struct flake_pending {
    TAILQ_ENTRY (flake_pending) link;  /* list of all requests of the node, in order of arrival and so of deadline */
    TAILQ_ENTRY (flake_pending) place; /* in its batch, or in 'again' */
    struct flake_request req;          /* cookie NULL: answered, and freed in its turn or with its batch */
    struct scheme_queue *queue;
    struct batch *batch; /* state UP: its batch */
    uint64_t deadline_us;
    uint32_t got;
    const struct series *series; /* the series that made these */
    enum { WAITS, CURRENT, UP, AGAIN } state;
};
TAILQ_HEAD (pendings, flake_pending);

struct scheme_queue {
    struct drr_queue *waiting;
    struct flake_pending *current;
    struct pendings again; /* requests whose batch failed */
    uint64_t retry_us;     /* nothing is forwarded again before this */
    bool makes;            /* ids of this kind are made here */
};

/* Returns 0, or -1 with errno ENOMEM; call scheme_queue_fini () in both cases. 'max_waiting' is as in struct
 * flake_config.
 */
int scheme_queue_init (struct scheme_queue *queue, uint32_t max_waiting);
void scheme_queue_fini (struct scheme_queue *queue);

/* Add a request. Returns 0, or -1 with errno as by drr_queue_put (). */
int scheme_queue_put (struct scheme_queue *queue, struct flake_pending *p);

/* The batch of the request failed: it is served next. */
void scheme_queue_put_again (struct scheme_queue *queue, struct flake_pending *p);

/* The current request, which is chosen if there is none yet. Returns NULL if no request waits. */
struct flake_pending *scheme_queue_current (struct scheme_queue *queue);

/* The current request was added to a batch. */
void scheme_queue_went_up (struct scheme_queue *queue);

/* Remove a request that was answered and is in no batch. It is freed now or, if it waits, in its turn. */
void scheme_queue_forget (struct scheme_queue *queue, struct flake_pending *p);

bool scheme_queue_is_empty (const struct scheme_queue *queue);

/* Whether a request of this requester waits or is current. */
bool scheme_queue_serves (const struct scheme_queue *queue, uint64_t asker);

#endif /* FLAKE_SCHEME_QUEUE_H */
