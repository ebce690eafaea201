/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authority.h - the authority: the object at rank 0 that grants leases and stores the horizon
 *
 * The authority owns what an instance has once: its time, the table of leases, the horizon that must be stored above
 * them, the clock debt, and the watermark. It answers lease requests like any parent. It makes no ids: rank 0's node
 * requests leases from the authority like other nodes, and takes its time from the authority (node_start_root ()).
 *
 * It is a core without clock, socket, disk or thread. The caller passes in the time and events. The authority acts
 * through 'struct authority_ops'.
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds, and never below an earlier one.
 * 2. Operations must not call functions of the authority.
 * 3. After each call the owner reads authority_deadline () and calls authority_tick () at that time; earlier calls are
 *    harmless. After each call except authority_answer () and pure queries, the owner also calls node_tick () of rank
 *    0's node. In that call the node notices what has changed in the authority.
 *
 * Each kind of store, and each candidate for rank 0, must follow these rules:
 * - It starts from a record that was read when the role was taken or later, never from a record that was read before.
 * - authority_stored () is called only for records that are known to be durable. A write with unknown outcome is
 *   neither done nor failed: nothing is called, and the horizon stays where it was.
 * - A process that has lost the role uses at most what is stored for it. It calls authority_destroy () without
 *   authority_close (), and starts with a new table if it takes the role again.
 * - A process that hands the role over as planned stores what authority_close () returns, as at a clean stop.
 */
#ifndef FLUID_AUTHORITY_H
#define FLUID_AUTHORITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmetrics/bounds.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/box.h"
#include "modules/fluid/lease/watermark.h"

struct authority;

/* The state of the store. No box ends after the stored horizon. */
enum authority_store {
    AUTHORITY_STORE_GOOD,
    AUTHORITY_STORE_SLOW, /* a store has been under way for more than a quarter of a lease */
    AUTHORITY_STORE_FAILING,
};

struct authority_ops {
    /* Make this record durable. The owner then calls authority_stored () or authority_store_failed (). At most one
     * store is under way.
     */
    void (*store) (void *arg, const struct lease_record *record);

    /* Join all known positions to '*all', including rank 0's node (node_positions ()). */
    void (*positions) (void *arg, uint64_t now_us, struct report *all);

    void (*log) (void *arg, int level, const char *text); /* level as in <syslog.h> */
};

struct authority_config {
    uint32_t max_generators; /* 1 ... 16384 */
    uint64_t lease_ms;       /* LEASE_MIN_MS or more */
    int64_t epoch_ms;        /* in Unix milliseconds */
    uint32_t size;           /* ranks of the instance; 0: not known, and no rank has lanes */
    uint64_t reach_max_ms;   /* how far ahead the horizon is stored, at most; 0: no other root can run meanwhile */
};

/* The initial state. */
struct authority_start {
    int64_t wall_us;  /* the wall clock, in Unix microseconds; it may be behind the later ones */
    int64_t limit_us; /* another wall clock: clock debt is paid back by the one that is behind; 0: there is none */
    const struct lease_record *stored; /* the record on the disk; all 0: a new instance */
    const void *past;                  /* from authority_leave () on the same broker */
    size_t past_size;                  /* 0: no handover */
    int64_t off_us, sure_us; /* time that CLOCK_BOOTTIME missed since the handover, as in authority_lost_time () */
};

/* 'ops' is borrowed for the life of the authority. The first horizon is stored immediately. Returns NULL with errno
 * ENOMEM.
 */
struct authority *authority_create (const struct authority_config *config, const struct authority_ops *ops, void *arg,
                                    uint64_t now_us, const struct authority_start *start);
void authority_destroy (struct authority *a);

/* Grant nothing from now on. '*last' is the record for a clean stop. All reachable holders must have returned their
 * leases before.
 */
void authority_close (struct authority *a, uint64_t now_us, struct lease_record *last);

/* --- leases --------------------------------------------------------------------------------- */

/* Process the wants in '*req', in their order. The grants in '*answer' are borrowed until the next call of this
 * function. A request without wants gets only the epoch and the time.
 */
void authority_answer (struct authority *a, uint64_t now_us, const struct lease_request *req,
                       struct lease_answer *answer);

