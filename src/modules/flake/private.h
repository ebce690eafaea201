/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the parts of a node, shared by node.c (requests), flake_up.c (forwarding) and flake_claim.c (time and
 * claims) only
 */
#ifndef FLAKE_PRIVATE_H
#define FLAKE_PRIVATE_H

#include "libutil/minmax.h"
#include "modules/flake/scheme_queue.h"

/* Requests that are forwarded together. */
struct batch {
    TAILQ_ENTRY (batch) link;
    struct scheme_queue *queue; /* of all its requests */
    struct pendings shares;     /* the ids of the answer are split in this order */
    struct flake_request req;   /* the request to the parent; without cookie and requester */
    uint32_t tag;               /* 0: not sent yet */
    bool full;                  /* no request can be added */
};
TAILQ_HEAD (batches, batch);

struct flake {
    struct flake_config config;
    const struct flake_ops *ops;
    void *arg;
    bool stopped;
    struct time_loan loan;
    struct naming naming;
    struct registry registry; /* used at rank 0 */
    uint64_t claims_until_us; /* rank 0: a rank waits for a grant, and will claim again before this */
    struct series sno, own, given;
    struct scheme_queue few[SERIES_KINDS], many[SERIES_KINDS];
    struct pendings all;
    struct batches up;  /* under way or being collected */
    uint32_t nup;       /* number of batches */
    uint32_t nshares;   /* number of requests in them */
    uint64_t expire_us; /* the earliest time at which a request may be over time */
    uint32_t tag;
    uint64_t deadline_us;
    char why[sizeof (((idt_error_t *)0)->text)]; /* text of a refusal */
    struct flake_stats stats;
};

static inline void flake_wake (struct flake *f, uint64_t at_us)
{
    f->deadline_us = min_u64 (f->deadline_us, at_us);
}

static inline uint64_t flake_now_ms (struct flake *f, uint64_t now_us)
{
    return loan_now_us (&f->loan, now_us) / 1000;
}

/* --- flake_up.c: forwarding ---------------------------------------------------------------------- */

/* Add the current request of a queue to a batch. Returns false if it must wait. */
bool flake_up_add (struct flake *f, uint64_t now_us, struct scheme_queue *queue);

/* Send the batches of a queue, after all its requests were added. */
void flake_up_send (struct flake *f, uint64_t now_us, struct scheme_queue *queue);

/* A request in a batch was answered: drop its part of the batch's answer. */
void flake_up_forget (struct flake *f, struct flake_pending *p);

void flake_up_fini (struct flake *f); /* all requests are answered before */

/* --- node.c --------------------------------------------------------------------------------------- */

/* Answer a request with an error. */
void flake_fail (struct flake *f, struct flake_pending *p, int errnum, const char *text);

/* --- flake_claim.c -------------------------------------------------------------------------------- */

/* Request time, or claim the name, if that is due. */
void flake_ask_for_time (struct flake *f, uint64_t now_us);
void flake_ask_for_claim (struct flake *f, uint64_t now_us);

#endif /* FLAKE_PRIVATE_H */
