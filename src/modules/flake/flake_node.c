/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_node.c - one rank of the flake service
 *
 * Requests of a kind are served in order of arrival.  way_of () decides, at each step, what becomes of the first one: it
 * is made here, passed on, refused, or it waits.  Ids are made only in the overlap of what way_of () returns, which is
 * what has been borrowed and, for uid, claimed (doc/design/flake.md, rules 1 and 3).  What a request got before the way
 * changed is thrown away: ids that nobody sees are harmless.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "modules/flake/flake_node.h"

#define NEVER UINT64_MAX
#define RETRY_US 50000          /* before a request whose way up was broken is sent again */
#define CLAIM_RETRY_US 10000    /* before a claim is made again; doubles */
#define CLAIM_RETRY_MAX_US 1000000
#define CLAIMS_TICK_US 20000    /* rank 0 sees to its loan so often, while somebody claims */

struct pending {
    TAILQ_ENTRY (pending) link;
    struct flake_request req;
    uint64_t deadline_us;
    uint64_t retry_us; /* not before this is it sent up (again) */
    uint32_t tag;      /* under which it went up */
    uint32_t got;
    struct flake_run *run; /* 'nruns' of them, 'got' ids together */
    size_t nruns, size;
};
TAILQ_HEAD (pendings, pending);

struct lane {
    struct series *series;
    struct pendings waiting;
    uint64_t ids; /* that those lack */
};

/* What is known of our claim. */
struct claiming {
    struct span held;
    uint64_t len_ms; /* of what was granted last */
    bool asking;
    bool wanted; /* for a request that waits */
    int errnum;  /* EEXIST: refused, and 'why' */
    char why[sizeof (((idt_error_t *)0)->text)];
    uint64_t ask_us; /* not before */
    uint64_t backoff_us;
};

struct flake {
    struct flake_config config;
    const struct flake_ops *ops;
    void *arg;
    bool stopped;
    struct term term;
    struct claiming claiming;
    struct registry *registry; /* rank 0 */
    uint64_t claims_until_us;  /* rank 0: somebody claims in vain, and will come again before this */
    struct lane lane[SERIES_KINDS];
    struct pendings up; /* on their way up */
    uint32_t tag;
    uint32_t count; /* requests, waiting or up */
    uint64_t deadline_us;
    struct flake_stats stats;
};

static void wake (struct flake *f, uint64_t at_us)
{
    if (f->deadline_us > at_us)
        f->deadline_us = at_us;
}

static struct lane *lane_of (struct flake *f, const struct pending *p)
{
    return &f->lane[p->req.kind];
}

/* --- requests -------------------------------------------------------------------------------- */

static void forget (struct flake *f, struct pendings *list, struct pending *p)
{
    TAILQ_REMOVE (list, p, link);
    if (list != &f->up)
        lane_of (f, p)->ids -= p->req.count;
    f->count--;
    free (p->run);
    free (p);
}

static void fail (struct flake *f, struct pendings *list, struct pending *p, int errnum, const char *text)
{
    f->ops->fail (f->arg, p->req.cookie, errnum, text);
    forget (f, list, p);
}

static const char *unreachable = "no broker that can make these ids was reached in time";

/* Lists are in order of deadlines, which is that of arrival. */
static void expire (struct flake *f, uint64_t now_us, struct pendings *list)
{
    struct pending *p, *next;

    for (p = TAILQ_FIRST (list); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->deadline_us <= now_us)
            fail (f, list, p, EHOSTUNREACH, unreachable);
        else {
            wake (f, p->deadline_us);
            break;
        }
    }
}

static int add_run (struct pending *p, const struct flake_run *run)
{
    if (p->nruns == p->size) {
        size_t size = p->size ? 2 * p->size : 4;
        struct flake_run *grown = realloc (p->run, size * sizeof (run[0]));

        if (!grown)
            return -1;
        p->run = grown;
        p->size = size;
    }
    p->run[p->nruns++] = *run;
    p->got += run->n;
    return 0;
}

/* --- which way -------------------------------------------------------------------------------- */

