/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authority.c - grants leases at rank 0: keeps the table, the horizon, and the instance's time in the required order
 *
 * Only give () grants boxes, and only horizon_store_horizon () requests that a horizon is stored.
 *
 * The handover to the next authority on this broker saves time. Without the table all granted boxes count as used to
 * their end. Then the next root begins at that end, a lease ahead of all other ranks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <idtree/fluid.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/authority.h"
#include "modules/fluid/lease/grants.h"

#define NEVER UINT64_MAX
#define END_MS ((uint64_t)FLUID_TIMESTAMP_MAX + 1) /* end of time: no box and no horizon is above it */
#define FIRST_RETRY_US 100000                      /* pause after a failed store; doubles, up to a twelfth of a lease */

/* The durable horizon. No box ends after it. */
struct horizon {
    uint64_t stored_ms;
    uint64_t peak_ms;  /* the highest that was ever stored; it is not lowered by a clean stop */
    uint64_t reach_ms; /* how far ahead of now it is stored */
    bool storing;
    bool unproven;              /* another root may have taken over while the clock missed time: grant nothing */
    bool proving;               /* the store under way began after that */
    enum authority_store state; /* the last result of storing it */
    uint64_t retry_us;          /* do not try again before this time */
    uint64_t backoff_us;
    uint64_t since_us; /* begin of the last store */
    uint64_t slow_us;  /* when the store under way counts as slow; NEVER: no store is under way, or it counts already */
};

/* The wall clock minus the epoch, and when it was read; the same of another wall clock, that was read once. */
struct wall {
    int64_t us;
    uint64_t read_us;
    bool has_limit;
    int64_t limit_us;
    uint64_t limit_read_us;
    uint64_t missed_us; /* missed by the clock and not yet confirmed by the wall clock */
};

struct authority {
    struct authority_config config;
    const struct authority_ops *ops;
    void *arg;
    struct clock clock;
    uint64_t begin_us; /* begin of the instance's time here: nothing is granted before */
    struct wall wall;
    struct grants grants; /* whole generators, out of all time from the floor to the horizon */
    struct horizon horizon;
    struct ahead ahead;
    struct watermark *watermark;
    struct foreign_lease foreign;
    bool goes_on;           /* this authority continues with the table of a handover */
    bool fenced_by_foreign; /* grant nothing: a broker holds a lease that was granted from another statedir */
    bool closed;
    struct grant *grant; /* of the last answer */
    uint64_t deadline_us;
    uint64_t nstored;
    bool told_size;     /* a wrong size was logged */
    uint64_t jumped_us; /* sum of all jumps of CLOCK_BOOTTIME ahead */
    uint64_t missed_us; /* sum of the time that it missed, if another root may have taken over meanwhile */
    struct authority_stats stats;
};

__attribute__ ((format (printf, 3, 4))) static void say (struct authority *a, int level, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    a->ops->log (a->arg, level, text);
}

static uint64_t now_ms (const struct authority *a, uint64_t now_us)
{
    return clock_read_ms (&a->clock, now_us);
}

static void wake (struct authority *a, uint64_t at_us)
{
    a->deadline_us = min_u64 (a->deadline_us, at_us);
}

/* --- the watermark ------------------------------------------------------------------------------ */

static uint64_t raise_watermark (struct authority *a, uint64_t now_us)
{
    struct report all = { .low_ms = UINT64_MAX };

    a->ops->positions (a->arg, now_us, &all);
    uint64_t ms = watermark_raise (a->watermark, now_ms (a, now_us), a->horizon.stored_ms, &all);

    grants_raise (&a->grants, ms); /* rule BEGIN_ABOVE_TOLD: no box below it */
    return ms;
}

bool authority_watermark (struct authority *a, uint64_t now_us, uint64_t *ms)
{
    if (a->closed || a->fenced_by_foreign)
        return false;
    *ms = raise_watermark (a, now_us);
    return true;
}

/* --- the horizon -------------------------------------------------------------------------------- */

static void watch_store (struct authority *a, uint64_t now_us)
{
    if (now_us < a->horizon.slow_us) {
        wake (a, a->horizon.slow_us);
        return;
    }
    a->horizon.slow_us = NEVER;
    if (a->horizon.state == AUTHORITY_STORE_GOOD) {
        a->horizon.state = AUTHORITY_STORE_SLOW;
        say (a, LOG_WARNING, "the %s is slow: the horizon is not stored yet, and leases end where the last one is",
             a->config.reach_max_ms > 0 ? "store" : "disk");
    }
}

