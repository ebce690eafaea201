/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ids.c - a node's requests for ids: taken, served here, given up
 *
 * Ids are given to requests in increasing order, each above all before ('last_id'), so each asker gets his so: what he
 * asked for first is complete first.  Our own generator is advanced over ids that came from above, requests that go up
 * carry 'last_id', and an answer from above is not used once ours has gone on.
 *
 * A request waits in the queue from when it cannot be served at once until it is complete.  Askers are served by
 * turns, a millisecond's ids each.  The last few ids of a millisecond are not for those who wait but for newcomers that ask for
 * no more, whose turn it would be: they need not wait for its end.  While the node cannot generate, what waits goes up
 * (node/forward.c).
 */
#include <errno.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define MAX_BROKERS_WAITING 65536 /* requests; each child has one or two here */
#define TIME_UNKNOWN UINT64_MAX   /* as arrival_ms */
#define OVERLOAD "more ids are asked for than can be made in fluid.max-backlog: ask again later, or elsewhere"

/* --- order ----------------------------------------------------------------------------------- */

/* The first millisecond in which all ids of our generator, if we own one, are above 'id'. */
static uint64_t above_ms (const struct node *n, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    return f.timestamp_ms + (n->owner && f.generator >= n->gen.generator);
}

/* Ids made here are above 'last_id' anyhow. */
uint64_t node_ids_floor_ms (const struct node *n, fluid_t after)
{
    return after > n->last_id ? above_ms (n, after) : 0;
}

static void step_to (struct node *n, uint64_t now_us, fluid_t id)
{
    clock_forward (n->clock, now_us, fluid_split (id).timestamp_ms * 1000);
}

void node_ids_follow (struct node *n, uint64_t now_us, fluid_t last)
{
    uint64_t ms = above_ms (n, last);

    if (n->last_id < last) /* an answer may overtake another */
        n->last_id = last;
    fluid_gen_advance (&n->gen, ms);
    if (n->cursor_ms < ms)
        n->cursor_ms = ms;
    step_to (n, now_us, last);
}

void node_ids_close_past (struct node *n, uint64_t now_us)
{
    uint64_t ms = node_now_ms (n, now_us);

    fluid_gen_advance (&n->gen, ms);
    if (n->cursor_ms < ms)
        n->cursor_ms = ms;
}

/* Ids that a request waits with count as not made yet; milliseconds that passed while it waited may be filled. */
uint64_t node_position_ms (const struct node *n, uint64_t now_us)
{
    uint64_t ms = max_u64 (node_now_ms (n, now_us), n->cursor_ms);

    const struct pending *p;

    TAILQ_FOREACH (p, &n->queue.all, link) {
        uint64_t floor_ms = p->asked > 0 ? p->asked_ms : n->cursor_ms; /* they may be overtaken on their way */
        uint64_t oldest_ms = p->nruns > 0 ? fluid_split (p->run[0].first).timestamp_ms
                                          : max_u64 (p->arrival_ms, floor_ms);

        if (oldest_ms < ms)
            ms = oldest_ms;
    }
    return ms;
}

/* --- answers --------------------------------------------------------------------------------- */

static void note_wait (struct node *n, uint64_t now_us, const struct pending *p)
{
    uint64_t us = now_us > p->arrival_us ? now_us - p->arrival_us : 0;

    if (n->stats.longest_stall_us < us)
        n->stats.longest_stall_us = us;
}

static void fail (struct node *n, void *cookie, int errnum, const char *text)
{
    if (errnum == EAGAIN)
        n->stats.refused++;
    else if (errnum == EHOSTUNREACH)
        n->stats.unreachable++;
    n->ops->fail (n->arg, cookie, errnum, text);
}

/* The request is answered: forget it, but where its share is still to come from above it keeps its place. */
static void leave (struct node *n, struct pending *p)
{
    p->cookie = NULL;
    if (p->asked == 0)
        queue_remove (&n->queue, p);
}

void node_ids_leave_failed (struct node *n, struct pending *p, int errnum, const char *text)
{
    fail (n, p->cookie, errnum, text);
    leave (n, p);
}

void node_ids_leave_complete (struct node *n, uint64_t now_us, struct pending *p)
{
    note_wait (n, now_us, p);
    n->ops->reply (n->arg, p->cookie, p->run, p->nruns);
    leave (n, p);
}

