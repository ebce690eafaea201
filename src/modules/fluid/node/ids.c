/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ids.c - a node's requests for ids: accepted, served here, failed
 *
 * Each id that is answered is above all ids that were answered before ('last_id'). So each requester sees increasing
 * ids, and its first request is complete first. For this purpose the node's generator is advanced past ids that came
 * from the parent, forwarded requests carry 'last_id', and an answer of the parent is not used after the node has made
 * further ids.
 *
 * A request that cannot be served immediately waits until it is complete. Requesters take turns of one millisecond's
 * ids each. The last few ids of a millisecond are reserved for newcomers, so that these need not wait for the next
 * millisecond. A newcomer asks for at most that many ids, and would have the next turn. While the node cannot generate,
 * waiting requests are forwarded (forward.c).
 */
#include <assert.h>
#include <errno.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define MAX_BROKERS_WAITING 65536 /* if so many requests wait, a broker is refused; each child has one or two */
#define OVERLOAD "more ids are requested than this rank makes in fluid.max-backlog: ask again later, or another rank"

/* --- generating ------------------------------------------------------------------------------ */

/* Make up to 'want' ids at 't_ms', which node_may_generate () allowed, as one run. Returns how many; 0: no id is left.
 */
static uint32_t reserve (struct node *n, uint64_t t_ms, uint32_t want, fluid_t *first)
{
    if (t_ms < n->cursor_ms) /* 'gen' refuses such a time, but a lane that was not used since then does not */
        return 0;
    int got = page_gen_reserve_in (&n->gen, t_ms, node_granules (n, t_ms), want, first); /* rule NEVER_USE_GRANTED */
    if (got <= 0 && (got = lanes_reserve (&n->lanes, t_ms, want, first)) > 0)
        page_gen_follow (&n->gen, *first + (uint32_t)got - 1); /* 'gen' is done with this millisecond */
    if (got <= 0)
        return 0;
    assert (*first > n->last_id); /* ids of a rank increase */
    n->cursor_ms = t_ms;
    n->last_id = *first + (uint32_t)got - 1;
    n->stats.ids += (uint64_t)got;
    return (uint32_t)got;
}

/* Whether the order of ids allows a request to be served at '*now_ms'. For a child the clock steps forward to 'after'.
 * A client's 'after' never moves the clock, because a client may name any id. The root's clock is never moved.
 */
static bool is_ripe (struct node *n, uint64_t now_us, bool from_broker, fluid_t after, uint64_t *now_ms)
{
    uint64_t ms = node_floor_ms (n, after);

    if (ms <= *now_ms)
        return true;
    if (!from_broker)
        return false;
    node_step_to (n, now_us, after);
    return node_may_generate (n, now_us, now_ms) && ms <= *now_ms;
}

/* The first millisecond that a waiting request may use. A millisecond that passed while the request waited is allowed.
 */
static uint64_t first_ms (struct node *n, const struct pending *p)
{
    uint64_t ms = max_u64 (node_floor_ms (n, p->after), p->arrival_ms);

    return max_u64 (ms, max_u64 (n->cur.box.range.lo_ms, n->cursor_ms));
}

/* How many ids of a millisecond are left above the last id. Granules that are granted do not count; the lanes do. */
static uint32_t left_of (struct node *n, uint64_t ms)
{
    struct fluid_fields last = fluid_split (n->last_id);
    bool begun = last.timestamp_ms == ms && last.generator == n->gen.generator;
    uint32_t used = begun ? last.sequence + 1 : 0, g = used / FLUID_GRANULE;
    uint64_t granules = g < FLUID_GRANULES ? node_granules (n, ms) >> g : 0;

    if (lanes_own (&n->lanes, last.generator) && last.timestamp_ms == ms)
        return lanes_left (&n->lanes, ms);
    return (uint32_t)__builtin_popcountll (granules) * FLUID_GRANULE - (granules & 1 ? used % FLUID_GRANULE : 0)
           + lanes_left (&n->lanes, ms);
}