enum way {
    WAY_MAKE,
    WAY_FORWARD,
    WAY_WAIT,
    WAY_REFUSE,
};

static bool contains (const struct span *s, uint64_t ms)
{
    return ms >= s->lo_ms && ms < s->hi_ms;
}

static enum way way_of_claim (struct flake *f, uint64_t now_us, struct span *range)
{
    const struct span *held = &f->claiming.held;

    f->claiming.wanted = true;
    if (!contains (held, term_now_us (&f->term, now_us) / 1000))
        return f->claiming.errnum == EEXIST ? WAY_REFUSE : WAY_WAIT;
    if (range->lo_ms < held->lo_ms)
        range->lo_ms = held->lo_ms;
    if (range->hi_ms > held->hi_ms)
        range->hi_ms = held->hi_ms;
    return WAY_MAKE;
}

/* And in which range of time ids may be made. */
static enum way way_of (struct flake *f, uint64_t now_us, enum series_kind kind, struct span *range)
{
    if (kind == SERIES_SNO && f->config.rank >= f->config.max_partitions)
        return WAY_FORWARD;
    switch (term_state (&f->term, now_us)) {
    case TERM_UNKNOWN:
        return WAY_WAIT;
    case TERM_FENCED:
    case TERM_NEVER:
        return f->config.rank == 0 ? WAY_WAIT : WAY_FORWARD;
    case TERM_HELD:
        break;
    }
    *range = f->term.held;
    return kind == SERIES_UID ? way_of_claim (f, now_us, range) : WAY_MAKE;
}

/* --- making ------------------------------------------------------------------------------------ */

/* Make what can be made now.  Returns 0 when all is there, else -1 with errno EAGAIN or why it never will be. */
static int make (struct flake *f, uint64_t now_us, struct pending *p, const struct span *range)
{
    int64_t epoch_us = f->term.epoch_ms * 1000, wait_us = 0;
    int64_t unix_us = epoch_us + (int64_t)term_now_us (&f->term, now_us);
    struct series *series = lane_of (f, p)->series;

    while (p->got < p->req.count) {
        struct flake_run run;

        if (series_reserve (series, epoch_us + (int64_t)range->lo_ms * 1000, epoch_us + (int64_t)range->hi_ms * 1000,
                            unix_us, p->req.meta, p->req.count - p->got, &run, &wait_us)
            < 0) {
            if (errno != EAGAIN && errno != ERANGE)
                return -1;
            wake (f, now_us + (uint64_t)wait_us);
            errno = EAGAIN;
            return -1;
        }
        if (add_run (p, &run) < 0)
            return -1;
        f->stats.ids += run.n;
    }
    return 0;
}

/* Returns whether the first request is done with. */
static bool make_first (struct flake *f, uint64_t now_us, struct lane *lane, const struct span *range)
{
    struct pending *p = TAILQ_FIRST (&lane->waiting);

    if (make (f, now_us, p, range) < 0) {
        if (errno == EAGAIN)
            return false;
        fail (f, &lane->waiting, p, errno,
              errno == EOVERFLOW ? "these ids do not reach the date that the instance has" : NULL);
        return true;
    }
    f->ops->reply (f->arg, p->req.cookie, p->run, p->nruns);
    forget (f, &lane->waiting, p);
    return true;
}

/* --- forwarding --------------------------------------------------------------------------------- */

/* What goes up for a second time is older than others that are there. */
static void insert (struct pendings *list, struct pending *p)
{
    struct pending *before = TAILQ_LAST (list, pendings);

    while (before && before->deadline_us > p->deadline_us)
        before = TAILQ_PREV (before, pendings, link);
    if (before)
        TAILQ_INSERT_AFTER (list, before, p, link);
    else
        TAILQ_INSERT_HEAD (list, p, link);
}

static void move_up (struct flake *f, struct pending *p)
{
    TAILQ_REMOVE (&lane_of (f, p)->waiting, p, link);
    lane_of (f, p)->ids -= p->req.count;
    insert (&f->up, p);
}

static void move_back (struct flake *f, struct pending *p)
{
    TAILQ_REMOVE (&f->up, p, link);
    lane_of (f, p)->ids += p->req.count;
    insert (&lane_of (f, p)->waiting, p);
}

