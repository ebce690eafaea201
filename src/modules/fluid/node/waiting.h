/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* waiting.h - requests for ids that wait, with the ids that they have so far; by turns over those who asked
 *
 * Two give them ids: the generator here, and answers from above.  Neither knows of the other; what either must know of
 * a request is here: how many ids it lacks, and how many of those are under way upstream ('asked').
 *
 * 1. Requests are in order of arrival, all of them, and those of each asker: there, one that has some of its ids goes
 *    first, so that ids reach each asker in increasing order.
 * 2. Askers take turns of WAITING_TURN ids.  A turn ends when it is used up, or when the owner says so: then what was
 *    left of it, up to a turn, is for the next (deficit round robin).
 * 3. Each request is answered once.  One whose ids are under way yet keeps its place when it is answered, without a
 *    cookie, until they are not (waiting_came ()).
 * 4. Entries are recycled: a list that has been as long as it gets allocates no more.
 */
#ifndef FLUID_WAITING_H
#define FLUID_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/fluid.h>
#include <idtree/msg.h>

#include "libmetrics/bounds.h"

#define WAITING_TURN 1024U /* ids: what a generator makes in a millisecond */

/* The ids first, first + 1, ... first + n - 1: of one millisecond and one generator. */
struct run {
    fluid_t first;
    uint32_t n; /* 1 ... 1024 */
};

struct pending {
    TAILQ_ENTRY (pending) link;  /* of all */
    TAILQ_ENTRY (pending) turn;  /* of its asker's */
    TAILQ_ENTRY (pending) share; /* of those that went up together: node/forward.c */
    struct requester *asker;
    void *cookie; /* names the request to those who answer it; NULL: answered already */
    uint32_t count;
    uint32_t got;
    uint32_t asked;    /* of those, under way upstream */
    uint64_t asked_ms; /* they are not below this */
    bool from_broker;
    bool traced; /* of interest to who looks */
    uint64_t after;
    uint64_t arrival_us;
    uint64_t arrival_ms;
    struct run *run; /* 'nruns' of them, 'got' ids together */
    size_t nruns;
    size_t size;
};
TAILQ_HEAD (pendings, pending);

/* A connection of the owner is an asker; a user that is not the owner is one, over all connections.
 * A broker and the clients that asked through it are two; what it asks for newcomers is a third, for it comes beside
 * the rest.
 */
enum requester_kind { REQUESTER_CLIENT, REQUESTER_USER, REQUESTER_BROKER, REQUESTER_BROKER_FEW };

struct requester {
    TAILQ_ENTRY (requester) link; /* in the round */
    struct requester *next;       /* in its bucket */
    struct pendings waiting;      /* never empty */
    size_t length;
    uint64_t missing; /* ids */
    uint32_t turn;    /* ids that are left of its turn */
    enum requester_kind kind;
    char name[IDT_MSG_UUID_LEN + 1];
};
TAILQ_HEAD (askers, requester);

#define WAITING_BUCKETS 256

#define NEWCOMERS_PART 16U                            /* of a millisecond's ids are for newcomers, */
#define FOR_NEWCOMERS (FLUID_PER_MS / NEWCOMERS_PART) /* who ask for no more; and of a forward */

#define WAITING_UNKNOWN UINT64_MAX /* as arrival_ms: it came before the time was known */

struct waiting_stats {
    uint64_t stalls;            /* requests that waited */
    struct metrics_times waits; /* of those that got ids */
    uint64_t refused;           /* EAGAIN */
    uint64_t unreachable;       /* EHOSTUNREACH */
};

typedef void (*waiting_reply_f) (void *arg, void *cookie, const struct run *run, size_t nruns);
typedef void (*waiting_fail_f) (void *arg, void *cookie, int errnum, const char *text);

struct waiting {
    waiting_reply_f reply;
    waiting_fail_f fail;
    void *arg;
    struct pendings all;
    struct askers round; /* whose turn it is, then the next ones */
    struct requester *bucket[WAITING_BUCKETS];
    size_t naskers;
    size_t length;      /* entries */
    size_t others;      /* of these, of users that are not the owner */
    uint64_t missing;   /* ids that entries lack, over all */
    bool unjudged;      /* some came before the time was known */
    bool has_newcomers; /* there may be some */
    struct waiting_stats *stats;
    struct pendings spare;
    struct askers spare_askers;
};

/* Requests are answered through 'reply' or 'fail', which must not call back.  'stats' is borrowed. */
void waiting_init (struct waiting *w, waiting_reply_f reply, waiting_fail_f fail, void *arg,
                   struct waiting_stats *stats);
void waiting_fini (struct waiting *w); /* nothing is answered: waiting_fail_all () first */

/* Append an entry that came at 'now_us', which was 'now_ms' (may be WAITING_UNKNOWN): zeroed but for 'count', 'asker',
 * 'from_broker' and its arrival.  'name' (at most IDT_MSG_UUID_LEN characters) and 'kind' say who asks.  NULL with
 * errno ENOMEM.
 */
struct pending *waiting_add (struct waiting *w, const char *name, enum requester_kind kind, uint32_t count,
                             uint64_t now_us, uint64_t now_ms);

/* --- the end of a request -------------------------------------------------------------------- */

/* One that did not enter is answered with an error ('text' may be NULL). */
void waiting_refuse (struct waiting *w, void *cookie, int errnum, const char *text);

/* Answer an entry, with all its ids or with an error. */
void waiting_complete (struct waiting *w, uint64_t now_us, struct pending *p);
void waiting_fail (struct waiting *w, struct pending *p, int errnum, const char *text);

/* Nothing of it is under way any more. */
void waiting_came (struct waiting *w, struct pending *p);

/* All of them; nothing must be under way. */
void waiting_fail_all (struct waiting *w, int errnum, const char *text);

/* Fail those that came before 'before_us'.  Returns when the first one that is left came; UINT64_MAX: none. */
uint64_t waiting_expire (struct waiting *w, uint64_t before_us, int errnum, const char *text);

/* Forget those for which 'gone' returns true. */
void waiting_cancel (struct waiting *w, bool (*gone) (void *cookie, void *arg), void *arg);

/* --- turns ----------------------------------------------------------------------------------- */

/* The entry has some of its ids: it goes before all others of its asker. */
void waiting_begun (struct waiting *w, struct pending *p);

/* NULL: nothing of it waits. */
struct requester *waiting_asker (const struct waiting *w, const char *name, enum requester_kind kind);

/* How many ids are made, by turns, until 'count' more of this asker are, and all that it waits for. */
uint64_t waiting_ahead (const struct waiting *w, const char *name, enum requester_kind kind, uint32_t count);

/* 'used' ids of the turn of 'a' are; it ends when none is left. */
void waiting_use_turn (struct waiting *w, struct requester *a, uint32_t used);
void waiting_end_turn (struct waiting *w, struct requester *a);

/* --- ids ------------------------------------------------------------------------------------- */

/* The oldest millisecond of which an id that waits here may be, or 'now_ms' if that is before.  Nothing is made below
 * 'cursor_ms' any more.
 */
uint64_t waiting_oldest_ms (const struct waiting *w, uint64_t now_ms, uint64_t cursor_ms);

/* Add ids to an entry (n <= what it lacks); a run that continues its last one becomes part of that.  Returns 0,
 * or -1 with errno ENOMEM.
 */
int waiting_add_run (struct waiting *w, struct pending *p, fluid_t first, uint32_t n);

#endif /* FLUID_WAITING_H */