/* How many ids of the current millisecond a waiting request may get. If it is the only request of its requester, and
 * the ids that are left complete it, it gets all that it lacks. Otherwise a sixteenth of the millisecond is reserved
 * for newcomers.
 */
static uint32_t left_now (struct node *n, uint64_t now_ms, const struct pending *p)
{
    uint32_t left = left_of (n, now_ms), lack = p->count - p->got;
    uint32_t kept = (uint32_t)__builtin_popcountll (node_granules (n, now_ms)) * FLUID_GRANULE / NEWCOMERS_PART;

    if (p->requester->length == 1 && lack <= left)
        return lack;
    return left > kept ? left - kept : 0;
}

/* Give a waiting request up to 'want' ids, as far as the time allows. Returns how many. */
static uint32_t generate (struct node *n, struct pending *p, uint64_t now_ms, uint32_t want)
{
    uint32_t got = 0;

    for (uint64_t t = first_ms (n, p); t <= now_ms && got < want; t++) {
        uint32_t left = t == now_ms ? left_now (n, now_ms, p) : node_per_ms (n);
        uint32_t end = want - got < left ? want : got + left, k;
        fluid_t first;

        while (got < end && (k = reserve (n, t, end - got, &first)) > 0) { /* a run ends at granted numbers */
            if (waiting_add_run (&n->waiting, p, first, k) < 0)
                return got;
            got += k;
        }
    }
    return got;
}

/* The first of a requester's requests that may be served at '*now_ms'. */
static struct pending *find_ripe (struct node *n, uint64_t now_us, const struct requester *a, uint64_t *now_ms)
{
    struct pending *p;

    TAILQ_FOREACH (p, &a->waiting, turn)
        if (p->asked == 0 && is_ripe (n, now_us, p->from_broker, p->after, now_ms))
            return p;
    return NULL;
}

/* Serve a request in its requester's turn. Returns false if this millisecond is used up, which ends the turn. */
static bool serve (struct node *n, uint64_t now_us, uint64_t now_ms, struct pending *p)
{
    uint32_t lack = p->count - p->got, turn = p->requester->turn;
    uint32_t want = lack < turn ? lack : turn;
    uint32_t got = generate (n, p, now_ms, want);

    waiting_use_turn (&n->waiting, p->requester, got);
    if (0 < got && got < want)
        waiting_end_turn (&n->waiting, p->requester);
    if (p->got == p->count)
        waiting_complete (&n->waiting, now_us, p);
    else if (got > 0)
        waiting_begun (&n->waiting, p); /* earlier requests that were not ripe get ids above these */
    return got == want;
}

static void generate_waiting (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    size_t unripe = 0; /* requesters in a row without a request that can be served now */

    while (unripe < n->waiting.nrequesters) {
        struct requester *a = TAILQ_FIRST (&n->waiting.round);
        struct pending *p = find_ripe (n, now_us, a, &now_ms);

        if (!node_may_generate (n, now_us, &now_ms))
            return;
        unripe = p ? 0 : unripe + 1;
        if (!p)
            waiting_end_turn (&n->waiting, a);
        else if (!serve (n, now_us, now_ms, p))
            break;
    }
    if (n->waiting.missing > 0)
        node_wake_ms (n, now_us, now_ms + 1);
}

/* --- far ahead ------------------------------------------------------------------------------- */

/* Whether 'after' is so far ahead of the time here that the request is refused. A client may name any id. A broker
 * names an id that was made, and no id is more than two leases ahead of the root's time, because a crash of rank 0 adds
 * at most that much.
 */
static bool is_far (struct node *n, uint64_t now_us, bool from_broker, fluid_t after)
{
    uint64_t reach_ms = n->config.max_backlog_ms + (from_broker && !n->clock->leads ? 2 * n->root_lease_ms : 0);

    return n->clock->known && node_floor_ms (n, after) > node_now_ms (n, now_us) + reach_ms;
}

#define FAR_AHEAD "the request is for ids above one that is more than fluid.max-backlog ahead of the time here"

