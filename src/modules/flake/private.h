/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the inside of a node: for node.c (requests), flake_up.c (what goes up) and flake_claim.c (time and
 * claims) alone
 */
#ifndef FLAKE_PRIVATE_H
#define FLAKE_PRIVATE_H

#include "libutil/minmax.h"
#include "modules/flake/scheme_queue.h"

/* Requests that go up as one. */
struct batch {
    TAILQ_ENTRY (batch) link;
    struct scheme_queue *queue; /* of all its shares */
    struct pendings shares;     /* the ids are dealt out in this order */
    struct flake_request req;   /* what it asks for; no cookie, no asker */
    uint32_t tag;               /* 0: it is not sent yet */
    bool full;                  /* it takes no more */
};
TAILQ_HEAD (batches, batch);

struct flake {
    struct flake_config config;
    const struct flake_ops *ops;
    void *arg;
    bool stopped;
    struct loan loan;
    struct naming naming;
    struct registry registry; /* rank 0 */
    uint64_t claims_until_us; /* rank 0: somebody claims in vain, and will come again before this */
    struct series sno, own, given;
    struct scheme_queue few[SERIES_KINDS], many[SERIES_KINDS];
    struct pendings all;
    struct batches up;  /* on their way, or about to be */
    uint32_t nup;       /* of them */
    uint32_t nshares;   /* requests in them */
    uint64_t expire_us; /* when a request may be late, or later */
    uint32_t tag;
    uint64_t deadline_us;
    char why[sizeof (((idt_error_t *)0)->text)]; /* of a refusal */
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

/* --- flake_up.c ---------------------------------------------------------------------------------- */

/* The current request of a queue goes up, with others.  Returns false where it has to wait. */
bool flake_up_add (struct flake *f, uint64_t now_us, struct scheme_queue *queue);

/* Send what has come together: all that a queue has to send now is in. */
void flake_up_send (struct flake *f, uint64_t now_us, struct scheme_queue *queue);

/* A request in a batch was answered: its share is nobody's. */
void flake_up_forget (struct flake *f, struct pending *p);

void flake_up_fini (struct flake *f); /* all are answered */

/* --- node.c --------------------------------------------------------------------------------------- */

/* Answer a request with an error. */
void flake_fail (struct flake *f, struct pending *p, int errnum, const char *text);

/* --- flake_claim.c -------------------------------------------------------------------------------- */

/* Ask for what is due. */
void flake_ask_for_time (struct flake *f, uint64_t now_us);
void flake_ask_for_claim (struct flake *f, uint64_t now_us);

#endif /* FLAKE_PRIVATE_H */