static int64_t wall_us (const struct authority *a, uint64_t now_us)
{
    return a->wall.us + (int64_t)(now_us - a->wall.read_us);
}

/* The wall clock that may pay back clock debt. If this host's clock is ahead, it must not pay back what earlier roots
 * owe, or else takeovers by such a host would carry the instance ahead without limit.
 */
static int64_t paying_us (const struct authority *a, uint64_t now_us)
{
    int64_t us = wall_us (a, now_us), limit_us = a->wall.limit_us + (int64_t)(now_us - a->wall.limit_read_us);

    return a->wall.has_limit && limit_us < us ? limit_us : us;
}

/* The clock debt that a crash of rank 0 leaves after this horizon is stored. */
static uint64_t owed_ms (struct authority *a, uint64_t now_us, uint64_t horizon_ms)
{
    uint64_t ms = now_ms (a, now_us);

    return clock_debt_stored (&a->ahead, ms, horizon_ms, (int64_t)ms - paying_us (a, now_us) / 1000);
}

static void store (struct authority *a, uint64_t now_us, uint64_t horizon_ms)
{
    struct lease_record record = { .horizon_ms = horizon_ms, .peak_ms = max_u64 (a->horizon.peak_ms, horizon_ms) };

    if (!a->fenced_by_foreign)
        raise_watermark (a, now_us);
    /* Rule WAIT_AFTER_TAKEOVER: a root that was replaced grants nothing after its horizon (rule GRANT_NOT_PAST). */
    watermark_record (a->watermark, now_ms (a, now_us), a->config.reach_max_ms, &record);
    record.ahead_ms = owed_ms (a, now_us, horizon_ms);
    a->stats.stores++;
    a->horizon.proving = true;
    a->horizon.since_us = now_us;
    a->horizon.slow_us = now_us + a->config.lease_ms * 1000 / 4;
    wake (a, a->horizon.slow_us);
    a->ops->store (a->arg, &record);
}

/* The time at which a higher horizon must be stored; NEVER: not before the store under way has ended, or not at all. */
static uint64_t next_store_ms (const struct authority *a)
{
    const struct horizon *h = &a->horizon;
    uint64_t ahead_ms = h->reach_ms - h->reach_ms / 4;

    if (h->storing || a->closed || (h->stored_ms >= END_MS && !h->unproven))
        return NEVER;
    if (h->unproven)
        return 0;
    return h->stored_ms >= ahead_ms ? h->stored_ms - ahead_ms + 1 : 0;
}

/* Store a higher horizon if needed. Requests a tick for the time of the next store, which is before the horizon is
 * reached.
 */
static void horizon_store_horizon (struct authority *a, uint64_t now_us)
{
    struct horizon *h = &a->horizon;

    watch_store (a, now_us);
    if (now_us < h->retry_us) {
        wake (a, h->retry_us);
        return;
    }
    h->reach_ms = clock_debt_reach (&a->ahead, now_us);
    if (a->config.reach_max_ms > 0)
        h->reach_ms = min_u64 (h->reach_ms, a->config.reach_max_ms);
    if (!a->clock.known)
        return;
    if (now_ms (a, now_us) >= next_store_ms (a)) {
        h->storing = true;
        store (a, now_us, min_u64 (now_ms (a, now_us) + h->reach_ms, END_MS));
    }
    if (next_store_ms (a) <= END_MS)
        wake (a, clock_when (&a->clock, now_us, next_store_ms (a) * 1000));
}

void authority_stored (struct authority *a, uint64_t now_us, uint64_t horizon_ms)
{
    if (a->horizon.state != AUTHORITY_STORE_GOOD)
        say (a, LOG_NOTICE, "the horizon is stored again: leases are granted as before");
    metrics_time (&a->stats.commits, now_us - a->horizon.since_us);
    a->horizon = (struct horizon){ .stored_ms = max_u64 (a->horizon.stored_ms, horizon_ms),
                                   .peak_ms = max_u64 (a->horizon.peak_ms, horizon_ms),
                                   .unproven = a->horizon.unproven && !a->horizon.proving,
                                   .slow_us = NEVER };
    a->nstored++;
    authority_tick (a, now_us);
}

