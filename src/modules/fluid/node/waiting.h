/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* waiting.h - requests for ids that wait, with the ids that they have so far; their requesters take turns
 *
 * Ids come from the generator of this rank (ids.c) and from answers of the parent (forward.c). These two files know
 * nothing of each other. So the struct of this header counts how many ids a request lacks, and how many of these are
 * under way from the parent ('asked').
 *
 * 1. All requests are in one list in order of arrival. Each requester has its own list in that order, except that a
 *    request that has some of its ids is first. So each requester gets increasing ids.
 * 2. Requesters take turns of WAITING_TURN ids. A turn ends when it is used up or when the owner ends it. The ids that
 *    are left of a turn, at most one turn's, are added to the next turn (deficit round robin).
 * 3. Each request is answered once. If it is answered while ids of it are under way, its entry stays, without a cookie,
 *    until waiting_came ().
 * 4. Entries are recycled: allocation is needed only while the list grows beyond its longest length so far.
 */
#ifndef FLUID_WAITING_H
#define FLUID_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/fluid.h>
#include <idtree/msg.h>

#include "libfluid/block.h"
#include "libmetrics/bounds.h"

#define WAITING_TURN 1024U /* ids, as many as a generator makes in a millisecond */

struct pending {
    TAILQ_ENTRY (pending) link;  /* in 'all' */
    TAILQ_ENTRY (pending) turn;  /* in its requester's list */
    TAILQ_ENTRY (pending) share; /* in the list of its forward: node/forward.c */
    struct requester *requester;
    void *cookie; /* identifies the request to its sender; NULL: the request was answered */
    uint32_t count;
    uint32_t got;
    uint32_t asked;    /* ids of it that are under way from the parent */
    uint64_t asked_ms; /* those ids have no earlier timestamp than this */
    bool from_broker;
    bool traced; /* report which forward carries it */
    uint64_t after;
    uint64_t arrival_us;
    uint64_t arrival_ms;
    struct id_run *run; /* 'nruns' runs with 'got' ids */
    size_t nruns;
    size_t size;
};
TAILQ_HEAD (pendings, pending);

/* The kinds of requesters. A connection of the owner is a requester. Another user is one requester with all its
 * connections. A child broker is up to three requesters: its own forwards, the clients that ask through it, and its
 * newcomers, whose forward arrives beside the others.
 */
enum requester_kind { REQUESTER_CLIENT, REQUESTER_USER, REQUESTER_BROKER, REQUESTER_BROKER_FEW };

struct requester {
    TAILQ_ENTRY (requester) link; /* in the round */
    struct requester *next;       /* in its hash bucket */
    struct pendings waiting;      /* never empty */
    size_t length;
    uint64_t missing; /* ids that its requests lack */
    uint32_t turn;    /* ids left of its turn */
    enum requester_kind kind;
    char name[IDT_MSG_UUID_LEN + 1];
};
TAILQ_HEAD (requesters, requester);

#define WAITING_BUCKETS 256

#define NEWCOMERS_PART 16U                            /* a sixteenth of a millisecond's ids is reserved for newcomers */
#define FOR_NEWCOMERS (FLUID_PER_MS / NEWCOMERS_PART) /* a newcomer asks for at most this many ids */

#define WAITING_UNKNOWN UINT64_MAX /* arrival_ms of a request that arrived before the time was known */

struct waiting_stats {
    uint64_t stalls;            /* requests that waited */
    struct metrics_times waits; /* waiting times of requests that got ids */
    uint64_t refused;           /* with EAGAIN */
    uint64_t unreachable;       /* with EHOSTUNREACH */
};

typedef void (*waiting_reply_f) (void *arg, void *cookie, const struct id_run *run, size_t nruns);
typedef void (*waiting_fail_f) (void *arg, void *cookie, int errnum, const char *text);

