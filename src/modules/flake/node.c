/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.c - the core of the flake service on one rank
 *
 * Each kind has a queue for requests of few ids and a queue for requests of many, so that a request for one id does not
 * wait for one of 65,536. way_of () decides at each step what happens to the current request of a queue: its ids are
 * made here, or it is forwarded, or it is refused, or it waits. Ids are made only in the range that way_of () returns.
 * That is the granted time or, under a configured name, the part of the granted time in which rank 0 granted the
 * name (doc/design/flake.md, rules 1 and 3). If the way changes to another series, the ids that a request got before
 * are dropped. That is harmless, because they were not sent to the requester yet.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/flake/requests.h"

#define NEVER UINT64_MAX
#define SECOND_US INT64_C (1000000)
#define UNIT_US (SNO_UNIT_NS / 1000)
#define CLAIMS_US 2000000               /* a rank repeats a claim that could not be granted within this time */
#define CLAIMS_TICK_US 20000            /* interval at which rank 0 checks its time during that time */
#define FOREVER_MS (UINT64_C (1) << 40) /* the end of the instance's time */

struct flake {
    struct flake_config config;
    const struct flake_ops *ops;
    void *arg;
    bool stopped;
    struct held_time time;
    struct naming naming;
    struct registry registry; /* used at rank 0 */
    /* rank 0: until then a rank may repeat a claim that could not be granted; 0: no rank waits */
    uint64_t claims_until_us;
    struct series sno, own, given;
    struct requests requests;
    uint64_t deadline_us;                        /* the requests have their own deadline, requests.wake_us */
    char why[sizeof (((idt_error_t *)0)->text)]; /* text of a refusal */
    struct flake_stats stats;
};

static void wake (struct flake *f, uint64_t at_us)
{
    f->deadline_us = min_u64 (f->deadline_us, at_us);
}

static uint64_t now_ms (struct flake *f, uint64_t now_us)
{
    return held_time_now_us (&f->time, now_us) / 1000;
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
    enum naming_way way = naming_way (&f->naming, now_us, now_ms (f, now_us));

    if (way == NAMING_WAIT)
        wake (f, naming_patience (&f->naming));
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
    switch (held_time_state (&f->time, now_us)) {
    case HELD_TIME_UNKNOWN:
        return WAY_WAIT;
    case HELD_TIME_FENCED:
    case HELD_TIME_NEVER:
        return f->config.rank == 0 ? WAY_WAIT : WAY_FORWARD;
    case HELD_TIME_HELD:
        break;
    }
    *m = (struct making){ &f->sno, f->time.held };
    return p->req.kind == SERIES_UID ? way_of_uid (f, now_us, p, m) : WAY_MAKE;
}

/* --- making ------------------------------------------------------------------------------------ */

/* Only whole steps of time are used. So ranges of time that do not overlap never give equal ids, even if a step is
 * divided between them (doc/design/flake.md, rule 2).
 */
static int reserve_sno (struct sno_gen *sno, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                        struct flake_run *run, int64_t *wait_us)
{
    uint64_t lo, hi;
    int64_t wait_ns = 0;

    *wait_us = UNIT_US - unix_us % UNIT_US;
    /* The first unit that begins in the range, and the first that does not end in it. */
    if (sno_unit_at ((lo_us + UNIT_US - 1) * 1000, &lo) < 0 || sno_unit_at (hi_us * 1000, &hi) < 0)
        return -1;
    if (lo >= hi)
        return errset (ERANGE);
    sno_gen_set_range (sno, lo, hi);
    int n = sno_gen_reserve (sno, meta, unix_us * 1000, want, &run->first.sno, &wait_ns);
    if (n < 0 && errno == EAGAIN)
        *wait_us = (wait_ns + 999) / 1000;
    /* ESTALE means that the clock has left the unit. The clock never goes back to it, so the next unit is tried. */
    if (n < 0 && errno == ESTALE)
        return errset (EAGAIN);
    return n;
}

