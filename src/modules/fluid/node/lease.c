/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - a node's leases: wanted, relayed, and at the root given
 *
 * The root answers wants from its table, its own like those of others.  Other nodes send their wants up together
 * with those of their children (relay.h).  A node that has children lets its own renewal wait for theirs.
 */
#include <stdlib.h>
#include <syslog.h>

#include "modules/fluid/node/private.h"

#define FIRST_STORE_RETRY_US 100000 /* after a store that failed; doubles, up to a twelfth of a lease */
#define NSENT (sizeof (((struct node *)0)->sent) / sizeof (((struct node *)0)->sent[0]))

static uint64_t lease_us (const struct node *n)
{
    return n->config.lease_ms * 1000;
}

/* Take what was given: the range that is in use may be longer now. */
static void take (struct node *n, uint64_t now_us, const struct lease_grant *grant)
{
    if (!lessee_take (&n->lessee, now_us, node_now_ms (n, now_us), grant))
        return;
    n->stats.renewals++;
    n->cur = (struct range){ 0, 0 }; /* looked up anew */
}

/* --- the root -------------------------------------------------------------------------------- */

static void watch_store (struct node *n, uint64_t now_us)
{
    if (now_us < n->store_slow_us) {
        node_wake (n, n->store_slow_us);
        return;
    }
    n->store_slow_us = NEVER;
    if (n->store == NODE_STORE_GOOD) {
        n->store = NODE_STORE_SLOW;
        node_log (n, LOG_WARNING,
                  "the disk is slow: the horizon is not stored yet, and leases end where the last one is");
    }
}

/* What a crash will have cost when the horizon is that. */
static uint64_t owed_ms (struct node *n, uint64_t now_us, uint64_t horizon_ms)
{
    uint64_t now_ms = node_now_ms (n, now_us);
    int64_t wall_ms = (n->wall_us + (int64_t)(now_us - n->wall_read_us)) / 1000;

    return ahead_stored (&n->ahead, now_ms, horizon_ms, (int64_t)now_ms - wall_ms);
}

/* The horizon is raised ahead of need: wake up for that too. */
static void store_horizon (struct node *n, uint64_t now_us)
{
    struct lease_record record;

    watch_store (n, now_us);
    if (now_us < n->store_retry_us) {
        node_wake (n, n->store_retry_us);
        return;
    }
    lease_set_reach (n->table, ahead_reach (&n->ahead, now_us));
    if (n->clock.known && lease_must_store (n->table, node_now_ms (n, now_us), &record.horizon_ms)) {
        node_watermark_record (n, now_us, &record);
        record.ahead_ms = owed_ms (n, now_us, record.horizon_ms);
        n->stats.stores++;
        n->store_slow_us = now_us + lease_us (n) / 4;
        node_wake (n, n->store_slow_us);
        n->ops->store (n->arg, &record);
    }
    node_wake_ms (n, now_us, lease_next_store (n->table));
}

/* The one place where ranges are given. */
static bool give (struct node *n, uint64_t now_us, const struct lease_want *want, struct lease_grant *grant)
{
    uint64_t now_ms = node_now_ms (n, now_us);

    if (!lease_grant (n->table, now_ms, want, grant))
        return false;
    watermark_given (n->watermark, now_ms, grant);
    return true;
}

static void take_back (struct node *n, const struct lease_back *back)
{
    lease_give_back (n->table, back);
    watermark_back (n->watermark, back);
}

static void root_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms = node_now_ms (n, now_us);
    struct lease_want want;
    struct lease_grant grant;

    store_horizon (n, now_us);
    if (lessee_due (&n->lessee, now_us, now_ms) <= now_us) {
        lessee_ask (&n->lessee, now_us, now_ms, &want);
        if (give (n, now_us, &want, &grant))
            take (n, now_us, &grant);
    }
    node_wake (n, lessee_due (&n->lessee, now_us, now_ms));
}

/* What made us distrust our statedir, for those who are to mend it. */
static void note_stranger (struct node *n, const struct lease_request *req)
{
    n->has_their_epoch = req->has_epoch && req->epoch_ms != n->epoch_ms;
    n->their_epoch_ms = req->epoch_ms;
    for (size_t i = 0; i < req->nwant; i++)
        if (n->their_hi_ms < req->want[i].have_hi_ms)
            n->their_hi_ms = req->want[i].have_hi_ms;
}

