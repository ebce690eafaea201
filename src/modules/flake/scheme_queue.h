/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_queue.h - requests of one kind that wait: askers are served by turns, each one's requests in their order
 *
 * The one whose turn it is is the current one until it is answered or goes up; so of each queue one is being made.
 */
#ifndef FLAKE_SCHEME_QUEUE_H
#define FLAKE_SCHEME_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "libutil/queue/turns.h"
#include "modules/flake/node.h"

struct scheme_queue;
struct batch;

struct pending {
    TAILQ_ENTRY (pending) link;  /* the node's: all, in order of deadline, which is that of arrival */
    TAILQ_ENTRY (pending) place; /* in its batch, or to be sent again */
    struct flake_request req;    /* cookie NULL: answered; freed when its turn comes, or its batch's answer */
    struct scheme_queue *queue;
    struct batch *batch; /* UP: that it is a share of */
    uint64_t deadline_us;
    uint32_t got;
    const struct series *series; /* that made those */
    enum { WAITS, CURRENT, UP, AGAIN } state;
};
TAILQ_HEAD (pendings, pending);

struct scheme_queue {
    struct turns *waiting;
    struct pending *current;
    struct pendings again; /* went up in vain */
    uint64_t retry_us;     /* not before this is anything sent up again */
    bool makes;            /* ids of this kind are made here */
};

/* Returns 0, or -1 with errno ENOMEM; scheme_queue_fini () in both cases.  'max_waiting': see struct flake_config. */
int scheme_queue_init (struct scheme_queue *queue, uint32_t max_waiting);
void scheme_queue_fini (struct scheme_queue *queue);

/* Add a request.  Returns 0, or -1 with errno as turns_put (). */
int scheme_queue_put (struct scheme_queue *queue, struct pending *p);

/* It went up in vain: it is next. */
void scheme_queue_put_again (struct scheme_queue *queue, struct pending *p);

/* Whose turn it is.  NULL: nobody waits. */
struct pending *scheme_queue_current (struct scheme_queue *queue);

/* The current one goes up, with a batch. */
void scheme_queue_went_up (struct scheme_queue *queue);

/* It was answered, and is in no batch.  One that waits is freed when its turn comes, others now. */
void scheme_queue_forget (struct scheme_queue *queue, struct pending *p);

bool scheme_queue_is_empty (const struct scheme_queue *queue);

/* Whether something of this asker waits or is being made. */
bool scheme_queue_serves (const struct scheme_queue *queue, uint64_t asker);

#endif /* FLAKE_SCHEME_QUEUE_H */