void authority_store_failed (struct authority *a, uint64_t now_us)
{
    struct horizon *s = &a->horizon;

    s->storing = false;
    a->stats.store_failures++;
    s->state = AUTHORITY_STORE_FAILING;
    s->slow_us = NEVER;
    s->backoff_us = min_u64 (s->backoff_us > 0 ? 2 * s->backoff_us : FIRST_RETRY_US, a->config.lease_ms * 1000 / 12);
    s->retry_us = now_us + s->backoff_us;
    authority_tick (a, now_us);
}

/* --- leases ------------------------------------------------------------------------------------- */

/* Rule LANE_SIZE: lanes belong to one rank only if all ranks agree on the size, and each is below it. */
static bool is_of_here (struct authority *a, const struct want *want)
{
    uint32_t size = a->config.size;

    if ((want->ranks == 0 || want->ranks == size) && (size == 0 || want->rank < size))
        return true;
    if (!a->told_size)
        say (a, LOG_ERR, "rank %u has another size of the instance than rank 0, or is not below it: it gets no lease",
             (unsigned)want->rank);
    a->told_size = true;
    return false;
}

/* Whether a want names a lease of another state: it is above all that was granted from this one (HIGHEST_HORIZON). */
static bool is_foreign (const struct authority *a, const struct want *want)
{
    return want->end_ms > a->horizon.peak_ms;
}

/* The only function that grants. What rank 0 has to grant of a generator is all time up to the horizon (rule
 * HORIZON_FIRST); the floor of 'grants' is its begin.
 */
static bool give (struct authority *a, uint64_t now_us, const struct want *want, struct grant *grant)
{
    const struct box whole = { want->rank, UINT64_MAX, { 0, a->horizon.stored_ms } };
    const struct grants_stock stock = { .whole = &whole, .until_us = NEVER };
    uint64_t ms = now_ms (a, now_us);
    struct grant boxes[GRANTS_EACH];

    if (a->fenced_by_foreign || a->horizon.unproven || !is_of_here (a, want)
        || grants_answer (&a->grants, now_us, ms, &stock, want, boxes) == 0)
        return false;
    *grant = boxes[0];
    watermark_given (a->watermark, ms, grant);
    return true;
}

static void take_back (struct authority *a, uint64_t now_us, const struct want *want)
{
    const struct grants_stock none = { .whole = NULL };
    struct grant boxes[GRANTS_EACH];

    grants_answer (&a->grants, now_us, now_ms (a, now_us), &none, want, boxes);
    watermark_back (a->watermark, now_ms (a, now_us), want);
}

/* Process a want. Returns whether '*grant' contains the answer. */
static bool process (struct authority *a, uint64_t now_us, const struct want *want, struct grant *grant)
{
    if (want->rank >= a->config.max_generators)
        return false;
    if (want->size == 0) {
        take_back (a, now_us, want);
        return false;
    }
    a->fenced_by_foreign = a->fenced_by_foreign || is_foreign (a, want);
    return give (a, now_us, want, grant);
}

/* Keep the foreign lease or epoch for the status, as a hint for the administrator. */
static void note_foreign_lease (struct authority *a, const struct lease_request *req)
{
    a->foreign.has_epoch = req->has_epoch && req->epoch_ms != a->config.epoch_ms;
    a->foreign.epoch_ms = req->epoch_ms;
    for (size_t i = 0; i < req->nwant; i++)
        a->foreign.hi_ms = max_u64 (a->foreign.hi_ms, req->want[i].end_ms);
}

/* Serve a lease request. The horizon is raised first if needed, because it limits what can be granted. Returns how many
 * boxes are in 'a->grant'.
 */
static size_t serve (struct authority *a, uint64_t now_us, const struct lease_request *req)
{
    bool fenced = a->fenced_by_foreign;
    size_t n = 0;

    if (req->has_epoch && req->epoch_ms != a->config.epoch_ms)
        a->fenced_by_foreign = true;
    if (req->nwant > 0)
        horizon_store_horizon (a, now_us);
    free (a->grant);
    a->grant = calloc (req->nwant + 1, sizeof (*a->grant));
    for (size_t i = 0; a->grant && i < req->nwant; i++)
        n += process (a, now_us, &req->want[i], &a->grant[n]);
    if (!fenced && a->fenced_by_foreign)
        note_foreign_lease (a, req);
    return n;
}

