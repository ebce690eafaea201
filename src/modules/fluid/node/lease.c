/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.c - what a node holds, and what it grants on
 *
 * A rank that owns a generator holds a lease of it from rank 0. Its requests go up together with those of its subtree
 * (lease_relay.h), and a node with children delays its own renewal until they renew. Any other rank holds a part of its
 * parent's box if it needs one. Every rank grants parts of what it holds to its children, and time to other modules of
 * its broker. held.h keeps what the node holds, grants.h what it granted. demand.h decides how much is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define NSENT (sizeof (((struct node *)0)->asked.sent) / sizeof (((struct node *)0)->asked.sent[0]))
#define PART_TAG (LEASE_RELAY_LAST_TAG + 1) /* of all requests for a part: an answer has the request's number */
#define MUCH 128                            /* a larger part is granted for a quarter of a term */
#define HERE_MS 4  /* a rank with a part forwards its waiting requests if it would take longer to make their ids */
#define BUSY_MS 16 /* a rank that needs longer to make the ids that are waited for wants all numbers itself */
#define NO_MODULE_RETRY_MS 1000
#define MORE_RETRY_MS 20 /* a child that lacks something asks again after this time, because there may be more then */

static uint64_t lease_us (const struct node *n)
{
    return n->config.lease_ms * 1000;
}

/* No id was made, and no part was granted, at or above this time. */
static uint64_t end_ms (const struct node *n)
{
    return max_u64 (n->cursor_ms + 1, grants_end (&n->parts)); /* rules END_ABOVE_MADE, END_ABOVE_GRANTED */
}

/* --- the source of a node's leases and time: its parent, or at rank 0 the authority beside it ---- */

/* A parent is asked with a message, and answers later through the functions of node.h. The authority answers
 * immediately; node_tick () notices its other changes.
 */

static bool source_is_up (const struct node *n)
{
    return n->source.authority || n->parent_up;
}

static int ask_authority (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    struct lease_answer answer;

    authority_answer (n->source.authority, now_us, req, &answer);
    if (tag != 0)
        node_lease_take (n, now_us, tag, &answer);
    return 0;
}

/* Like lease_up () of struct node_ops. */
static int ask_source (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    if (n->source.authority)
        return ask_authority (n, now_us, tag, req);
    if (tag != 0)
        n->stats.lease_messages++;
    return n->ops->lease_up (n->arg, tag, req);
}

void node_source_hear_jumps (struct node *n)
{
    if (!n->source.authority)
        return;
    uint64_t jumped_us = authority_news (n->source.authority).jumped_us;

    if (jumped_us != n->source.heard.jumped_us)
        grants_jumped (&n->parts, jumped_us - n->source.heard.jumped_us);
    n->source.heard.jumped_us = jumped_us;
}

void node_source_hear (struct node *n, uint64_t now_us)
{
    if (!n->source.authority)
        return;
    struct authority_news news = authority_news (n->source.authority), *heard = &n->source.heard;

    node_source_hear_jumps (n);
    if (news.steps != heard->steps)
        node_close_past (n, now_us);
    if (news.missed_us != heard->missed_us) {
        held_lost_time (&n->held, news.missed_us - heard->missed_us); /* rule PROVE_AFTER_PAUSE */
        node_look_anew (n);
    }
    if (news.stored != heard->stored)
        held_hurry (&n->held, now_us);
    if (news.fenced_by_foreign && !heard->fenced_by_foreign) {
        /* This rank's leases came from the same table as those that the authority does not know. */
        held_close (&n->held);
        node_make_nothing (n);
    }
    *heard = news;
}

const char *node_source_excuse (const struct node *n)
{
    if (n->source.authority)
        return authority_excuse (n->source.authority);
    return n->parent_up ? "no ancestor answered within fluid.forward-timeout"
                        : "no lease, and no parent broker within fluid.forward-timeout";
}

/* --- how much is needed ---------------------------------------------------------------------------- */

/* The size of the part to request now; 0: none. It is enough for this rank and for what its children want. It grows
 * immediately. With children it shrinks only if a quarter is enough.
 */
