/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.h - the root's table of leases: disjoint ranges of time for each generator
 *
 * A lease is a range [lo, hi) of instance milliseconds in which one incarnation of a broker alone may make ids
 * with a generator.  All times are instance milliseconds.  The rules are those of fluid.md, "Leases: no id
 * twice"; names as START_AT_LAST_END are those of rules: doc/model/README.md has them all.
 */
#ifndef FLUID_LEASE_H
#define FLUID_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/msg.h>

/* How long after it was first asked for a range may be used, by the asker's CLOCK_BOOTTIME: what is not known to be
 * in use then is not in use (watermark.h).  A range ends a lease after it was given, so there is a quarter of a lease
 * for clocks that are behind and answers that are late.
 */
#define LEASE_USE_MS(lease_ms) ((lease_ms) + (lease_ms) / 4)

/* A time that another host measures, as it may take by a clock here: clocks run at different speeds (far below 2 %). */
#define LEASE_AT_MOST_MS(ms) ((ms) + (ms) / 50 + 1)

struct range {
    uint64_t lo_ms; /* lo_ms <= t < hi_ms */
    uint64_t hi_ms;
};

/* --- what brokers say to each other about leases (fluid.lease) ---------------------------------- */

/* Generator 'generator' is wanted by the broker whose random UUID is 'incarnation'; it holds it until
 * 'have_hi_ms' already (0: not at all).  'number' grows with each new want of an incarnation.
 */
struct lease_want {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint64_t have_hi_ms;
    uint32_t size; /* ranks, as it was told, for who has lanes (lanes.h); 0: it has none */
};

/* The incarnation will never use its generator again, and nobody did at 'end_ms' and later.  Those that it lent to
 * (lender.h) may make ids below that for 'left_ms' more.
 */
struct lease_back {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t end_ms;
    uint64_t left_ms;
};

/* The answer to a want: [lo_ms, hi_ms). */
struct lease_grant {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint64_t lo_ms;
    uint64_t hi_ms;
};

/* Arrays are borrowed wherever these are passed.  Epochs are Unix milliseconds. */
struct lease_request {
    const struct lease_want *want;
    size_t nwant;
    const struct lease_back *back;
    size_t nback;
    bool has_epoch;
    int64_t epoch_ms;
};

/* Free the arrays of one that was made with its own. */
void lease_request_fini (struct lease_request *req);

struct lease_answer {
    const struct lease_grant *grant; /* a want that got nothing has none */
    size_t ngrant;
    bool has_epoch;
    int64_t epoch_ms;
    uint64_t lease_ms; /* the root's fluid.lease, which goes for all; 0: not known */
    bool has_time;     /* when the answering broker got the request and sent this, on its clock, and its bound */
    uint64_t received_us;
    uint64_t sent_us;
    uint64_t bound_us;
};

/* --- what the root keeps on its disk ------------------------------------------------------------ */

struct lease_record {
    uint64_t horizon_ms;   /* no id at or above it was made; a root that starts gives nothing below */
    uint64_t watermark_ms; /* no id below it will be made (watermark.h) */
    uint64_t settle_ms;    /* so long after a start, ranges given before may be in use yet */
    uint64_t ahead_ms;     /* what crashes have cost, if the next root begins at this horizon (clock_debt.h) */
};

/* --- the table --------------------------------------------------------------------------------- */

/* The last range given of one generator, and to whom. */
struct lease_holding {
    char incarnation[IDT_MSG_UUID_LEN + 1]; /* empty: nobody, or given back */
    char gone[IDT_MSG_UUID_LEN + 1];        /* who gave back last; empty: nobody since the table was made */
    uint64_t number;
    uint64_t from_ms; /* where the ranges begin that this incarnation was given in a row, each at the end of another */
    uint64_t lo_ms;
    uint64_t hi_ms; /* last hi; 0: none since the table was made */
};

struct lease_table {
    uint32_t ngenerators;
    uint64_t lease_ms;
    uint64_t reach_ms;  /* how far ahead of now the horizon is stored: two leases, unless the owner says otherwise */
    uint64_t base_ms;   /* nothing below it is given: the horizon at the start, then the watermark */
    uint64_t stored_ms; /* the horizon that is durable */
    bool storing;
    bool fenced_by_foreign; /* nothing is given: a broker holds a lease that was given from another statedir */
    bool closed;
    struct lease_holding holding[];
};

/* Make a table, for free (), of generators 0 ... ngenerators - 1.  'horizon_ms' is the durable horizon H: no range that
 * was ever given ends later.  Returns NULL with errno ENOMEM.
 */
struct lease_table *lease_table_create (uint32_t ngenerators, uint64_t lease_ms, uint64_t horizon_ms);

/* Whether the horizon must be stored anew, and as what: it is asked for once, until lease_stored () or
 * lease_store_failed () tells the outcome.  Ask often: before each grant, and as time goes on.
 */
bool lease_must_store (struct lease_table *t, uint64_t now_ms, uint64_t *horizon_ms);

/* The time from which lease_must_store () will say so; UINT64_MAX: not before the outcome of the last is told, or
 * never, for the end of time is stored.
 */
uint64_t lease_next_store (const struct lease_table *t);

/* What the table says, as bytes for lease_load () in the same process; lease_save_size () of them. */
size_t lease_save_size (const struct lease_table *t);
void lease_save (const struct lease_table *t, void *data);

/* Into a new table for as many generators.  Returns 0, or -1 where that is not what was saved. */
int lease_load (struct lease_table *t, const void *data, size_t size);

/* Nobody used the generator, or ever will, at 'end_ms' or later: give that again.  For the root's own, which a life
 * that is over used on this very broker.
 */
void lease_reopen (struct lease_table *t, uint32_t generator, uint64_t end_ms);

/* 'horizon_ms' is durable now.  / It could not be stored: ask again later. */
void lease_stored (struct lease_table *t, uint64_t horizon_ms);
void lease_store_failed (struct lease_table *t);

/* Answer a want at 'now_ms'.  Returns true with the range in '*grant', or false: nothing is given (the horizon
 * is not far enough; someone holds the generator that far; an old number; no such generator; closed).
 */
bool lease_grant (struct lease_table *t, uint64_t now_ms, const struct lease_want *want, struct lease_grant *grant);

/* Take back what is left of the ranges that an incarnation was given in a row, for it holds them as one.  It is closed
 * for good then: what it asked for before, and comes later, is not given.  Returns whether the giver was believed.
 */
bool lease_give_back (struct lease_table *t, const struct lease_back *back);

/* Give nothing below 'floor_ms' from now on: it is said that no id will be made there any more. */
void lease_raise (struct lease_table *t, uint64_t floor_ms);

/* Give nothing from now on, and return the horizon that a clean stop stores: no id at or above it was or will be
 * made.  All lessees that can be reached must have closed before.
 */
uint64_t lease_close (struct lease_table *t);

#endif /* FLUID_LEASE_H */
