/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* requests.h - the requests that a node has not answered: some wait for their turn, others were forwarded
 *
 * A request becomes current in its turn, and stays current until it is answered or forwarded. So each queue makes the
 * ids of one request at a time.
 *
 * Requests can share a batch if they are in the same queue and have the same meta and drift. While one of these batches
 * is under way, later requests are collected in the next batch. A full batch (FLAKE_FEW ids) is sent without waiting
 * for the answer to the batch before. A batch does not grow beyond that, so that the next hop handles it like other
 * requests for few ids. Each hop combines the batches that it receives again.
 *
 * A request that is answered while its batch is under way stays in the batch, without a cookie, until the batch is
 * answered.
 */
#ifndef FLAKE_REQUESTS_H
#define FLAKE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "libutil/queue/drr_queue.h"
#include "modules/flake/node.h"

struct batch;
struct scheme_queue;

struct flake_pending {
    TAILQ_ENTRY (flake_pending) link;  /* list of all requests of the node, in order of arrival and so of deadline */
    TAILQ_ENTRY (flake_pending) place; /* in its batch, or in 'again' */
    struct flake_request req;          /* cookie NULL: answered, and freed in its turn or with its batch */
    struct scheme_queue *queue;
    struct batch *batch; /* state UP: its batch */
    uint64_t deadline_us;
    uint32_t got;
    const struct series *series; /* the series that made the ids that the request has */
    enum { WAITS, CURRENT, UP, AGAIN } state;
};
TAILQ_HEAD (pendings, flake_pending);
TAILQ_HEAD (batches, batch);

struct scheme_queue {
    struct drr_queue *waiting;
    struct flake_pending *current;
    struct pendings again; /* requests whose batch failed */
    uint64_t retry_us;     /* no request of the queue is forwarded before this time */
    bool makes;            /* ids of this kind are made here */
};

struct requests {
    const struct flake_ops *ops;
    void *arg;
    struct flake_stats *stats;
    uint64_t timeout_us;
    struct scheme_queue few[SERIES_KINDS], many[SERIES_KINDS];
    struct pendings all;
    struct batches up;  /* under way or being collected */
    uint32_t nup;       /* number of batches */
    uint32_t nshares;   /* number of requests in them */
    uint64_t expire_us; /* the earliest time at which a deadline may be over */
    /* when the owner must handle the requests again; the owner may reset it to UINT64_MAX before that */
    uint64_t wake_us;
    uint32_t tag;
};

/* 'ops' and 'stats' are borrowed. Returns 0, or -1 with errno ENOMEM. In both cases requests_fini () must be called,
 * after all requests were answered.
 */
int requests_init (struct requests *r, const struct flake_config *config, const struct flake_ops *ops, void *arg,
                   struct flake_stats *stats);
void requests_fini (struct requests *r);

/* Add a request. Returns 0, or -1 with errno ENOMEM, or with another errno if too many requests of this requester wait.
 */
int requests_put (struct requests *r, uint64_t now_us, const struct flake_request *req);

/* Remove a request that was answered. */
void requests_forget (struct requests *r, struct flake_pending *p);

/* Answer a request with an error. */
void requests_fail (struct requests *r, struct flake_pending *p, int errnum, const char *text);

/* Answer requests whose deadline is over with an error. Requests that wait for their turn have FLAKE_PATIENCE times as
 * long.
 */
void requests_expire (struct requests *r, uint64_t now_us);

/* The current request of a queue. If the queue has no current request, the next waiting one becomes current. Returns
 * NULL if no request waits.
 */
struct flake_pending *requests_current (struct scheme_queue *queue);

/* Whether no request of the queue waits or is current. */
bool requests_queue_is_empty (const struct scheme_queue *queue);

/* --- forwarding ----------------------------------------------------------------------------------------- */

/* Add the current request of a queue to a batch. Returns false if the request must wait. */
bool requests_forward (struct requests *r, uint64_t now_us, struct scheme_queue *queue);

/* Send the batches of a queue, after all its requests were added. */
void requests_send (struct requests *r, uint64_t now_us, struct scheme_queue *queue);

/* The number of ids that the answer to the batch must have; 0: the batch has ended. */
uint32_t requests_forward_count (const struct requests *r, uint32_t tag);

/* requests_forwarded () reports that the parent has answered the batch; requests_forward_failed () reports that the
 * batch failed. After EHOSTUNREACH the requests of the batch are sent again, because the connection may work again.
 * Other errors are answers of the parent, and are passed on.
 */
void requests_forwarded (struct requests *r, uint64_t now_us, uint32_t tag);
void requests_forward_failed (struct requests *r, uint64_t now_us, uint32_t tag, int errnum, const char *text);

#endif /* FLAKE_REQUESTS_H */