static uint32_t part_needed (struct node *n, uint64_t now_us)
{
    uint32_t below = grants_wanted (&n->parts, now_us), had = n->held.want.size;
    uint32_t here = n->config.share;

    if (n->config.share == NODE_SHARE_AUTO)
        here = demand_size (&n->own, now_us) + demand_size (&n->passing, now_us);
    uint32_t size = below > 0 ? box_size_for (here + below) : here < BOX_MAX_PART ? here : BOX_MAX_PART;

    return n->held.count > 0 && below > 0 && size < had && size * 4 > had ? had : size;
}

/* Whether a larger size would help requests that lack numbers. If the parent has no more to grant, it does only as long
 * as children hold more than that: the size decides what this rank keeps.
 */
static bool more_helps (const struct node *n, uint64_t now_us, const struct demand *d)
{
    const struct box held = { .granules = held_granules (&n->held) };
    const struct grants_stock stock = { .whole = &held };
    const struct want all = { .rank = n->config.rank, .size = BOX_MAX_PART };

    return n->owner || d->size == 0 || n->held.size >= n->held.want.size
           || (n->parts.count > 0 && 2 * d->size <= grants_share (&n->parts, now_us, &stock, &all));
}

void node_lease_note (struct node *n, uint64_t now_us, const struct node_request *req, uint32_t got)
{
    struct demand *d = req->from_broker ? &n->passing : &n->own;

    if (n->config.share != NODE_SHARE_OFF) /* with a configured size, too: it decides what this rank keeps */
        demand_note (d, now_us, req->count, got < req->count && more_helps (n, now_us, d));
}

void node_lease_note_from_above (struct node *n, uint64_t now_us, uint32_t ids)
{
    demand_note_from_above (&n->own, now_us, ids);
    demand_note_from_above (&n->passing, now_us, ids);
}

/* Ids that take a few milliseconds are made here, even if the parent were a little faster. Otherwise the numbers of the
 * part would be unused meanwhile, and the parent would lack them.
 */
bool node_lease_is_short (struct node *n, uint64_t now_us, uint64_t more)
{
    uint64_t now_ms;

    if (!n->parent_up || !node_may_generate (n, now_us, &now_ms))
        return false;
    return n->waiting.missing + more > (uint64_t)HERE_MS * box_size (node_granules (n, now_ms));
}

/* --- requests to the source ------------------------------------------------------------------------- */

/* When this node's own request must be sent if no child's request is sent before. A node with children waits for their
 * requests, which arrive a hop later, unless the node has less than half a lease left.
 */
static uint64_t own_due (const struct node *n, uint64_t now_us, uint64_t now_ms)
{
    const struct held *h = &n->held;

    if (!n->owner)
        return NEVER;
    uint64_t due_us = held_due (h, now_us, now_ms, BOX_WHOLE);
    bool has_children = n->last_child_us > 0 && now_us - n->last_child_us < lease_us (n);

    if (due_us == NEVER || h->asking || !has_children || held_end (h) < now_ms + n->config.lease_ms / 2
        || h->counted_us < now_us + lease_us (n) * 3 / 4)
        return due_us;
    uint64_t half_us = now_us + (held_end (h) - now_ms - n->config.lease_ms / 2) * 1000;
    return half_us > due_us ? half_us : due_us; /* when half a lease is left */
}

/* When the next request is due, of this node or of a child. Requests to the authority need no pauses in between. */
static uint64_t due (const struct node *n, uint64_t now_us, uint64_t now_ms)
{
    uint64_t due_us = min_u64 (n->relay.due_us, own_due (n, now_us, now_ms));

    return n->source.authority ? due_us : max_u64 (due_us, n->relay.open_us);
}

static void missed (struct node *n, uint64_t now_us, uint64_t retry_ms)
{
    held_missed (&n->held, now_us, node_now_ms (n, now_us), retry_ms);
}