struct waiting {
    waiting_reply_f reply;
    waiting_fail_f fail;
    void *arg;
    struct pendings all;
    struct requesters round; /* the first one has the turn */
    struct requester *bucket[WAITING_BUCKETS];
    size_t nrequesters;
    size_t length;      /* entries */
    size_t others;      /* entries of users other than the owner */
    uint64_t missing;   /* ids that all entries lack */
    bool unjudged;      /* some entries arrived before the time was known */
    bool has_newcomers; /* there may be newcomers */
    struct waiting_stats *stats;
    struct pendings spare;
    struct requesters spare_requesters;
};

/* Requests are answered through 'reply' or 'fail', which must not call functions of this header. 'stats' is borrowed.
 */
void waiting_init (struct waiting *w, waiting_reply_f reply, waiting_fail_f fail, void *arg,
                   struct waiting_stats *stats);
void waiting_fini (struct waiting *w); /* answers nothing: call waiting_fail_all () first */

/* Append an entry that arrived at 'now_us', which was 'now_ms' (may be WAITING_UNKNOWN). All fields are zero except
 * 'count', the requester, 'from_broker' and the arrival. 'name' (at most IDT_MSG_UUID_LEN characters) and 'kind'
 * identify the requester. Returns NULL with errno ENOMEM.
 */
struct pending *waiting_add (struct waiting *w, const char *name, enum requester_kind kind, uint32_t count,
                             uint64_t now_us, uint64_t now_ms);

/* --- the end of a request -------------------------------------------------------------------- */

/* Answer a request that was not added with an error ('text' may be NULL). */
void waiting_refuse (struct waiting *w, void *cookie, int errnum, const char *text);

/* Answer an entry, with all its ids or with an error. */
void waiting_complete (struct waiting *w, uint64_t now_us, struct pending *p);
void waiting_fail (struct waiting *w, struct pending *p, int errnum, const char *text);

/* Report that no ids of this entry are under way any longer. */
void waiting_came (struct waiting *w, struct pending *p);

/* Fail all entries. No ids of them may be under way. */
void waiting_fail_all (struct waiting *w, int errnum, const char *text);

/* Fail entries that arrived before 'before_us'. Returns the arrival of the first entry that is left; UINT64_MAX if the
 * list is empty.
 */
uint64_t waiting_expire (struct waiting *w, uint64_t before_us, int errnum, const char *text);

/* Drop entries for which 'gone' returns true. */
void waiting_cancel (struct waiting *w, bool (*gone) (void *cookie, void *arg), void *arg);

/* --- turns ----------------------------------------------------------------------------------- */

/* Report that the entry has some of its ids. It is moved before all other entries of its requester. */
void waiting_begun (struct waiting *w, struct pending *p);

/* Find a requester. NULL: no request of it waits. */
struct requester *waiting_requester (const struct waiting *w, const char *name, enum requester_kind kind);

/* How many ids are made, in turns, until this requester has all ids that it waits for and 'count' more. */
uint64_t waiting_ahead (const struct waiting *w, const char *name, enum requester_kind kind, uint32_t count);

/* waiting_use_turn () takes 'used' ids off the turn of 'a'; the turn ends at 0. waiting_end_turn () ends the turn of
 * 'a'.
 */
void waiting_use_turn (struct waiting *w, struct requester *a, uint32_t used);
void waiting_end_turn (struct waiting *w, struct requester *a);

/* --- ids ------------------------------------------------------------------------------------- */

/* The oldest millisecond of which an entry has an id, or may get one; at most 'now_ms'. This rank makes no id below
 * 'cursor_ms' any longer.
 */
uint64_t waiting_oldest_ms (const struct waiting *w, uint64_t now_ms, uint64_t cursor_ms);

/* Add ids to an entry (n <= what it lacks). A run that continues the last one is joined to it. Returns 0, or -1 with
 * errno ENOMEM.
 */
int waiting_add_run (struct waiting *w, struct pending *p, fluid_t first, uint32_t n);

#endif /* FLUID_WAITING_H */
