/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the inside of a node: for node.c (requests) and flake_claim.c (time and claims) alone */
#ifndef FLAKE_PRIVATE_H
#define FLAKE_PRIVATE_H

#include "libutil/minmax.h"
#include "modules/flake/scheme_queue.h"

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
    struct pendings up; /* on their way up */
    uint32_t nup;
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

/* Ask for what is due. */
void flake_ask_for_time (struct flake *f, uint64_t now_us);
void flake_ask_for_claim (struct flake *f, uint64_t now_us);

#endif /* FLAKE_PRIVATE_H */