void authority_answer (struct authority *a, uint64_t now_us, const struct lease_request *req,
                       struct lease_answer *answer)
{
    size_t n = a->closed ? 0 : serve (a, now_us, req); /* rule STOP_CLOSES: grant nothing */

    *answer = (struct lease_answer){ .grant = a->grant,
                                     .ngrant = n,
                                     .has_epoch = true,
                                     .epoch_ms = a->config.epoch_ms,
                                     .lease_ms = a->config.lease_ms,
                                     .has_time = a->clock.known };
    if (!a->clock.known)
        return;
    answer->sent_us = answer->received_us = clock_estimate (&a->clock, now_us);
    answer->bound_us = clock_estimate_bound (&a->clock, now_us);
}

const char *authority_excuse (const struct authority *a)
{
    if (a->fenced_by_foreign)
        return a->config.reach_max_ms > 0
                   ? "rank 0 grants no leases: brokers hold leases that root.store does not know; see its log"
                   : "rank 0 grants no leases: brokers hold leases of another statedir; start it with the right one";
    return "rank 0 waits until its horizon can be stored; see its log";
}

/* --- time ----------------------------------------------------------------------------------------- */

struct clock *authority_clock (struct authority *a)
{
    return &a->clock;
}

/* Step forward by 'us', which this clock missed, and which passed on all other ranks. */
static void step (struct authority *a, uint64_t now_us, uint64_t us)
{
    clock_step (&a->clock, now_us, clock_read (&a->clock, now_us) + us);
    watermark_stepped (a->watermark, us);
    say (a, LOG_NOTICE, "rank 0 stepped %.3f s forward, by time that its clock had missed", (double)us / 1e6);
}

/* Make up for missed time; the clock object already knows 'off_us'. */
static void make_good (struct authority *a, uint64_t now_us, int64_t off_us, int64_t sure_us)
{
    char text[CLOCK_CHECK_TEXT_MAX];

    say (a, LOG_WARNING, "%s: rank 0 continues to make ids", clock_check_describe (off_us, text));
    if (off_us > 0)
        a->wall.missed_us += (uint64_t)(off_us - sure_us);
    if (sure_us > 0)
        step (a, now_us, (uint64_t)sure_us);
    authority_tick (a, now_us);
}

/* Rule PROVE_AFTER_PAUSE: another root may have taken over in the missed time, and its watermark waited for this root
 * by another clock. So leases age by that time, and nothing is granted before a write that begins now is acknowledged.
 */
static void doubt (struct authority *a, int64_t off_us)
{
    if (off_us <= 0 || a->config.reach_max_ms == 0)
        return;
    a->missed_us += (uint64_t)off_us;
    a->horizon.unproven = true;
    a->horizon.proving = false;
}

static uint64_t jump_us (int64_t off_us)
{
    return off_us < 0 ? (uint64_t)-off_us : 0;
}

void authority_lost_time (struct authority *a, uint64_t now_us, int64_t off_us, int64_t sure_us)
{
    a->jumped_us += jump_us (off_us);
    if (a->closed || off_us == 0 || !a->clock.known)
        return;
    clock_lost_time (&a->clock, now_us, off_us);
    doubt (a, off_us);
    make_good (a, now_us, off_us, sure_us);
}

/* Step by as much of the missed time as the wall clock now confirms. */
static void make_up (struct authority *a, uint64_t now_us)
{
    uint64_t inst_us = clock_read (&a->clock, now_us);

    if (a->wall.missed_us == 0 || a->wall.us <= (int64_t)(inst_us + CLOCK_CHECK_GRAIN_US))
        return;
    uint64_t us = min_u64 ((uint64_t)a->wall.us - inst_us, a->wall.missed_us);
    a->wall.missed_us -= us;
    step (a, now_us, us);
}

void authority_wall (struct authority *a, uint64_t now_us, int64_t wall_us)
{
    if (a->closed)
        return;
    a->wall.us = wall_us - a->config.epoch_ms * 1000;
    a->wall.read_us = now_us;
    if (a->clock.known)
        make_up (a, now_us);
    clock_discipline (&a->clock, now_us, a->wall.us);
    authority_tick (a, now_us);
}