/* Check 'after' of requests that arrived before the time was known. */
static void judge (struct node *n, uint64_t now_us)
{
    struct pending *p, *next;

    n->waiting.unjudged = false;
    for (p = TAILQ_FIRST (&n->waiting.all); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->arrival_ms != WAITING_UNKNOWN)
            continue;
        p->arrival_ms = node_now_ms (n, now_us);
        if (p->cookie && is_far (n, now_us, p->from_broker, p->after))
            waiting_fail (&n->waiting, p, EAGAIN, FAR_AHEAD);
    }
}

/* --- deadlines ------------------------------------------------------------------------------- */

/* Fail requests that waited too long. The limit is forward_timeout_ms if no rank serves them. If ids are made here, it
 * is max_backlog_ms more, because requests also wait for their turn.
 */
static void expire (struct node *n, uint64_t now_us, bool active)
{
    uint64_t timeout_us = (n->config.forward_timeout_ms + (active ? n->config.max_backlog_ms : 0)) * 1000;
    uint64_t before_us = now_us >= timeout_us ? now_us - timeout_us + 1 : 0;
    uint64_t first_us = active ? waiting_expire (&n->waiting, before_us, EAGAIN, OVERLOAD)
                               : waiting_expire (&n->waiting, before_us, EHOSTUNREACH, node_source_excuse (n));

    if (first_us != NEVER)
        node_wake (n, first_us + timeout_us);
    node_forward_review (n);
}

/* Whether the 40 bits of time are used up. Only the root's clock decides that. */
static bool is_over (const struct node *n, uint64_t now_us)
{
    return n->clock->leads && node_now_ms (n, now_us) > FLUID_TIMESTAMP_MAX;
}

static void fail_all (struct node *n, int errnum, const char *text)
{
    node_forward_end (n);
    waiting_fail_all (&n->waiting, errnum, text);
}

void node_ids_stop (struct node *n)
{
    fail_all (n, EHOSTUNREACH, "the fluid service of this broker is stopping");
}

/* If the waiting requests are too much for a part, forward all of them. Returns whether the answer to a
 * forward is under way; until it arrives, the rank makes no ids (rule WAIT_FOR_FORWARD). If no waiting request may be
 * forwarded now, all ids are made here.
 */
static bool is_for_above (struct node *n, uint64_t now_us)
{
    if (n->owner)
        return false;
    if (!node_forward_is_busy (n) && node_lease_is_short (n, now_us, 0))
        node_forward_waiting (n, now_us);
    if (node_forward_is_overdue (n, now_us))
        node_forward_give_up (n, now_us); /* make them here */
    return node_forward_is_busy (n);
}

void node_ids_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms;

    if (n->waiting.length == 0)
        return;
    if (n->waiting.unjudged && n->clock->known)
        judge (n, now_us);
    bool goes_up = is_for_above (n, now_us);
    if (!goes_up && node_may_generate (n, now_us, &now_ms)) {
        if (node_forward_is_busy (n))
            node_forward_abandon (n);
        generate_waiting (n, now_us, now_ms);
    }
    bool active = node_may_generate (n, now_us, &now_ms);
    expire (n, now_us, active);
    if (active && !goes_up)
        return;
    if (is_over (n, now_us))
        fail_all (n, EOVERFLOW, TIME_IS_OVER);
    else
        node_forward_waiting (n, now_us); /* rule FORWARD: if generation is impossible */
}

/* --- requests -------------------------------------------------------------------------------- */

static const char *requester_of (const struct node_request *req)
{
    return req->asker ? req->asker : "";
}

/* A broker has up to two forwards under way, and keeps their ids in order by 'after'. So they count as separate
 * requesters.
 */
static enum requester_kind kind_of (const struct node_request *req)
{
    if (!req->from_broker)
        return req->others ? REQUESTER_USER : REQUESTER_CLIENT;
    return req->count <= FOR_NEWCOMERS ? REQUESTER_BROKER_FEW : REQUESTER_BROKER;
}

static struct requester *waiting_of (const struct node *n, const struct node_request *req)
{
    return waiting_requester (&n->waiting, requester_of (req), kind_of (req));
}

