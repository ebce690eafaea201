/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - a node's leases, and lease requests of its children
 *
 * The node sends its own lease request together with those of its children (lease_relay.h). A node with children delays
 * its own renewal until they renew. Other modules of the broker get subleases of time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define NSENT (sizeof (((struct node *)0)->asked.sent) / sizeof (((struct node *)0)->asked.sent[0]))

/* --- the source of a node's leases and time: its parent, or at rank 0 the authority beside it ---- */

/* A parent is asked with a message, and answers later through the functions of node.h. The authority answers
 * immediately; node_tick () notices its other changes.
 */

static bool node_lessor_is_up (const struct node *n)
{
    return n->lessor.authority || n->parent_up;
}

static int ask_authority (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    struct lease_answer answer;

    authority_answer (n->lessor.authority, now_us, req, &answer);
    if (tag != 0)
        node_lease_take (n, now_us, tag, &answer);
    return 0;
}

/* Like lease_up () of struct node_ops. */
static int node_lessor_ask (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    if (n->lessor.authority)
        return ask_authority (n, now_us, tag, req);
    if (tag != 0)
        n->stats.lease_messages++;
    return n->ops->lease_up (n->arg, tag, req);
}

void node_lessor_hear_jumps (struct node *n)
{
    if (!n->lessor.authority)
        return;
    uint64_t jumped_us = authority_news (n->lessor.authority).jumped_us;

    if (jumped_us != n->lessor.heard.jumped_us)
        node_share_jumped (n, jumped_us - n->lessor.heard.jumped_us);
    n->lessor.heard.jumped_us = jumped_us;
}

/* The authority is fenced, because brokers hold leases that its table does not have. The ranges of this rank came from
 * the same table, so this rank makes no further ids of them.
 */
static void node_lease_fence (struct node *n)
{
    struct lease_back rest;

    if (!n->lessee.closed)
        lessee_close (&n->lessee, 0, &rest);
    node_make_nothing (n);
}

void node_lessor_hear (struct node *n, uint64_t now_us)
{
    if (!n->lessor.authority)
        return;
    struct authority_news news = authority_news (n->lessor.authority), *heard = &n->lessor.heard;

    node_lessor_hear_jumps (n);
    if (news.steps != heard->steps)
        node_close_past (n, now_us);
    if (news.stored != heard->stored)
        lessee_hurry (&n->lessee, now_us);
    if (news.fenced_by_foreign && !heard->fenced_by_foreign)
        node_lease_fence (n);
    *heard = news;
}

const char *node_lessor_excuse (const struct node *n)
{
    if (n->lessor.authority)
        return authority_excuse (n->lessor.authority);
    return n->parent_up ? "no ancestor answered within fluid.forward-timeout"
                        : "no lease, and no parent broker within fluid.forward-timeout";
}

/* --- leases -------------------------------------------------------------------------------------- */

static uint64_t lease_us (const struct node *n)
{
    return n->config.lease_ms * 1000;
}

/* Accept a granted range. The range in use may have become longer or invalid, so it is looked up again. */
static void take (struct node *n, uint64_t now_us, const struct lease_grant *grant)
{
    node_look_anew (n);
    if (lessee_take (&n->lessee, now_us, node_now_ms (n, now_us), grant)) {
        n->stats.renewals++;
        n->renewed_us = now_us;
    }
}

void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                          const struct lease_grant *grant, size_t ngrant)
{
    const struct node *n = arg;
    struct lease_answer answer = { .grant = grant,
                                   .ngrant = ngrant,
                                   .has_epoch = n->epoch.known,
                                   .epoch_ms = n->epoch.ms,
                                   .lease_ms = n->root_lease_ms };

    answer.has_time = node_clock (n, now_us, &answer.sent_us, &answer.bound_us);
    if (answer.sent_us > now_us - received_us) /* otherwise the instance is younger than the wait */
        answer.received_us = answer.sent_us - (now_us - received_us);
    n->ops->lease_reply (n->arg, cookie, &answer);
}

