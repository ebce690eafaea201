/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* forward.c - requests that a node cannot serve: they are combined and sent to the parent, and the ids of the answer
 * are dealt out
 *
 * One combined request is under way at a time for all waiting requests. While a long one is under way, newcomers
 * (requesters that ask for few ids and have nothing under way) are sent in a second combined request beside it, so that
 * they do not wait for the ids of others. Both combined requests ask for ids above all ids that were answered here, and
 * no requester is in both. So each requester gets its ids in order, and later requests get higher ids, in whatever
 * order the two answers arrive.
 *
 * Each request that is part of a forward has 'asked' > 0 and is in the forward's list. The ids of the answer are dealt
 * out in the order of the list. A request that is answered meanwhile keeps its place in the list until the forward
 * ends.
 */
#include <assert.h>
#include <errno.h>
#include <syslog.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define FIRST_RETRY_US 20000 /* pause after a failed forward; doubles up to LAST_RETRY_US */
#define LAST_RETRY_US 500000
#define LEAST_PATIENCE_US 100000 /* least wait for an answer of a rank that holds a part; it waits for 8 round trips */
#define UP_TURN (16 * WAITING_TURN) /* ids of a client in each round trip; so many ids hardly prolong the round trip */

/* --- up -------------------------------------------------------------------------------------- */

/* The forward is over: the other waiting requests can be sent next (rules RESEND, SEND_THE_REST). Entries that were
 * answered meanwhile are freed.
 */
static void end (struct node *n, struct forward *f)
{
    struct pending *p;

    f->busy = false;
    while ((p = TAILQ_FIRST (&f->shares))) {
        TAILQ_REMOVE (&f->shares, p, share);
        waiting_came (&n->waiting, p);
    }
}

bool node_forward_is_busy (const struct node *n)
{
    return n->up.all.busy || n->up.newcomers.busy;
}

void node_forward_end (struct node *n)
{
    end (n, &n->up.all);
    end (n, &n->up.newcomers);
}

static void retry_later (struct forward *f, uint64_t now_us)
{
    f->backoff_us = min_u64 (f->backoff_us > 0 ? 2 * f->backoff_us : FIRST_RETRY_US, LAST_RETRY_US);
    f->retry_us = now_us + f->backoff_us;
}

/* Whether a request may be forwarded. The parent trusts 'after' of a forward, so a client's 'after' waits here until
 * its time has come (see is_ripe ()).
 */
static bool may_go_up (struct node *n, uint64_t now_us, const struct pending *p)
{
    uint64_t ms = node_floor_ms (n, p->after);

    if (p->from_broker || ms == 0 || (n->clock->known && ms <= node_now_ms (n, now_us)))
        return true;
    node_wake_ms (n, now_us, ms);
    return false;
}

/* Whether ids of this requester are under way. If they are, no other request of the requester may overtake them. */
static bool is_under_way (const struct requester *a)
{
    const struct pending *p;

    TAILQ_FOREACH (p, &a->waiting, turn)
        if (p->asked > 0)
            return true;
    return false;
}

/* Add the ids that a request lacks to a forward, but at most 'room'. */
static void add_share (struct node *n, struct forward *f, struct pending *p, uint32_t room)
{
    uint32_t lack = p->count - p->got;

    assert (p->asked == 0 && lack > 0 && room > 0); /* a request is in one forward at a time */
    p->asked = lack < room ? lack : room;
    p->asked_ms = n->cursor_ms;
    f->count += p->asked;
    assert (f->count <= NODE_MAX_COUNT);
    f->after = max_u64 (f->after, p->after);
    f->traced |= p->traced;
    TAILQ_INSERT_TAIL (&f->shares, p, share);
    n->stats.combined++;
}

/* Add a requester's ids to the forward of all, as far as there is room. A client gets a turn of ids, or all if it is
 * alone. A child gets whole requests only, because its requests were already combined by turns, and splitting them at
 * each hop would double the time that they take. Returns false if a child's request does not fit.
 */
