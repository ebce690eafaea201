/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node_forward.c - what a node cannot make itself: combined to one request, sent up, dealt out
 *
 * One request at a time is under way.  Those that went up with it are marked by 'asked', and in its list; what comes down
 * is dealt out in the same order.  A mark outlives the request: one that is answered meanwhile keeps its place until the
 * forward ends.
 */
#include <errno.h>
#include <syslog.h>

#include "modules/fluid/node_private.h"

#define FIRST_RETRY_US 20000 /* after a forward that failed; doubles, up to: */
#define LAST_RETRY_US 500000
#define UP_TURN (16 * QUEUE_TURN) /* ids of a client for each round trip: it is not much longer than without any */

/* --- up -------------------------------------------------------------------------------------- */

/* B_RESEND, B_REST: whatever else waits goes up next.  Those that were answered meanwhile can go. */
void node_forward_end (struct node *n)
{
    struct pending *p;

    n->forward.busy = false;
    while ((p = TAILQ_FIRST (&n->forward.shares))) {
        TAILQ_REMOVE (&n->forward.shares, p, share);
        p->asked = 0;
        if (!p->cookie)
            queue_remove (&n->queue, p);
    }
}

static void retry_later (struct node *n, uint64_t now_us)
{
    struct forward *f = &n->forward;

    f->backoff_us = f->backoff_us > 0 ? 2 * f->backoff_us : FIRST_RETRY_US;
    if (f->backoff_us > LAST_RETRY_US)
        f->backoff_us = LAST_RETRY_US;
    f->retry_us = now_us + f->backoff_us;
}

/* Whether a request may go up: a client's 'after' waits here until its time has come (see is_ripe ()), for what goes up is
 * trusted there.
 */
static bool may_go_up (struct node *n, uint64_t now_us, const struct pending *p)
{
    uint64_t ms = node_ids_floor_ms (n, p->after);

    if (p->from_broker || ms == 0 || (n->clock.known && ms <= node_now_ms (n, now_us)))
        return true;
    node_wake_ms (n, now_us, ms);
    return false;
}

/* Mark what an asker gets of the 'room' that is left: a client 'turn' ids, a child its forward as a whole, for that was made
 * by turns below, and splitting it at each hop would double the time that it takes.  Returns false where that has no room.
 */
static bool mark (struct node *n, uint64_t now_us, const struct asker *a, uint32_t room, uint32_t turn)
{
    struct forward *f = &n->forward;
    uint32_t end = f->count + (a->broker || room < turn ? room : turn);
    struct pending *p;

    TAILQ_FOREACH (p, &a->waiting, turn) {
        uint32_t lack = p->count - p->got, left = end - f->count;

        if (left == 0 || (a->broker && lack > left))
            return false;
        if (!may_go_up (n, now_us, p))
            continue;
        p->asked = lack < left ? lack : left;
        f->count += p->asked;
        if (f->after < p->after)
            f->after = p->after;
        TAILQ_INSERT_TAIL (&f->shares, p, share);
    }
    return true;
}

/* Mark what goes up together, as much as one request may ask for, by turns.  A request that is alone may have all.  A child whose
 * forward has no room is first the next time.
 */
static void combine (struct node *n, uint64_t now_us)
{
    struct forward *f = &n->forward;
    uint32_t turn = n->queue.length > 1 ? UP_TURN : NODE_MAX_COUNT;

    f->count = 0;
    f->after = n->last_id;
    for (size_t i = n->queue.naskers; i > 0 && f->count < NODE_MAX_COUNT; i--) {
        struct asker *a = TAILQ_FIRST (&n->queue.round);

        if (!mark (n, now_us, a, NODE_MAX_COUNT - f->count, turn) && a->broker)
            break;
        queue_end_turn (&n->queue, a);
    }
}

static size_t count_shares (const struct forward *f)
{
    const struct pending *p;
    size_t count = 0;

    TAILQ_FOREACH (p, &f->shares, share)
        count++;
    return count;
}

void node_forward_waiting (struct node *n, uint64_t now_us)
{
    struct forward *f = &n->forward;

    if (f->busy || !n->parent_up || n->queue.length == 0)
        return;
    if (now_us < f->retry_us) {
        node_wake (n, f->retry_us);
        return;
    }
    combine (n, now_us);
    if (f->count == 0)
        return;
    f->busy = true;
    f->tag++;
    n->stats.forwards++;
    n->stats.combined += count_shares (f) - 1;
    if (n->ops->forward (n->arg, f->tag, f->count, f->after) < 0) {
        node_forward_end (n);
        retry_later (n, now_us);
        node_wake (n, f->retry_us);
    }
}

