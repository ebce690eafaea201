/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* waiting.h - requests for ids that wait, with the ids that they have so far; by turns over those who asked
 *
 * 1. Requests are in order of arrival, all of them, and those of each asker: there, one that has some of its ids goes
 *    first, so that ids reach each asker in increasing order.
 * 2. Askers take turns of QUEUE_TURN ids.  A turn ends when it is used up, or when the owner says so: then what was left
 *    of it, up to a turn, is for the next (deficit round robin).
 * 3. Entries are recycled: a queue that has been as long as it gets allocates no more.
 */
#ifndef FLUID_QUEUE_H
#define FLUID_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/fluid.h>
#include <idtree/msg.h>

#define QUEUE_TURN 1024U /* ids: what a generator makes in a millisecond */

/* The ids first, first + 1, ... first + n - 1: of one millisecond and one generator. */
struct run {
    fluid_t first;
    uint32_t n; /* 1 ... 1024 */
};

struct pending {
    TAILQ_ENTRY (pending) link;  /* of all */
    TAILQ_ENTRY (pending) turn;  /* of its asker's */
    TAILQ_ENTRY (pending) share; /* the owner's: of those that went up together */
    struct asker *asker;
    void *cookie; /* names the request to those who answer it; NULL: answered already */
    uint32_t count;
    uint32_t got;
    uint32_t asked;    /* of those, under way upstream */
    uint64_t asked_ms; /* they are not below this */
    bool from_broker;
    uint64_t after;
    uint64_t arrival_us;
    uint64_t arrival_ms;
    struct run *run; /* 'nruns' of them, 'got' ids together */
    size_t nruns;
    size_t size;
};
TAILQ_HEAD (pendings, pending);

/* A broker and the clients that asked through it are two; what it asks for newcomers is a third, for it comes beside the rest. */
enum asker_kind { ASKER_CLIENT, ASKER_BROKER, ASKER_BROKER_FEW };

struct asker {
    TAILQ_ENTRY (asker) link; /* in the round */
    struct asker *next;       /* in its bucket */
    struct pendings waiting;  /* never empty */
    size_t length;
    uint64_t missing; /* ids */
    uint32_t turn;    /* ids that are left of its turn */
    enum asker_kind kind;
    char name[IDT_MSG_UUID_LEN + 1];
};
TAILQ_HEAD (askers, asker);

#define QUEUE_BUCKETS 256

struct queue {
    struct pendings all;
    struct askers round; /* whose turn it is, then the next ones */
    struct asker *bucket[QUEUE_BUCKETS];
    size_t naskers;
    size_t length;    /* entries */
    uint64_t missing; /* ids that entries lack, over all */
    struct pendings spare;
    struct askers spare_askers;
};

void queue_init (struct queue *q);
void queue_fini (struct queue *q);

/* Append an entry: zeroed but for 'count', 'asker' and 'from_broker'.  'name' (at most IDT_MSG_UUID_LEN characters) and 'kind'
 * say who asks.  NULL with errno ENOMEM.
 */
struct pending *queue_add (struct queue *q, const char *name, enum asker_kind kind, uint32_t count);

/* Remove an entry, and its asker with the last one. */
void queue_remove (struct queue *q, struct pending *p);

/* The entry has some of its ids: it goes before all others of its asker. */
void queue_begun (struct queue *q, struct pending *p);

/* NULL: nothing of it waits. */
struct asker *queue_asker (const struct queue *q, const char *name, enum asker_kind kind);

/* How many ids are made, by turns, until 'count' more of this asker are, and all that it waits for. */
uint64_t queue_ahead (const struct queue *q, const char *name, enum asker_kind kind, uint32_t count);

/* 'used' ids of the turn of 'a' are; it ends when none is left. */
void queue_use_turn (struct queue *q, struct asker *a, uint32_t used);
void queue_end_turn (struct queue *q, struct asker *a);

/* Add ids to an entry (n <= what it lacks); a run that continues its last one becomes part of that.  Returns 0,
 * or -1 with errno ENOMEM.
 */
int queue_add_run (struct queue *q, struct pending *p, fluid_t first, uint32_t n);

#endif /* FLUID_QUEUE_H */
