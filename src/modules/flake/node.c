/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.c - the core of the flake service on one rank
 *
 * Each kind has a queue for requests of few ids and a queue for requests of many, so that a request for one id does not
 * wait for one of 65,536. way_of () decides at each step what happens to the current request of a queue: its ids are
 * made here, it is forwarded, refused, or it waits. Ids are made only in the range that way_of () returns: the overlap
 * of the subleased time and, under a configured name, the claimed time (doc/design/flake.md, rules 1 and 3). If the way
 * changes to another series, the ids that a request got before are dropped, which is harmless because they were not
 * sent.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "modules/flake/private.h"

#define NEVER UINT64_MAX
#define EXPIRE_US 100000 /* interval of checks for requests that are over time */

/* --- requests -------------------------------------------------------------------------------- */

/* Remove a request that was answered. */
static void forget (struct flake *f, struct flake_pending *p)
{
    TAILQ_REMOVE (&f->all, p, link);
    if (p->state == UP)
        flake_up_forget (f, p);
    else
        scheme_queue_forget (p->queue, p);
}

void flake_fail (struct flake *f, struct flake_pending *p, int errnum, const char *text)
{
    f->ops->fail (f->arg, p->req.cookie, errnum, text);
    forget (f, p);
}

/* Whether the request waits for its turn in a queue whose ids are made here. It may wait longer than other requests. */
static bool waits_for_turn (const struct flake_pending *p)
{
    return p->queue->makes && p->state != UP;
}

static void expire_one (struct flake *f, uint64_t now_us, struct flake_pending *p)
{
    uint64_t longer_us = (FLAKE_PATIENCE - 1) * f->config.timeout_us;

    if (!waits_for_turn (p))
        flake_fail (f, p, EHOSTUNREACH, "no broker that can make these ids was reached in time");
    else if (p->deadline_us + longer_us <= now_us) {
        f->stats.refused++;
        flake_fail (f, p, EAGAIN, "too many ids are requested to make them in time: try again later");
    }
    else /* checked again, as its ids may no longer be made here */
        f->expire_us = min_u64 (f->expire_us, now_us + EXPIRE_US);
}

static void expire (struct flake *f, uint64_t now_us)
{
    struct flake_pending *p, *next;

    if (f->expire_us <= now_us) {
        f->expire_us = NEVER;
        for (p = TAILQ_FIRST (&f->all); p && p->deadline_us <= now_us; p = next) {
            next = TAILQ_NEXT (p, link);
            expire_one (f, now_us, p);
        }
        if (p)
            f->expire_us = min_u64 (f->expire_us, p->deadline_us);
    }
    flake_wake (f, f->expire_us);
}

/* --- where ids are made ----------------------------------------------------------------------- */

enum way {
    WAY_MAKE,
    WAY_FORWARD,
    WAY_WAIT,
    WAY_REFUSE,
};

/* With which series, and in which range, ids may be made. */
struct making {
    const struct series *series;
    struct span range;
};

static enum way way_of_uid (struct flake *f, uint64_t now_us, const struct flake_pending *p, struct making *m)
{
    const struct span *held = &f->naming.held;
    enum naming_way way = naming_way (&f->naming, now_us, flake_now_ms (f, now_us));

    if (way == NAMING_WAIT)
        flake_wake (f, naming_patience (&f->naming));
    if (way == NAMING_WAIT || way == NAMING_FORWARD)
        return way == NAMING_WAIT ? WAY_WAIT : WAY_FORWARD;
    if (p->req.drift && p->req.drift != f->naming.drift) {
        snprintf (f->why, sizeof (f->why), "drift %d: uids of this instance have %d drift bits (uid.drift of rank 0)",
                  p->req.drift, f->naming.drift);
        return WAY_REFUSE;
    }
    m->series = &f->own;
    if (way == NAMING_OWN)
        return WAY_MAKE;
    m->series = &f->given;
    m->range.lo_ms = max_u64 (m->range.lo_ms, held->lo_ms);
    m->range.hi_ms = min_u64 (m->range.hi_ms, held->hi_ms);
    return WAY_MAKE;
}

static enum way way_of (struct flake *f, uint64_t now_us, const struct flake_pending *p, struct making *m)
{
    if (p->req.kind == SERIES_FLAX)
        return WAY_MAKE;
    if (p->req.kind == SERIES_SNO && f->config.rank >= f->config.max_partitions)
        return WAY_FORWARD;
    switch (loan_state (&f->loan, now_us)) {
    case LOAN_UNKNOWN:
        return WAY_WAIT;
    case LOAN_FENCED:
    case LOAN_NEVER:
        return f->config.rank == 0 ? WAY_WAIT : WAY_FORWARD;
    case LOAN_HELD:
        break;
    }
    *m = (struct making){ &f->sno, f->loan.held };
    return p->req.kind == SERIES_UID ? way_of_uid (f, now_us, p, m) : WAY_MAKE;
}