/* The step that contains a time: [*from_us, *to_us). */
static void step_at (int64_t us, int64_t *from_us, int64_t *to_us)
{
    int64_t second = us / SECOND_US * SECOND_US, c = us - second;

    *from_us = second + c / UID_STEP_US * UID_STEP_US;
    *to_us = *from_us + UID_STEP_US;
    if (*to_us > second + SECOND_US) /* the last step of a second is shorter */
        *to_us = second + SECOND_US;
}

static int reserve_uid (struct uid_gen *uid, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint32_t want,
                        struct flake_run *run, int64_t *wait_us)
{
    int64_t from_us, to_us;

    step_at (unix_us, &from_us, &to_us);
    *wait_us = to_us - unix_us;
    if (from_us < lo_us || to_us > hi_us)
        return errset (ERANGE);
    return uid_gen_reserve (uid, UID_GLOBAL, unix_us, want, &run->first.uid, wait_us);
}

int series_reserve (const struct series *s, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                    struct flake_run *run, int64_t *wait_us)
{
    int n = s->sno ? reserve_sno (s->sno, lo_us, hi_us, unix_us, meta, want, run, wait_us)
                   : reserve_uid (s->uid, lo_us, hi_us, unix_us, want, run, wait_us);

    assert (n != 0 && n <= (int64_t)want);
    if (n > 0)
        run->n = (uint32_t)n;
    return n;
}

/* Reserve ids. Returns their number, with the run in '*run'. Returns -1 with errno EAGAIN if the caller must try again
 * later, or with another errno if the ids cannot be made.
 */
static int reserve (struct flake *f, uint64_t now_us, const struct flake_pending *p, const struct making *m,
                    uint32_t want, struct flake_run *run)
{
    int64_t epoch_us = f->time.epoch_ms * 1000, wait_us = 0;
    int64_t lo_us = epoch_us + (int64_t)m->range.lo_ms * 1000, hi_us = epoch_us + (int64_t)m->range.hi_ms * 1000;
    int64_t unix_us = epoch_us + (int64_t)held_time_now_us (&f->time, now_us);

    if (p->req.kind == SERIES_FLAX) {
        run->n = want;
        return (int)want;
    }
    int n = series_reserve (m->series, lo_us, hi_us, unix_us, p->req.meta, want, run, &wait_us);
    if (n < 0 && (errno == EAGAIN || errno == ERANGE)) {
        wake (f, now_us + (uint64_t)wait_us);
        errno = EAGAIN;
    }
    return n;
}

/* Make at most '*left' of the ids that a request lacks, and subtract the number of ids made from '*left'. Returns 0, or
 * -1 as reserve () does.
 */
