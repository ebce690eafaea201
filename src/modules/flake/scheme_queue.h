/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_queue.h - requests of one kind that wait: askers are served by turns, each one's requests in their order
 *
 * The one whose turn it is is the current one until it is answered or goes up; so of each lane one is being made.
 */
#ifndef FLAKE_LANE_H
#define FLAKE_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "libutil/turns.h"
#include "modules/flake/node.h"

struct lane;

struct pending {
    TAILQ_ENTRY (pending) link;  /* the node's: all, in order of deadline, which is that of arrival */
    TAILQ_ENTRY (pending) place; /* on their way up, or to be sent again */
    struct flake_request req;    /* cookie NULL: answered; freed when its turn comes */
    struct lane *lane;
    uint64_t deadline_us;
    uint32_t tag; /* under which it went up */
    uint32_t got;
    struct series *series; /* that made those */
    enum { WAITS, CURRENT, UP, AGAIN } state;
};
TAILQ_HEAD (pendings, pending);

struct lane {
    struct turns *waiting;
    struct pending *current;
    struct pendings again; /* went up in vain */
    uint64_t retry_us;     /* not before this is anything sent up again */
    bool makes;            /* ids of this kind are made here */
};

/* Returns 0, or -1 with errno ENOMEM; lane_fini () in both cases.  'max_waiting': see struct flake_config. */
int lane_init (struct lane *lane, uint32_t max_waiting);
void lane_fini (struct lane *lane);

/* Add a request.  Returns 0, or -1 with errno as turns_put (). */
int lane_put (struct lane *lane, struct pending *p);

/* It went up in vain: it is next. */
void lane_put_again (struct lane *lane, struct pending *p);

/* Whose turn it is.  NULL: nobody waits. */
struct pending *lane_current (struct lane *lane);

/* The current one goes up. */
void lane_went_up (struct lane *lane);

/* It was answered, and did not go up.  One that waits is freed when its turn comes, others now. */
void lane_forget (struct lane *lane, struct pending *p);

bool lane_is_empty (const struct lane *lane);

/* Whether something of this asker waits or is being made. */
bool lane_serves (const struct lane *lane, uint64_t asker);

#endif /* FLAKE_LANE_H */