static bool forward_first (struct flake *f, uint64_t now_us, struct lane *lane)
{
    struct pending *p = TAILQ_FIRST (&lane->waiting);

    if (p->retry_us > now_us) {
        wake (f, p->retry_us);
        return false;
    }
    p->got = 0;
    p->nruns = 0;
    p->tag = ++f->tag;
    if (f->ops->forward (f->arg, p->tag, p->req.cookie) < 0) {
        p->retry_us = now_us + RETRY_US;
        wake (f, p->retry_us);
        return false;
    }
    f->stats.forwards++;
    move_up (f, p);
    wake (f, p->deadline_us);
    return true;
}

static struct pending *find_up (struct flake *f, uint32_t tag)
{
    struct pending *p;

    TAILQ_FOREACH (p, &f->up, link)
        if (p->tag == tag)
            return p;
    return NULL;
}

void *flake_forwarded (struct flake *f, uint32_t tag)
{
    struct pending *p = find_up (f, tag);
    void *cookie = p ? p->req.cookie : NULL;

    if (p)
        forget (f, &f->up, p);
    return cookie;
}

/* A way that was broken may be whole again; what the parent says is the answer. */
void flake_forward_failed (struct flake *f, uint64_t now_us, uint32_t tag, int errnum, const char *text)
{
    struct pending *p = find_up (f, tag);

    if (!p)
        return;
    if (errnum != EHOSTUNREACH)
        fail (f, &f->up, p, errnum, text);
    else {
        p->retry_us = now_us + RETRY_US;
        move_back (f, p);
    }
    flake_tick (f, now_us);
}

/* --- time and claims ------------------------------------------------------------------------------ */

static void ask_for_time (struct flake *f, uint64_t now_us)
{
    bool claims = now_us < f->claims_until_us;

    if (!claims && TAILQ_EMPTY (&f->lane[SERIES_SNO].waiting) && TAILQ_EMPTY (&f->lane[SERIES_UID].waiting))
        return;
    if (claims)
        wake (f, now_us + CLAIMS_TICK_US);
    if (term_is_due (&f->term, now_us)) {
        if (f->ops->borrow (f->arg) == 0)
            term_asked (&f->term);
        else
            term_refused (&f->term, now_us, TERM_FENCED);
    }
    if (term_state (&f->term, now_us) != TERM_HELD)
        wake (f, term_due (&f->term));
}

static bool claim_is_due (struct flake *f, uint64_t now_us)
{
    const struct claiming *c = &f->claiming;
    uint64_t ms = term_now_us (&f->term, now_us) / 1000;

    if (!c->wanted || c->asking || now_us < c->ask_us)
        return false;
    return !contains (&c->held, ms) || c->held.hi_ms - ms <= c->len_ms / 4;
}

static void claim_again_later (struct flake *f, uint64_t now_us)
{
    struct claiming *c = &f->claiming;

    c->asking = false;
    c->backoff_us = c->backoff_us ? 2 * c->backoff_us : CLAIM_RETRY_US;
    if (c->backoff_us > CLAIM_RETRY_MAX_US)
        c->backoff_us = CLAIM_RETRY_MAX_US;
    c->ask_us = now_us + c->backoff_us;
}

static void ask_for_claim (struct flake *f, uint64_t now_us)
{
    const struct claim claim = { f->config.fingerprint, f->config.rank, f->config.node };

    if (claim_is_due (f, now_us)) {
        f->claiming.asking = true;
        f->stats.claims++;
        if (f->ops->claim (f->arg, &claim) < 0)
            claim_again_later (f, now_us);
    }
    if (!TAILQ_EMPTY (&f->lane[SERIES_UID].waiting) && f->claiming.wanted && !f->claiming.asking
        && f->claiming.ask_us > now_us)
        wake (f, f->claiming.ask_us);
    f->claiming.wanted = false;
}

void flake_lent (struct flake *f, uint64_t now_us, const struct term_loan *loan)
{
    f->stats.loans++;
    term_lent (&f->term, now_us, loan);
    flake_tick (f, now_us);
}