/* --- wanted ------------------------------------------------------------------------------ */

/* When this node's own request must be sent if no child's request is sent before. A node with children waits for their
 * requests, which arrive a hop later, unless the node has less than half a lease left.
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

/* When the next request is due, of this node or of a child. Requests to the authority need no pauses in between. */
static uint64_t due (const struct node *n, uint64_t now_us, uint64_t now_ms)
{
    uint64_t due_us = min_u64 (n->relay.due_us, own_due (n, now_us, now_ms));

    return n->lessor.authority ? due_us : max_u64 (due_us, n->relay.open_us);
}

void node_lease_miss (struct node *n, uint64_t now_us, uint32_t tag)
{
    if (tag == n->asked.own_tag)
        lessee_missed (&n->lessee, now_us, node_now_ms (n, now_us));
    lease_relay_answered (&n->relay, now_us, tag, NULL, 0);
}

static void send_up (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    struct lease_request req;
    struct lease_want want;
    bool own = n->owner
               && (lessee_due (&n->lessee, now_us, now_ms) <= now_us || lessee_may_join (&n->lessee, now_us, now_ms));

    if (own) {
        lessee_ask (&n->lessee, now_us, now_ms, &want);
        want.size = n->config.lanes > 1 ? n->config.size : 0; /* rule LANE_SIZE: the root checks it */
    }
    uint32_t tag = lease_relay_flush (&n->relay, now_us, own ? &want : NULL, &req);
    if (tag == 0)
        return;
    if (own)
        n->asked.own_tag = tag;
    if (!req.has_epoch && n->epoch.known) {
        req.has_epoch = true;
        req.epoch_ms = n->epoch.ms;
    }
    n->asked.sent[tag % NSENT].tag = tag;
    n->asked.sent[tag % NSENT].us = now_us;
    if (node_lessor_ask (n, now_us, tag, &req) < 0)
        node_lease_miss (n, now_us, tag);
}

void node_lease_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms = node_now_ms (n, now_us);
    uint64_t keep_us = lease_us (n) / 2;
    bool up = node_lessor_is_up (n);

    if (now_us > keep_us)
        lease_relay_drop_old (&n->relay, now_us, now_us - keep_us);
    if (up && due (n, now_us, now_ms) <= now_us)
        send_up (n, now_us, now_ms);
    if (up)
        node_wake (n, due (n, now_us, now_ms));
    if (lease_relay_oldest (&n->relay) != NEVER)
        node_wake (n, lease_relay_oldest (&n->relay) + keep_us + 1);
}

static void note_epoch (struct node *n, const struct lease_answer *answer)
{
    if (!answer->has_epoch)
        return;
    if (n->epoch.known && n->epoch.ms != answer->epoch_ms)
        node_log (n, LOG_ERR,
                  "rank 0 has another epoch than before, so it runs on another statedir: restart rank 0 "
                  "on the statedir of this instance");
    else {
        n->epoch.known = true;
        n->epoch.ms = answer->epoch_ms;
    }
}

/* The root decides how long ranges may be used, because the watermark waits for that long (watermark.h). */
static void note_lease (struct node *n, const struct lease_answer *answer)
{
    if (answer->lease_ms == 0)
        return;
    n->root_lease_ms = answer->lease_ms;
    n->lessee.lease_ms = answer->lease_ms;
    node_share_term (n);
}

static void note_time (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer)
{
    if (!answer->has_time || n->asked.sent[tag % NSENT].tag != tag) /* 16 later requests were sent */
        return;
    node_time (n, now_us,
               &(struct idt_clock_sample){ .sent_us = n->asked.sent[tag % NSENT].us,
                                           .peer_received_us = answer->received_us,
                                           .peer_sent_us = answer->sent_us,
                                           .received_us = now_us,
                                           .peer_bound_us = answer->bound_us });
}