/* --- generating ------------------------------------------------------------------------------ */

/* Make up to 'want' ids at 't_ms', which node_may_generate () allowed.  Returns how many, 0: none left. */
static uint32_t reserve (struct node *n, uint64_t t_ms, uint32_t want, fluid_t *first)
{
    int got = fluid_gen_reserve (&n->gen, t_ms, want, first);

    if (got <= 0)
        return 0;
    n->cursor_ms = t_ms;
    n->last_id = *first + (uint32_t)got - 1;
    n->stats.ids += (uint64_t)got;
    return (uint32_t)got;
}

/* Whether a request may be served at '*now_ms', as to order.  For a child's sake the clock steps forward; a
 * client's 'after' never moves it (he may ask for any), and the clock that leads is moved by nobody.
 */
static bool is_ripe (struct node *n, uint64_t now_us, bool from_broker, fluid_t after, uint64_t *now_ms)
{
    uint64_t ms = node_ids_floor_ms (n, after);

    if (ms <= *now_ms)
        return true;
    if (!from_broker)
        return false;
    step_to (n, now_us, after);
    return node_may_generate (n, now_us, now_ms) && ms <= *now_ms;
}

/* The first millisecond that a waiting request may use: one that passed while it waited will do. */
static uint64_t first_ms (const struct node *n, const struct pending *p)
{
    uint64_t ms = node_ids_floor_ms (n, p->after);

    if (ms < p->arrival_ms)
        ms = p->arrival_ms;
    if (ms < n->cur.lo_ms)
        ms = n->cur.lo_ms;
    return ms > n->cursor_ms ? ms : n->cursor_ms;
}

/* Ids of the millisecond that those who wait may have: who asked for nothing else and is complete with them has all. */
static uint32_t left_now (const struct node *n, uint64_t now_ms, const struct pending *p)
{
    struct fluid_fields last = fluid_split (n->last_id);
    bool used = last.timestamp_ms == now_ms && last.generator == n->gen.generator;
    uint32_t left = FLUID_PER_MS - (used ? last.sequence + 1 : 0), lack = p->count - p->got;

    if (p->asker->length == 1 && lack <= left)
        return lack;
    return left > FOR_NEWCOMERS ? left - FOR_NEWCOMERS : 0;
}

/* Give a waiting request up to 'want' ids, as far as the time allows.  Returns how many. */
static uint32_t generate (struct node *n, struct pending *p, uint64_t now_ms, uint32_t want)
{
    uint32_t got = 0;

    for (uint64_t t = first_ms (n, p); t <= now_ms && got < want; t++) {
        uint32_t left = t == now_ms ? left_now (n, now_ms, p) : FLUID_PER_MS;
        uint32_t k = want - got < left ? want - got : left;
        fluid_t first;

        if (k == 0 || (k = reserve (n, t, k, &first)) == 0)
            continue;
        if (queue_add_run (&n->queue, p, first, k) < 0)
            break;
        got += k;
    }
    return got;
}

/* The first of an asker's requests that may be served at '*now_ms'. */
static struct pending *find_ripe (struct node *n, uint64_t now_us, const struct asker *a, uint64_t *now_ms)
{
    struct pending *p;

    TAILQ_FOREACH (p, &a->waiting, turn)
        if (is_ripe (n, now_us, p->from_broker, p->after, now_ms))
            return p;
    return NULL;
}

/* Serve a request in its asker's turn.  Returns false where this millisecond is used up, and the turn with it. */
static bool serve (struct node *n, uint64_t now_us, uint64_t now_ms, struct pending *p)
{
    uint32_t lack = p->count - p->got, turn = p->asker->turn;
    uint32_t want = lack < turn ? lack : turn;
    uint32_t got = generate (n, p, now_ms, want);

    queue_use_turn (&n->queue, p->asker, got);
    if (0 < got && got < want)
        queue_end_turn (&n->queue, p->asker);
    if (p->got == p->count)
        node_ids_leave_complete (n, now_us, p);
    else if (got > 0)
        queue_begun (&n->queue, p); /* what it passed was not ripe, and gets ids above */
    return got == want;
}

