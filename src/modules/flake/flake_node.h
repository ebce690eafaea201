/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_node.h - one rank of the flake service: makes sno and uid, forwards, claims its fingerprint
 *
 * It is told everything: the time, requests, what was lent, what rank 0 says.  What it wants done it calls for through
 * 'struct flake_ops'.  It has no clock, socket or thread.
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds, read after the last event and not before any reading passed earlier.
 * 2. Operations must not call back into the node.
 * 3. After each call the owner asks flake_deadline () and calls flake_tick () then; earlier calls do no harm.
 * 4. Each request that is taken is answered exactly once, by the latest in flake_stop (): by reply, by fail, or by the
 *    owner with what flake_forwarded () returns.
 */
#ifndef FLAKE_NODE_H
#define FLAKE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/flake/claim.h"
#include "modules/flake/series.h"
#include "modules/flake/term.h"

#define FLAKE_MAX_COUNT 65536U    /* ids of one request */
#define FLAKE_MAX_IDS 4194304U    /* ids that wait to be made, of each kind */
#define FLAKE_PARTITIONS 65536U   /* of sno */

struct flake_ops {
    /* Answer a request with all of its ids, or with an error. */
    void (*reply) (void *arg, void *cookie, const struct flake_run *run, size_t nruns);
    void (*fail) (void *arg, void *cookie, int errnum, const char *text);

    /* Pass the request on to the parent; flake_forwarded () or flake_forward_failed () tells the outcome under the same
     * tag.  Returns 0, or -1 if it could not be sent (then nothing is told).
     */
    int (*forward) (void *arg, uint32_t tag, void *cookie);

    /* Borrow time: flake_lent () or flake_not_lent () tells the outcome.  Returns as above. */
    int (*borrow) (void *arg);
    /* The time borrowed last is not needed from 'end_ms' on.  It may be lost. */
    void (*give_back) (void *arg, uint64_t end_ms);

    /* Claim the fingerprint at rank 0: flake_claimed () or flake_claim_failed () tells the outcome.  Returns as above. */
    int (*claim) (void *arg, const struct claim *claim);
};

struct flake_config {
    uint32_t rank;
    uint32_t max_partitions; /* ranks at or above forward sno: 1 ... FLAKE_PARTITIONS */
    uint32_t max_waiting;    /* requests */
    uint64_t timeout_us;     /* a request that nobody could serve for so long fails */
    uint32_t fingerprint;    /* of the node that uids name */
    const char *node;        /* what rank 0 tells others of it; borrowed */
};

struct flake_request {
    void *cookie; /* not NULL: names it to ops */
    enum series_kind kind;
    uint32_t count;
    uint8_t meta; /* of sno */
};

struct flake_stats {
    uint64_t requests;
    uint64_t ids; /* made here */
    uint64_t forwards;
    uint64_t refused; /* EAGAIN */
    uint64_t loans;
    uint64_t claims;
};

struct flake;

/* 'ops' is borrowed for the node's life.  NULL with errno EINVAL (nonsense in 'config') or ENOMEM. */
struct flake *flake_create (const struct flake_config *config, const struct flake_ops *ops, void *arg);
void flake_destroy (struct flake *f); /* flake_stop () first */

/* Answer all that waits, give back what is not used.  Afterwards requests fail at once. */
void flake_stop (struct flake *f, uint64_t now_us);

/* Serve a request, at once or later.  Fails with
 *   EINVAL        count is not 1 ... FLAKE_MAX_COUNT
 *   EAGAIN        too much waits
 *   EEXIST        uid: another rank has the fingerprint
 *   EHOSTUNREACH  nobody could make them within the timeout
 *   EOVERFLOW     the scheme does not reach the date
 *   ENOMEM, or what the parent said
 */
void flake_generate (struct flake *f, uint64_t now_us, const struct flake_request *req);

/* Forget requests for which 'gone' returns true (it frees the cookie).  That is the exception to rule 4. */
void flake_cancel (struct flake *f, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg);

/* The parent answered.  Returns the cookie of the request, which the caller answers; NULL: nobody waits for it. */
void *flake_forwarded (struct flake *f, uint32_t tag);
void flake_forward_failed (struct flake *f, uint64_t now_us, uint32_t tag, int errnum, const char *text);

void flake_lent (struct flake *f, uint64_t now_us, const struct term_loan *loan);
void flake_not_lent (struct flake *f, uint64_t now_us, bool never);

void flake_claimed (struct flake *f, uint64_t now_us, const struct span *range);
void flake_claim_failed (struct flake *f, uint64_t now_us, int errnum, const char *text);

/* Rank 0: a rank claims a fingerprint.  Returns 0 with the range in '*range', or -1 as registry_claim (), and EAGAIN: no
 * time is borrowed yet, but asked for.
 */
int flake_claim_request (struct flake *f, uint64_t now_us, const struct claim *claim, struct span *range,
                         idt_error_t *errp);

void flake_tick (struct flake *f, uint64_t now_us);
uint64_t flake_deadline (const struct flake *f); /* UINT64_MAX: none */

struct flake_stats flake_stats (const struct flake *f);
void flake_stats_clear (struct flake *f);

#endif /* FLAKE_NODE_H */