static bool mark (struct node *n, uint64_t now_us, const struct requester *a)
{
    struct forward *f = &n->up.all;
    bool broker = a->kind >= REQUESTER_BROKER;
    uint32_t turn = broker || n->waiting.length == 1 ? NODE_MAX_COUNT : UP_TURN;
    uint32_t end = (uint32_t)min_u64 (f->count + turn, NODE_MAX_COUNT);
    struct pending *p;

    TAILQ_FOREACH (p, &a->waiting, turn) {
        uint32_t lack = p->count - p->got, left = end - f->count;

        if (left == 0 || (broker && lack > left))
            return !broker;
        if (!may_go_up (n, now_us, p))
            continue;
        add_share (n, f, p, left);
    }
    return true;
}

/* Add a newcomer's requests to the forward of newcomers, up to a quarter of it, but at least the first request. The
 * forward of newcomers has at most FOR_NEWCOMERS ids, as many as one millisecond reserves for newcomers. Returns false
 * if a request does not fit.
 */
static bool mark_newcomer (struct node *n, uint64_t now_us, const struct requester *a)
{
    struct forward *f = &n->up.newcomers;
    uint32_t end = f->count + FOR_NEWCOMERS / 4;
    struct pending *p;

    TAILQ_FOREACH (p, &a->waiting, turn) {
        if (f->count >= end || p->count > FOR_NEWCOMERS || !may_go_up (n, now_us, p))
            return true;
        n->waiting.has_newcomers = true;
        if (p->count - p->got > FOR_NEWCOMERS - f->count)
            return false;
        add_share (n, f, p, FOR_NEWCOMERS);
    }
    return true;
}

/* Fill a forward by turns, up to the largest count of one request. A requester whose request did not fit is first in
 * the next forward.
 */
static void combine (struct node *n, uint64_t now_us, struct forward *f,
                     bool (*mark_requester) (struct node *n, uint64_t now_us, const struct requester *a))
{
    f->count = 0;
    f->traced = false;
    f->after = n->last_id;
    for (size_t i = n->waiting.nrequesters; i > 0 && f->count < NODE_MAX_COUNT; i--) {
        struct requester *a = TAILQ_FIRST (&n->waiting.round);

        if (!is_under_way (a) && !mark_requester (n, now_us, a))
            break;
        waiting_end_turn (&n->waiting, a);
    }
}

/* Report which traced requests are combined into this forward. */
static void report_traced (struct node *n, const struct forward *f)
{
    const struct pending *p;
    uint32_t requests = 0;

    TAILQ_FOREACH (p, &f->shares, share)
        requests++;
    TAILQ_FOREACH (p, &f->shares, share)
        if (p->traced && n->ops->goes_up)
            n->ops->goes_up (n->arg, p->cookie, f->tag, requests, p->asked);
}

static void send (struct node *n, uint64_t now_us, struct forward *f)
{
    assert (!f->busy);
    if (f->count == 0)
        return;
    f->busy = true;
    f->sent_us = now_us;
    f->tag = ++n->up.tag;
    if (f->traced)
        report_traced (n, f);
    n->stats.forwards++;
    n->stats.combined--; /* the first request was not combined with an earlier one */
    if (n->ops->forward (n->arg, f->tag, f->count, f->after) < 0) {
        end (n, f);
        retry_later (f, now_us);
        node_wake (n, f->retry_us);
    }
}

/* Whether this forward may be sent now. If it must be delayed, requests node_tick () for that time. */
static bool may_send (struct node *n, uint64_t now_us, const struct forward *f)
{
    if (!f->busy && now_us < f->retry_us)
        node_wake (n, f->retry_us);
    return !f->busy && now_us >= f->retry_us;
}