void flake_not_lent (struct flake *f, uint64_t now_us, bool never)
{
    term_refused (&f->term, now_us, never ? TERM_NEVER : TERM_FENCED);
    flake_tick (f, now_us);
}

/* Ranges come in order of time; two need not touch, and then the older one is not used any more. */
void flake_claimed (struct flake *f, uint64_t now_us, const struct span *range)
{
    struct claiming *c = &f->claiming;

    if (range->lo_ms > c->held.hi_ms || range->lo_ms < c->held.lo_ms)
        c->held = *range;
    else
        c->held.hi_ms = range->hi_ms > c->held.hi_ms ? range->hi_ms : c->held.hi_ms;
    c->len_ms = range->hi_ms - range->lo_ms;
    c->asking = false;
    c->errnum = 0;
    c->backoff_us = 0;
    c->ask_us = now_us + CLAIM_RETRY_US;
    flake_tick (f, now_us);
}

void flake_claim_failed (struct flake *f, uint64_t now_us, int errnum, const char *text)
{
    struct claiming *c = &f->claiming;

    c->errnum = errnum;
    snprintf (c->why, sizeof (c->why), "%s", text ? text : "");
    if (errnum == EEXIST)
        c->backoff_us = CLAIM_RETRY_MAX_US;
    claim_again_later (f, now_us);
    flake_tick (f, now_us);
}

int flake_claim_request (struct flake *f, uint64_t now_us, const struct claim *claim, struct span *range,
                         idt_error_t *errp)
{
    errno = ENOTSUP;
    if (!f->registry)
        return -1;
    int rc = -1, saved = EAGAIN;
    /* A loan may be over before the claim is made again, so it is renewed till then. */
    f->claims_until_us = now_us + 2 * CLAIM_RETRY_MAX_US;
    if (!f->stopped && term_state (&f->term, now_us) == TERM_HELD) {
        rc = registry_claim (f->registry, term_now_us (&f->term, now_us) / 1000, &f->term.held, claim, range, errp);
        saved = errno;
    }
    flake_tick (f, now_us);
    if (rc == 0 || saved != EAGAIN)
        f->claims_until_us = 0;
    errno = saved;
    return rc;
}

/* --- work ---------------------------------------------------------------------------------------- */

static void lane_work (struct flake *f, uint64_t now_us, enum series_kind kind)
{
    struct lane *lane = &f->lane[kind];
    bool again = true;

    while (again && !TAILQ_EMPTY (&lane->waiting)) {
        struct span range;

        switch (way_of (f, now_us, kind, &range)) {
        case WAY_MAKE:
            again = make_first (f, now_us, lane, &range);
            break;
        case WAY_FORWARD:
            again = forward_first (f, now_us, lane);
            break;
        case WAY_REFUSE:
            fail (f, &lane->waiting, TAILQ_FIRST (&lane->waiting), f->claiming.errnum, f->claiming.why);
            break;
        case WAY_WAIT:
            again = false;
        }
    }
}

/* The question for time comes before the work, for it may be answered soon; it is the work that wants a claim. */
void flake_tick (struct flake *f, uint64_t now_us)
{
    f->deadline_us = NEVER;
    if (f->stopped)
        return;
    expire (f, now_us, &f->up);
    for (int i = 0; i < SERIES_KINDS; i++)
        expire (f, now_us, &f->lane[i].waiting);
    ask_for_time (f, now_us);
    for (int i = 0; i < SERIES_KINDS; i++)
        lane_work (f, now_us, i);
    ask_for_claim (f, now_us);
}

uint64_t flake_deadline (const struct flake *f)
{
    return f->deadline_us;
}

static int refuse (struct flake *f, const struct flake_request *req, int errnum, const char *text)
{
    f->stats.refused += errnum == EAGAIN;
    f->ops->fail (f->arg, req->cookie, errnum, text);
    return -1;
}