/* Ask for a lease of the own generator, and for those of the subtree. */
static void send_up (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    struct lease_request req;
    struct want want;
    bool own = n->owner
               && (held_due (&n->held, now_us, now_ms, BOX_WHOLE) <= now_us
                   || held_may_join (&n->held, now_us, now_ms));

    if (own) {
        held_ask (&n->held, now_us, now_ms, BOX_WHOLE, 0, 0, &want);
        want.ranks = n->config.lanes > 1 ? n->config.size : 0; /* rule LANE_SIZE: the root checks it */
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
    if (ask_source (n, now_us, tag, &req) < 0)
        node_lease_miss (n, now_us, tag, EHOSTUNREACH);
}

static void send_part (struct node *n, uint64_t now_us, const struct want *want)
{
    const struct lease_request req = { .want = want, .nwant = 1, .is_part = true };

    node_look_anew (n); /* rule NEVER_USE_RETURNED: the box in use may end earlier now */
    n->stats.part_messages++;
    if (n->ops->lease_up (n->arg, want->size > 0 ? PART_TAG : 0, &req) < 0)
        missed (n, now_us, 0);
}

/* The granules to keep if this node should have less than it holds: those of its children, and the lowest of the others
 * up to the size that it needs and should have. Returns 0 if there is nothing to return.
 */
static uint64_t kept_of (const struct node *n, uint64_t now_ms, uint32_t size)
{
    const struct held *h = &n->held;
    uint32_t most = h->share > 0 && h->share < size ? h->share : size;
    uint64_t has = held_granules (h), kept = grants_granules (&n->parts, now_ms) & has;

    if (size == 0 || h->asking || h->size <= most)
        return 0;
    for (uint64_t left = has & ~kept; left != 0 && box_size (kept) < most; left &= left - 1)
        kept |= left & -left;
    return kept == has ? 0 : kept;
}

static uint64_t part_due (const struct node *n, uint64_t now_us, uint64_t now_ms, uint32_t size)
{
    if (kept_of (n, now_ms, size) != 0)
        return max_u64 (now_us, n->held.ask_us);
    return held_due (&n->held, now_us, now_ms, size);
}

/* Ask for a part, or return it. It is not returned while requests wait, because these may have got ids of it. */
static void ask_part (struct node *n, uint64_t now_us, uint64_t now_ms, uint32_t size)
{
    struct held *h = &n->held;
    uint64_t kept = kept_of (n, now_ms, size);
    struct want want;

    if (part_due (n, now_us, now_ms, size) > now_us)
        return;
    if (size == 0) {
        if (n->waiting.length == 0 && held_return (h, end_ms (n), grants_left_ms (&n->parts, now_us), &want))
            send_part (n, now_us, &want);
        return;
    }
    if (kept == 0)
        kept = held_make_room (h, now_ms, size, grants_granules (&n->parts, now_ms));
    held_ask (h, now_us, now_ms, size, kept != 0 ? n->cursor_ms + 1 : end_ms (n), kept, &want);
    send_part (n, now_us, &want);
}

static void part_work (struct node *n, uint64_t now_us)
{
    if (n->owner || n->config.share == NODE_SHARE_OFF || !n->parent_up || !n->clock->known || n->doubt.now)
        return;
    uint64_t now_ms = node_now_ms (n, now_us);
    uint32_t size = part_needed (n, now_us);

    ask_part (n, now_us, now_ms, size);
    if (size > 0)
        node_wake (n, part_due (n, now_us, now_ms, size));
    if (n->config.share == NODE_SHARE_AUTO)
        node_wake (n, min_u64 (demand_due (&n->own), demand_due (&n->passing)));
}

void node_lease_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms = node_now_ms (n, now_us);
    uint64_t keep_us = lease_us (n) / 2;
    bool up = source_is_up (n);

    if (now_us > keep_us)
        lease_relay_drop_old (&n->relay, now_us, now_us - keep_us);
    if (up && due (n, now_us, now_ms) <= now_us)
        send_up (n, now_us, now_ms);
    if (up)
        node_wake (n, due (n, now_us, now_ms));
    if (lease_relay_oldest (&n->relay) != NEVER)
        node_wake (n, lease_relay_oldest (&n->relay) + keep_us + 1);
    part_work (n, now_us);
}

/* --- answers ------------------------------------------------------------------------------------------ */

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

void node_lease_term (struct node *n)
{
    uint64_t term_ms = max_u64 (n->root_lease_ms / 4, 1);

    n->parts.term_ms = n->time.term_ms = term_ms;
    n->held.term_ms = n->owner ? n->root_lease_ms : term_ms;
}