void node_forward_waiting (struct node *n, uint64_t now_us)
{
    if (!n->parent_up || n->waiting.length == 0)
        return;
    if (may_send (n, now_us, &n->up.all)) {
        combine (n, now_us, &n->up.all, mark);
        send (n, now_us, &n->up.all);
    }
    if (n->waiting.has_newcomers && n->up.all.busy && n->up.all.count > WAITING_TURN
        && may_send (n, now_us, &n->up.newcomers)) {
        n->waiting.has_newcomers = false;
        combine (n, now_us, &n->up.newcomers, mark_newcomer);
        send (n, now_us, &n->up.newcomers);
    }
}

/* --- no longer needed ------------------------------------------------------------------------- */

/* Abandon the answers under way, which are no longer needed (rule ABANDON). The parent is notified, because an ancestor
 * with too much to do would never catch up if it made ids that no requester waits for.
 */
void node_forward_abandon (struct node *n)
{
    if (!node_forward_is_busy (n))
        return;
    n->stats.forwards_lost += n->up.all.busy + n->up.newcomers.busy;
    n->waiting.has_newcomers = true; /* newcomers may wait */
    node_forward_end (n);
    if (n->parent_up)
        n->ops->cancel (n->arg);
}

static uint64_t patience_end_us (const struct node *n, const struct forward *f)
{
    return f->busy ? f->sent_us + max_u64 (8 * n->up.trip_us, LEAST_PATIENCE_US) : NEVER;
}

bool node_forward_is_overdue (struct node *n, uint64_t now_us)
{
    uint64_t end_us = min_u64 (patience_end_us (n, &n->up.all), patience_end_us (n, &n->up.newcomers)), now_ms;

    if (end_us == NEVER || !node_may_generate (n, now_us, &now_ms))
        return false;
    node_wake (n, end_us);
    return end_us <= now_us;
}

void node_forward_give_up (struct node *n, uint64_t now_us)
{
    retry_later (&n->up.all, now_us);
    node_forward_abandon (n);
}

/* Whether a forward is under way although all its requests were answered or canceled. The answer to such a forward may
 * have been lost.
 */
static bool is_unwanted (const struct forward *f)
{
    const struct pending *p;

    TAILQ_FOREACH (p, &f->shares, share)
        if (p->cookie)
            return false;
    return f->busy;
}

/* A cancel message ends both forwards at the parent. So it is not sent for a few newcomers, because a client that comes
 * and goes must not delay all others.
 */
void node_forward_review (struct node *n)
{
    if (is_unwanted (&n->up.all))
        node_forward_abandon (n);
    if (is_unwanted (&n->up.newcomers)) {
        n->stats.forwards_lost++;
        end (n, &n->up.newcomers);
    }
}

/* --- down ------------------------------------------------------------------------------------ */

/* The forward under way with this tag, or NULL. */
static struct forward *find_forward (struct node *n, uint32_t tag)
{
    if (n->up.all.busy && tag == n->up.all.tag)
        return &n->up.all;
    return n->up.newcomers.busy && tag == n->up.newcomers.tag ? &n->up.newcomers : NULL;
}

/* Whether an answer is valid: 'count' ids in increasing order, all above 'after'. */
static bool is_sound (const struct forward *f, const struct id_run *run, size_t nruns)
{
    fluid_t last = f->after;
    uint64_t count = 0;

    for (size_t i = 0; i < nruns; i++) {
        uint64_t sequence = run[i].first & FLUID_SEQUENCE_MAX;

        if (run[i].n < 1 || sequence + run[i].n > FLUID_PER_MS || run[i].first <= last)
            return false;
        last = run[i].first + run[i].n - 1;
        count += run[i].n;
    }
    return count == f->count;
}

/* A position in a list of runs. */
struct dealer {
    const struct id_run *run;
    uint32_t used;
};

/* Give 'p' its ids of the answer. If memory is short, the ids are lost, the position advances all the same, and the
 * function returns false.
 */
