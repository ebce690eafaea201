/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.h - the core of the flake service on one rank: which flax, sno and uid are made next, here or by the parent
 *
 * The owner passes in all events: time, requests, grants of time, answers of rank 0. The node acts through 'struct
 * flake_ops'. It has no clock, socket or thread.
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds, read after the last event and not before any reading passed earlier.
 * 2. Operations must not call back into the node.
 * 3. After each call the owner must read flake_deadline (), and call flake_tick () at that time. Earlier calls are
 *    harmless.
 * 4. Each request that is accepted is answered exactly once, by reply, fail or pass, at the latest in flake_stop ().
 * 5. A call makes at most FLAKE_TURN_IDS ids for each queue, and fewer if requests are small. If more ids are to be
 *    made, the deadline is now, so that the owner can handle other events in between.
 * 6. Requests that cannot be served here are combined into batches and forwarded. While a batch is under way, later
 *    requests are collected in the next batch (requests.h). A full batch (FLAKE_FEW ids, or one request for more) does
 *    not wait.
 * 7. Each kind has a queue for requests of few ids, and a queue for requests of many ids. In each queue requesters take
 *    turns (drr_queue.h).
 */
#ifndef FLAKE_NODE_H
#define FLAKE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/sno.h>
#include <idtree/uid.h>

#include "modules/flake/naming.h"

#define FLAKE_MAX_COUNT 65536U  /* the most ids of a request */
#define FLAKE_PARTITIONS 65536U /* partitions of sno */
#define FLAKE_FEW 1024U         /* requests for more ids than this use another queue */
#define FLAKE_TURN_IDS 4096     /* ids made in one turn of a queue: takes at most a fifth of a millisecond */
#define FLAKE_REQUEST_COST 128  /* work of a request in addition to its ids, in ids */
#define FLAKE_PATIENCE 6        /* timeouts that a request may wait for its turn */
#define FLAKE_MAX_UP 256        /* the most batches under way or being collected ... */
#define FLAKE_MAX_SHARES 16384  /* ... and the most requests in them */
#define FLAKE_UP_COST 8         /* work of forwarding a request, in ids */

enum series_kind {
    SERIES_SNO,
    SERIES_UID,
    SERIES_FLAX, /* needs no series: made at any time on any rank */
    SERIES_KINDS,
};

/* The id 'first' and the n - 1 ids after it in sequence. For flax: any n ids. */
struct flake_run {
    union {
        sno_t sno;
        struct uid uid; /* a global uid */
    } first;
    uint32_t n;
};

struct flake_request;

struct flake_ops {
    /* Add ids to the answer of a request that has 'got' ids so far. If 'got' is 0, drop the ids that were added before.
     * Returns 0, or -1 with errno set.
     */
    int (*give) (void *arg, void *cookie, const struct flake_run *run, uint32_t got);

    /* Answer a request with the ids that it was given, or with an error. */
    void (*reply) (void *arg, void *cookie);
    void (*fail) (void *arg, void *cookie, int errnum, const char *text);

    /* Request ids from the parent (kind, count, meta, drift of 'req'). flake_forwarded () or flake_forward_failed ()
     * reports the result under the same tag. Returns 0. If the request could not be sent, it returns -1, and no result
     * is reported.
     */
    int (*forward) (void *arg, uint32_t tag, const struct flake_request *req);

    /* Answer a request with 'n' ids of the parent's answer, from index 'first' on. Called in flake_forwarded () only,
     * with increasing 'first'.
     */
    void (*pass) (void *arg, void *cookie, uint32_t first, uint32_t n);

    /* Request time. flake_time_granted () or flake_time_refused () reports the result. Returns as forward does. */
    int (*ask_time) (void *arg);
    /* Return the time of the last grants from 'end_ms' on. The message may be lost. */
    void (*return_time) (void *arg, uint64_t end_ms);

    /* Claim the fingerprint at rank 0. flake_claimed () or flake_claim_failed () reports the result. Returns as forward
     * does.
     */
    int (*claim) (void *arg, const struct claim *claim);
};

struct flake_config {
    uint32_t rank;
    uint32_t max_partitions; /* ranks from this number on forward requests for sno: 1 ... FLAKE_PARTITIONS */
    uint32_t max_waiting;    /* requests that a queue may hold; one requester may hold as many as are free */
    uint64_t timeout_us;     /* a request fails if no rank could serve it for this long */
    int drift;               /* drift bits of the instance's uids; used at rank 0 only */
    uint32_t fingerprint;    /* node of the uids: configured, or naming_own () */
    const char *node;        /* shown to other ranks in messages; borrowed */
};