/* --- no use any more ------------------------------------------------------------------------- */

/* B_ABANDON: we can do without the answer that is under way.  An ancestor that has more to do than it can must not make
 * ids that nobody waits for: there it would never catch up.
 */
void node_forward_abandon (struct node *n)
{
    if (!n->forward.busy)
        return;
    n->stats.forwards_lost++;
    node_forward_end (n);
    if (n->parent_up)
        n->ops->cancel (n->arg);
}

/* Whether someone is left for whom the forward was sent: its answer may have been lost. */
static bool is_awaited (const struct node *n)
{
    const struct pending *p;

    TAILQ_FOREACH (p, &n->forward.shares, share)
        if (p->cookie)
            return true;
    return false;
}

void node_forward_review (struct node *n)
{
    if (!is_awaited (n))
        node_forward_abandon (n);
}

/* --- down ------------------------------------------------------------------------------------ */

static bool is_wanted (const struct node *n, uint32_t tag)
{
    return n->forward.busy && tag == n->forward.tag;
}

/* Whether an answer is what was asked for: 'count' ids in increasing order, all above 'after'. */
static bool is_sound (const struct forward *f, const struct run *run, size_t nruns)
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

/* A place in a list of runs. */
struct dealer {
    const struct run *run;
    uint32_t used;
};

/* Deal 'p' its share.  Returns false where memory is short: its ids are lost, the place is kept. */
static bool deal (struct node *n, struct dealer *d, struct pending *p)
{
    bool good = true;

    while (p->asked > 0) {
        uint32_t left = d->run->n - d->used;
        uint32_t k = p->asked < left ? p->asked : left;

        if (p->cookie && good)
            good = queue_add_run (&n->queue, p, d->run->first + d->used, k) == 0;
        p->asked -= k;
        d->used += k;
        if (d->used == d->run->n)
            *d = (struct dealer){d->run + 1, 0};
    }
    return good;
}

static void deal_out (struct node *n, uint64_t now_us, const struct run *run)
{
    struct dealer d = {run, 0};
    struct pending *p;

    while ((p = TAILQ_FIRST (&n->forward.shares))) {
        bool good = deal (n, &d, p);

        TAILQ_REMOVE (&n->forward.shares, p, share);
        if (!p->cookie)
            queue_remove (&n->queue, p);
        else if (!good)
            node_ids_leave_failed (n, p, ENOMEM, NULL);
        else if (p->got == p->count)
            node_ids_leave_complete (n, now_us, p);
        else
            queue_begun (&n->queue, p);
    }
}

/* Errors that asking again would not mend. */
static bool is_final (int errnum)
{
    return errnum == EOVERFLOW || errnum == EPERM || errnum == EINVAL || errnum == EPROTO;
}

static void fail_asked (struct node *n, int errnum, const char *text)
{
    struct pending *p;

    TAILQ_FOREACH (p, &n->forward.shares, share)
        if (p->cookie)
            node_ids_leave_failed (n, p, errnum, text); /* it keeps its place */
}

void node_forwarded (struct node *n, uint64_t now_us, uint32_t tag, const struct run *run, size_t nruns)
{
    if (!is_wanted (n, tag))
        return;
    n->forward.backoff_us = 0;
    if (is_sound (&n->forward, run, nruns)) {
        const struct run *last = &run[nruns - 1];

        n->stats.ids_from_above += n->forward.count;
        node_ids_follow (n, now_us, last->first + last->n - 1);
        deal_out (n, now_us, run);
    }
    else {
        node_log (n, LOG_ERR, "the parent's answer to a request for %u ids is not that", n->forward.count);
        fail_asked (n, EPROTO, "the parent broker's answer makes no sense");
    }
    node_forward_end (n);
    node_tick (n, now_us);
}

void node_forward_failed (struct node *n, uint64_t now_us, uint32_t tag, int errnum)
{
    if (!is_wanted (n, tag))
        return;
    n->stats.forwards_lost++;
    if (is_final (errnum)) { /* an answer: there is nothing to be tried again */
        fail_asked (n, errnum, errnum == EOVERFLOW ? TIME_IS_OVER : NULL);
        n->forward.backoff_us = 0;
    }
    else
        retry_later (n, now_us); /* B_RETRY */
    node_forward_end (n);
    node_tick (n, now_us);
}

void node_forward_parent (struct node *n, uint64_t now_us)
{
    node_forward_abandon (n); /* B_RESEND */
    n->forward.backoff_us = 0;
    n->forward.retry_us = now_us;
}