/* Answer with the time as others should take it. */
static void reply (struct node *n, uint64_t now_us, void *cookie, uint64_t received_us, const struct lease_grant *grant,
                   size_t ngrant)
{
    struct lease_answer answer = { .grant = grant,
                                   .ngrant = ngrant,
                                   .has_epoch = n->has_epoch,
                                   .epoch_ms = n->epoch_ms,
                                   .lease_ms = n->root_lease_ms };

    if (n->clock.known && !n->doubt) {
        answer.has_time = true;
        answer.sent_us = clock_estimate (&n->clock, now_us);
        answer.received_us = answer.sent_us - (now_us - received_us);
        answer.bound_us = clock_estimate_bound (&n->clock, now_us);
        if (answer.received_us > answer.sent_us) /* the instance is younger than the wait */
            answer.received_us = 0;
    }
    n->ops->lease_reply (n->arg, cookie, &answer);
}

/* What the root gave itself came from the same table: it makes nothing of it any more, either (B_DISTRUST). */
static void close_own (struct node *n)
{
    struct lease_back rest;

    if (!n->lessee.closed)
        lessee_close (&n->lessee, 0, &rest);
    n->cur = (struct range){ 0, 0 };
    fluid_gen_set_range (&n->gen, 0, 0);
}

static void root_answer (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req)
{
    struct lease_grant *grant = calloc (req->nwant + 1, sizeof (*grant));
    bool trusted = !lease_is_distrusted (n->table);
    size_t ngrant = 0;

    if (req->has_epoch && req->epoch_ms != n->epoch_ms)
        lease_distrust (n->table);
    for (size_t i = 0; i < req->nback; i++)
        take_back (n, &req->back[i]);
    store_horizon (n, now_us);
    for (size_t i = 0; grant && i < req->nwant; i++)
        ngrant += give (n, now_us, &req->want[i], &grant[ngrant]);
    if (trusted && lease_is_distrusted (n->table)) {
        note_stranger (n, req);
        close_own (n);
    }
    reply (n, now_us, cookie, now_us, grant, ngrant);
    free (grant);
}

void node_stored (struct node *n, uint64_t now_us, uint64_t horizon_ms)
{
    if (!n->table)
        return;
    if (n->store != NODE_STORE_GOOD)
        node_log (n, LOG_NOTICE, "the horizon is stored again: leases are given as before");
    n->store = NODE_STORE_GOOD;
    n->store_slow_us = NEVER;
    n->store_backoff_us = 0;
    n->store_retry_us = 0;
    lease_stored (n->table, horizon_ms);
    lessee_hurry (&n->lessee, now_us);
    node_tick (n, now_us);
}

void node_store_failed (struct node *n, uint64_t now_us)
{
    if (!n->table)
        return;
    lease_store_failed (n->table);
    n->stats.store_failures++;
    n->store = NODE_STORE_FAILING;
    n->store_slow_us = NEVER;
    n->store_backoff_us = n->store_backoff_us > 0 ? 2 * n->store_backoff_us : FIRST_STORE_RETRY_US;
    if (n->store_backoff_us > lease_us (n) / 12)
        n->store_backoff_us = lease_us (n) / 12;
    n->store_retry_us = now_us + n->store_backoff_us;
    node_tick (n, now_us);
}

/* --- the others ------------------------------------------------------------------------------ */

/* When our own want should go if nobody else's goes before: those who have children wait for theirs, which come
 * a hop later; who holds little does not.
 */
static uint64_t own_due (const struct node *n, uint64_t now_us, uint64_t now_ms)
{
    if (!n->owner)
        return NEVER;
    uint64_t due_us = lessee_due (&n->lessee, now_us, now_ms);
    bool has_children = n->last_child_us > 0 && now_us - n->last_child_us < lease_us (n);

    if (due_us == NEVER || n->lessee.asking || !has_children
        || lessee_end (&n->lessee) < now_ms + n->config.lease_ms / 2
        || n->lessee.until_us < now_us + lease_us (n) * 3 / 4)
        return due_us;
    uint64_t half_us = now_us + (lessee_end (&n->lessee) - now_ms - n->config.lease_ms / 2) * 1000;
    return half_us > due_us ? half_us : due_us; /* when half a lease is left */
}

static void lease_lost (struct node *n, uint64_t now_us, uint32_t tag)
{
    if (tag == n->own_tag)
        lessee_missed (&n->lessee, now_us);
    relay_answered (n->relay, now_us, tag, NULL, 0);
}

static void send_up (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    struct lease_request req;
    struct lease_want want;
    bool own = n->owner
               && (lessee_due (&n->lessee, now_us, now_ms) <= now_us || lessee_may_join (&n->lessee, now_us, now_ms));

    if (own)
        lessee_ask (&n->lessee, now_us, now_ms, &want);
    uint32_t tag = relay_flush (n->relay, now_us, own ? &want : NULL, &req);
    if (tag == 0)
        return;
    if (own)
        n->own_tag = tag;
    if (!req.has_epoch && n->has_epoch) {
        req.has_epoch = true;
        req.epoch_ms = n->epoch_ms;
    }
    n->sent[tag % NSENT].tag = tag;
    n->sent[tag % NSENT].us = now_us;
    n->stats.lease_messages++;
    if (n->ops->lease_up (n->arg, tag, &req) < 0)
        lease_lost (n, now_us, tag);
}

