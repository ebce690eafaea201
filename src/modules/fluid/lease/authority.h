/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authority.h - who gives leases: what an instance has once, at rank 0
 *
 * The authority owns the instance's time, the table of leases with the horizon that must be stored above it, what
 * crashes have cost, and the conclusion of the watermark.  It answers lease requests as any parent does.  It makes no
 * ids: rank 0's node is one more that asks, and takes its time from here (node_start_root ()).
 *
 * It is told the time and what came in, and calls for what is to be done through 'struct authority_ops'; it has no
 * clock, socket, disk or thread.
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds, never before one that was passed earlier.
 * 2. Operations must not call back into the authority.
 * 3. After each call the owner asks authority_deadline () and calls authority_tick () then; earlier calls do no harm.
 *    After each call but authority_answer () and what only tells something rank 0's node is to be ticked, for it hears
 *    there what has changed (node_tick ()).
 *
 * A store of another kind, or a second candidate for rank 0, would ask no more of it than this:
 *   - It starts from the record that was read when the role was taken, or later, never from one that was read before.
 *   - authority_stored () is told only what is known to have been done.  A write whose outcome is unknown is neither
 *     done nor failed: nothing is told, and the horizon stays where it was.
 *   - Who has lost the role goes on, at most, in what is stored for it: authority_destroy () without
 *     authority_close (), and a new one with a new table if it takes the role again.
 *   - Who hands the role over in order stores what authority_close () returns, as at a clean stop.
 */
#ifndef FLUID_AUTHORITY_H
#define FLUID_AUTHORITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmetrics/bounds.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/lease.h"
#include "modules/fluid/lease/watermark.h"

struct authority;

/* How it goes with storing the horizon.  Ranges are given up to the one that is stored. */
enum authority_store {
    AUTHORITY_STORE_GOOD,
    AUTHORITY_STORE_SLOW, /* under way for more than a quarter of a lease */
    AUTHORITY_STORE_FAILING,
};

struct authority_ops {
    /* Make this durable; authority_stored () or authority_store_failed () tells the outcome.  One at a time. */
    void (*store) (void *arg, const struct lease_record *record);

    /* Join to '*all' what is known of positions now, those of rank 0's node too (node_positions ()). */
    void (*positions) (void *arg, uint64_t now_us, struct report *all);

    void (*log) (void *arg, int level, const char *text); /* level as in <syslog.h> */
};

struct authority_config {
    uint32_t max_generators; /* 1 ... 16384 */
    uint64_t lease_ms;       /* 12 ms and more */
    int64_t epoch_ms;        /* in Unix milliseconds */
    uint32_t size;           /* ranks there are; 0: not known, and nobody has lanes */
};

/* What it begins with. */
struct authority_start {
    int64_t wall_us;                   /* the wall clock, in Unix microseconds */
    const struct lease_record *stored; /* what is on the disk; all 0: a new instance */
    const void *past;                  /* what authority_leave () told on the same broker */
    size_t past_size;                  /* 0: nothing */
    int64_t off_us, sure_us;           /* what CLOCK_BOOTTIME missed since, as of authority_lost_time () */
};

/* 'ops' is borrowed for its life.  The first horizon is to be stored at once.  NULL with errno ENOMEM. */
struct authority *authority_create (const struct authority_config *config, const struct authority_ops *ops, void *arg,
                                    uint64_t now_us, const struct authority_start *start);
void authority_destroy (struct authority *a);

/* Give nothing from now on, whoever asks.  '*last' is what a clean stop stores: all lessees that can be reached must
 * have given back before.
 */
void authority_close (struct authority *a, uint64_t now_us, struct lease_record *last);

/* --- leases --------------------------------------------------------------------------------- */

/* Take back, and give.  The grants in '*answer' are borrowed until the next call of this.  Who wants nothing and gives
 * nothing back is told the epoch and the time.
 */