void authority_tick (struct authority *a, uint64_t now_us)
{
    a->deadline_us = NEVER;
    if (a->closed)
        return;
    a->clock.known = a->clock.known || now_us >= a->begin_us;
    if (!a->clock.known)
        wake (a, a->begin_us);
    horizon_store_horizon (a, now_us);
}

uint64_t authority_deadline (const struct authority *a)
{
    return a->deadline_us;
}

/* --- handover --------------------------------------------------------------------------------------- */

struct authority_handover {
    size_t size; /* size of this struct, because the next load may have another version */
    struct authority_config config;
    struct clock clock;
    struct ahead ahead;
    struct lease_record stored;
    uint64_t floor_ms; /* of 'grants' */
    /* followed by the table of 'grants' */
};

void *authority_leave (const struct authority *a, const struct lease_record *stored, size_t *size)
{
    size_t table_size;
    const void *table = grants_table (&a->grants, &table_size);
    bool good = stored && !a->fenced_by_foreign;
    struct authority_handover *p = good ? calloc (1, sizeof (*p) + table_size) : NULL;

    *size = 0;
    if (!p)
        return NULL;
    *p = (struct authority_handover){
        .size = sizeof (*p), .config = a->config, .clock = a->clock, .ahead = a->ahead, .stored = *stored
    };
    p->floor_ms = a->grants.floor_ms;
    if (table_size > 0)
        memcpy (p + 1, table, table_size);
    *size = sizeof (*p) + table_size;
    return p;
}

static bool same_record (const struct lease_record *a, const struct lease_record *b)
{
    return a->horizon_ms == b->horizon_ms && a->watermark_ms == b->watermark_ms && a->settle_ms == b->settle_ms
           && a->ahead_ms == b->ahead_ms && a->peak_ms == b->peak_ms;
}

static bool same_config (const struct authority_config *a, const struct authority_config *b)
{
    return a->max_generators == b->max_generators && a->lease_ms == b->lease_ms && a->epoch_ms == b->epoch_ms
           && a->size == b->size && a->reach_max_ms == b->reach_max_ms;
}

/* Continue with the clock and the table of the handover, above the watermark that was published. Returns false if the
 * handover does not fit the store or the configuration.
 */
static bool go_on (struct authority *a, uint64_t now_us, const struct authority_start *start)
{
    const struct authority_handover *p = start->past;

    if (start->past_size < sizeof (*p) || p->size != sizeof (*p) || !p->clock.known
        || !same_config (&p->config, &a->config) || !same_record (&p->stored, start->stored)
        || !grants_restore (&a->grants, p->floor_ms, p + 1, start->past_size - sizeof (*p)))
        return false;
    grants_raise (&a->grants, start->stored->watermark_ms);
    a->clock = p->clock;
    clock_lost_time (&a->clock, now_us, start->off_us);
    clock_step (&a->clock, now_us, start->stored->watermark_ms * 1000);
    a->ahead = p->ahead;
    return true;
}

bool authority_reopen (struct authority *a, uint32_t generator, uint64_t end_ms)
{
    if (a->goes_on)
        grants_reopen (&a->grants, generator, end_ms);
    return a->goes_on;
}

/* --- life --------------------------------------------------------------------------------------------- */

/* The instance's time at which the clock starts. It is not below the horizon, because earlier ids are below the
 * horizon. It is at least 1 ms, because 0 means an unknown time.
 */
static uint64_t start_us (int64_t wall_inst_us, uint64_t horizon_ms)
{
    uint64_t us = max_u64 (horizon_ms * 1000, 1000);

    return wall_inst_us > 0 ? max_u64 (us, (uint64_t)wall_inst_us) : us;
}

/* Let a root with too much clock debt wait before it begins. Its time is unknown while it waits, so it grants nothing.
 */
static void begin_late (struct authority *a, uint64_t now_us, const struct lease_record *stored, int64_t ahead_us)
{
    uint64_t wait_ms = clock_debt_start (&a->ahead, a->config.lease_ms, now_us, stored->ahead_ms, ahead_us / 1000);

    a->begin_us = now_us + wait_ms * 1000;
    clock_hold (&a->clock, now_us, a->begin_us);
    a->clock.known = wait_ms == 0;
    if (wait_ms > 0)
        say (a, LOG_WARNING,
             "rank 0 crashed several times: it waits %llu ms before it grants leases, so that its "
             "time is not further ahead of the wall clock",
             (unsigned long long)wait_ms);
}