static void generate_waiting (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    size_t unripe = 0; /* askers in a row that have nothing to be served now */

    while (unripe < n->queue.naskers) {
        struct asker *a = TAILQ_FIRST (&n->queue.round);
        struct pending *p = find_ripe (n, now_us, a, &now_ms);

        if (!node_may_generate (n, now_us, &now_ms))
            return;
        unripe = p ? 0 : unripe + 1;
        if (!p)
            queue_end_turn (&n->queue, a);
        else if (!serve (n, now_us, now_ms, p))
            break;
    }
    if (n->queue.length > 0)
        node_wake_ms (n, now_us, now_ms + 1);
}

/* --- far ahead ------------------------------------------------------------------------------- */

/* Whether a request names an id so far ahead of the time here that it is not waited for.  A client may name what he
 * likes; a broker has seen the id, and none lies more than two leases ahead of the root's time, which a crash may add.
 */
static bool is_far (const struct node *n, uint64_t now_us, bool from_broker, fluid_t after)
{
    uint64_t reach_ms = n->config.max_backlog_ms + (from_broker && !n->clock->leads ? 2 * n->root_lease_ms : 0);

    return n->clock->known && node_ids_floor_ms (n, after) > node_now_ms (n, now_us) + reach_ms;
}

#define FAR_AHEAD "the id that these must be above lies more than fluid.max-backlog ahead of the time here"

/* Requests that came before the time was known: now they can be judged. */
static void judge (struct node *n, uint64_t now_us)
{
    struct pending *p, *next;

    n->unjudged = false;
    for (p = TAILQ_FIRST (&n->queue.all); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->arrival_ms != TIME_UNKNOWN)
            continue;
        p->arrival_ms = node_now_ms (n, now_us);
        if (p->cookie && is_far (n, now_us, p->from_broker, p->after))
            node_ids_leave_failed (n, p, EAGAIN, FAR_AHEAD);
    }
}

/* --- deadlines ------------------------------------------------------------------------------- */

/* Fail those that waited long enough: for somebody who serves, or where ids are made for their turn, too. */
static void expire (struct node *n, uint64_t now_us, bool active)
{
    uint64_t timeout_us = (n->config.forward_timeout_ms + (active ? n->config.max_backlog_ms : 0)) * 1000;
    struct pending *p, *next;

    for (p = TAILQ_FIRST (&n->queue.all); p && p->arrival_us + timeout_us <= now_us; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->cookie && active)
            node_ids_leave_failed (n, p, EAGAIN, OVERLOAD);
        else if (p->cookie)
            node_ids_leave_failed (n, p, EHOSTUNREACH, n->lessor.ops->excuse (n));
    }
    if (p)
        node_wake (n, p->arrival_us + timeout_us);
    node_forward_review (n);
}

/* The 40 bits of time are used up: only the clock that leads may say so. */
static bool is_over (const struct node *n, uint64_t now_us)
{
    return n->clock->leads && node_now_ms (n, now_us) > FLUID_TIMESTAMP_MAX;
}

static void fail_all (struct node *n, int errnum, const char *text)
{
    struct pending *p;

    node_forward_end (n);
    while ((p = TAILQ_FIRST (&n->queue.all)))
        node_ids_leave_failed (n, p, errnum, text);
}

void node_ids_stop (struct node *n)
{
    fail_all (n, EHOSTUNREACH, "the fluid service of this broker is stopping");
}

void node_ids_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms;

    if (n->queue.length == 0)
        return;
    if (n->unjudged && n->clock->known)
        judge (n, now_us);
    if (node_may_generate (n, now_us, &now_ms)) {
        node_forward_abandon (n);
        generate_waiting (n, now_us, now_ms);
    }
    bool active = node_may_generate (n, now_us, &now_ms);
    expire (n, now_us, active);
    if (active)
        return;
    if (is_over (n, now_us))
        fail_all (n, EOVERFLOW, TIME_IS_OVER);
    else
        node_forward_waiting (n, now_us); /* B_FORWARD: whoever cannot generate, whyever */
}

/* --- requests -------------------------------------------------------------------------------- */

static const char *asker_of (const struct node_request *req)
{
    return req->asker ? req->asker : "";
}

/* Two forwards of a broker may be under way: each names what its ids must be above, so their order is its own. */
static enum asker_kind kind_of (const struct node_request *req)
{
    if (!req->from_broker)
        return ASKER_CLIENT;
    return req->count <= FOR_NEWCOMERS ? ASKER_BROKER_FEW : ASKER_BROKER;
}