void authority_answer (struct authority *a, uint64_t now_us, const struct lease_request *req,
                       struct lease_answer *answer);

void authority_stored (struct authority *a, uint64_t now_us, uint64_t horizon_ms);
void authority_store_failed (struct authority *a, uint64_t now_us);

/* Why somebody may wait for a lease: a sentence for those who did. */
const char *authority_excuse (const struct authority *a);

/* --- the watermark -------------------------------------------------------------------------- */

/* The time below which no id will be made any more in the whole instance (an answer that was made may be on its way
 * yet).  It is as old as the reports: a period (the smaller of 1 s and a twelfth of a lease) for each level of the
 * tree; and it stands while a lessee is silent, until that can use its ranges no more (watermark.h).  Returns false
 * where it cannot be told: brokers hold ranges of another root.
 */
bool authority_watermark (struct authority *a, uint64_t now_us, uint64_t *ms);

/* --- time ----------------------------------------------------------------------------------- */

/* The instance's time, for rank 0's node to read.  Unknown until it begins to run. */
struct clock *authority_clock (struct authority *a);

void authority_wall (struct authority *a, uint64_t now_us, int64_t wall_us); /* about each second */

/* CLOCK_BOOTTIME missed 'off_us' microseconds before 'now_us', or went too far (below 0), as clock_check_look () says.
 * There is nobody to ask for the time: it steps forward by the 'sure_us' that two clocks agree on, and by the rest as
 * far as the wall clock confirms it later.
 */
void authority_lost_time (struct authority *a, uint64_t now_us, int64_t off_us, int64_t sure_us);

void authority_tick (struct authority *a, uint64_t now_us);
uint64_t authority_deadline (const struct authority *a); /* UINT64_MAX: none */

/* --- from one to the next on the same broker ------------------------------------------------ */

/* After authority_close (): the clock and the table, as bytes for 'past' in the same process.  'stored' is what a clean
 * stop has stored; NULL: it could not be.  Returns bytes to be freed, or NULL: nothing can be left, or no memory.
 *
 * The next one goes on with them only where its store holds just that record: nobody else was root meanwhile, for a
 * root gives nothing before it stores a horizon above that (HORIZON_FIRST).
 */
void *authority_leave (const struct authority *a, const struct lease_record *stored, size_t *size);

/* The node that ran before on this broker used nothing of 'generator' at 'end_ms' or later: that is given again.
 * Returns false, and does nothing, where the authority does not go on with the table of the one before.
 */
bool authority_reopen (struct authority *a, uint32_t generator, uint64_t end_ms);

/* --- what is to be told --------------------------------------------------------------------- */

/* What has happened, as counters: for rank 0's node, which compares them with those that it saw last. */
struct authority_news {
    uint64_t steps;         /* of the clock, forward: what it passed over is not filled */
    uint64_t stored;        /* horizons: there may be more to be given */
    bool fenced_by_foreign; /* what was given is not to be trusted, either */
    uint64_t jumped_us;     /* CLOCK_BOOTTIME went too far, over all */
};

struct authority_news authority_news (const struct authority *a);

struct foreign_lease {
    bool has_epoch;
    int64_t epoch_ms; /* of another epoch, or */
    uint64_t hi_ms;   /* one that ends there, above all that is known here */
};

struct authority_status {
    int64_t epoch_ms;
    uint64_t horizon_ms;
    int64_t ahead_us; /* of the wall clock: its time, or where that will begin */
    enum authority_store store;
    bool fenced_by_foreign; /* a broker below knows of leases that are not ours, as it said: */
    struct foreign_lease foreign;
};

void authority_status (const struct authority *a, uint64_t now_us, struct authority_status *status);

struct authority_stats {
    uint64_t stores;
    uint64_t store_failures;
    struct metrics_times commits; /* of those that were stored: until the disk said so */
};

struct authority_stats *authority_stats (struct authority *a); /* whoever likes sets them to 0 */

#endif /* FLUID_AUTHORITY_H */
