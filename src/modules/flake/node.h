/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.h - one rank of the flake service: whose flax, sno and uid are made next, here or above
 *
 * It is told everything: the time, requests, what was lent, what rank 0 says.  What it wants done it calls for through
 * 'struct flake_ops'.  It has no clock, socket or thread.
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds, read after the last event and not before any reading passed earlier.
 * 2. Operations must not call back into the node.
 * 3. After each call the owner asks flake_deadline () and calls flake_tick () then; earlier calls do no harm.
 * 4. Each request that is taken is answered exactly once, by the latest in flake_stop (): by reply, fail or pass.
 * 5. A call makes at most FLAKE_TURN_IDS ids for each queue, and less where requests are small.  What is left is made
 *    in the next ones: the deadline is now then, so that the owner sees to others in between.
 * 6. What cannot be made here goes up, combined: one batch of a queue at a time, and what comes meanwhile is the next.
 *    One that is full (FLAKE_FEW ids, or one request for more) does not wait for it.
 * 7. Each kind has two queues: of requests for few ids, and for many.  In each, askers are served by turns (turns.h).
 */
#ifndef FLAKE_NODE_H
#define FLAKE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/flake/claim.h"
#include "modules/flake/naming.h"
#include "modules/flake/series.h"
#include "modules/flake/loan.h"

#define FLAKE_MAX_COUNT 65536U  /* ids of one request */
#define FLAKE_PARTITIONS 65536U /* of sno */
#define FLAKE_FEW 1024U         /* requests for more ids have a queue of their own */
#define FLAKE_TURN_IDS 4096     /* made at once of each queue: a fifth of a millisecond at most */
#define FLAKE_REQUEST_COST 128  /* what a request costs beside its ids, in ids */
#define FLAKE_PATIENCE 6        /* so many timeouts may a request wait for its turn */
#define FLAKE_MAX_UP 256        /* batches on their way up, or about to be ... */
#define FLAKE_MAX_SHARES 16384  /* ... and requests in them */
#define FLAKE_UP_COST 8         /* what passing a request on costs, in ids */

struct flake_request;

struct flake_ops {
    /* Add ids to the answer of a request, of which 'got' are there: after 0 begin anew.  Returns 0, or -1 with errno
     * set.
     */
    int (*give) (void *arg, void *cookie, const struct flake_run *run, uint32_t got);

    /* Answer a request with all that it was given, or with an error. */
    void (*reply) (void *arg, void *cookie);
    void (*fail) (void *arg, void *cookie, int errnum, const char *text);

    /* Ask the parent for ids (of 'req': kind, count, meta, drift); flake_forwarded () or flake_forward_failed () tells
     * the outcome under the same tag.  Returns 0, or -1 if it could not be sent (then nothing is told).
     */
    int (*forward) (void *arg, uint32_t tag, const struct flake_request *req);

    /* Answer a request with 'n' ids of the parent's answer, from its id 'first' on (0: the first).  Called in
     * flake_forwarded () alone, in increasing order.
     */
    void (*pass) (void *arg, void *cookie, uint32_t first, uint32_t n);

    /* Borrow time: flake_lent () or flake_not_lent () tells the outcome.  Returns as above. */
    int (*borrow) (void *arg);
    /* The time borrowed last is not needed from 'end_ms' on.  It may be lost. */
    void (*give_back) (void *arg, uint64_t end_ms);

    /* Claim the fingerprint at rank 0: flake_claimed () or flake_claim_failed () tells the outcome.  Returns as above.
     */
    int (*claim) (void *arg, const struct claim *claim);
};

struct flake_config {
    uint32_t rank;
    uint32_t max_partitions; /* ranks at or above forward sno: 1 ... FLAKE_PARTITIONS */
    uint32_t max_waiting;    /* requests of a queue; an asker has at most as many as are still free */
    uint64_t timeout_us;     /* a request that nobody could make for so long fails */
    int drift;               /* bits of the instance's uids; told by rank 0, not used elsewhere */
    uint32_t fingerprint;    /* that uids name: given, or naming_own () */
    const char *node;        /* what rank 0 tells others of it; borrowed */
};