/* The root decides how long boxes may be used, because the watermark waits for that long (watermark.h). */
static void note_lease (struct node *n, const struct lease_answer *answer)
{
    if (answer->lease_ms == 0)
        return;
    n->root_lease_ms = answer->lease_ms;
    node_lease_term (n);
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

/* Accept boxes. The box in use may have become longer or invalid, so it is looked up again. */
static bool take (struct node *n, uint64_t now_us, const struct lease_answer *a)
{
    node_look_anew (n);
    return held_take (&n->held, now_us, node_now_ms (n, now_us), a->grant, a->ngrant, a->share, a->retry_ms);
}

/* Whether the time here is past the box that this rank was granted, and certainly ahead of rank 0's. */
static bool is_ahead_of (const struct node *n, uint64_t now_us, const struct grant *grant)
{
    return grant->rank == n->config.rank && grant->box.range.hi_ms <= node_now_ms (n, now_us)
           && clock_read (n->clock, now_us)
                  > clock_estimate (n->clock, now_us) + clock_estimate_bound (n->clock, now_us);
}

/* Rank 0 may come back with an earlier time than it had, if it could not store its horizon for minutes, and the time of
 * the instance was ahead of the wall clock. The time here never goes back. So a restart helps, which sets it anew.
 */
static void report_ahead (struct node *n, uint64_t now_us, const struct lease_answer *answer)
{
    bool ahead = false;

    for (size_t i = 0; i < answer->ngrant && n->clock->known; i++)
        ahead |= is_ahead_of (n, now_us, &answer->grant[i]);
    if (ahead && !n->said_ahead)
        node_log (
            n, LOG_WARNING,
            "the time here is %.3f s ahead of rank 0's, so each lease is over before it is received: restart this "
            "broker to set its time (meanwhile its parent makes its ids)",
            (double)(clock_read (n->clock, now_us) - clock_estimate (n->clock, now_us)) / 1e6);
    n->said_ahead |= ahead;
}

static void take_whole (struct node *n, uint64_t now_us, const struct lease_answer *answer)
{
    if (!take (n, now_us, answer)) {
        report_ahead (n, now_us, answer);
        return;
    }
    n->stats.renewals++;
    n->renewed_us = now_us;
    n->said_ahead = false;
}

static void take_part (struct node *n, uint64_t now_us, const struct lease_answer *answer)
{
    if (!n->owner && answer->ngrant > 0 && take (n, now_us, answer))
        n->stats.parts_received++;
    else
        missed (n, now_us, answer->retry_ms);
}

void node_lease_take (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer)
{
    if (tag == PART_TAG) {
        take_part (n, now_us, answer);
        return;
    }
    note_time (n, now_us, tag, answer);
    note_epoch (n, answer);
    note_lease (n, answer);
    if (n->owner && answer->ngrant > 0)
        take_whole (n, now_us, answer);
    if (n->owner && n->held.asking && tag == n->asked.own_tag)
        missed (n, now_us, 0);
    lease_relay_answered (&n->relay, now_us, tag, answer->grant, answer->ngrant);
}

/* ENOSYS: the parent's module is being loaded again. */
static void part_miss (struct node *n, uint64_t now_us, int errnum)
{
    if (errnum == ENOTSUP || errnum == EPERM || errnum == EPROTO)
        held_refused (&n->held);
    else
        missed (n, now_us, errnum == ENOSYS ? NO_MODULE_RETRY_MS : 0);
}

void node_lease_miss (struct node *n, uint64_t now_us, uint32_t tag, int errnum)
{
    if (tag == PART_TAG) {
        part_miss (n, now_us, errnum);
        return;
    }
    if (tag == n->asked.own_tag)
        missed (n, now_us, 0);
    lease_relay_answered (&n->relay, now_us, tag, NULL, 0);
}

/* --- requests of children: for whole generators, combined with those of this node ------------------------ */

void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us, const struct grant *grant,
                          size_t ngrant)
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