void authority_stored (struct authority *a, uint64_t now_us, uint64_t horizon_ms);
void authority_store_failed (struct authority *a, uint64_t now_us);

/* Why a request may wait for a lease, as an error text. */
const char *authority_excuse (const struct authority *a);

/* --- the watermark -------------------------------------------------------------------------- */

/* The watermark is the time below which no id will be made any longer in the whole instance. Answers with such ids may
 * still be under way. The watermark is as old as the reports. Each level of the tree adds 0.6 to 1.3 periods, where a
 * period is the smaller of 1.6 s and a twelfth of a lease. While a holder is silent the watermark does not advance
 * until that holder can no longer use its boxes (watermark.h). Returns false if the watermark is unknown, because
 * brokers hold boxes of another root, or the authority is closed.
 */
bool authority_watermark (struct authority *a, uint64_t now_us, uint64_t *ms);

/* --- time ----------------------------------------------------------------------------------- */

/* The instance's time, for rank 0's node to read. Unknown until it begins to run. */
struct clock *authority_clock (struct authority *a);

void authority_wall (struct authority *a, uint64_t now_us, int64_t wall_us); /* call it about each second */

/* Report that CLOCK_BOOTTIME missed 'off_us' microseconds before 'now_us', or went too far (below 0), as returned by
 * clock_check_look (). Rank 0 has no parent to ask for the time. So it steps forward immediately by the 'sure_us' on
 * which two clocks agree. Later it steps by as much of the rest as the wall clock confirms.
 */
void authority_lost_time (struct authority *a, uint64_t now_us, int64_t off_us, int64_t sure_us);

void authority_tick (struct authority *a, uint64_t now_us);
uint64_t authority_deadline (const struct authority *a); /* UINT64_MAX: no deadline */

/* --- handover to the next authority on the same broker --------------------------------------- */

/* Call after authority_close (): returns the clock and the table, as bytes for 'past' in the same process. 'stored' is
 * the record that the clean stop has stored; NULL: it could not be stored. The caller frees the result. Returns NULL if
 * there is nothing to hand over or memory is short.
 *
 * The next authority uses these bytes only if its store holds exactly that record. Then no other root ran meanwhile,
 * because a root stores a higher horizon before it grants anything (rule HORIZON_FIRST).
 */
void *authority_leave (const struct authority *a, const struct lease_record *stored, size_t *size);

/* Grant the time from 'end_ms' on again, because the previous node on this broker used nothing of 'generator' at
 * 'end_ms' or later. Returns false, and does nothing, if the authority has not taken over the table.
 */
bool authority_reopen (struct authority *a, uint32_t generator, uint64_t end_ms);

/* --- status ----------------------------------------------------------------------------------- */

/* Events, most of them as counters. Rank 0's node compares these with the last ones that it saw. */
struct authority_news {
    uint64_t steps;         /* steps of the clock; no id is made of the time that was skipped */
    uint64_t stored;        /* horizons stored: more may be granted now */
    bool fenced_by_foreign; /* leases that were granted may not be used any longer */
    uint64_t jumped_us;     /* sum of all jumps of CLOCK_BOOTTIME ahead */
    uint64_t missed_us;     /* leases are older by this sum of missed time */
};

struct authority_news authority_news (const struct authority *a);

struct foreign_lease {
    bool has_epoch;
    int64_t epoch_ms; /* the other epoch, or */
    uint64_t hi_ms;   /* or the end of a box, which is above the stored horizon */
};

struct authority_status {
    int64_t epoch_ms;
    uint64_t horizon_ms;
    int64_t ahead_us; /* how far the authority's time, or the time at which it begins, is ahead of the wall clock */
    enum authority_store store;
    bool fenced_by_foreign; /* a broker has leases of another root; 'foreign' has details */
    struct foreign_lease foreign;
};

void authority_status (const struct authority *a, uint64_t now_us, struct authority_status *status);

struct authority_stats {
    uint64_t stores;
    uint64_t store_failures;
    struct metrics_times commits; /* time until a store was durable */
};

struct authority_stats *authority_stats (struct authority *a); /* the caller may set them to 0 */

#endif /* FLUID_AUTHORITY_H */