static bool deal (struct node *n, struct dealer *d, struct pending *p)
{
    bool good = true;

    while (p->asked > 0) {
        uint32_t left = d->run->n - d->used;
        uint32_t k = p->asked < left ? p->asked : left;

        if (p->cookie && good)
            good = waiting_add_run (&n->waiting, p, d->run->first + d->used, k) == 0;
        p->asked -= k;
        d->used += k;
        if (d->used == d->run->n)
            *d = (struct dealer){ d->run + 1, 0 };
    }
    return good;
}

static void deal_out (struct node *n, uint64_t now_us, struct forward *f, const struct id_run *run)
{
    struct dealer d = { run, 0 };
    struct pending *p;

    while ((p = TAILQ_FIRST (&f->shares))) {
        bool good = deal (n, &d, p);

        TAILQ_REMOVE (&f->shares, p, share);
        if (!p->cookie)
            waiting_came (&n->waiting, p);
        else if (!good)
            waiting_fail (&n->waiting, p, ENOMEM, NULL);
        else if (p->got == p->count)
            waiting_complete (&n->waiting, now_us, p);
        else
            waiting_begun (&n->waiting, p);
    }
}

/* Errors that a retry would not change. */
static bool is_final (int errnum)
{
    return errnum == EOVERFLOW || errnum == EPERM || errnum == EINVAL || errnum == EPROTO;
}

static void fail_asked (struct node *n, struct forward *f, int errnum, const char *text)
{
    struct pending *p;

    TAILQ_FOREACH (p, &f->shares, share)
        if (p->cookie)
            waiting_fail (&n->waiting, p, errnum, text); /* its entry stays until the forward ends */
}

static void note_trip (struct node *n, uint64_t now_us, const struct forward *f)
{
    uint64_t us = now_us - f->sent_us;

    n->up.trip_us = n->up.trip_us > 0 ? (7 * n->up.trip_us + us) / 8 : us;
}

/* Handle the failure of a forward. */
static void miss (struct node *n, uint64_t now_us, struct forward *f, int errnum, const char *text)
{
    n->stats.forwards_lost++;
    if (is_final (errnum)) { /* an answer: nothing to retry */
        fail_asked (n, f, errnum, text);
        f->backoff_us = 0;
    }
    else
        retry_later (f, now_us); /* rule RETRY: ask again later */
    n->waiting.has_newcomers = true;
    end (n, f);
}

bool node_forward_take (struct node *n, uint64_t now_us, uint32_t tag, const struct id_run *run, size_t nruns)
{
    struct forward *f = find_forward (n, tag);

    if (!f)
        return false;
    if (!is_sound (f, run, nruns)) {
        node_log (n, LOG_ERR,
                  "dropped the parent's answer to a request for %u ids: not that many ids, not "
                  "increasing, or too low",
                  f->count);
        miss (n, now_us, f, EPROTO, "the parent broker's answer to the request for ids is invalid");
        return true;
    }
    f->backoff_us = 0;
    note_trip (n, now_us, f);
    n->stats.ids_from_above += f->count;
    node_lease_note_from_above (n, now_us, f->count);
    node_follow (n, now_us, run[nruns - 1].first + run[nruns - 1].n - 1);
    deal_out (n, now_us, f, run);
    assert (TAILQ_EMPTY (&f->shares)); /* an answer has as many ids as were requested */
    end (n, f);
    return true;
}

bool node_forward_miss (struct node *n, uint64_t now_us, uint32_t tag, int errnum)
{
    struct forward *f = find_forward (n, tag);

    if (!f)
        return false;
    miss (n, now_us, f, errnum, errnum == EOVERFLOW ? TIME_IS_OVER : NULL);
    return true;
}

void node_forward_parent (struct node *n, uint64_t now_us)
{
    node_forward_abandon (n); /* rule RESEND: sent again to the new parent */
    n->up.all.backoff_us = n->up.newcomers.backoff_us = 0;
    n->up.all.retry_us = n->up.newcomers.retry_us = now_us;
}