static void relay (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req)
{
    if (n->stopped || lease_relay_add (&n->relay, now_us, node_now_ms (n, now_us), cookie, req) < 0) {
        node_relay_reply_cb (n, now_us, cookie, now_us, NULL, 0);
        return;
    }
    n->last_child_us = now_us;
    node_tick (n, now_us);
}

/* --- requests of children: for a part, granted here --------------------------------------------------- */

/* Whether what waits takes longer than BUSY_MS. What was forwarded is made elsewhere, however much it is. */
static bool has_backlog (struct node *n, uint64_t now_ms)
{
    return !n->up.all.busy && n->waiting.missing > (uint64_t)BUSY_MS * box_size (node_granules (n, now_ms));
}

/* Sequence numbers that this rank must return to its parent. */
static uint32_t excess (const struct node *n)
{
    uint32_t all = box_size (n->cur.box.granules), share = n->held.share;

    return !n->owner && share > 0 && share < all ? all - share : 0;
}

/* Sequence numbers that this rank must keep: what its clients need, and what forwards of children need if numbers are
 * lacking, but not more than each holder should have if there is not enough for all. An owner keeps at least the
 * configured number, and never grants everything, because it has no parent with more numbers of its generator. Nor does
 * a rank without a parent.
 */
static uint32_t to_keep (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    uint32_t configured = n->config.share_keep > BOX_MIN_SIZE ? n->config.share_keep : BOX_MIN_SIZE;
    uint32_t least = n->owner ? configured : n->parent_up ? 0 : BOX_MIN_SIZE;
    uint32_t need = demand_now (&n->own, now_us) + demand_lacking (&n->passing, now_us);

    if (need > BOX_MAX_PART || has_backlog (n, now_ms))
        need = BOX_MAX_PART;
    const struct grants_stock all = { .whole = &n->cur.box, .keep = excess (n) };
    const struct want here = { .rank = n->config.rank, .size = need };
    uint32_t share = need > least ? grants_share (&n->parts, now_us, &all, &here) : 0;
    return share > least ? share : least;
}

/* Find out what may be granted now for a want. '*whole' is the part of the box in use that may be granted. Much is
 * granted for a shorter time, because a holder that is lost keeps it from all others until that is over.
 */
static struct grants_stock take_stock (struct node *n, uint64_t now_us, const struct want *want, struct box *whole)
{
    struct grants_stock stock = { .whole = NULL };
    uint64_t now_ms;

    if (!node_may_generate (n, now_us, &now_ms))
        return stock;
    *whole = n->cur.box;
    whole->granules &= node_page_may_grant (n, now_ms);
    if (want->size > MUCH)
        whole->range.hi_ms = min_u64 (whole->range.hi_ms, now_ms + n->parts.term_ms / 4);
    stock.whole = whole;
    stock.until_us = n->cur.until_us;
    stock.from_ms = node_page_next_ms (n, now_us, now_ms);
    uint32_t keep = to_keep (n, now_us, now_ms), of_page = box_size (n->cur.box.granules & ~whole->granules);
    stock.keep = (keep > of_page ? keep - of_page : 0) + excess (n);
    return stock;
}

/* Grant parts of what this rank holds. If a child wants more than before, and lacks some of it, it asks again soon:
 * meanwhile this rank asks its parent for more, and other holders return what is above their shares.
 */
static void grant_parts (struct node *n, uint64_t now_us, const struct want *want, struct grant grant[GRANTS_EACH],
                         struct lease_answer *answer)
{
    uint32_t wanted = grants_wanted (&n->parts, now_us);
    struct box whole;
    struct grants_stock stock = take_stock (n, now_us, want, &whole);

    answer->grant = grant;
    answer->ngrant = grants_answer (&n->parts, now_us, node_now_ms (n, now_us), &stock, want, grant);
    if (stock.whole && want->size > 0)
        answer->share = grants_share (&n->parts, now_us, &stock, want);
    if (grants_wanted (&n->parts, now_us) > wanted && (answer->ngrant == 0 || answer->share < want->size))
        answer->retry_ms = MORE_RETRY_MS;
    n->stats.parts_granted += answer->ngrant > 0;
}