static void child_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms = node_now_ms (n, now_us);
    uint64_t keep_us = lease_us (n) / 2;

    if (now_us > keep_us)
        relay_drop_old (n->relay, now_us, now_us - keep_us);
    if (n->parent_up && (relay_due (n->relay) <= now_us || own_due (n, now_us, now_ms) <= now_us))
        send_up (n, now_us, now_ms);
    if (n->parent_up) {
        node_wake (n, relay_due (n->relay));
        node_wake (n, own_due (n, now_us, now_ms));
    }
    if (relay_oldest (n->relay) != NEVER)
        node_wake (n, relay_oldest (n->relay) + keep_us + 1);
}

static void note_epoch (struct node *n, const struct lease_answer *answer)
{
    if (!answer->has_epoch)
        return;
    if (n->has_epoch && n->epoch_ms != answer->epoch_ms)
        node_log (n, LOG_ERR, "the epoch of this instance has changed: rank 0 runs on another statedir");
    else {
        n->has_epoch = true;
        n->epoch_ms = answer->epoch_ms;
    }
}

/* How long ranges may be used is the root's word, for it waits that long (watermark.h). */
static void note_lease (struct node *n, const struct lease_answer *answer)
{
    if (answer->lease_ms == 0)
        return;
    n->root_lease_ms = answer->lease_ms;
    n->lessee.lease_ms = answer->lease_ms;
}

static void note_time (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer)
{
    if (!answer->has_time || n->sent[tag % NSENT].tag != tag) /* sixteen have gone since */
        return;
    node_time (n, now_us,
               &(struct idt_clock_sample){ .sent_us = n->sent[tag % NSENT].us,
                                           .peer_received_us = answer->received_us,
                                           .peer_sent_us = answer->sent_us,
                                           .received_us = now_us,
                                           .peer_bound_us = answer->bound_us });
}

void node_lease_answered (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer)
{
    if (n->root || n->stopped)
        return;
    note_time (n, now_us, tag, answer);
    note_epoch (n, answer);
    note_lease (n, answer);
    for (size_t i = 0; n->owner && i < answer->ngrant; i++)
        take (n, now_us, &answer->grant[i]);
    if (n->owner && n->lessee.asking && tag == n->own_tag)
        lessee_missed (&n->lessee, now_us);
    relay_answered (n->relay, now_us, tag, answer->grant, answer->ngrant);
    node_tick (n, now_us);
}

void node_lease_failed (struct node *n, uint64_t now_us, uint32_t tag)
{
    if (n->root || n->stopped)
        return;
    lease_lost (n, now_us, tag);
    node_tick (n, now_us);
}

void node_lease_parent (struct node *n, uint64_t now_us)
{
    if (n->owner && n->parent_up)
        lessee_hurry (&n->lessee, now_us);
}

/* --- both ------------------------------------------------------------------------------------ */

void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                          const struct lease_grant *grant, size_t ngrant)
{
    reply (arg, now_us, cookie, received_us, grant, ngrant);
}

void node_lease_request (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req)
{
    if (n->stopped || (!n->root && relay_add (n->relay, now_us, node_now_ms (n, now_us), cookie, req) < 0)) {
        reply (n, now_us, cookie, now_us, NULL, 0);
        return;
    }
    n->last_child_us = now_us;
    if (n->root) {
        n->stats.lease_messages++;
        root_answer (n, now_us, cookie, req);
    }
    node_tick (n, now_us);
}

void node_lease_work (struct node *n, uint64_t now_us)
{
    if (n->root)
        root_work (n, now_us);
    else
        child_work (n, now_us);
}

/* B_REL, B_STOPOPEN: the generator is closed, then the rest given back; the table is closed before its end is told. */
void node_lease_stop (struct node *n, uint64_t now_us, struct lease_record *last)
{
    struct lease_request req = { 0 };
    struct lease_back back;
    uint64_t end_ms = n->cursor_ms + 1 > n->lent.hi_ms ? n->cursor_ms + 1 : n->lent.hi_ms;
    bool any = n->owner && lessee_close (&n->lessee, end_ms, &back);

    if (n->root) {
        if (any)
            take_back (n, &back);
        last->horizon_ms = lease_close (n->table);
        node_watermark_close (n, now_us, last);
        last->ahead_ms = n->clock.known ? owed_ms (n, now_us, last->horizon_ms) : n->ahead.debt_ms;
        return;
    }
    if (any)
        relay_add_back (n->relay, &back);
    uint32_t tag = relay_flush (n->relay, now_us, NULL, &req);
    if (tag != 0 && n->parent_up)
        n->ops->lease_up (n->arg, 0, &req);
    relay_drop_old (n->relay, now_us, NEVER);
}