static int make (struct flake *f, uint64_t now_us, struct flake_pending *p, const struct making *m, int64_t *left)
{
    if (p->series != m->series)
        p->got = 0;
    p->series = m->series;
    while (*left > 0 && p->got < p->req.count) {
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

/* Make ids for the current request of a queue. Returns whether to continue with this queue. */
static bool make_current (struct flake *f, uint64_t now_us, struct flake_pending *p, const struct making *m,
                          int64_t *left)
{
    if (make (f, now_us, p, m, left) < 0) {
        if (errno == EAGAIN)
            return false;
        requests_fail (&f->requests, p, errno,
                       errno == EOVERFLOW ? "the current date is beyond the range of this kind of id: check the clock"
                                          : NULL);
    }
    else if (p->got == p->req.count) {
        f->ops->reply (f->arg, p->req.cookie);
        requests_forget (&f->requests, p);
    }
    else
        return true;
    *left -= FLAKE_REQUEST_COST;
    return true;
}

/* --- time and names ---------------------------------------------------------------------------------- */

static bool needs_time (const struct flake *f, enum series_kind kind)
{
    return !requests_queue_is_empty (&f->requests.few[kind]) || !requests_queue_is_empty (&f->requests.many[kind]);
}

static void ask_for_time (struct flake *f, uint64_t now_us)
{
    bool claims = now_us < f->claims_until_us;

    if (!claims && !needs_time (f, SERIES_SNO) && !needs_time (f, SERIES_UID))
        return;
    if (claims)
        wake (f, now_us + CLAIMS_TICK_US);
    if (held_time_is_due (&f->time, now_us)) {
        if (f->ops->ask_time (f->arg) == 0)
            held_time_asked (&f->time);
        else
            held_time_refused (&f->time, now_us, HELD_TIME_FENCED);
    }
    if (held_time_state (&f->time, now_us) != HELD_TIME_HELD)
        wake (f, held_time_due (&f->time));
}

static void ask_for_claim (struct flake *f, uint64_t now_us)
{
    const struct claim claim = { f->config.fingerprint, f->config.rank, f->config.node };

    if (naming_is_due (&f->naming, now_us, now_ms (f, now_us))) {
        naming_asked (&f->naming);
        f->stats.claims++;
        if (f->ops->claim (f->arg, &claim) < 0)
            naming_failed (&f->naming, now_us);
    }
    if (naming_due (&f->naming) > now_us)
        wake (f, naming_due (&f->naming));
}

/* --- work ---------------------------------------------------------------------------------------- */

static void work_queue (struct flake *f, uint64_t now_us, struct scheme_queue *queue)
{
    int64_t left = FLAKE_TURN_IDS;
    bool again = true;
    struct flake_pending *p;

    while (again && left > 0 && (p = requests_current (queue))) {
        struct making m = { 0 };
        enum way way = way_of (f, now_us, p, &m);

        queue->makes = way == WAY_MAKE;
        switch (way) {
        case WAY_MAKE:
            again = make_current (f, now_us, p, &m, &left);
            break;
        case WAY_FORWARD:
            again = requests_forward (&f->requests, now_us, queue);
            left -= FLAKE_UP_COST;
            break;
        case WAY_REFUSE:
            requests_fail (&f->requests, p, EINVAL, f->why);
            left -= FLAKE_REQUEST_COST;
            break;
        case WAY_WAIT:
            again = false;
        }
    }
    if (again && !requests_queue_is_empty (queue))
        wake (f, now_us);
    else
        requests_send (&f->requests, now_us, queue);
}

/* Time is requested before ids are made, because the answer may arrive soon. The claim comes last, because the attempt
 * to make uids shows whether a claim is wanted.
 */
void flake_tick (struct flake *f, uint64_t now_us)
{
    f->deadline_us = f->requests.wake_us = NEVER;
    if (f->stopped)
        return;
    requests_expire (&f->requests, now_us);
    ask_for_time (f, now_us);
    for (int i = 0; i < SERIES_KINDS; i++) {
        work_queue (f, now_us, &f->requests.few[i]);
        work_queue (f, now_us, &f->requests.many[i]);
    }
    ask_for_claim (f, now_us);
}

uint64_t flake_deadline (const struct flake *f)
{
    return min_u64 (f->deadline_us, f->requests.wake_us);
}

/* Refuse a request. Returns false. */
static bool refuse (struct flake *f, const struct flake_request *req, int errnum, const char *text)
{
    f->stats.refused += errnum == EAGAIN;
    f->ops->fail (f->arg, req->cookie, errnum, text);
    return false;
}

/* If the deadline is now, other requests wait for their turn. In that case the next tick serves the new request in its
 * turn.
 */
bool flake_generate (struct flake *f, uint64_t now_us, const struct flake_request *req)
{
    f->stats.requests++;
    if (f->stopped)
        return refuse (f, req, EHOSTUNREACH, "the flake service of this broker is stopping");
    if (req->count < 1 || req->count > FLAKE_MAX_COUNT)
        return refuse (f, req, EINVAL, "count must be from 1 to 65536");
    if (requests_put (&f->requests, now_us, req) < 0)
        return refuse (f, req, errno == ENOMEM ? ENOMEM : EAGAIN,
                       errno == ENOMEM
                           ? NULL
                           : "this requester's share of flake.max-waiting requests waits already: try again later");
    if (flake_deadline (f) > now_us)
        flake_tick (f, now_us);
    return true;
}

void flake_cancel (struct flake *f, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg)
{
    struct flake_pending *p, *next;

    for (p = TAILQ_FIRST (&f->requests.all); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (gone (p->req.cookie, arg))
            requests_forget (&f->requests, p);
    }
    flake_tick (f, now_us);
}

/* --- answers of the parent and of rank 0 ---------------------------------------------------------------- */

uint32_t flake_forward_count (const struct flake *f, uint32_t tag)
{
    return requests_forward_count (&f->requests, tag);
}

void flake_forwarded (struct flake *f, uint64_t now_us, uint32_t tag)
{
    requests_forwarded (&f->requests, now_us, tag);
}

void flake_forward_failed (struct flake *f, uint64_t now_us, uint32_t tag, int errnum, const char *text)
{
    requests_forward_failed (&f->requests, now_us, tag, errnum, text);
    flake_tick (f, now_us);
}

void flake_time_granted (struct flake *f, uint64_t now_us, const struct time_answer *time)
{
    f->stats.times++;
    held_time_granted (&f->time, now_us, time);
    flake_tick (f, now_us);
}

void flake_time_refused (struct flake *f, uint64_t now_us, bool never)
{
    held_time_refused (&f->time, now_us, never ? HELD_TIME_NEVER : HELD_TIME_FENCED);
    flake_tick (f, now_us);
}

void flake_claimed (struct flake *f, uint64_t now_us, const struct naming_grant *grant)
{
    naming_granted (&f->naming, now_us, grant);
    flake_tick (f, now_us);
}

void flake_claim_failed (struct flake *f, uint64_t now_us)
{
    naming_failed (&f->naming, now_us);
    flake_tick (f, now_us);
}

static int claim_given (struct flake *f, uint64_t now_us, const struct claim *claim, struct span *range,
                        idt_error_t *errp)
{
    int rc = -1, saved = EAGAIN;

    /* If the claim cannot be granted now, the rank repeats it later. So keep the time renewed until then. */
    f->claims_until_us = now_us + CLAIMS_US;
    if (!f->stopped && held_time_state (&f->time, now_us) == HELD_TIME_HELD) {
        rc = registry_claim (&f->registry, now_ms (f, now_us), &f->time.held, claim, range, errp);
        saved = errno;
    }
    flake_tick (f, now_us);
    if (rc == 0 || saved != EAGAIN)
        f->claims_until_us = 0;
    errno = saved;
    return rc;
}

int flake_claim_request (struct flake *f, uint64_t now_us, const struct claim *claim, struct naming_grant *grant,
                         idt_error_t *errp)
{
    struct naming_grant own = { naming_own (claim->rank), { 0, FOREVER_MS }, f->config.drift }, given = own;

    errno = ENOTSUP;
    if (f->config.rank != 0)
        return -1;
    given.fingerprint = claim->fingerprint;
    if (claim->fingerprint != own.fingerprint) {
        errno = EINVAL;
        if (naming_is_own (claim->fingerprint))
            return errprintf (errp, "fingerprint 0x%08x belongs to the number of another rank", claim->fingerprint);
        if (claim_given (f, now_us, claim, &given.range, errp) < 0) {
            if (errno != EEXIST && errno != ENOSPC)
                return -1;
            given = own;
        }
    }
    *grant = given;
    return 0;
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
    f->deadline_us = 0; /* due now, to request the drift */
    naming_init (&f->naming, config->rank, config->fingerprint, config->rank == 0 ? config->drift : 0);
    if (requests_init (&f->requests, &f->config, ops, arg, &f->stats) < 0 || create_series (f) < 0) {
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
    requests_fini (&f->requests);
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
    f->deadline_us = f->requests.wake_us = NEVER;
    while ((p = TAILQ_FIRST (&f->requests.all)))
        requests_fail (&f->requests, p, EHOSTUNREACH, "the flake service of this broker is stopping");
    if (held_time_close (&f->time, f->registry.end_ms, &end_ms))
        f->ops->return_time (f->arg, end_ms);
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

    TAILQ_FOREACH (p, &f->requests.all, link)
        n += p->req.cookie != NULL;
    return n;
}