static int answer_part (struct node *n, uint64_t now_us, void *cookie, const struct want *want)
{
    struct lease_answer answer = { .ngrant = 0 };
    struct grant grant[GRANTS_EACH];

    errno = n->stopped ? EHOSTUNREACH : ENOTSUP;
    if (n->stopped || n->config.share == NODE_SHARE_OFF)
        return -1;
    grant_parts (n, now_us, want, grant, &answer);
    node_page_granted (n);
    n->free.until_ms = 0;
    n->ops->lease_reply (n->arg, cookie, &answer);
    node_tick (n, now_us); /* so that this rank asks for what its children need */
    return 0;
}

int node_lease_request (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req)
{
    if (req->is_part)
        return answer_part (n, now_us, cookie, &req->want[0]);
    relay (n, now_us, cookie, req);
    return 0;
}

/* --- time for other modules of the broker, to make ids of another kind ----------------------------------- */

/* Time is granted like a whole generator of number 0, which has nothing to do with the generators of FLUIDs. */

int node_grant_time (struct node *n, uint64_t now_us, const char *holder, struct time_grant *time)
{
    struct want want = { .number = ++n->time_number, .size = BOX_WHOLE };
    uint64_t now_ms, had_ms = grants_end (&n->time);
    struct grant grant[GRANTS_EACH];

    errno = n->owner ? EAGAIN : ENOTSUP;
    if (!n->owner || n->stopped || !n->epoch.known || !node_may_generate (n, now_us, &now_ms))
        return -1;
    const struct box whole = { 0, UINT64_MAX, n->cur.box.range };
    const struct grants_stock stock = { .whole = &whole, .until_us = n->cur.until_us };
    strncat (want.incarnation, holder, sizeof (want.incarnation) - 1);
    if (grants_answer (&n->time, now_us, now_ms, &stock, &want, grant) == 0 || grant[0].box.range.hi_ms <= had_ms)
        return -1;
    *time = (struct time_grant){ .lo_ms = max_u64 (grant[0].box.range.lo_ms, had_ms),
                                 .hi_ms = grant[0].box.range.hi_ms,
                                 .clock_us = clock_read (n->clock, now_us),
                                 .epoch_ms = n->epoch.ms };
    return 0;
}

void node_return_time (struct node *n, uint64_t now_us, const char *holder, uint64_t end_ms)
{
    struct want want = { .number = ++n->time_number, .end_ms = max_u64 (end_ms, 1) };
    const struct grants_stock none = { .whole = NULL };
    struct grant grant[GRANTS_EACH];

    strncat (want.incarnation, holder, sizeof (want.incarnation) - 1);
    grants_answer (&n->time, now_us, node_now_ms (n, now_us), &none, &want, grant);
}

/* --- time and place ------------------------------------------------------------------------------------- */

void node_lease_lost_time (struct node *n, uint64_t now_us, int64_t off_us)
{
    if (off_us > 0)
        held_lost_time (&n->held, (uint64_t)off_us);
    else {
        grants_jumped (&n->parts, (uint64_t)-off_us);
        lease_relay_jumped (&n->relay, now_us, (uint64_t)-off_us);
    }
}

/* Return what is held. The caller has closed the generator (rule NEVER_USE_RETURNED). What is returned begins above all
 * ids that were made, and above all that was granted on (rule END_ABOVE_GRANTED). Holders of parts may use what is
 * below for a time that the return states (rule TELL_TIME_LEFT).
 */
void node_lease_stop (struct node *n, uint64_t now_us)
{
    uint64_t low_ms = max_u64 (max_u64 (end_ms (n), grants_end (&n->time)), n->spoilt.end_ms);
    struct lease_request req = { 0 };
    struct want want;

    if (!n->held.closed && held_return (&n->held, low_ms, grants_left_ms (&n->parts, now_us), &want)) {
        if (n->owner)
            lease_relay_add_return (&n->relay, &want);
        else if (n->parent_up)
            send_part (n, now_us, &want);
    }
    held_close (&n->held);
    uint32_t tag = lease_relay_flush (&n->relay, now_us, NULL, &req);
    if (tag != 0 && source_is_up (n))
        ask_source (n, now_us, 0, &req);
    lease_relay_drop_old (&n->relay, now_us, NEVER);
}