/* --- making ------------------------------------------------------------------------------------ */

/* Reserve ids. Returns their number with the run in '*run', or -1 with errno EAGAIN (try again later) or another value
 * (they cannot be made).
 */
static int reserve (struct flake *f, uint64_t now_us, const struct flake_pending *p, const struct making *m,
                    uint32_t want, struct flake_run *run)
{
    int64_t epoch_us = f->loan.epoch_ms * 1000, wait_us = 0;
    int64_t lo_us = epoch_us + (int64_t)m->range.lo_ms * 1000, hi_us = epoch_us + (int64_t)m->range.hi_ms * 1000;
    int64_t unix_us = epoch_us + (int64_t)loan_now_us (&f->loan, now_us);

    if (p->req.kind == SERIES_FLAX) {
        run->n = want;
        return (int)want;
    }
    int n = series_reserve (m->series, lo_us, hi_us, unix_us, p->req.meta, want, run, &wait_us);
    if (n < 0 && (errno == EAGAIN || errno == ERANGE)) {
        flake_wake (f, now_us + (uint64_t)wait_us);
        errno = EAGAIN;
    }
    return n;
}

/* Make at most '*left' of the ids that a request lacks, and subtract them. Returns 0, or -1 as reserve () does. */
static int make (struct flake *f, uint64_t now_us, struct flake_pending *p, const struct making *m, int64_t *left)
{
    if (p->series != m->series)
        p->got = 0;
    p->series = m->series;
    while (p->got<p->req.count && * left> 0) {
        uint32_t lacks = p->req.count - p->got;
        struct flake_run run = { .n = 0 };

        if (reserve (f, now_us, p, m, lacks < *left ? lacks : (uint32_t)*left, &run) < 0
            || f->ops->give (f->arg, p->req.cookie, &run, p->got) < 0)
            return -1;
        p->got += run.n;
        *left -= run.n;
        f->stats.made[p->req.kind] += run.n;
    }
    return 0;
}

/* Returns whether to continue with this queue. */
static bool make_current (struct flake *f, uint64_t now_us, struct flake_pending *p, const struct making *m,
                          int64_t *left)
{
    if (make (f, now_us, p, m, left) < 0) {
        if (errno == EAGAIN)
            return false;
        flake_fail (f, p, errno,
                    errno == EOVERFLOW ? "the current date is beyond the range of this kind of id: check the clock"
                                       : NULL);
    }
    else if (p->got == p->req.count) {
        f->ops->reply (f->arg, p->req.cookie);
        forget (f, p);
    }
    else
        return true;
    *left -= FLAKE_REQUEST_COST;
    return true;
}

/* --- work ---------------------------------------------------------------------------------------- */

static void scheme_queue_work (struct flake *f, uint64_t now_us, struct scheme_queue *queue)
{
    int64_t left = FLAKE_TURN_IDS;
    bool again = true;
    struct flake_pending *p;

    while (again && left > 0 && (p = scheme_queue_current (queue))) {
        struct making m = { 0 };
        enum way way = way_of (f, now_us, p, &m);

        queue->makes = way == WAY_MAKE;
        switch (way) {
        case WAY_MAKE:
            again = make_current (f, now_us, p, &m, &left);
            break;
        case WAY_FORWARD:
            again = flake_up_add (f, now_us, queue);
            left -= FLAKE_UP_COST;
            break;
        case WAY_REFUSE:
            flake_fail (f, p, EINVAL, f->why);
            left -= FLAKE_REQUEST_COST;
            break;
        case WAY_WAIT:
            again = false;
        }
    }
    if (again && !scheme_queue_is_empty (queue))
        flake_wake (f, now_us);
    else
        flake_up_send (f, now_us, queue);
}

/* Time is requested before ids are made, because it may arrive soon. The claim comes last, because making uids shows
 * whether one is wanted.
 */
void flake_tick (struct flake *f, uint64_t now_us)
{
    f->deadline_us = NEVER;
    if (f->stopped)
        return;
    expire (f, now_us);
    flake_ask_for_time (f, now_us);
    for (int i = 0; i < SERIES_KINDS; i++) {
        scheme_queue_work (f, now_us, &f->few[i]);
        scheme_queue_work (f, now_us, &f->many[i]);
    }
    flake_ask_for_claim (f, now_us);
}

uint64_t flake_deadline (const struct flake *f)
{
    return f->deadline_us;
}

/* Refuse a request. Returns false. */
static bool refuse (struct flake *f, const struct flake_request *req, int errnum, const char *text)
{
    f->stats.refused += errnum == EAGAIN;
    f->ops->fail (f->arg, req->cookie, errnum, text);
    return false;
}

/* A requester's request for few ids goes behind its requests for many that still wait. */
static struct scheme_queue *scheme_queue_for (struct flake *f, const struct flake_request *req)
{
    struct scheme_queue *many = &f->many[req->kind];

    return req->count > FLAKE_FEW || scheme_queue_serves (many, req->asker) ? many : &f->few[req->kind];
}