void node_lease_take (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer)
{
    note_time (n, now_us, tag, answer);
    note_epoch (n, answer);
    note_lease (n, answer);
    for (size_t i = 0; n->owner && i < answer->ngrant; i++)
        take (n, now_us, &answer->grant[i]);
    if (n->owner && n->lessee.asking && tag == n->asked.own_tag)
        lessee_missed (&n->lessee, now_us, node_now_ms (n, now_us));
    lease_relay_answered (&n->relay, now_us, tag, answer->grant, answer->ngrant);
}

/* --- children ------------------------------------------------------------------------------------ */

bool node_lease_relay (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req)
{
    if (n->stopped || lease_relay_add (&n->relay, now_us, node_now_ms (n, now_us), cookie, req) < 0) {
        node_relay_reply_cb (n, now_us, cookie, now_us, NULL, 0);
        return false;
    }
    n->last_child_us = now_us;
    return true;
}

/* The caller has closed the generator (rule CLOSE_FIRST). The returned part begins above all ids and subleases. */
void node_lease_stop (struct node *n, uint64_t now_us)
{
    struct lease_request req = { 0 };
    struct lease_back back;
    uint64_t end_ms = max_u64 (n->cursor_ms + 1, n->lent.range.hi_ms);

    end_ms = max_u64 (end_ms, lender_end (&n->sharing.lender)); /* rule S_REST: not what is subleased */
    end_ms = max_u64 (end_ms, n->spoilt.end_ms);
    if (n->owner && lessee_close (&n->lessee, end_ms, &back)) {
        back.left_ms = lender_left_ms (&n->sharing.lender, now_us); /* rule W_LENT: until then borrowers use it */
        lease_relay_add_back (&n->relay, &back, 1);
    }
    uint32_t tag = lease_relay_flush (&n->relay, now_us, NULL, &req);
    if (tag != 0 && node_lessor_is_up (n))
        node_lessor_ask (n, now_us, 0, &req);
    lease_relay_drop_old (&n->relay, now_us, NEVER);
}

/* --- subleases of time to other modules of the broker -------------------------------------------- */

/* Two invariants, like those in lease/lease.c:
 * 1. Subleases of time are disjoint, because each begins at or after the end of all before it. Each lies in the range
 *    that contains now, which no other rank was or will be granted.
 * 2. This holds across restarts, because a node counts what it granted as used when it returns the rest of its lease
 *    (node_lease_stop ()). A node that crashes returns nothing.
 */

int node_lend (struct node *n, uint64_t now_us, const char *borrower, struct loan *loan)
{
    uint64_t now_ms;

    errno = n->owner ? EAGAIN : ENOTSUP;
    if (!n->owner || n->stopped || !n->epoch.known || !node_may_generate (n, now_us, &now_ms))
        return -1;
    struct range range = { max_u64 (n->cur.range.lo_ms, n->lent.range.hi_ms),
                           min_u64 (n->cur.range.hi_ms, now_ms + n->root_lease_ms / 4) };
    if (range.lo_ms >= range.hi_ms)
        return -1;
    bool in_a_row = range.lo_ms == n->lent.range.hi_ms && strcmp (n->lent.borrower, borrower) == 0;
    n->lent.range = (struct range){ in_a_row ? n->lent.range.lo_ms : range.lo_ms, range.hi_ms };
    snprintf (n->lent.borrower, sizeof (n->lent.borrower), "%s", borrower);
    *loan = (struct loan){
        .lo_ms = range.lo_ms, .hi_ms = range.hi_ms, .clock_us = clock_read (n->clock, now_us), .epoch_ms = n->epoch.ms
    };
    return 0;
}

void node_lend_back (struct node *n, const char *borrower, uint64_t end_ms)
{
    struct range *r = &n->lent.range;

    if (strcmp (n->lent.borrower, borrower) == 0 && end_ms < r->hi_ms)
        r->hi_ms = max_u64 (end_ms, r->lo_ms);
}