struct flake_request {
    void *cookie; /* not NULL: names it to ops */
    enum series_kind kind;
    uint32_t count;
    uint8_t meta;   /* of sno */
    int drift;      /* of uid: what the asker will read them with; 0: what the instance has */
    uint64_t asker; /* who it is for: whoever has the same is served by the same turn */
    uint64_t user;  /* whose askers share the turns of one (access_share ()); 0: this one has its own */
};

struct flake_stats {
    uint64_t requests;
    uint64_t made[SERIES_KINDS]; /* ids */
    uint64_t forwards;           /* sent up */
    uint64_t combined;           /* requests that went up with another one */
    uint64_t refused;            /* EAGAIN */
    uint64_t loans;
    uint64_t claims;
};

struct flake;

/* 'ops' is borrowed for the node's life.  NULL with errno EINVAL (nonsense in 'config') or ENOMEM. */
struct flake *flake_create (const struct flake_config *config, const struct flake_ops *ops, void *arg);
void flake_destroy (struct flake *f); /* flake_stop () first */

/* Answer all that waits, give back what is not used.  Afterwards requests fail at once. */
void flake_stop (struct flake *f, uint64_t now_us);

/* Serve a request, at once or later.  Returns false where it was refused: ops.fail () was called.  Fails with
 *   EINVAL        count is not 1 ... FLAKE_MAX_COUNT; uid: the instance has another drift
 *   EAGAIN        too much of this asker waits; or its turn did not come within FLAKE_PATIENCE timeouts
 *   EHOSTUNREACH  nobody who can make them was reached within the timeout
 *   EOVERFLOW     the scheme does not reach the date
 *   ENOMEM, or what the parent said
 */
bool flake_generate (struct flake *f, uint64_t now_us, const struct flake_request *req);

/* Forget requests for which 'gone' returns true (it frees the cookie).  That is the exception to rule 4. */
void flake_cancel (struct flake *f, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg);

/* How many ids the answer to a forward must have; 0: nobody waits for it. */
uint32_t flake_forward_count (const struct flake *f, uint32_t tag);

/* The parent answered with them: they are dealt out. */
void flake_forwarded (struct flake *f, uint64_t now_us, uint32_t tag);
void flake_forward_failed (struct flake *f, uint64_t now_us, uint32_t tag, int errnum, const char *text);

void flake_lent (struct flake *f, uint64_t now_us, const struct loan_answer *loan);
void flake_not_lent (struct flake *f, uint64_t now_us, bool never);

void flake_claimed (struct flake *f, uint64_t now_us, const struct grant *grant);
void flake_claim_failed (struct flake *f, uint64_t now_us);

/* Rank 0: a rank claims a fingerprint.  Its own is granted for good; another for as long as the time reaches that rank
 * 0 has borrowed; instead of what somebody else has it gets its own, and 'errp' says why (else it is left alone).
 * Returns 0 with '*grant', or -1 with errno set:
 *   EAGAIN   no time is borrowed yet, but asked for
 *   EINVAL   the fingerprint is another rank's own; or the name is too long
 *   ENOTSUP  this is not rank 0
 *   ENOMEM
 */
int flake_claim_request (struct flake *f, uint64_t now_us, const struct claim *claim, struct grant *grant,
                         idt_error_t *errp);

void flake_tick (struct flake *f, uint64_t now_us);
uint64_t flake_deadline (const struct flake *f); /* UINT64_MAX: none */

int flake_drift (const struct flake *f); /* of uids that are given; 0: not known yet */

struct flake_stats *flake_stats (struct flake *f); /* whoever likes sets them to 0 */
size_t flake_waiting (const struct flake *f);      /* requests */

#endif /* FLAKE_NODE_H */