static int check (struct flake *f, const struct flake_request *req)
{
    if (f->stopped)
        return refuse (f, req, EHOSTUNREACH, "the flake service of this broker is stopping");
    if (req->count < 1 || req->count > FLAKE_MAX_COUNT)
        return refuse (f, req, EINVAL, "count must be from 1 to 65536");
    if (f->count >= f->config.max_waiting)
        return refuse (f, req, EAGAIN, "flake.max-waiting requests wait already: ask again later");
    if (f->lane[req->kind].ids + req->count > FLAKE_MAX_IDS)
        return refuse (f, req, EAGAIN, "4194304 ids wait to be made already: ask again later");
    return 0;
}

void flake_generate (struct flake *f, uint64_t now_us, const struct flake_request *req)
{
    struct pending *p;

    f->stats.requests++;
    if (check (f, req) < 0)
        return;
    if (!(p = calloc (1, sizeof (*p)))) {
        refuse (f, req, ENOMEM, NULL);
        return;
    }
    p->req = *req;
    p->deadline_us = now_us + f->config.timeout_us;
    f->count++;
    f->lane[req->kind].ids += req->count;
    TAILQ_INSERT_TAIL (&f->lane[req->kind].waiting, p, link);
    flake_tick (f, now_us);
}

static void cancel_in (struct flake *f, struct pendings *list, bool (*gone) (void *cookie, void *arg), void *arg)
{
    struct pending *p, *next;

    for (p = TAILQ_FIRST (list); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (gone (p->req.cookie, arg))
            forget (f, list, p);
    }
}

void flake_cancel (struct flake *f, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg)
{
    cancel_in (f, &f->up, gone, arg);
    for (int i = 0; i < SERIES_KINDS; i++)
        cancel_in (f, &f->lane[i].waiting, gone, arg);
    flake_tick (f, now_us);
}

/* --- life ---------------------------------------------------------------------------------------- */

static int create_series (struct flake *f)
{
    const struct uid_node node = { .fingerprint = f->config.fingerprint };

    /* A rank beyond the partitions forwards, and never asks its series. */
    f->lane[SERIES_SNO].series = series_create_sno (f->config.rank & SNO_PARTITION_MAX);
    f->lane[SERIES_UID].series = series_create_uid (&node);
    return f->lane[SERIES_SNO].series && f->lane[SERIES_UID].series ? 0 : -1;
}

struct flake *flake_create (const struct flake_config *config, const struct flake_ops *ops, void *arg)
{
    struct flake *f;

    if (config->max_partitions < 1 || config->max_partitions > FLAKE_PARTITIONS
        || strlen (config->node) > CLAIM_NAME_MAX) {
        errno = EINVAL;
        return NULL;
    }
    if (!(f = calloc (1, sizeof (*f))))
        return NULL;
    f->config = *config;
    f->ops = ops;
    f->arg = arg;
    f->deadline_us = NEVER;
    TAILQ_INIT (&f->up);
    for (int i = 0; i < SERIES_KINDS; i++)
        TAILQ_INIT (&f->lane[i].waiting);
    if (create_series (f) < 0 || (config->rank == 0 && !(f->registry = registry_create ()))) {
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
    for (int i = 0; i < SERIES_KINDS; i++)
        series_destroy (f->lane[i].series);
    registry_destroy (f->registry);
    free (f);
    errno = saved;
}

static void fail_all (struct flake *f, struct pendings *list)
{
    struct pending *p;

    while ((p = TAILQ_FIRST (list)))
        fail (f, list, p, EHOSTUNREACH, "the flake service of this broker is stopping");
}

void flake_stop (struct flake *f, uint64_t now_us)
{
    uint64_t end_ms;

    assert (!f->stopped);
    f->stopped = true;
    f->deadline_us = NEVER;
    fail_all (f, &f->up);
    for (int i = 0; i < SERIES_KINDS; i++)
        fail_all (f, &f->lane[i].waiting);
    if (term_close (&f->term, f->registry ? registry_end_ms (f->registry) : 0, &end_ms))
        f->ops->give_back (f->arg, end_ms);
}

struct flake_stats flake_stats (const struct flake *f)
{
    return f->stats;
}

void flake_stats_clear (struct flake *f)
{
    f->stats = (struct flake_stats){ 0 };
}