struct flake_request {
    void *cookie; /* not NULL: identifies the request in ops */
    enum series_kind kind;
    uint32_t count;
    uint8_t meta;   /* of sno */
    int drift;      /* of uid: drift bits that the requester expects; 0: those of the instance */
    uint64_t asker; /* the requester; requests with the same value share turns */
    uint64_t user;  /* 0, or the same for requesters that share the turns of one (access_share ()) */
};

struct flake_stats {
    uint64_t requests;
    uint64_t made[SERIES_KINDS]; /* ids */
    uint64_t forwards;           /* batches sent to the parent */
    uint64_t combined;           /* requests that were forwarded together with an earlier one */
    uint64_t refused;            /* with EAGAIN */
    uint64_t times;              /* grants of time */
    uint64_t claims;
};

struct flake;

/* 'ops' is borrowed for the node's life. Returns NULL with errno EINVAL (invalid 'config') or ENOMEM. */
struct flake *flake_create (const struct flake_config *config, const struct flake_ops *ops, void *arg);
void flake_destroy (struct flake *f); /* call flake_stop () before */

/* Answer all requests that wait, and return unused time. Afterwards requests fail immediately. */
void flake_stop (struct flake *f, uint64_t now_us);

/* Serve a request, immediately or later. If the request is refused, ops.fail () is called and the function returns
 * false. A request fails with:
 *   EINVAL        count is not 1 ... FLAKE_MAX_COUNT; uid: the instance has another drift
 *   EAGAIN        too many requests of this requester wait; or its turn did not come within FLAKE_PATIENCE timeouts
 *   EHOSTUNREACH  no rank that can serve it was reached within the timeout
 *   EOVERFLOW     the date is beyond the range of the scheme
 *   ENOMEM        out of memory; or any error of the parent
 */
bool flake_generate (struct flake *f, uint64_t now_us, const struct flake_request *req);

/* Forget the requests for which 'gone' returns true. 'gone' frees the cookie of such a request. These requests are not
 * answered, as an exception to rule 4.
 */
void flake_cancel (struct flake *f, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg);

/* The number of ids that the answer to batch 'tag' must have; 0: the batch has ended. */
uint32_t flake_forward_count (const struct flake *f, uint32_t tag);

/* flake_forwarded () reports that the parent has answered batch 'tag'; flake_forward_failed () reports that the batch
 * failed. Both answer the requests of the batch, except after EHOSTUNREACH: then the requests are forwarded again.
 */
void flake_forwarded (struct flake *f, uint64_t now_us, uint32_t tag);
void flake_forward_failed (struct flake *f, uint64_t now_us, uint32_t tag, int errnum, const char *text);

void flake_time_granted (struct flake *f, uint64_t now_us, const struct time_answer *time);
void flake_time_refused (struct flake *f, uint64_t now_us, bool never);

void flake_claimed (struct flake *f, uint64_t now_us, const struct naming_grant *grant);
void flake_claim_failed (struct flake *f, uint64_t now_us);

/* Handle at rank 0 that a rank claims a fingerprint. The fingerprint of the rank's own number is granted forever.
 * Another fingerprint is granted for the time that rank 0 holds. If another rank holds the fingerprint, or the
 * registry is full, the claiming rank gets its own number, and 'errp' has the reason; otherwise 'errp' is unchanged.
 * Returns 0 with '*grant', or -1 with errno set:
 *   EAGAIN   no time is granted yet; it was requested
 *   EINVAL   the fingerprint is the number of another rank; or the name is too long
 *   ENOTSUP  this is not rank 0
 *   ENOMEM   out of memory
 */
int flake_claim_request (struct flake *f, uint64_t now_us, const struct claim *claim, struct naming_grant *grant,
                         idt_error_t *errp);

void flake_tick (struct flake *f, uint64_t now_us);
uint64_t flake_deadline (const struct flake *f); /* UINT64_MAX: none */

int flake_drift (const struct flake *f); /* drift bits of the uids; 0: not known yet */

struct flake_stats *flake_stats (struct flake *f); /* the caller may reset them to 0 */
size_t flake_waiting (const struct flake *f);      /* number of requests */

/* --- for tests ------------------------------------------------------------------------------------------ */

/* One generator; the other pointer is NULL. */
struct series {
    struct sno_gen *sno;
    struct uid_gen *uid;
};

/* Reserve up to 'want' (>= 1) ids at 'unix_us', in a step of time that is completely in [lo_us, hi_us). Returns the
 * number of ids, with the run in '*run'. If it fails, it returns -1 with errno set, and the call may be repeated after
 * '*wait_us':
 *   EAGAIN     the step is used up
 *   ERANGE     the step is not in the range
 *   EOVERFLOW  the date is beyond the range of the scheme
 */
int series_reserve (const struct series *s, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                    struct flake_run *run, int64_t *wait_us);

#endif /* FLAKE_NODE_H */