/* Whether a request is served before all waiting requests. */
static bool is_first (const struct node *n, const struct node_request *req)
{
    if (n->waiting.length == 0)
        return true;
    return req->count <= FOR_NEWCOMERS && !node_forward_is_busy (n) && !waiting_of (n, req);
}

/* Serve a request immediately, wholly or in part. Returns how many ids it got. */
static uint32_t serve_now (struct node *n, uint64_t now_us, const struct node_request *req, fluid_t *first)
{
    uint64_t now_ms;

    if (!is_first (n, req) || !node_may_generate (n, now_us, &now_ms)
        || !is_ripe (n, now_us, req->from_broker, req->after, &now_ms)
        || (!n->owner && node_lease_is_short (n, now_us, req->count)))
        return 0;
    return reserve (n, now_ms, req->count, first);
}

/* Whether a request's turns would take longer than max_backlog_ms. The ids that all waiting requests lack are an upper
 * bound, so they are checked first.
 */
static bool takes_too_long (const struct node *n, const struct node_request *req)
{
    uint64_t max = (n->config.max_backlog_ms + 1) * node_per_ms (n);

    return n->waiting.missing + req->count > max
           && waiting_ahead (&n->waiting, requester_of (req), kind_of (req), req->count) > max;
}

/* Whether a requester has as many waiting requests as slots are free. So a newcomer always finds a free slot. All users
 * except the owner share half of the slots.
 */
static bool has_too_many (const struct node *n, const struct node_request *req)
{
    const struct requester *a = waiting_of (n, req);
    size_t own = a ? a->length : 0, max = n->config.max_waiting;

    return own + n->waiting.length >= max || (req->others && own + n->waiting.others >= (max + 1) / 2);
}

/* The reason why a request may not wait, or NULL if it may. */
static const char *overload (struct node *n, uint64_t now_us, const struct node_request *req)
{
    if (is_far (n, now_us, req->from_broker, req->after))
        return FAR_AHEAD;
    if (req->from_broker)
        return n->waiting.length < MAX_BROKERS_WAITING ? NULL : "65536 requests wait here already: ask again later";
    if (takes_too_long (n, req))
        return OVERLOAD;
    if (has_too_many (n, req))
        return "too many requests of this requester wait (fluid.max-waiting): ask later, or for more ids at a time";
    return NULL;
}

static enum node_taken enqueue (struct node *n, uint64_t now_us, const struct node_request *req, fluid_t first,
                                uint32_t got)
{
    uint64_t now_ms = n->clock->known ? node_now_ms (n, now_us) : WAITING_UNKNOWN;
    struct pending *p = waiting_add (&n->waiting, requester_of (req), kind_of (req), req->count, now_us, now_ms);

    if (!p) {
        waiting_refuse (&n->waiting, req->cookie, ENOMEM, NULL);
        return NODE_REFUSED;
    }
    p->cookie = req->cookie;
    p->after = req->after;
    p->traced = req->traced;
    if (got > 0 && waiting_add_run (&n->waiting, p, first, got) < 0)
        waiting_fail (&n->waiting, p, ENOMEM, NULL);
    return NODE_WAITS;
}

enum node_taken node_ids_request (struct node *n, uint64_t now_us, const struct node_request *req)
{
    fluid_t first = 0;
    const char *why;

    n->stats.requests++;
    if (req->count < 1 || req->count > NODE_MAX_COUNT) {
        waiting_refuse (&n->waiting, req->cookie, EINVAL, "count must be 1 to 65536");
        return NODE_REFUSED;
    }
    if (n->stopped) {
        waiting_refuse (&n->waiting, req->cookie, EHOSTUNREACH, "the fluid service of this broker is stopping");
        return NODE_REFUSED;
    }
    if ((why = overload (n, now_us, req))) {
        waiting_refuse (&n->waiting, req->cookie, EAGAIN, why);
        return NODE_REFUSED;
    }
    uint32_t got = serve_now (n, now_us, req, &first);
    node_lease_note (n, now_us, req, got);
    if (got < req->count)
        return enqueue (n, now_us, req, first, got);
    n->ops->reply (n->arg, req->cookie, &(struct id_run){ first, got }, 1);
    return NODE_ANSWERED;
}