/* Set up the table, the clock and the watermark. With a handover no time was lost, and the clocks of other ranks
 * continued meanwhile, so rank 0 does not wait.
 */
static int begin (struct authority *a, uint64_t now_us, const struct authority_start *start)
{
    int64_t wall_inst_us = start->wall_us - a->config.epoch_ms * 1000;

    if (grants_init (&a->grants, a->config.lease_ms, a->config.max_generators) < 0)
        return -1;
    a->wall.has_limit = start->limit_us != 0;
    a->wall.limit_us = start->limit_us - a->config.epoch_ms * 1000;
    a->wall.limit_read_us = now_us;
    a->grants.floor_ms = start->stored->horizon_ms; /* rule START_AT_HORIZON */
    a->goes_on = go_on (a, now_us, start);
    if (!a->goes_on)
        clock_start (&a->clock, now_us, start_us (wall_inst_us, start->stored->horizon_ms));
    uint64_t inst_us = clock_read (&a->clock, now_us);
    if (!(a->watermark = watermark_create (a->config.max_generators, a->config.lease_ms, start->stored,
                                           inst_us / 1000)))
        return -1;
    if (!a->goes_on)
        begin_late (a, now_us, start->stored, (int64_t)inst_us - wall_inst_us);
    authority_wall (a, now_us, start->wall_us);
    a->jumped_us = jump_us (start->off_us);
    if (a->goes_on && start->off_us != 0)
        make_good (a, now_us, start->off_us, start->sure_us);
    return 0;
}

struct authority *authority_create (const struct authority_config *config, const struct authority_ops *ops, void *arg,
                                    uint64_t now_us, const struct authority_start *start)
{
    struct authority *a = calloc (1, sizeof (*a));

    if (!a)
        return NULL;
    *a = (struct authority){
        .config = *config, .ops = ops, .arg = arg, .horizon = { .slow_us = NEVER }, .deadline_us = NEVER
    };
    a->horizon.stored_ms = start->stored->horizon_ms;
    a->horizon.peak_ms = max_u64 (start->stored->horizon_ms, start->stored->peak_ms);
    if (begin (a, now_us, start) < 0) {
        authority_destroy (a);
        return NULL;
    }
    return a;
}

void authority_destroy (struct authority *a)
{
    if (!a)
        return;
    grants_fini (&a->grants);
    free (a->watermark);
    free (a->grant);
    free (a);
}

/* If no rank holds a lease at a clean stop, all ids that were made are below the stored horizon, and all later ids will
 * be at or above it. So the watermark is that horizon.
 */
void authority_close (struct authority *a, uint64_t now_us, struct lease_record *last)
{
    uint64_t ms = now_ms (a, now_us);

    a->closed = true;
    a->deadline_us = NEVER;
    last->horizon_ms = grants_end (&a->grants); /* rules STOP_ABOVE_GRANTED, STOP_NOT_BELOW_BASE */
    last->peak_ms = a->horizon.peak_ms;
    watermark_record (a->watermark, ms, 0, last);
    if (!a->fenced_by_foreign && !watermark_any_holder (a->watermark, ms))
        last->watermark_ms = last->horizon_ms;
    last->ahead_ms = a->clock.known ? owed_ms (a, now_us, last->horizon_ms) : a->ahead.debt_ms;
}

/* --- status ----------------------------------------------------------------------------------------- */

struct authority_news authority_news (const struct authority *a)
{
    return (struct authority_news){ a->clock.steps, a->nstored, a->fenced_by_foreign, a->jumped_us, a->missed_us };
}

void authority_status (const struct authority *a, uint64_t now_us, struct authority_status *status)
{
    *status = (struct authority_status){ .epoch_ms = a->config.epoch_ms,
                                         .horizon_ms = a->horizon.stored_ms,
                                         .store = a->horizon.state,
                                         .fenced_by_foreign = a->fenced_by_foreign,
                                         .foreign = a->foreign };
    status->ahead_us = (int64_t)(a->clock.known ? clock_read (&a->clock, now_us) : a->clock.inst_us)
                       - wall_us (a, now_us);
}

struct authority_stats *authority_stats (struct authority *a)
{
    return &a->stats;
}