static struct asker *waiting_of (const struct node *n, const struct node_request *req)
{
    return queue_asker (&n->queue, asker_of (req), kind_of (req));
}

/* Whether it is a request's turn before all that waits. */
static bool is_first (const struct node *n, const struct node_request *req)
{
    if (n->queue.length == 0)
        return true;
    return req->count <= FOR_NEWCOMERS && !n->forward.busy && !n->newcomers.busy && !waiting_of (n, req);
}

/* Serve a request at once, wholly or in part.  Returns how many ids it got. */
static uint32_t serve_now (struct node *n, uint64_t now_us, const struct node_request *req, fluid_t *first)
{
    uint64_t now_ms;

    if (!is_first (n, req) || !node_may_generate (n, now_us, &now_ms)
        || !is_ripe (n, now_us, req->from_broker, req->after, &now_ms))
        return 0;
    return reserve (n, now_ms, req->count, first);
}

/* Whether it would take too long until the request is complete, by turns.  What all wait for is more than that. */
static bool takes_too_long (const struct node *n, const struct node_request *req)
{
    uint64_t max = (n->config.max_backlog_ms + 1) * FLUID_PER_MS;

    return n->queue.missing + req->count > max
           && queue_ahead (&n->queue, asker_of (req), kind_of (req), req->count) > max;
}

/* Nobody has more of the places than are free: there is always one for a newcomer. */
static bool has_too_many (const struct node *n, const struct node_request *req)
{
    const struct asker *a = waiting_of (n, req);

    return (a ? a->length : 0) + n->queue.length >= n->config.max_waiting;
}

/* Why a request may not wait; NULL: it may. */
static const char *overload (const struct node *n, uint64_t now_us, const struct node_request *req)
{
    if (is_far (n, now_us, req->from_broker, req->after))
        return FAR_AHEAD;
    if (req->from_broker)
        return n->queue.length < MAX_BROKERS_WAITING ? NULL : "too many brokers' requests wait";
    if (takes_too_long (n, req))
        return OVERLOAD;
    if (has_too_many (n, req))
        return "this asker's share of fluid.max-waiting waits already: ask again later, or for more ids at a time";
    return NULL;
}

static void enqueue (struct node *n, uint64_t now_us, const struct node_request *req, fluid_t first, uint32_t got)
{
    struct pending *p = queue_add (&n->queue, asker_of (req), kind_of (req), req->count);

    if (!p) {
        fail (n, req->cookie, ENOMEM, NULL);
        return;
    }
    p->cookie = req->cookie;
    p->after = req->after;
    p->arrival_us = now_us;
    p->arrival_ms = n->clock->known ? node_now_ms (n, now_us) : TIME_UNKNOWN;
    n->unjudged = n->unjudged || !n->clock->known;
    n->has_newcomers = n->has_newcomers || req->count <= FOR_NEWCOMERS;
    n->stats.stalls++;
    if (got > 0 && queue_add_run (&n->queue, p, first, got) < 0)
        node_ids_leave_failed (n, p, ENOMEM, NULL);
    node_tick (n, now_us);
}

void node_block (struct node *n, uint64_t now_us, const struct node_request *req)
{
    fluid_t first = 0;
    const char *why;

    n->stats.requests++;
    if (req->count < 1 || req->count > NODE_MAX_COUNT) {
        fail (n, req->cookie, EINVAL, "count must be 1 to 65536");
        return;
    }
    if (n->stopped) {
        fail (n, req->cookie, EHOSTUNREACH, "the fluid service of this broker is stopping");
        return;
    }
    if ((why = overload (n, now_us, req))) {
        fail (n, req->cookie, EAGAIN, why);
        return;
    }
    uint32_t got = serve_now (n, now_us, req, &first);
    if (got == req->count)
        n->ops->reply (n->arg, req->cookie, &(struct run){ first, got }, 1);
    else
        enqueue (n, now_us, req, first, got);
}

void node_cancel (struct node *n, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg)
{
    struct pending *p, *next;

    for (p = TAILQ_FIRST (&n->queue.all); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->cookie && gone (p->cookie, arg))
            leave (n, p);
    }
    node_tick (n, now_us);
}