static struct flake_pending *take (struct flake *f, uint64_t now_us, const struct flake_request *req)
{
    struct flake_pending *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    p->req = *req;
    p->deadline_us = now_us + f->config.timeout_us;
    if (scheme_queue_put (scheme_queue_for (f, req), p) < 0) {
        free (p);
        return NULL;
    }
    TAILQ_INSERT_TAIL (&f->all, p, link);
    f->expire_us = min_u64 (f->expire_us, p->deadline_us);
    return p;
}

/* If the deadline is now, other requests wait for their turn, and the next tick serves them first. */
bool flake_generate (struct flake *f, uint64_t now_us, const struct flake_request *req)
{
    f->stats.requests++;
    if (f->stopped)
        return refuse (f, req, EHOSTUNREACH, "the flake service of this broker is stopping");
    if (req->count < 1 || req->count > FLAKE_MAX_COUNT)
        return refuse (f, req, EINVAL, "count must be from 1 to 65536");
    if (!take (f, now_us, req))
        return refuse (f, req, errno == ENOMEM ? ENOMEM : EAGAIN,
                       errno == ENOMEM
                           ? NULL
                           : "this requester's share of flake.max-waiting requests waits already: try again later");
    if (f->deadline_us > now_us)
        flake_tick (f, now_us);
    return true;
}

void flake_cancel (struct flake *f, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg)
{
    struct flake_pending *p, *next;

    for (p = TAILQ_FIRST (&f->all); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (gone (p->req.cookie, arg))
            forget (f, p);
    }
    flake_tick (f, now_us);
}

/* --- start and end ------------------------------------------------------------------------------- */

static int create_series (struct flake *f)
{
    const uint32_t rank = f->config.rank;

    /* A rank at or above max_partitions forwards, and never uses its sno series. */
    f->sno.sno = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = rank & SNO_PARTITION_MAX } });
    f->own.uid = uid_gen_create (&(struct uid_gen_config){ .node = uid_node_numbered (rank & UID_NUMBER_MAX) });
    f->given.uid = uid_gen_create (&(struct uid_gen_config){ .node = { .fingerprint = f->config.fingerprint } });
    return f->sno.sno && f->own.uid && f->given.uid ? 0 : -1;
}

static int create_lanes (struct flake *f)
{
    int rc = 0;

    for (int i = 0; i < SERIES_KINDS; i++)
        if (scheme_queue_init (&f->few[i], f->config.max_waiting) < 0
            || scheme_queue_init (&f->many[i], f->config.max_waiting) < 0)
            rc = -1;
    return rc;
}

struct flake *flake_create (const struct flake_config *config, const struct flake_ops *ops, void *arg)
{
    struct flake *f;

    if (config->max_partitions < 1 || config->max_partitions > FLAKE_PARTITIONS
        || strlen (config->node) > CLAIM_NAME_MAX)
        return errset_null (EINVAL);
    if (!(f = calloc (1, sizeof (*f))))
        return NULL;
    f->config = *config;
    f->ops = ops;
    f->arg = arg;
    f->expire_us = NEVER;
    f->deadline_us = 0; /* due now, to request the drift */
    naming_init (&f->naming, config->rank, config->fingerprint, config->rank == 0 ? config->drift : 0);
    TAILQ_INIT (&f->all);
    TAILQ_INIT (&f->up);
    if (create_lanes (f) < 0 || create_series (f) < 0) {
        flake_destroy (f);
        return NULL;
    }
    return f;
}

void flake_destroy (struct flake *f)
{
    if (!f)
        return;
    int saved = errno;
    flake_up_fini (f);
    for (int i = 0; i < SERIES_KINDS; i++) {
        scheme_queue_fini (&f->few[i]);
        scheme_queue_fini (&f->many[i]);
    }
    sno_gen_destroy (f->sno.sno);
    uid_gen_destroy (f->own.uid);
    uid_gen_destroy (f->given.uid);
    registry_fini (&f->registry);
    free (f);
    errno = saved;
}

void flake_stop (struct flake *f, uint64_t now_us)
{
    struct flake_pending *p;
    uint64_t end_ms;

    assert (!f->stopped);
    f->stopped = true;
    f->deadline_us = NEVER;
    while ((p = TAILQ_FIRST (&f->all)))
        flake_fail (f, p, EHOSTUNREACH, "the flake service of this broker is stopping");
    if (loan_close (&f->loan, f->registry.end_ms, &end_ms))
        f->ops->give_back (f->arg, end_ms);
}

int flake_drift (const struct flake *f)
{
    return f->naming.drift;
}

struct flake_stats *flake_stats (struct flake *f)
{
    return &f->stats;
}

size_t flake_waiting (const struct flake *f)
{
    const struct flake_pending *p;
    size_t n = 0;

    TAILQ_FOREACH (p, &f->all, link)
        n += p->req.cookie != NULL;
    return n;
}
